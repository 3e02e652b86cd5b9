"""A cell's benchmark in numbers, and what MLflow keeps of a cell: no orchestration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.contents import PROVENANCE
from bandana.audits.documents.audit import Audit, AuditEntry
from bandana.audits.documents.benchmark import Decision
from bandana.audits.documents.provenance import ReportProvenance
from bandana.audits.names import guarantee_of
from bandana.audits.reporting.intervals import mean_interval
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.keys import provenance
from bandana.flows.keys.content import content_key
from bandana.flows.keys.provenance import Record
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.keys import identity_of
from bandana.flows.plan.roles import Role
from bandana.flows.results.decisions import Outcomes, decisions, outcomes
from bandana.flows.spec.spec import is_finite
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.tracking.metrics import logged, numbers_of
from bandana.flows.tracking.record import ACCOUNTED, CellRecord, Curve, audit_metrics

_NOTES = {
    Role.TWIN: "A cell of the suite again without its noise, with the same widths and forgetting. It is not private.",
    Role.REFERENCE: "A reference row: what any algorithm of the suite should beat. It is not private.",
}
"""Heads of runs that the spec does not list."""


class Summary(TypedDict):
    """A cell's benchmark in numbers.

    Attributes:
      mean: regret over replications on the grid, with its 95 % interval from `low` to `high`.
      finals: (n_reps,) final regrets.
      mu_spent: of the releases before each round of the grid; `mu` and `pure` are those of the whole run.
      user_mu: as `mu`, of a user with all records.
      outcomes: see `decisions.outcomes`.
      numbers: (n_reps,) each, what blocks hold as arrays `number/NAME`.
      made: provenance of each block.
    """

    grid: IntArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    finals: FloatArray
    mu_spent: FloatArray
    mu: float | None
    pure: float | None
    user_mu: float | None
    user_pure: float | None
    noise: str
    values: dict[str, Any]
    outcomes: Outcomes | None
    numbers: dict[str, FloatArray]
    decision: Decision | None
    made: list[Record | None]
    provenance: ReportProvenance


NUMBER = "number/"
"""Beginning of the names of a block's arrays that hold one number a replicate."""
CURVES: tuple[Literal["mean", "low", "high"], ...] = ("mean", "low", "high")


def summarize_cell(cell: Cell, store: Store) -> Summary:
    """A cell's regret over rounds: mean and 95 % confidence interval over replications; privacy spent, and who made it."""
    results = [benchmark_block(block, store) for block in cell.blocks()]
    regret = np.concatenate([arrays["regret"] for arrays, _ in results])
    mean, low, high = mean_interval(regret)
    made = [provenance.shown(about.get(PROVENANCE), is_anonymous=store.is_anonymous) for _, about in results]
    # What the cell's claim is held against; of users who return both levels are known.
    level = "user_" if cell.promised is not None else ""
    abouts = [described for _, described in results]
    is_known = {name: all(about.get(name) is not None for about in abouts) for name in _SPENT}
    most = {name: max(about[name] for about in abouts) if is_known[name] else None for name in _SPENT}
    decided = outcomes(cell, [arrays for arrays, _ in results])
    return {
        "grid": results[0][0]["grid"],
        "mean": mean,
        "low": low,
        "high": high,
        "finals": regret[:, -1],
        "mu_spent": np.max([arrays[f"{level}mu_spent"] for arrays, _ in results], axis=0),
        "mu": most[f"{level}mu"],
        "pure": most[f"{level}pure"],
        "user_mu": most["user_mu"],
        "user_pure": most["user_pure"],
        "noise": results[0][1]["noise"],
        "values": cell.environment.policy_values([arrays["policy"] for arrays, _ in results if "policy" in arrays]),
        "outcomes": decided,
        "numbers": {
            name.removeprefix(NUMBER): np.concatenate([arrays[name] for arrays, _ in results])
            for name in results[0][0]
            if name.startswith(NUMBER)
        },
        "decision": decisions(cell, decided),
        "provenance": provenance.summary(("blocks", described) for described in made),
        "made": made,
    }


_SPENT = ("mu", "pure", "user_mu", "user_pure")
"""Fields of a block's description on the privacy spent by the worst record, and by the worst user where users return."""


def benchmark_record(cell: Cell, summary: Summary) -> CellRecord:
    """Record of a cell's benchmark in MLflow."""
    grid = summary["grid"].tolist()
    curves: dict[str, Curve] = {}
    if cell.environment.shows("regret"):
        shown = CURVES if cell.spec.replications > 1 else CURVES[:1]  # one replication has no interval
        curves = {f"regret/{name}": (grid, summary[name].tolist()) for name in shown}
    if is_finite(summary["mu"]):
        curves["privacy/mu_spent"] = (grid, summary["mu_spent"].tolist())
    metrics = logged(numbers_of(cell, summary))
    made = provenance.tags("benchmark", summary["provenance"], summary["made"])
    return cell_record(cell, metrics, curves, [], made)


def audit_record(cell: Cell, entry: AuditEntry | Audit, evidence: Path) -> CellRecord:
    """Record of a cell's audit in MLflow, from its entry in the report and its evidence file."""
    made = provenance.tags("audit", provenance.summary([("audits", entry["provenance"])]), [entry["provenance"]])
    record = replace(cell_record(cell, audit_metrics(entry), {}, [evidence], made), fills=ACCOUNTED)
    record.tags["verdict"] = entry["verdict"]
    return record


def cell_record(
    cell: Cell, metrics: dict[str, float], curves: dict[str, Curve], artifacts: list[Path], made: dict[str, str]
) -> CellRecord:
    """A cell's MLflow run: the benchmark and the audit write into the same one; `made` are tags of how it came to be."""
    spec, environment = cell.spec, cell.environment
    return CellRecord(
        run_key=cell.key,
        name=cell.title,
        params={
            "algorithm": cell.entry.name,
            "role": str(cell.role),
            "calibration": cell.settings.calibration or "none",
            "privacy_model": cell.entry.privacy_model,
            "guarantee": cell.entry.guarantee or "none",
            **({"promise": guarantee_of(cell.claim().statement)} if cell.is_private else {}),
            **cell.parameters(),
            "delta": spec.audit.delta,
            "environment": environment.label,
            "horizon": spec.horizon,
            "replications": spec.replications,
            "seed": spec.seed,
        },
        tags={"cell": cell.name, "environment": environment.label, "source": cell.entry.source},
        note=_NOTES.get(cell.role, ""),
        metrics=metrics,
        curves=curves,
        artifacts=artifacts,
        dataset=dataset_record(cell),
        provenance=made,
    )


def dataset_record(cell: Cell) -> JsonObject:
    """Name, digest, source, columns and profile of the data that a cell was played on, as `CellRecord.dataset` takes them.

    The digest of public data changes with any value in them. That of a private table is made of the declared facts: with
    one of its content, whoever knows all rows but one could find out the last.
    """
    environment, spec = cell.environment, cell.spec
    interval = environment.reward_range
    declared = {
        "rounds": spec.horizon,
        "arms": environment.n_actions,
        "lowest reward": interval.low,
        "highest reward": interval.high,
    }
    item = environment.item
    if item.data_file is not None:  # where it lies says who keeps it, and changes with the machine
        item = item.with_file(Path(item.data_file.name))
    left_out = {"data", "not_the_data_of"} | ({"rows"} if getattr(item, "rows", None) is None else set())
    source = item.model_dump_json(exclude=left_out)
    identity = identity_of(cell)["environment"] if environment.shows("values") else {**declared, "source": source}
    profile = {**declared, "means": environment.describe()["means"]} if environment.shows("means") else declared
    return {
        "name": environment.label,
        "digest": content_key(identity)[:12],
        "source": source,
        "columns": list(environment.names),
        "profile": profile,
    }
