"""Names on a page: `adar-ucb tight eps=0.1` becomes `adar-ucb tight rdp(2, 0.1)`, so that every ε on it is at one δ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bandana.audits.documents.report import Report
from bandana.audits.reporting.document import cells_of
from bandana.audits.reporting.numbers import guarantee_of

_LEVEL = re.compile(r"(?<!\S)(?:eps|rho)=\S+")


def with_guarantees(document: Report) -> Report:
    """The document with the guarantee in the label of each cell and audit, in place of the ε or ρ of its own definition."""
    stated = {cell["label"]: cell["promise"]["statement"] for cell in cells_of(document) if cell["promise"] is not None}
    stated |= {audit["label"]: audit["claim"]["statement"] for audit in document["audits"]}
    stated |= {cell["label"]: stated[cell["twin_of"]] for cell in cells_of(document) if cell["twin_of"] in stated}
    shown = {label: _LEVEL.sub(guarantee_of(text), label) for label, text in stated.items() if guarantee_of(text)}
    return _renamed(document, shown) if len(set(shown.values())) == len(shown) else document


def _renamed(value: Any, names: Mapping[str, str], field: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _renamed(item, names, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]
    return names.get(value, value) if field in ("label", "twin_of", "cell", "other") else value
