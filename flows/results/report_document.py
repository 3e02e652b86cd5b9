"""A suite's report as a document, from what is in the store alone: no orchestration."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from bandana.algorithms.entry import Claim
from bandana.audits.contents import PROVENANCE
from bandana.audits.documents.benchmark import Benchmark, BenchmarkCell, OfUser, Promise
from bandana.audits.documents.report import People, Report
from bandana.audits.reporting import render_pdf
from bandana.audits.reporting.document import validate
from bandana.audits.reporting.intervals import caution, quantiles, words
from bandana.audits.reporting.numbers import number
from bandana.audits.summary import finite
from bandana.flows.cells.audits import audit_entry, evidence_of, stored_audit
from bandana.flows.cells.charging import book_keeper
from bandana.flows.cells.play import BENCHMARK, is_played
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store, write_whole
from bandana.flows.keys import provenance
from bandana.flows.own.algorithms import OwnAlgorithmSpec
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.plan.roles import Role
from bandana.flows.results.audit_report import FORMATS, evidence_field, evidence_file, rendered, write_document
from bandana.flows.results.comparisons import comparisons, twin_of
from bandana.flows.results.power_curve import power_curve
from bandana.flows.results.summaries import CURVES, Summary, summarize_cell
from bandana.flows.spec.spec import Spec
from bandana.flows.texts.mistakes import SpecError
from bandana.flows.tracking.metrics import accounted_epsilon
from bandana.privacy_core import ApproxDP, PureDP, RenyiDP

_WITHHELD = (
    "Regret {where} is withheld: the data are private, the spec does not declare their regret public, and no privacy "
    "claim covers it. The budget spent is shown, since it depends on public parameters and released values alone."
)
_SEEDS = {
    "benchmark": "one SFC64 generator per purpose and block of replicates: "
    "SeedSequence(root, spawn_key=(purpose, hash of the cell, block))",
    "audit": "SeedSequence(root), one child per pair and side, one grandchild per block of replays",
}


def assemble(plan: Plan, spec_text: str, store: Store) -> Report:
    """The report's document, from what is in the store.

    Raises:
      SpecError: the store holds nothing of this spec.
    """
    spec, cells = plan.spec, plan.played
    audited = [(cell, outcome) for cell in cells if (outcome := stored_audit(cell, store)) is not None]
    played = [cell for cell in cells if all(is_played(block, store) for block in cell.blocks())]
    if not audited and not played:
        raise SpecError(
            f"the store has no results of the suite {spec.name!r}, or only results of other code or other library "
            "versions; run or audit its spec first"
        )
    entries = [audit_entry(cell, outcome, is_anonymous=store.is_anonymous) for cell, outcome in audited]
    evidence = [(evidence_of(cell, store), f"evidence/{cell.slug}.npz") for cell, _ in audited]
    blocks = [(cell, block) for cell in played for block in cell.blocks()]
    made = provenance.summary(
        [
            *(("blocks", record) for record in block_records(played, store)),
            *(("audits", entry["provenance"]) for entry in entries),
        ]
    )
    # A hash of withheld regret would let whoever knows all rows but one try out that one.
    results = sorted(store.path(BENCHMARK, block.key) for cell, block in blocks if cell.environment.shows("regret"))
    hashed = evidence + [(path, f"results/{BENCHMARK}/{path.name}") for path in results]
    return {
        "schema": "bandana/report/12",
        "kind": "experiment",
        "title": spec.title or spec.name,
        "description": spec.description,
        "suite": spec.name,
        "created": made["ended"],
        "deployment": None if spec.deployment is None else spec.deployment.shown(),
        "people": people_of(plan),
        "books": book_keeper().summaries(plan, is_played=bool(played)),
        "environments": [environment.describe() for environment in plan.environments],
        "audits": [{**entry, "power": power_curve(entry)} for entry in entries],
        "benchmark": _benchmark(plan, played, store) if played else None,
        "regressions": None,
        "related": [{"label": cell.name, "path": f"audits/{cell.slug}.{_linked(spec)}"} for cell, _ in audited],
        "provenance": made,
        "seeds": {"root": spec.seed, **_SEEDS},
        "spec": _without_folders(spec, spec_text),
        "commands": [f"bandana {command} {spec.name}.yaml" for command in ("check", "run", "audit", "report")]
        + [f"bandana verify evidence/{cell.slug}.npz" for cell, _ in audited],
        "evidence": evidence_field(evidence_file(path, name) for path, name in hashed),
    }


def last(values: list[float] | None) -> float | None:
    """Last value of a curve; None without one."""
    return None if values is None else values[-1]


def block_records(cells: Iterable[Cell], store: Store) -> list[provenance.Record | None]:
    """Provenance of each block of the cells; None where that is not known."""
    described = [store.describe(BENCHMARK, block.key) or {} for cell in cells for block in cell.blocks()]
    return [provenance.shown(each.get(PROVENANCE), is_anonymous=store.is_anonymous) for each in described]


def _without_folders(spec: Spec, text: str) -> str:
    """The text of the spec, which names its files without their folders: those say who keeps them, and change no result."""
    places = [item.data_file for item in spec.environment if item.data_file is not None]
    own = [item.code.path for item in spec.algorithms if isinstance(item, OwnAlgorithmSpec)]
    own += [Path(code.rpartition(":")[0]) for item in spec.environment if (code := item.code_reference) is not None]
    books = [item.book.file for item in spec.environment if item.book is not None and item.book.file is not None]
    for place in [*places, *own, *books, *([] if spec.baseline is None else [spec.baseline])]:
        text = text.replace(str(place.absolute()), place.name)
    return text


def _epsilon(claim: Claim, delta: float) -> float:
    """The level that a cell states; of a claim without an epsilon, such as GDP, that at the suite's delta."""
    stated = claim.stated
    return stated.epsilon if isinstance(stated, PureDP | ApproxDP | RenyiDP) else claim.epsilon_at(delta)


def people_of(plan: Plan) -> People:
    """Number of people that delta is judged against: the declared one, those in the data, or one for each round or episode.

    Of several environments, the most people: n x delta is then smallest for none of them.
    """
    spec = plan.spec
    if spec.deployment is not None and spec.deployment.people is not None:
        return {"count": spec.deployment.people, "source": "declared by the operator"}
    unit, drawn = plan.environments[0].unit, [environment.n_people for environment in plan.environments]
    if all(drawn):
        source = f"in the data; the {number(spec.horizon)} {unit} of a run are simulated, each drawn from these people"
        return {"count": max(filter(None, drawn)), "source": source}
    return {"count": spec.horizon, "source": f"the {unit} of one run, one person each: the operator declared no number"}


def _promise(claim: Claim, delta: float) -> Promise:
    """Promise of the source for one run of a cell, with its epsilon at the suite's delta."""
    return {
        "statement": claim.statement,
        "unit": claim.unit,
        "relation": claim.relation.value,
        "epsilon": finite(claim.epsilon_at(delta)),
        "delta": delta,
        "is_pure": isinstance(claim.stated, PureDP),
    }


def _of_user(cell: Cell, summary: Summary) -> OfUser | None:
    """Cost that the ledger accounts to a user with all records, where the environment declares users who return."""
    if not cell.is_private or cell.environment.item.users is None:
        return None
    mu, pure, delta = summary["user_mu"], summary["user_pure"], cell.spec.audit.delta
    return {"mu": mu, "epsilon": finite(accounted_epsilon(mu, pure, delta)) if mu else None}


def _benchmark(plan: Plan, cells: list[Cell], store: Store) -> Benchmark:
    spec = plan.spec
    shown: list[BenchmarkCell] = []
    grid, finals = [], {}
    own = [cell for cell in cells if cell.role is Role.ALGORITHM]
    whose = {twin.name: cell.name for cell in own if (twin := twin_of(cell, cells)) is not None}
    for cell in cells:
        summary = summarize_cell(cell, store)
        grid = summary["grid"].tolist()
        if cell.environment.shows("regret"):
            finals[cell.name] = summary["finals"]
        shown.append(_benchmark_cell(cell, summary, whose.get(cell.name)))
    hidden = [e.label for e in plan.environments if not e.shows("regret")]
    return {
        "grid": grid,
        "replications": spec.replications,
        "band": words(spec.replications),
        "withheld": _WITHHELD.format(where=f"on {', '.join(hidden)}") if hidden else None,
        "cells": shown,
        "comparisons": comparisons(cells, finals),
    }


def _benchmark_cell(cell: Cell, summary: Summary, whose: str | None) -> BenchmarkCell:
    """One row of the benchmark, of a twin with whose it is; regret that may not be shown is null."""
    is_shown, delta = cell.environment.shows("regret"), cell.spec.audit.delta
    claim = cell.claim() if cell.is_private else None
    mean, low, high = (summary[name].tolist() if is_shown else None for name in CURVES)
    spent, bound, least = summary["mu_spent"], cell.regret_bound(summary["grid"]), cell.lower_bound(summary["grid"])
    return {
        "label": cell.name,
        "environment": cell.environment.label,
        "algorithm": cell.entry.name,
        "calibration": cell.settings.calibration,
        "privacy_model": cell.entry.privacy_model,
        "guarantee": cell.entry.guarantee,
        "epsilon": None if claim is None else _epsilon(claim, delta),
        "promise": None if claim is None else _promise(claim, delta),
        "noise": summary["noise"] if cell.is_private else None,
        "mu": summary["mu"],
        "of_user": _of_user(cell, summary),
        "mu_claimed": None if claim is None else finite(claim.gaussian.mu),
        "mu_spent": spent.tolist() if cell.is_private and np.isfinite(spent).all() else None,
        "replications": cell.spec.replications,
        "mean": mean,
        "low": low,
        "high": high,
        "final_mean": last(mean),
        "final_low": last(low),
        "final_high": last(high),
        "bound": None if bound is None else bound.values.tolist(),
        "bound_text": None if bound is None else bound.text,
        "role": cell.role.value,
        "twin_of": whose,
        "final_quantiles": quantiles(summary["finals"]) if is_shown else None,
        "caution": caution(summary["finals"]) if is_shown else None,
        "lower_bound": None if least is None else least.values.tolist(),
        "lower_bound_text": None if least is None else least.text,
        "values": summary["values"] if is_shown and summary["values"] else None,
        "decision": summary["decision"],
    }


def audit_documents(plan: Plan, document: Report) -> dict[str, Report]:
    """A document of each audit of a report, for a reviewer of one: file name -> document."""
    spec, cells = plan.spec, {cell.name: cell for cell in plan.cells}
    documents: dict[str, Report] = {}
    for entry in document["audits"]:
        cell = cells[entry["label"]]
        evidence = [file for file in document["evidence"]["files"] if file["path"] == f"evidence/{cell.slug}.npz"]
        whole = f"../report.{_linked(spec)}"
        made = provenance.summary([("audits", entry["provenance"])])
        documents[cell.slug] = document | {
            "kind": "audit",
            "created": made["ended"],
            "provenance": made,
            "title": f"Audit of {entry['label']}",
            "environments": [e for e in document["environments"] if e["label"] == cell.environment.label],
            "audits": [entry],
            "benchmark": None,
            "regressions": None,
            "related": [{"label": document["title"], "path": whole}],
            "commands": [
                f"bandana audit {spec.name}.yaml",
                *(command for command in document["commands"] if command.endswith(f"/{cell.slug}.npz")),
            ],
            "evidence": evidence_field(evidence),
        }
    return documents


def _linked(spec: Spec) -> str:
    """The format that links lead to."""
    return next(kind for kind in ("html", "pdf", "json") if kind in spec.report.formats)


def write_appendix(spec: Spec, text: str, folder: DataFolder) -> Path:
    """Writes the PDF of a suite's report with its appendix, beside the four pages that everybody reads.

    Raises:
      SpecError: the store holds nothing of this spec.
    """
    document = assemble(Plan.of(spec, folder.root).bound(folder.root), text, Store(folder.results))
    place = folder.suite(spec.name) / "report-with-appendix.pdf"
    write_whole(place, render_pdf(document, appendix=True))
    return place


def write(plan: Plan, document: Report, place: Path) -> list[Path]:
    """Writes a report where a caller wants it, and returns its files.

    Args:
      plan: the experiment.
      document: its report, from `assemble`.
      place: a file, whose ending is its format; or a folder for all formats of the spec, and for a report of each audit.
    """
    kind = place.suffix.removeprefix(".").lower()
    if kind in FORMATS:
        alone = document | {"related": []}
        validate(alone)
        write_whole(place, rendered(alone, kind))
        return [place]
    formats = plan.spec.report.formats
    written = [*write_document(document, place / "report", formats).values()]
    for name, single in audit_documents(plan, document).items():
        written += write_document(single, place / "audits" / name, formats).values()
    return written
