"""A report document becomes a web page and a PDF that a compliance reviewer can read, check and sign."""

from audits.reporting.difference import compare
from audits.reporting.document import validate
from audits.reporting.render import figures, render_html, render_pdf

__all__ = ["compare", "figures", "render_html", "render_pdf", "validate"]
