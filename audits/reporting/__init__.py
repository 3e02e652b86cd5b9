"""Renders a report document as a web page and a PDF that a compliance reviewer can read, check and sign."""

from bandana.audits.reporting import changes, content  # noqa: F401 (kinds of documents that they register)
from bandana.audits.reporting.difference import compare
from bandana.audits.reporting.document import validate
from bandana.audits.reporting.render import figures, render_html, render_pdf

__all__ = ["compare", "figures", "render_html", "render_pdf", "validate"]
