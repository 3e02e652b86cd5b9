"""Content of the catalog: algorithms one a line, and everything about one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bandana.algorithms import catalog
from bandana.algorithms.entry import Entry
from bandana.algorithms.problem import CONTEXTUAL, FINITE, KERNEL, LINEAR, LINEAR_MDP, MIXTURE, POOLED
from bandana.flows.texts.mistakes import SpecError

_ENVIRONMENTS = {
    FINITE: ("{kind: bernoulli, means: [0.75, 0.5, 0.25]}", 10_000),
    LINEAR: ("{kind: linear, arms: 20, dimension: 3}", 10_000),
    CONTEXTUAL: ("{kind: sphere, actions: 5, dimension: 3}", 2_000),
    KERNEL: ("{kind: rkhs-gap}", 512),
    POOLED: ("{kind: rkhs, contexts: 5, actions: 5}", 1_000),
    MIXTURE: ("{kind: patients}", 2_000),
    LINEAR_MDP: ("{kind: modes}", 2_000),
}
"""Kind of problem -> a small environment of that kind, and a horizon."""
_LEVELS = {"renyi": "{alpha: 2, epsilon: [1, 10]}", "pure": "{epsilon: [1, 10]}",
           "approximate": "{epsilon: [1, 10], delta: 1.0e-5}", "zcdp": "{rho: [0.5, 5]}"}  # fmt: skip


def selected(model: str | None = None, family: str | None = None) -> list[Entry]:
    """Entries in a trust model, of a family or of all families in a folder.

    Raises:
      SpecError: there is no such trust model or family; the message lists them.
    """
    models = list(dict.fromkeys(entry.privacy_model for entry in catalog.known()))
    if model is not None and model not in models:
        raise SpecError(f"--model must be one of {', '.join(models)}, got {model!r}")
    parts = dict.fromkeys(part for entry in catalog.known() for part in (*entry.family.split("/"), entry.family))
    if family is not None and family not in parts:
        raise SpecError(f"--family must be one of {', '.join(parts)}, got {family!r}")
    return [
        e for e in catalog.known() if model in (None, e.privacy_model) and family in (None, e.family, *e.family.split("/"))
    ]


def of_name(name: str) -> list[Entry]:
    """All entries of one algorithm.

    Raises:
      SpecError: there is no such algorithm.
    """
    try:
        return catalog.of_name(name)
    except ValueError as error:
        raise SpecError(str(error)) from error


def overview(entries: Iterable[Entry]) -> list[list[str]]:
    """A row an algorithm: its name, trust models, guarantees, and kinds of problems."""
    rows, by_name = [], dict[str, list[Entry]]()
    for entry in entries:
        by_name.setdefault(entry.name, []).append(entry)
    for name, forms in by_name.items():
        models, guarantees = _distinct(e.privacy_model for e in forms), _distinct(e.guarantee for e in forms if e.guarantee)
        shown = f"{name} ({forms[0].package})" if forms[0].package else name
        rows.append([shown, " ".join(models), " ".join(guarantees) or "-", " ".join(forms[0].plays_on)])
    return rows


def show(entries: Sequence[Entry]) -> None:
    """Prints all that is known of one algorithm."""
    first, console = entries[0], Console()
    package = f", of the package {first.package}" if first.package else ""
    console.print(f"[bold]{first.name}[/bold]  ({first.family}{package}), plays on {', '.join(first.plays_on)} problems\n")
    for entry in entries:
        kind = f"{entry.privacy_model} trust, {entry.guarantee}" if entry.is_private else "non-private"
        bound = "" if entry.bound is None else "; a regret bound is known"
        noise = f"; calibrations: {', '.join(entry.calibrations)}" if entry.calibrations else ""
        console.print(f"[bold]{kind}[/bold]{escape(noise)}{bound}")
        if entry.is_private:
            console.print(f"  claim: {escape(entry.claim)}")
        if entry.part_options:
            parts = "; ".join(f"{part}: {', '.join(options)}" for part, options in entry.part_options.items())
            console.print(f"  parts of a mixed calibration: {escape(parts)}")
        console.print(f"  source: {escape(entry.source)}\n")
    table = Table("parameter", "default", "meaning", box=None, pad_edge=False)
    for name, parameter in {each: item for entry in entries for each, item in entry.parameters.items()}.items():
        forms = [f"{each.privacy_model} {each.guarantee or ''}".strip() for each in entries if name in each.parameters]
        only = "" if len(forms) == len(entries) else f" ({', '.join(forms)} only)"
        options = f" One of {', '.join(parameter.options)}." if parameter.options else ""
        table.add_row(parameter.name, parameter.shown_default, escape(parameter.meaning + options + only))
    console.print(table)
    console.print(f"\n[bold]a spec to start from[/bold]\n{escape(starter(first.name))}", highlight=False)


def starter(name: str) -> str:
    """A small spec that compares the forms of an algorithm: YAML that `bandana run` takes."""
    entries = of_name(name)
    environment, horizon = _ENVIRONMENTS[entries[0].plays_on[0]]
    twins = [] if all(entry.is_private and not entry.stated for entry in entries) else [f"  - algorithm: {name}"]
    if twins and len(entries) > 1:
        twins.append(f"    model: {catalog.NONE}")
    lines = [
        f"name: try-{name}", "seed: 1", f"environment: {environment}", f"horizon: {horizon}", "replications: 20",
        "algorithms:", *twins,
    ]  # fmt: skip
    for guarantee in _distinct(entry.guarantee for entry in entries if entry.guarantee and not entry.stated):
        models = _distinct(entry.privacy_model for entry in entries if entry.guarantee == guarantee)
        lines += [f"  - algorithm: {name}", f"    model: [{', '.join(models)}]", f"    privacy: {_LEVELS[guarantee]}"]
    return "\n".join([*lines, "audit: {rounds: 32, replays: 20000}"]) + "\n"


def facts(entry: Entry) -> dict[str, object]:
    """One entry for machines, its parameters with meaning and default."""
    declared = [
        {"name": item.name, "meaning": item.meaning, "default": item.shown_default, "options": list(item.options)}
        for item in entry.parameters.values()
    ]
    return {**entry.summary(), "label": entry.label, "parameters": declared}


def _distinct(words: Iterable[str | None]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word]
