"""The report flow: what is in the store, as one HTML page, a PDF and their JSON twin, with a hash of the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd
from prefect import flow

from bandana.audits.documents.report import Regressions, Report
from bandana.audits.reporting import figures
from bandana.flows.folder.progress import bar
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store, write_whole
from bandana.flows.folder.turns import alone_in
from bandana.flows.keys import provenance
from bandana.flows.keys.content import content_key
from bandana.flows.plan.plan import Plan
from bandana.flows.results.audit_report import write_document
from bandana.flows.results.report_document import assemble, audit_documents, block_records, last
from bandana.flows.tracking.tracker import Tracker

_CURVES: tuple[Literal["mean", "low", "high", "mu_spent", "bound", "lower_bound"], ...]
_CURVES = ("mean", "low", "high", "mu_spent", "bound", "lower_bound")


@flow(name="report", flow_run_name="{plan.spec.name}: report")
def report(plan: Plan, spec_text: str, data: str, regressions: Regressions | None = None) -> dict[str, str]:
    """Renders the suite's report, and one of each audit, from stored results; nothing is computed anew.

    The report shows the spec's text, and `regressions`, see `gate.in_report`; None without a baseline.

    Returns:
      where the files of the report lie, by the formats that the spec asks for.

    Raises:
      SpecError: the store holds nothing of this spec.
    """
    folder, spec = DataFolder(Path(data)), plan.spec
    target, formats, store = folder.suite(spec.name), spec.report.formats, Store(folder.results)
    with alone_in(target):  # a run in MLflow holds the files of its own report, not of a command beside it
        document = assemble(plan, spec_text, store) | {"regressions": regressions}
        singles = audit_documents(plan, document)
        with bar(f"{spec.name}: report", 2 + len(singles)) as advance:
            files = write_document(document, target / "report", formats)
            advance("report")
            artifacts = [*files.values(), *_write_parts(document, target)]  # while its sections are still at hand
            for name, single in singles.items():
                artifacts += write_document(single, target / "audits" / name, formats).values()
                advance(single["title"])
            made = [*block_records(plan.played, store), *(entry["provenance"] for entry in document["audits"])]
            tracker = Tracker.open(folder.root)
            tracker.experiment(spec.name, spec.description or spec.title)
            params: dict[str, str | int] = {"horizon": spec.horizon, "replications": spec.replications, "seed": spec.seed}
            params["evidence"] = document["evidence"]["sha256"]
            track(document, spec.name, params, made, artifacts, tracker)
            advance("tracked")
    return {kind: str(path) for kind, path in files.items()}


def _write_parts(document: Report, target: Path) -> list[Path]:
    """The figures as SVG and the tables as CSV, for those who want them one by one."""
    written = []
    drawn = figures(document)
    for old in (target / "figures").glob("*.svg"):  # of an earlier run, under another name
        if old.stem not in drawn:
            old.unlink()
    for name, svg in drawn.items():
        written.append(target / "figures" / f"{name}.svg")
        write_whole(written[-1], svg.encode())
    tables = {
        **regret_tables(document),
        "audits": [
            {
                "label": entry["label"],
                "verdict": entry["verdict"],
                "delta": entry["delta"],
                **{f"{kind}_{name}": value for kind in ("mu", "epsilon") for name, value in entry[kind].items()},
                **{f"epsilon_measured_{name}": value for name, value in entry["measured_epsilon"].items()},
                "faults_caught": sum(control["caught"] for control in entry["controls"]),
                "faults_planted": len(entry["controls"]),
            }
            for entry in document["audits"]
        ],
    }
    for name, rows in tables.items():
        if rows:
            written.append(target / "tables" / f"{name}.csv")
            write_whole(written[-1], pd.DataFrame(rows).to_csv(index=False).encode())
    return written


def regret_tables(document: Report) -> dict[str, list[dict[str, object]]]:
    """Tables of the benchmark by name: `regret` has one row a cell, at the end; `regret-curves` one row a cell and round.

    A column without a value is null: a cell that is not private spends nothing, and withheld regret is not shown.
    """
    benchmark = document["benchmark"]
    if benchmark is None:
        return {}
    finals = []
    for cell in benchmark["cells"]:
        row = {key: value for key, value in cell.items() if not isinstance(value, list | dict) and key not in _CURVES}
        promise: Mapping[str, object] = cell["promise"] or {}
        row |= {f"promise_{key}": promise.get(key) for key in ("statement", "unit", "relation", "epsilon", "delta")}
        row |= {
            "mu_spent": last(cell["mu_spent"]),
            "final_bound": last(cell["bound"]),
            "final_lower_bound": last(cell["lower_bound"]),
        }
        quantiles = cell["final_quantiles"] or (None, None, None)
        row |= dict(zip(("final_quantile_10", "final_quantile_50", "final_quantile_90"), quantiles, strict=True))
        row |= {f"test_{key}": value for key, value in (cell["decision"] or {}).items() if not key.endswith("_text")}
        finals.append({key: value for key, value in row.items() if key not in ("promise", "values", "final_quantiles")})
    points: list[dict[str, object]] = []
    for cell in benchmark["cells"]:
        curves = {key: cell[key] for key in _CURVES}
        for i, at in enumerate(benchmark["grid"]):
            values: dict[str, float | None] = {key: None if curve is None else curve[i] for key, curve in curves.items()}
            points.append({"label": cell["label"], "round": at, **values})
    return {"regret": finals, "regret-curves": points}


def track(
    document: Report,
    suite: str,
    params: Mapping[str, str | float | int],
    made: Sequence[provenance.Record | None],
    artifacts: list[Path],
    tracker: Tracker,
) -> None:
    """Writes the run of a suite's report to MLflow: parameters, counts of verdicts, and the report's files.

    `made` says how each block and audit of the report came to be.
    """
    verdicts = [entry["verdict"] for entry in document["audits"]]
    counts = {
        f"audit/{verdict.lower().replace(' ', '-')}": float(verdicts.count(verdict))
        for verdict in ("PASS", "NOT REFUTED", "FAIL", "INCONCLUSIVE")
    }
    key = content_key({"suite": suite, "evidence": document["evidence"]["sha256"]})
    tracker.log_suite(suite, key, params, counts, artifacts, provenance.tags("suite", document["provenance"], made))
