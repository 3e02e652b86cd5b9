"""Names as people read them: `adar-ucb tight eps=0.1` becomes `adar-ucb tight rdp(2, 0.1)`, so that every ε is at one δ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar, cast

T = TypeVar("T")
_SOURCES = ("spec", "spec_diff", "commands")
"""Fields of documents whose texts are files and commands."""
_LEVEL = re.compile(r"(?<!\S)(?:eps|rho)=\S+")
_STATED = re.compile(r"\((?P<numbers>[^()]+)\)-(?P<kind>RDP|DP)|(?<!\S)(?P<number>[\d.e+-]+)-(?P<alone>GDP|zCDP|DP)\b")


def guarantee_of(statement: str) -> str:
    """Short name of the guarantee that a claim states; empty where none is recognized.

    >>> guarantee_of("all actions are (2, 0.1)-RDP"), guarantee_of("all actions are (1, 1e-06)-DP; rewards are binary")
    ('rdp(2, 0.1)', 'dp(1, 1e-06)')
    >>> guarantee_of("all actions are 0.5-DP"), guarantee_of("the output is 1-GDP"), guarantee_of("no privacy")
    ('pure(0.5)', 'gdp(1)', '')
    """
    if (match := _STATED.search(statement)) is None:
        return ""
    kind = match["kind"].lower() if match["kind"] else {"DP": "pure"}.get(match["alone"], match["alone"].lower())
    return f"{kind}({match['numbers'] or match['number']})"


def titled(label: str, statement: str) -> str:
    """The label with the guarantee of a claim in place of the ε or ρ of the claim's own definition.

    >>> titled("dp-se tight eps=1 on trial", "all actions are 1-DP"), titled("dp-se eps=1", "no privacy")
    ('dp-se tight pure(1) on trial', 'dp-se eps=1')
    """
    return _LEVEL.sub(guarantee_of(statement) or r"\g<0>", label)


def titles_of(document: object) -> dict[str, str]:
    """Label -> title of what states one claim, and of its twin; none where two titles are the same.

    >>> titles_of([{"label": "a eps=1", "claim": "1-DP"}, {"label": "a eps=1 again", "twin_of": "a eps=1"}])
    {'a eps=1': 'a pure(1)', 'a eps=1 again': 'a pure(1) again'}
    """
    stated: dict[str, set[str]] = {}
    for item in (labeled := _labeled(document)):
        if claim := item.get("promise") or item.get("claim"):
            stated.setdefault(str(item["label"]), set()).add(str(claim["statement"] if isinstance(claim, dict) else claim))
    stated |= {str(item["label"]): stated[owner] for item in labeled if (owner := str(item.get("twin_of"))) in stated}
    titles = {label: titled(label, *claims) for label, claims in stated.items() if len(claims) == 1}
    return titles if len(set(titles.values())) == len(titles) else {}


def _labeled(value: object) -> list[dict[str, object]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) and "label" in value else []
    return own + [item for each in inner for item in _labeled(each)]


def with_titles(value: T, titles: Mapping[str, str]) -> T:
    """Any texts, lists and dictionaries with titles in place of labels, also inside sentences; keys and sources stay.

    >>> with_titles({"a eps=1": ["regret of a eps=1.", "a eps=1.5"], "spec": "a eps=1"}, {"a eps=1": "a pure(1)"})
    {'a eps=1': ['regret of a pure(1).', 'a eps=1.5'], 'spec': 'a eps=1'}
    """
    return cast("T", _named(value, titles))


def _named(value: object, titles: Mapping[str, str]) -> object:
    if isinstance(value, dict):
        return {key: item if key in _SOURCES else _named(item, titles) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, titles) for item in value]
    if isinstance(value, str) and _LEVEL.search(value) is not None:
        for label in sorted(titles, key=len, reverse=True):
            plain = titles[label].replace("\\", r"\\")
            value = re.sub(rf"(?<![\w-]){re.escape(label)}(?=[^\w\s]*(?:\s|$))", plain, value)
    return value
