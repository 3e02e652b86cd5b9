"""Explains a spec: its cells, what each claims, what is done already, and what the rest will cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from bandana.algorithms.problem import ARMS
from bandana.audits.names import titled
from bandana.audits.outcome import claimed_as, composed, main_quantity, overspends
from bandana.flows.cells.audits import AUDIT, audit_key
from bandana.flows.cells.charging import book_keeper
from bandana.flows.cells.play import is_played
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.progress import duration
from bandana.flows.folder.settings import DataFolder, n_workers
from bandana.flows.folder.store import Store
from bandana.flows.plan.cell_checks import check_cells
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.plan.roles import Role
from bandana.flows.problems.environment import Environment, EnvironmentFields
from bandana.flows.queries.cost import DAY, audits_seconds, block_paces, played
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Relation

_PLAYED = 2_000
"""Most rounds of a run by which claims are checked."""


def explain(
    plan: Plan, steps: Sequence[str], data: Path | None, workers: int | None = None, most_measured: int | None = None
) -> JsonObject:
    """The explanation as plain data.

    Args:
      plan: of the spec, whose files are bound if the data folder knows them.
      steps: what would be done with it: benchmark, audit, report.
      data: the data folder, for what is done already; None or missing: nothing is.
      workers: blocks side by side; None: one a core.
      most_measured: cells of which short trials measure how long they take; None: all, 0: none, and no seconds are given.

    Returns:
      `books`, one line for each budget book, and for each private file without one; `cells`, each with its claim, its work
      and, if timed, its seconds; `beside`: how many twins and reference rows a benchmark plays; `seconds` of all that is
      left, on so many workers, None if not timed.
    """
    store = Store(data / "results") if data is not None and data.exists() else None
    journal = None if data is None else Journal(DataFolder(data).journal(plan.spec.name))
    spec, every = plan.spec, plan.played
    own, beside = ([cell for cell in every if (cell.role is Role.ALGORITHM) is listed] for listed in (True, False))
    check_cells(own)
    _check_claims(own)
    blocks = {cell.name: _blocks(cell, steps, store) for cell in every}
    is_timed = most_measured != 0
    waiting = [cell for cell in every if blocks[cell.name][0] > blocks[cell.name][1] and not cell.is_expected]
    pace = block_paces(waiting, most_measured) if is_timed else {}
    private = [cell for cell in own if "audit" in steps and cell.is_private]
    waits = [cell for cell in private if store is None or not store.has(AUDIT, audit_key(cell))]
    left = audits_seconds(waits, journal) if is_timed else {}
    for name, seconds in pace.items():
        left[name] = left.get(name, 0.0) + (blocks[name][0] - blocks[name][1]) * seconds
    audits = {cell.name: "done" for cell in private} | {cell.name: "to do" for cell in waits}
    cells = [_cell(cell, blocks[cell.name], audits.get(cell.name), left.get(cell.name, 0.0)) for cell in own]
    shared = workers or n_workers()
    missing = [block for block in plan.blocks() if store is None or not is_played(block, store)]
    return {
        "suite": spec.name,
        "steps": list(steps),
        "environments": [_environment(environment) for environment in plan.environments],
        "horizon": spec.horizon,
        "unit": " or ".join(sorted({environment.unit for environment in plan.environments}, reverse=True)),
        "replications": spec.replications,
        "books": book_keeper().forecast(plan, missing if "benchmark" in steps else (), data),
        "cells": cells,
        "beside": {
            str(role): sum(cell.role is role for cell in beside) if "benchmark" in steps else 0
            for role in (Role.TWIN, Role.REFERENCE)
        },
        "workers": shared,
        "seconds": round(sum(left.values()) / shared, 1) if is_timed else None,
    }


def _check_claims(cells: Sequence[Cell]) -> None:
    """Refuses, by SpecError, a claim of an own algorithm that its ledger exceeds on its first rounds already."""
    for cell in cells:
        if cell.is_private and cell.entry.stated:
            rounds, claim = min(cell.spec.horizon, _PLAYED), cell.claim()
            users = cell.users if claim.relation is Relation.USER else None
            events = tuple(played(cell, rounds, 1)[0].worst_record(users=users).items())
            main = main_quantity(claim.stated, events)
            if overspends(main, claim.stated, events):
                where = f"{cell.spec.line_of_algorithm(cell.place)}{cell.name}: claim"
                spent = f"the ledger of {rounds:,} {cell.environment.unit} composes to {composed(main, events)}"
                allowed = f"{main} = {claimed_as(main, claim.stated, events):.4g}"
                raise SpecError(f"{where}: {claim.stated} allows {allowed}, and {spent}: claim that, or add noise")


def _environment(environment: Environment[EnvironmentFields]) -> dict[str, object]:
    return {
        "label": environment.label,
        "name": environment.describe()["name"],
        "kind": environment.kind,
        "arms": environment.n_actions,
        "shown": [what for what in ("values", "means", "regret") if environment.shows(what)],
    }


def _blocks(cell: Cell, steps: Sequence[str], store: Store | None) -> tuple[int, int]:
    """Number of blocks that the benchmark has of a cell, and of those that are done."""
    blocks = cell.blocks() if "benchmark" in steps else []
    return len(blocks), sum(is_played(block, store) for block in blocks) if store is not None else 0


def _cell(cell: Cell, blocks: tuple[int, int], audit: str | None, seconds: float) -> JsonObject:
    claim = cell.claim() if cell.is_private else None
    return {
        "name": cell.name,
        "claim": None if claim is None else claim.statement,
        "theorem": None if claim is None else claim.theorem,
        "trust": cell.entry.privacy_model,
        "mu": None if claim is None else claim.gaussian.mu,
        "epsilon": None if claim is None else claim.epsilon_at(cell.spec.audit.delta),
        "delta": cell.spec.audit.delta,
        "blocks": blocks[0],
        "blocks_done": blocks[1],
        "audit": audit,
        "seconds": round(seconds, 2),
    }


def render(facts: JsonObject) -> Group:
    """The explanation for people."""
    words = [
        f"{facts['horizon']:,} {facts['unit']}, {facts['replications']:,} replications; steps: {', '.join(facts['steps'])}",
        *(
            f"{item['label']}: {item['arms']} {'arms' if item['kind'] in ARMS else 'actions'}; {_shown(item['shown'])}"
            for item in facts["environments"]
        ),
        *facts["books"],
    ]
    is_timed = facts["seconds"] is not None
    last = ["left, one core"] if is_timed else []
    table = Table("cell", "claims", "trust", "epsilon at delta", "blocks (done)", "audit", *last)
    for cell in facts["cells"]:
        private = cell["claim"] is not None
        table.add_row(
            titled(cell["name"], cell["claim"] or ""),
            f"{cell['claim']} ({cell['theorem']})" if private else "not private",
            cell["trust"] if private else "-",
            f"{cell['epsilon']:.4g} at {cell['delta']:g}" if private else "-",
            f"{cell['blocks']} ({cell['blocks_done']})" if cell["blocks"] else "-",
            cell["audit"] or "-",
            *([duration(cell["seconds"])] if is_timed else []),
        )
    total = f"{len(facts['cells'])} cells{_beside(facts['beside'])}"
    if is_timed:
        total += f"; {duration(facts['seconds'])} of work on {facts['workers']} workers, estimated by short trials"
    asks = [f"more than {duration(DAY)}: commands that start it ask for --yes"] if (facts["seconds"] or 0.0) > DAY else []
    return Group(*(Text(line) for line in words), table, *(Text(line) for line in (total, *asks)))


def _beside(counts: dict[str, int]) -> str:
    """Rows that a benchmark plays besides its cells."""
    words = []
    if twins := counts[Role.TWIN]:
        words.append(f"{twins} of them again without noise")
    if rows := counts[Role.REFERENCE]:
        words.append(f"{rows} reference row{'s' if rows > 1 else ''}")
    return "".join(f", {word}" for word in words)


def _shown(what: list[str]) -> str:
    if len(what) == 3:
        return "public: everything may be shown"
    return f"private: shown is {', '.join(what)}" if what else "private: nothing of the data is shown, regret included"
