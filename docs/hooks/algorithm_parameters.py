"""Tables of parameters on the pages of algorithms, from the catalog's declarations."""

from __future__ import annotations

import re

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.entry import Entry
from bandana.algorithms.parameters import Parameter

PLACE = re.compile(r"^<!-- parameters: ([\w-]+) -->$", re.MULTILINE)
"""Placeholder on a page, with the name of an algorithm, or `all`."""


def filled(markdown: str) -> str:
    """The page with a table in place of each placeholder."""
    return PLACE.sub(lambda found: overview() if found.group(1) == "all" else table(found.group(1)), markdown)


def overview() -> str:
    """All parameters with their meanings and the algorithms that take them, as a Markdown table."""
    takers: dict[tuple[str, str], dict[str, None]] = {}
    for entry in CATALOG:
        for name, parameter in entry.parameters.items():
            takers.setdefault((name, parameter.meaning), {})[entry.name] = None
    rows = [
        f"| `{name}` | {meaning} | {', '.join(f'`{algorithm}`' for algorithm in algorithms)} |"
        for (name, meaning), algorithms in sorted(takers.items())
    ]
    return "\n".join(["| parameter | meaning | algorithms |", "|---|---|---|", *rows])


def table(name: str) -> str:
    """Parameters of an algorithm in all trust models and guarantees, as a Markdown table.

    Raises:
      ValueError: the catalog has no such algorithm.
    """
    entries = [entry for entry in CATALOG if entry.name == name]
    if not entries:
        raise ValueError(f"a page asks for the parameters of {name!r}, which is not in the catalog")
    parameters = {parameter.name: parameter for entry in entries for parameter in entry.parameters.values()}
    rows = [
        f"| `{key}` | {_values(p)} | {_default(p)} | {p.meaning}{_only(key, entries)} |" for key, p in parameters.items()
    ]
    return "\n".join(["| parameter | values | default | meaning |", "|---|---|---|---|", *rows])


def _values(parameter: Parameter) -> str:
    return ", ".join(f"`{option}`" for option in parameter.options) or parameter.kind.value


def _default(parameter: Parameter) -> str:
    return parameter.shown_default if parameter.default is None else f"`{parameter.shown_default}`"


def _only(key: str, entries: list[Entry]) -> str:
    """The forms of the algorithm that have the parameter, where others have not."""
    having = [entry for entry in entries if key in entry.parameters]
    if len(having) == len(entries):
        return ""
    forms = [" ".join(word for word in (entry.privacy_model, entry.guarantee) if word) for entry in having]
    return f" ({', '.join(forms)} only)"
