"""The audit of everything: each private algorithm of the catalog and each building block, in one report."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.futures import as_completed
from prefect.task_runners import ProcessPoolTaskRunner

from audits import evidence
from audits.audit import audit
from audits.outcome import Effort
from audits.summary import summarize
from audits.whole_catalog import subjects
from flows import audit_report
from flows.progress import bar
from flows.settings import DataFolder, n_workers
from flows.store import Store, code_version, content_key, link, write_whole
from flows.tracking import CellRecord, Tracker
from flows.work import AUDIT, about_audits, stored_outcome

SUITE = "whole-catalog"
_TITLE = "Audit of the whole catalog"


def key_of(label: str, effort: Effort) -> str:
    """Content key of one audit."""
    return content_key({"whole catalog": label, "effort": asdict(effort), "code": code_version()})


def audit_subject(label: str, effort: Effort, store: Store) -> dict[str, Any]:
    """One audit, from the store if it is there: its entry in the report, and its lines for the terminal."""
    subject = subjects()[label]()
    place = store.path(AUDIT, key_of(label, effort))
    outcome = stored_outcome(place)
    if outcome is None:
        trial = subject.trial
        table = f"{trial.table.n_users} rounds x {trial.table.n_actions} arms"
        outcome = audit(
            trial,
            subject.controls,
            effort,
            at_test_budget=subject.at_test_budget,
            subject={"kind": "catalog", "name": label, "source": subject.source},
            about=about_audits(table, trial.probes, effort.seed),
        )
        write_whole(place, evidence.to_bytes(outcome))
    about = {
        "label": label,
        "algorithm": subject.algorithm,
        "calibration": subject.calibration,
        "privacy_model": outcome.claim.trust.value,
        "parameters": dict(subject.parameters),
    }
    return {"entry": summarize(outcome, about), "lines": audit_report.tell(label, outcome)}


@task(name="audit-subject", task_run_name="{label}", cache_policy=NO_CACHE)
def _audit(label: str, effort: Effort, store: Store) -> dict[str, Any]:
    return audit_subject(label, effort, store)


_RUNNER: Any = ProcessPoolTaskRunner(max_workers=n_workers())


@flow(name="audit-all", task_runner=_RUNNER)
def audit_all(labels: list[str], effort: Effort, data: str) -> dict[str, Any]:
    """Audits the named subjects; finished audits are kept, and a rerun computes only what is missing.

    Returns:
      `audits`: label -> entry and lines; `files`: kind -> the report's file.
    """
    folder = DataFolder(Path(data))
    store, tracker = Store(folder.results), Tracker(folder.root)
    tracker.mark_dead_runs()
    tracker.experiment(SUITE, _TITLE)
    futures = {_audit.submit(label, effort, store): label for label in labels}
    done: dict[str, dict[str, Any]] = {}
    with bar("audit", len(labels)) as progress:
        for future in as_completed(list(futures)):
            label = futures[future]
            done[label] = future.result()
            progress.advance(f"{label}: {done[label]['entry']['verdict']}")
    places = []
    for label in labels:
        source, place = store.path(AUDIT, key_of(label, effort)), folder.evidence(SUITE, label.replace(" ", "-"))
        link(source, place)
        places.append(place)
        tracker.log_cell(SUITE, _record(label, effort, done[label]["entry"], place))
    entries = [done[label]["entry"] for label in labels]
    found = audit_report.document(
        _TITLE,
        entries,
        table="fair coins for the algorithms; rewards of one half for the building blocks",
        actions=["arm 0", "arm 1"],
        rounds=max((subjects()[label]().trial.table.n_users for label in labels), default=1),
        seed=effort.seed,
        spec="\n".join(labels),
        commands=[f"bandana audit --all --replays {effort.replays} --examples {effort.examples} --seed {effort.seed}"],
        evidence=places,
    )
    files = audit_report.write(found, folder.suite(SUITE), "report")
    verdicts = [entry["verdict"] for entry in entries]
    counts = {f"audit/{verdict.lower()}": float(verdicts.count(verdict)) for verdict in ("PASS", "FAIL", "INCONCLUSIVE")}
    tracker.log_suite(
        SUITE, content_key({"suite": SUITE, "evidence": found["evidence"]["sha256"]}), asdict(effort), counts,
        list(files.values()),
    )  # fmt: skip
    return {"audits": {label: done[label] for label in labels}, "files": {kind: str(path) for kind, path in files.items()}}


def _record(label: str, effort: Effort, entry: dict[str, Any], place: Path) -> CellRecord:
    numbers = {
        "audit/mu_measured": entry["mu"]["measured"],
        "audit/epsilon_measured": entry["epsilon"]["measured"],
        "audit/controls_caught": sum(control["caught"] for control in entry["controls"]),
        "audit/controls_planted": len(entry["controls"]),
        "audit/smallest_factor": entry["measurement"]["smallest_factor"],
        **{f"privacy/{name}_{role}": entry[name][role] for name in ("mu", "epsilon") for role in ("claimed", "accounted")},
    }
    return CellRecord(
        run_key=key_of(label, effort),
        name=label,
        params={"algorithm": entry["algorithm"], "privacy_model": entry["privacy_model"], **asdict(effort)},
        tags={"verdict": entry["verdict"], "source": entry["claim"]["source"]},
        metrics={name: float(value) for name, value in numbers.items() if value is not None},
        artifacts=[place],
    )
