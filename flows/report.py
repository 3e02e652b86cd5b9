"""The report flow: what is in the store, as one HTML page, a PDF and their JSON twin, with a hash of the evidence."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
from prefect import flow

from audits.reporting import figures, render_html, render_pdf, validate
from flows.benchmark import summarize_cell
from flows.plan import Cell, Environment, cells_of
from flows.progress import bar
from flows.settings import DataFolder
from flows.specs import Spec, SpecError
from flows.store import Store, code_version, content_key, write_whole
from flows.tracking import Tracker
from flows.versions import versions
from flows.work import BENCHMARK, audit_entry, evidence_of, stored_audit

_SHOWN_VERSIONS = (
    "python",
    "bandana",
    "numpy",
    "scipy",
    "numba",
    "hypothesis",
    "dp-accounting",
    "opacus",
    "prefect",
    "mlflow",
    "typst",
)


@flow(name="report")
def report(spec: Spec, spec_text: str, data: str) -> dict[str, str]:
    """Renders the suite's report from stored results; nothing is computed anew.

    Returns:
      where the `html`, `pdf` and `json` files lie.

    Raises:
      SpecError: the store holds nothing of this spec.
    """
    folder = DataFolder(Path(data))
    target = folder.suite(spec.name)
    paths = {kind: target / f"report.{kind}" for kind in ("json", "html", "pdf")}
    with bar("report", 4) as progress:
        document = assemble(spec, spec_text, Store(folder.results))
        validate(document)
        progress.advance("document")
        write_whole(paths["json"], (json.dumps(document, indent=1, allow_nan=False) + "\n").encode())
        write_whole(paths["html"], render_html(document).encode())
        progress.advance("page")
        write_whole(paths["pdf"], render_pdf(document))
        progress.advance("PDF")
        _track(spec, document, [*paths.values(), *_write_parts(document, target)], Tracker(folder.root))
        progress.advance("tracked")
    return {kind: str(path) for kind, path in paths.items()}


def _write_parts(document: dict[str, Any], target: Path) -> list[Path]:
    """The figures as SVG and the tables as CSV, for those who want them one by one."""
    written = []
    for name, svg in figures(document).items():
        written.append(target / "figures" / f"{name}.svg")
        write_whole(written[-1], svg.encode())
    benchmark = document["benchmark"] or {"cells": []}
    tables = {
        "regret": [{k: v for k, v in cell.items() if not isinstance(v, list)} for cell in benchmark["cells"]],
        "audits": [
            {
                "label": entry["label"],
                "verdict": entry["verdict"],
                "delta": entry["delta"],
                **{f"{kind}_{name}": value for kind in ("mu", "epsilon") for name, value in entry[kind].items()},
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


def _track(spec: Spec, document: dict[str, Any], artifacts: list[Path], tracker: Tracker) -> None:
    verdicts = [entry["verdict"] for entry in document["audits"]]
    tracker.experiment(spec.name, spec.description or spec.title)
    tracker.log_suite(
        spec.name,
        content_key({"suite": spec.name, "evidence": document["evidence"]["sha256"]}),
        {
            "horizon": spec.horizon,
            "replications": spec.replications,
            "seed": spec.seed,
            "evidence": document["evidence"]["sha256"],
        },
        {f"audit/{verdict.lower()}": float(verdicts.count(verdict)) for verdict in ("PASS", "FAIL", "INCONCLUSIVE")},
        artifacts,
    )  # fmt: skip


def assemble(spec: Spec, spec_text: str, store: Store) -> dict[str, Any]:
    """The report's document, from what is in the store.

    Raises:
      SpecError: the store holds nothing of this spec.
    """
    cells = cells_of(spec)
    audited = [(cell, found) for cell in cells if (found := stored_audit(cell, store)) is not None]
    played = [cell for cell in cells if _is_played(cell, store)]
    if not audited and not played:
        raise SpecError(f"nothing of the suite {spec.name!r} is in the store yet; run or audit its spec first")
    files = [evidence_of(cell, store) for cell, _ in audited]
    files += [store.path(BENCHMARK, block.key) for cell in played for block in cell.blocks()]
    return {
        "schema": "bandana/report/2",
        "title": spec.title or spec.name,
        "suite": spec.name,
        "created": datetime.fromtimestamp(max(f.stat().st_mtime for f in files), tz=UTC).isoformat(timespec="seconds"),
        "environment": Environment(spec).describe(),
        "audits": [audit_entry(cell, outcome) for cell, outcome in audited],
        "benchmark": _benchmark(spec, played, store) if played else None,
        "software": {"code sha256": code_version(), **versions(*_SHOWN_VERSIONS)},
        "seeds": {
            "root": spec.seed,
            "benchmark": "one SFC64 generator a purpose and block of replicates: "
            "SeedSequence(root, spawn_key=(purpose, hash of the cell, block))",
            "audit": "SeedSequence(root), one child a pair and side, one grandchild a block of replays",
        },
        "spec": spec_text,
        "commands": [f"bandana {command} {spec.name}.yaml" for command in ("check", "run", "audit", "report")]
        + [f"bandana verify evidence/{cell.slug}.npz" for cell, _ in audited],
        "evidence": _evidence(files, store),
    }


def _is_played(cell: Cell, store: Store) -> bool:
    return all(store.path(BENCHMARK, block.key).exists() for block in cell.blocks())


def _benchmark(spec: Spec, cells: list[Cell], store: Store) -> dict[str, Any]:
    shown, grid = [], []
    for cell in cells:
        summary = summarize_cell(cell, store)
        grid = summary["grid"].tolist()
        curves = {name: summary[name].tolist() for name in ("mean", "low", "high")}
        privacy = cell.settings.privacy
        shown.append(
            {
                "label": cell.name,
                "algorithm": cell.entry.name,
                "calibration": cell.settings.calibration,
                "privacy_model": cell.entry.privacy_model,
                "epsilon": None if privacy is None else privacy.epsilon,
                "mu": summary["mu"],
                "replications": spec.replications,
                **curves,
                **{f"final_{name}": values[-1] for name, values in curves.items()},
            }
        )
    band = "95 % confidence interval of the mean over replications (normal approximation)"
    return {"grid": grid, "replications": spec.replications, "band": band, "cells": shown}


def _evidence(files: list[Path], store: Store) -> dict[str, Any]:
    hashed = [
        {"path": f"results/{path.parent.name}/{path.name}", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in sorted(files)
    ]
    return {"sha256": content_key(hashed), "files": hashed}
