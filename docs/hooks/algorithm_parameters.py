"""Tables on the pages of algorithms, from the catalog: the algorithms with their pages, and their parameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bandana.algorithms.catalog import CATALOG, names, of_name
from bandana.algorithms.entry import Entry
from bandana.algorithms.parameters import Parameter

PLACE = re.compile(r"^<!-- parameters: ([\w-]+) -->$", re.MULTILINE)
"""Placeholder on a page, with the name of an algorithm."""
LIST = re.compile(r"^<!-- algorithms -->$", re.MULTILINE)
"""Placeholder for the list of algorithms, on a page beside theirs."""
PAGES = Path(__file__).parents[1] / "algorithms"


def filled(markdown: str) -> str:
    """The page with a table in place of each placeholder."""
    listed = LIST.sub(lambda _: algorithms(), markdown)
    counted = Counter(row for name in PLACE.findall(listed) for row in _rows(name).values())
    shared = [row for row in counted if counted[row] > 1]
    page = PLACE.sub(lambda found: table(found.group(1), shared), listed)
    return f"{page.rstrip()}\n\n## Shared parameters\n\n{_table(shared)}\n" if shared else page


def algorithms() -> str:
    """Each algorithm with its problems, trust models and guarantees, and a link to its description, as a Markdown table.

    Raises:
      KeyError: an algorithm has no page.
    """
    places = {}
    for path in PAGES.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        places |= {name: f"[{title}]({path.name}#{name})" for name in PLACE.findall(text)}
    rows = [
        f"| `{name}` | {', '.join(of_name(name)[0].plays_on)} | {_promises(of_name(name))} | {places[name]} |"
        for name in names()
    ]
    return "\n".join(["| algorithm | problems | trust model and guarantee | page |", "|---|---|---|---|", *rows])


def _promises(entries: list[Entry]) -> str:
    """Trust models and guarantees of an algorithm's private forms."""
    private = [entry for entry in entries if entry.is_private]
    models = dict.fromkeys(entry.privacy_model for entry in private)
    guarantees = dict.fromkeys(str(entry.guarantee).replace("renyi", "Rényi") for entry in private)
    return f"{' or '.join(models)}, {' or '.join(guarantees)}" if private else "not private"


def table(name: str, shared: Sequence[str] = ()) -> str:
    """Parameters of an algorithm in all trust models and guarantees, as a Markdown table.

    Args:
      name: of the algorithm.
      shared: rows that the page lists once, for several algorithms; here their names alone are shown.

    Raises:
      ValueError: the catalog has no such algorithm.
    """
    rows = _rows(name)
    own = [row for row in rows.values() if row not in shared]
    also = [f"`{key}`" for key, row in rows.items() if row in shared]
    more = f"{'Also' if own else 'Parameters:'} {', '.join(also)} ([shared parameters](#shared-parameters))." if also else ""
    return "\n\n".join(part for part in (_table(own) if own else "", more) if part)


def _rows(name: str) -> dict[str, str]:
    """Each parameter's row of a table."""
    entries = [entry for entry in CATALOG if entry.name == name]
    if not entries:
        raise ValueError(f"a page asks for the parameters of {name!r}, which is not in the catalog")
    parameters = {parameter.name: parameter for entry in entries for parameter in entry.parameters.values()}
    return {
        key: f"| `{key}` | {_values(p)} | {_default(p)} | {p.meaning}{_only(key, entries)} |"
        for key, p in parameters.items()
    }


def _table(rows: Sequence[str]) -> str:
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
