"""The tables of `docs/algorithms/choose.md`: every entry of the catalog, by problem, protection and budget."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from algorithm_parameters import PAGES, PLACE

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.entry import Entry
from bandana.algorithms.problem import FINITE, LINEAR
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import load_spec

TABLE = re.compile(r"^<!-- choose: ([\w-]+) -->$", re.MULTILINE)
"""Placeholder for the table of one kind of problem, or of `best-arm`, the tests."""
EXPERIMENTS = Path(__file__).parents[2] / "experiments"
BEST_ARM = "best-arm"
PROTECTED = {
    "central": "one reward",
    "joint": "a record, from others",
    "shuffle": "a record, by a shuffler",
    "local": "a record, from the server",
    "none": "nothing",
}
"""Trust model -> what is protected, in the order of the tables."""
BUDGETS = {"renyi": "Rényi", "zcdp": "concentrated", "approximate": "approximate", "pure": "pure"}
"""Guarantee -> its name, in the order of the tables."""
_USE = re.compile(r"^- \*\*Use it\*\* (.*?)(?=^- \*\*|^\n)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.:;])\s")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def filled(markdown: str) -> str:
    """The page with a table in place of each placeholder."""
    return TABLE.sub(lambda found: table(found.group(1)), markdown)


def kinds_of(entry: Entry) -> tuple[str, ...]:
    """The tables that an entry stands in; what plays on arms with features but ignores them stands with the other arms."""
    if _is_test(entry):
        return (BEST_ARM,)
    blind = FINITE in entry.plays_on and not entry.knows_actions
    return tuple(kind for kind in entry.plays_on if not (blind and kind == LINEAR))


def _is_test(entry: Entry) -> bool:
    return entry.family.endswith("best_arm")


def table(kind: str) -> str:
    """Every entry for one kind of problem: what it protects, its budget, when to use it, and a spec to start from.

    The non-private forms of private algorithms share one row.

    Raises:
      ValueError: no entry is for such a problem.
    """
    entries = [entry for entry in CATALOG if kind in kinds_of(entry)]
    if not entries:
        raise ValueError(f"a page asks for algorithms on {kind!r}, for which the catalog has none")
    order = [(model, guarantee) for model in PROTECTED for guarantee in (*BUDGETS, None)]
    entries.sort(key=lambda entry: order.index((entry.privacy_model, entry.guarantee)))
    private = {entry.name for entry in entries if entry.is_private}
    twins = [entry for entry in entries if not entry.is_private and entry.name in private]
    lines = ["| protects | budget | algorithm | use it | spec |", "|---|---|---|---|---|"]
    described = set()
    for entry in entries:
        if entry not in twins:
            use = use_of(entry.name) if entry.name not in described else "as its form above"
            lines.append(_row(entry.privacy_model, entry.guarantee, [entry], kind, use))
            described.add(entry.name)
    if twins:
        lines.append(_row("none", None, twins, kind, "as twins: the same algorithms without noise show what privacy costs"))
    return "\n".join(['<div class="choice" markdown>', "", *lines, "", "</div>"])


def _row(model: str, guarantee: str | None, entries: list[Entry], kind: str, use: str) -> str:
    names = ", ".join(f"[{entry.label}]({page_of(entry.name)}#{entry.name})" for entry in entries)
    named = ", ".join(dict.fromkeys(_spec(entry, kind) for entry in entries))
    return f"| {PROTECTED[model]} | {BUDGETS[guarantee] if guarantee else 'none'} | {names} | {use} | {named} |"


@cache
def page_of(name: str) -> str:
    """The page that describes an algorithm."""
    (found,) = [path.name for path in PAGES.glob("*.md") if name in PLACE.findall(path.read_text(encoding="utf-8"))]
    return found


@cache
def use_of(name: str) -> str:
    """When to use an algorithm: the first sentence of that line on its page."""
    text = (PAGES / page_of(name)).read_text(encoding="utf-8")
    section = text[text.index(f"\n## {name}\n") :].partition("\n## ")[2]
    found = _USE.search(section.partition("\n## ")[0])
    if found is None:
        raise ValueError(f"{page_of(name)} does not say when to use {name}: begin a line with '- **Use it** '")
    return _SENTENCE.split(_LINK.sub(r"\1", " ".join(found.group(1).split())), maxsplit=1)[0].rstrip(".:;")


def _spec(entry: Entry, kind: str) -> str:
    """The shipped spec that shows an entry, linked to the page of specs."""
    named = specs()
    own = [name for name, found in named.items() if (entry.label, kind) in found]
    other = [name for name, found in named.items() if any(label == entry.label for label, _ in found)]
    if not (found := own or other):
        raise ValueError(f"no spec in experiments/ plays {entry.label}")
    name = min(found, key=lambda each: (each.startswith(_LATER), len(named[each])))
    return f"[`{name}.yaml`](../reference/specs.md#{name})"


_LATER = ("ablation", "false-as", "smoke", "capri-wrong", "contextual-real", "nightly")
"""How the names of specs begin that are no place to start from."""


@cache
def specs() -> dict[str, frozenset[tuple[str, str]]]:
    """Each shipped spec with the entries that it names, and the kinds of problems that they play on there."""
    found = {}
    for path in sorted(EXPERIMENTS.glob("*.yaml")):
        cells = list(Plan.of(load_spec(path)).played)
        found[path.stem] = frozenset(
            (cell.entry.label, kind)
            for cell in cells
            for kind in ((BEST_ARM,) if _is_test(cell.entry) else (cell.settings.problem.kind,))
        )
    return found
