"""Blocks of a section: plain dictionaries, which both templates render. A template never interprets what a user wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NotRequired, TypedDict

from bandana.audits.documents.audit import Audit
from bandana.audits.reporting.numbers import NONE, number


class Span(TypedDict):
    """Piece of running text; `style` is code, strong or empty, `href` leads to a file next to the report or is empty."""

    text: str
    style: str
    href: str


class Fact(TypedDict):
    """A term and its text."""

    term: str
    spans: list[Span]


class CellOfTable(TypedDict, total=False):
    """Spans, lines or a badge."""

    spans: list[Span]
    lines: list[str]
    badge: str
    tone: str


class ColumnOfTable(TypedDict):
    """Title of a column, with the side that its cells are aligned to."""

    title: str
    align: str
    role: str


class Group(TypedDict):
    """Title above several columns."""

    title: str
    span: int


class Image(TypedDict):
    """Panel of a figure; `file` is its place beside a PDF's source."""

    svg: NotRequired[str]
    alt: str
    title: str
    name: str
    file: NotRequired[str]


class Block(TypedDict, total=False):
    """Fields of a block by its kind: text, note, heading, list, facts, table, figure, code or sign_off."""

    kind: str
    text: str
    spans: list[Span]
    items: list[str]
    pairs: list[Fact]
    caption: str
    columns: list[ColumnOfTable] | list[str]
    rows: list[list[CellOfTable]] | list[str]
    groups: list[Group]
    widths: list[float]
    narrow: bool
    together: bool
    tall: bool
    size: str
    images: list[Image]


class Section(TypedDict):
    """Section of a page; `part` is main, page (main, and a new page begins on paper) or appendix."""

    id: str
    part: str
    title: str
    blocks: list[Block]


Column = ColumnOfTable | str
"""Text alone is aligned to the left."""
Cell = CellOfTable | str
_LONGEST_TOGETHER = 14
_LONGEST_IN_TABLE = 120


def span(text: str, style: str = "") -> Span:
    """Piece of running text; `style` is code, strong or empty."""
    return {"text": text, "style": style, "href": ""}


def link(text: str, path: str) -> Span:
    """Link to a file next to the report; plain text on paper."""
    return {"text": text, "style": "", "href": path}


def _spans(content: str | list[Span]) -> list[Span]:
    return [span(content)] if isinstance(content, str) else content


def plain(value: object) -> str:
    """Text of a value from a document."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


def at_least(value: float | None) -> str:
    """Text of a lower bound."""
    return "none" if value is None else f"≥ {number(value)}"


def right(title: str, role: str = "") -> Column:
    """Column of numbers, aligned to the right; `role` is claimed, accounted, measured or empty."""
    return {"title": title, "align": "right", "role": role}


def spans_cell(*spans: Span) -> CellOfTable:
    """Cell of running text."""
    return {"spans": list(spans)}


def code_cell(text: str) -> CellOfTable:
    """Cell of code."""
    return spans_cell(span(text, "code"))


def link_of(text: str, path: str | None) -> Cell:
    """Cell of text that links to a file next to the report, if there is one."""
    return text if path is None else spans_cell(link(text, path))


def lines_of(lines: Sequence[str]) -> Cell:
    """A cell of several lines."""
    return {"lines": list(lines)}


def badge(text: str, tone: str) -> Cell:
    """Cell with one word on a colored background; `tone` is good, bad, unsure or quiet."""
    return {"badge": text, "tone": tone}


TONES = {"PASS": "good", "NOT REFUTED": "quiet", "FAIL": "bad", "INCONCLUSIVE": "unsure"}
"""Color of each verdict, whatever the strength of the promise."""


def verdict_badge(verdict: str) -> Cell:
    """Cell with a verdict."""
    return badge(verdict, TONES[verdict])


def paragraph(text: str | list[Span]) -> Block:
    """Running text."""
    return {"kind": "text", "spans": _spans(text)}


def note(text: str) -> Block:
    """Small print."""
    return {"kind": "note", "text": text}


def heading(text: str) -> Block:
    """A heading inside a section."""
    return {"kind": "heading", "text": text}


def bullets(items: Sequence[str]) -> Block:
    """A list."""
    return {"kind": "list", "items": list(items)}


def fact_list(pairs: Sequence[tuple[str, str | list[Span]]]) -> Block:
    """List of terms, each with its text or spans."""
    return {"kind": "facts", "pairs": [{"term": term, "spans": _spans(content)} for term, content in pairs]}


def code_block(text: str) -> Block:
    """Preformatted text."""
    return {"kind": "code", "text": text}


def table_block(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    groups: list[tuple[str, int]] | None = None,
    widths: list[float] | None = None,
    narrow: bool = False,
) -> Block:
    """A table.

    Args:
      caption: printed above it.
      columns: from `right`; a title alone is a column of text.
      rows: cells, one per column, plain text among them; the first of a row is its header.
      groups: titles above the columns, each with how many it spans; together all columns.
      widths: of the columns on paper, relative to each other.
      narrow: no wider than its content.
    """
    cells = [[spans_cell(span(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows]
    words = [json.dumps(cell, ensure_ascii=False) for row in cells for cell in row]
    return {
        "kind": "table",
        "caption": caption,
        "columns": [ColumnOfTable(title=c, align="left", role="") if isinstance(c, str) else c for c in columns],
        "rows": cells,
        "groups": [{"title": title, "span": count} for title, count in groups or []],
        "widths": widths or [1.0] * len(columns),
        "narrow": narrow,
        "together": len(rows) <= _LONGEST_TOGETHER and sum(map(len, words)) < 6000,
        "tall": max(map(len, words), default=0) > 600,
    }


def figure_block(
    name: str, caption: str, images: Sequence[tuple[str, str]], *, size: str, titles: Sequence[str] | None = None
) -> Block:
    """A figure of one or more panels.

    Args:
      name: what the figure shows, in words that become the names of its files: with the title of a panel, if it has one.
      caption: printed above it.
      images: (SVG text, alternative text), one per panel.
      size: small, medium or large.
      titles: of the panels.
    """
    shown = titles or [""] * len(images)
    return {
        "kind": "figure",
        "caption": caption,
        "size": size,
        "images": [
            {"svg": svg, "alt": alt, "title": title, "name": file_name(f"{name} {title}")}
            for (svg, alt), title in zip(images, shown, strict=True)
        ],
    }


def file_name(words: str) -> str:
    """Words as the name of a file: lower case, hyphens between them.

    >>> file_name("Regret by algorithm ε = 0.5"), file_name("gap: adar-ucb tight eps=1")
    ('regret-by-algorithm-eps-0.5', 'gap-adar-ucb-tight-eps-1')
    """
    plain = re.sub(r"[^a-z0-9.]+", "-", words.lower().replace("ε", "eps").replace("µ", "mu"))
    return plain.strip("-.")[:100].strip("-.")


def name_images(sections: list[Section]) -> None:
    """Makes the names of all images unique: a later one of the same name gets a number."""
    seen: set[str] = set()
    for section in sections:
        for block in section["blocks"]:
            for image in block.get("images", ()):
                plain, count = image["name"], 1
                while image["name"] in seen:
                    count += 1
                    image["name"] = f"{plain}-{count}"
                seen.add(image["name"])


def shared_facts(audits: Sequence[Audit], terms: Sequence[tuple[str, Callable[[Audit], str]]], caption: str) -> list[Block]:
    """List of the facts that all audits share, and a table of those that differ, one row per audit (long texts by groups).

    Args:
      audits: at least one.
      terms: (term, audit -> text); a term without text for any audit is omitted.
      caption: of the table.
    """
    texts = [(term, [get(audit) for audit in audits]) for term, get in terms]
    facts = [(term, values[0]) for term, values in texts if any(values) and len(set(values)) == 1]
    differing = [(term, values) for term, values in texts if len(set(values)) > 1]
    short = [(term, values) for term, values in differing if max(map(len, values)) <= _LONGEST_IN_TABLE]
    for term, values in differing:
        for value in dict.fromkeys(values) if (term, values) not in short else ():
            holders = [a["label"] for a, v in zip(audits, values, strict=True) if v == value]
            facts.append((f"{term} ({', '.join(holders)})", value))
    blocks = [fact_list(facts)] if facts else []
    if not short:
        return blocks
    columns = ["Audit", *(right(term) if len(max(v, key=len)) <= 8 else term for term, v in short)]
    rows = [[audit["label"], *(values[index] or NONE for _, values in short)] for index, audit in enumerate(audits)]
    widths = [1.4] + [min(3.0, max(0.8, max(map(len, values)) / 14)) for _, values in short]
    return [*blocks, table_block(caption, columns, rows, widths=widths)]


def pair_rows(mapping: Mapping[str, object]) -> list[list[Cell]]:
    """Rows of a table of names and values."""
    return [[str(key), code_cell(plain(value))] for key, value in mapping.items()]
