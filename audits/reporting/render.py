"""Renders the blocks of a report as one self-contained web page, or as a PDF."""

from __future__ import annotations

import copy
import json
import re
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandana.audits.names import titles_of, with_titles
from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import Image, Section, name_images
from bandana.audits.reporting.document import kind_of, validate
from bandana.audits.reporting.figures.drawing import ROLES
from bandana.audits.reporting.kinds import Document

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_WORD = re.compile(r"\S{15,}")
_UNBREAKABLE = re.compile(r"[^\s/_.,:=-]{25,}")
_HASH = re.compile(r"[0-9a-f]{64}")
_LONG_WORD = re.compile(r"(?<![<&])\b[\w/.,:=-]{12,}\b(?![^<]*>)")
_PUNCTUATION = re.compile(r"[/_.,:=-]+(?=\w)")
_MADE_WITH = ("jinja2", "matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "typst")
_ZERO_WIDTH_SPACE = "\u200b"


def render_html(document: Document) -> str:
    """Renders the report as one HTML page with embedded figures and style, which loads nothing and runs no script.

    Args:
      document: as the schema that it names describes it.

    Returns:
      HTML text, the same for the same document.

    Raises:
      ValueError: from `validate`; the message names the JSON path, the value and the problem.
    """
    validate(document)
    from markupsafe import Markup

    page = _page(document)
    for index, image in enumerate(_images(page["sections"]), start=1):
        image["svg"] = Markup(_inline(image["svg"], f"f{index}-"))  # matplotlib escaped it
    style = Markup(_resource("report.css"))  # our own file
    return _template("report.html.j2").render(**page, style=style, roles=ROLES)


def figures(document: Document) -> dict[str, str]:
    """Figures by name, such as `regret-by-algorithm-rdp-2-1`, each a standalone SVG; errors: see `render_html`."""
    validate(document)
    return {image["name"]: image["svg"] for image in _images(_sections(document))}


def render_pdf(document: Document, *, appendix: bool = False) -> bytes:
    """Renders the report as a PDF, with the content and order of the web page.

    Args:
      document: as of `render_html`, which has the same errors.
      appendix: whether the PDF has the appendix too, which the web page always has.

    Returns:
      the PDF, with the date of its last result and Typst's own fonts: the same for the same document.
    """
    validate(document)
    import typst

    page = _page(document)
    cut = [each for each in page["sections"] if each["part"] == "appendix" and not appendix]
    page["date"], page["cut"] = None, [each["title"] for each in cut]
    page["sections"] = [each for each in page["sections"] if each not in cut]
    if document["created"] is not None:
        page["date"] = [*datetime.fromisoformat(document["created"]).astimezone(UTC).timetuple()[:6]]
    with tempfile.TemporaryDirectory(prefix="bandana-report-") as folder:
        root = Path(folder)
        for index, image in enumerate(_images(page["sections"]), start=1):
            image["file"] = f"figure-{index}.svg"
            (root / image["file"]).write_text(image.pop("svg"), encoding="utf-8")
        # Typst sets every word of a user from a JSON string: nothing in it is markup.
        (root / "report.json").write_text(json.dumps(_breakable(page)), encoding="utf-8")
        source = _template("report.typ.j2").render(roles=ROLES)
        (root / "report.typ").write_text(source, encoding="utf-8")
        return bytes(typst.compile(str(root / "report.typ"), root=folder, format="pdf", ignore_system_fonts=True))


def _images(sections: list[Section]) -> list[Image]:
    """Images of all figures, in reading order."""
    return [image for section in sections for block in section["blocks"] for image in block.get("images", ())]


def _resource(name: str) -> str:
    """Text of a file next to this module."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def load() -> None:
    """Imports the rendering libraries that are installed in advance, which takes a second or two."""
    with suppress(ModuleNotFoundError):
        for name in _MADE_WITH:
            import_module(name)


def _page(document: Document) -> dict[str, Any]:
    kind, named = kind_of(document), with_titles(document, titles_of(document))
    tone, headline = kind.headline(named)
    return {
        "kicker": kind.kickers[document["kind"]],
        "title": named["title"],
        "suite": document["suite"],
        "created": origin.computed(document),
        "tone": tone,
        "headline": headline,
        "detail": kind.detail(named),
        "about": document.get("description", ""),
        "sections": _sections(document),
    }


def _sections(document: Document) -> list[Section]:
    """Copy of the sections; page, PDF and figures of one document draw its figures once."""
    return copy.deepcopy(_sections_of(json.dumps(document)))


@lru_cache(maxsize=1)
def _sections_of(text: str) -> list[Section]:
    document = json.loads(text)
    sections = kind_of(document).sections(with_titles(document, titles_of(document)))
    name_images(sections)
    return sections


@lru_cache
def _template(name: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["soft"] = _soft
    environment.tests["holding_long_words"] = lambda cell: bool(_UNBREAKABLE.search(json.dumps(cell, ensure_ascii=False)))
    return environment.from_string(_resource(name))


def _soft(markup: Markup) -> Markup:
    """Escaped text with break opportunities after punctuation in long words; tags and entities stay unchanged."""
    words = _LONG_WORD.sub(lambda match: _PUNCTUATION.sub(r"\g<0><wbr>", match.group()), markup)
    return type(markup)(words)


def _inline(svg: str, prefix: str) -> str:
    """SVG file as an element of a page: own ids, no size, no namespaces, hidden from screen readers."""
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    svg = re.sub(r'\bxlink:href="#', f'href="#{prefix}', svg)
    head, body = svg.split(">", 1)
    head = re.sub(r'\s(?:xmlns(?::\w+)?|width|height|version)="[^"]*"', "", head)
    return f'{head} aria-hidden="true" focusable="false">{body.strip()}'


def _breakable(value: Any, *, is_code: bool = False) -> Any:
    """Page with break opportunities in long words, so that no table cell overflows on paper."""
    if isinstance(value, dict):
        code = value.get("kind") == "code"
        return {key: _breakable(item, is_code=code) for key, item in value.items()}
    if isinstance(value, list):
        return [_breakable(item) for item in value]
    if not isinstance(value, str) or _HASH.fullmatch(value):
        return value
    room = 80 if is_code else 10

    def split(match: re.Match[str]) -> str:
        word = match.group()
        if is_code:
            return _ZERO_WIDTH_SPACE.join(word[i : i + room] for i in range(0, len(word), room))
        parts = re.findall(r"[^/_.,:=-]*[/_.,:=-]+|[^/_.,:=-]+", word)
        cut = [part[i : i + room] for part in parts for i in range(0, len(part), room)]
        return _ZERO_WIDTH_SPACE.join(cut)

    return _WORD.sub(split, value)
