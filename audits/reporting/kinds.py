"""Kinds of documents: the type of each, what it may not contradict, and what fills its page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from typing_extensions import ReadOnly, TypedDict

from bandana.audits.reporting.blocks import Section


class Document(TypedDict):
    """Fields that documents of every kind have."""

    schema: ReadOnly[str]
    kind: ReadOnly[str]
    title: ReadOnly[str]
    suite: ReadOnly[str]
    created: ReadOnly[str | None]


D = TypeVar("D")
Contradiction = tuple[str, object, str]
"""Path and value of a field that contradicts others, and why."""


@dataclass(frozen=True)
class Kind(Generic[D]):
    """A kind of document, of one version of its format.

    Attributes:
      schema: version of the format, which a document's field `schema` holds.
      form: type of the documents.
      kickers: field `kind` of a document -> the line above its title.
      headline: tone of the page's head, and its sentence.
      sections: of the page; see `content.sections`.
      detail: further line of the head; empty: none.
      times: path and value of each time in a document but its field `created`.
      contradictions: of the fields of a document.
    """

    schema: str
    form: type
    kickers: Mapping[str, str]
    headline: Callable[[D], tuple[str, str]]
    sections: Callable[[D], list[Section]]
    detail: Callable[[D], str] = lambda document: ""
    times: Callable[[D], Iterable[tuple[str, str | None]]] = lambda document: ()
    contradictions: Callable[[D], Iterable[Contradiction]] = lambda document: ()


KINDS: dict[str, Kind[Any]] = {}
"""Name -> kind of document. A module that has one adds it here: import it before such documents are checked or rendered."""
