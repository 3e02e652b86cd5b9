"""The life of a run: created, claimed by its key, resumed after a crash, finished, superseded."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bandana.flows.folder.scratch import is_alive
from bandana.flows.folder.settings import is_anonymous
from bandana.flows.keys.checkout import checkout, sources
from bandana.flows.keys.provenance import user
from bandana.flows.tracking.contents import Contents, run_tags
from bandana.flows.tracking.descriptions import NOTE, described_anew
from bandana.flows.tracking.experiments import CONTENT_TAG, Experiments, Known, contents_of
from bandana.flows.tracking.record import CellRecord, computing_time
from bandana.flows.tracking.store.client import TAG_LENGTH, TrackingStore, pages
from bandana.flows.tracking.store.locks import Locks

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run

_NOTES = {
    "cell": "One cell of the suite: `regret/` and `privacy/` come from its benchmark, `audit/` from its audit.",
    "suite": "The whole suite: its report is among the artifacts, the counts of its verdicts are `audit/` metrics.",
}
_log = logging.getLogger(__name__)


class Runs:
    """Writes records to runs, one run a key; `host`, the name of this machine, becomes a tag of each run."""

    def __init__(self, store: TrackingStore, locks: Locks, experiments: Experiments, host: str) -> None:
        self._store, self._locks, self._experiments, self._host = store, locks, experiments, host
        self._contents = Contents(store)

    def write(self, suite: str, record: CellRecord, role: str) -> str:
        """Writes a record to the run of its key and role (`cell` or `suite`), and returns its id; see `Tracker.log_cell`."""
        missing = [str(path) for path in record.artifacts if not path.exists()]
        if missing:
            raise FileNotFoundError(f"artifacts of {record.name!r} do not exist: {', '.join(missing)}")
        with self._store.explained(suite):
            experiment = self._experiments.of(suite)
            known = self._experiments.current(experiment)
            held = known.get((role, record.run_key))
            if role == "cell" and held is not None and held.holds(record):
                return held.run_id
            with self._locks.hold(f"{role}-{record.run_key}"):
                run, is_new = self._claim(experiment, suite, role, record)
                run_id, is_finished = str(run.info.run_id), run.info.status == "FINISHED"
                try:
                    self._contents.fill(run, record, is_new=is_new, replace_artifacts=role == "suite" or not is_finished)
                    tags = {key: value for key, value in run.data.tags.items() if key not in record.made_of(run.data.tags)}
                    tags |= record.provenance
                    if is_finished:
                        self._note_content(run, record)
                    self._finish(run, tags)
                except BaseException as error:
                    if not is_finished:
                        self._abandon(run_id, "FAILED" if isinstance(error, Exception) else "KILLED")
                    raise
                contents = frozenset((*(contents_of(run) if is_finished else ()), record.digest))
            known[role, record.run_key] = Known(run_id, record.name, contents, tags)
            for key, other in [*known.items()]:
                if key[0] == role and key[1] != record.run_key and other.name == record.name:
                    self.retire(other.run_id, by=run_id)
                    del known[key]
            return run_id

    def retire(self, run_id: str, by: str) -> None:
        """Takes a run off its comparison page; `by` is the id of the run that supersedes it, or empty."""
        self._contents.send(run_id, tags=run_tags({"current": "false", **({"superseded_by": by} if by else {})}))

    def mark_dead(self) -> int:
        """Marks as KILLED the runs that a dead process of this machine left RUNNING, and counts them."""
        experiments = [e.experiment_id for e in pages(self._store.client.search_experiments)]
        running = pages(
            self._store.client.search_runs,
            experiment_ids=experiments,
            filter_string=f"attributes.status = 'RUNNING' and tags.host = '{self._host}'",
        )
        dead = [run for run in running if (pid := run.data.tags.get("pid", "")).isdigit() and not is_alive(int(pid))]
        for run in dead:
            self._store.client.set_terminated(run.info.run_id, status="KILLED")
        return len(dead)

    def _claim(self, experiment: Experiment, suite: str, role: str, record: CellRecord) -> tuple[Run, bool]:
        """The run to write to, and whether it was made just now."""
        run = self._find(experiment.experiment_id, role, record.run_key)
        if run is None:
            made = self._create(experiment, suite, role, record)
            # A server has no lock to offer, and an answer that was lost is asked for twice: the oldest run stays.
            if self._store.address.kind == "sqlite":
                return made, True
            run = self._find(experiment.experiment_id, role, record.run_key)
            if run is None or run.info.run_id == made.info.run_id:
                return made, True
            self._store.client.delete_run(made.info.run_id)
        if run.info.status != "FINISHED":
            run = self._resume(run, record)
        return run, False

    def _find(self, experiment_id: str, role: str, run_key: str) -> Run | None:
        runs = self._store.client.search_runs(
            [experiment_id],
            filter_string=f"tags.run_key = '{run_key}' and tags.role = '{role}'",
            order_by=["attributes.start_time ASC"],
        )
        for twin in runs[1:]:
            if twin.data.tags.get("current") == "true":
                self.retire(twin.info.run_id, by=runs[0].info.run_id)
        return runs[0] if runs else None

    def _create(self, experiment: Experiment, suite: str, role: str, record: CellRecord) -> Run:
        tags = {
            **{key: str(value)[:TAG_LENGTH] for key, value in record.tags.items()},
            "mlflow.source.name": "bandana",
            "mlflow.source.type": "LOCAL",
            NOTE: described_anew(record.note or _NOTES[role], "", str(experiment.experiment_id)),
            "suite": suite,
            "role": role,
            "run_key": record.run_key,
            "bandana.code": sources()[:12],
            **self._whereabouts(attempt=1),
            **_standing(record),
        }
        if role == "cell":
            tags["mlflow.runColor"] = self._experiments.color(experiment.experiment_id, record)
        made = computing_time(record.provenance)
        begun = int(time.time() * 1000) if made is None else made[0]
        return self._store.client.create_run(experiment.experiment_id, start_time=begun, tags=tags, run_name=record.name)

    def _resume(self, run: Run, record: CellRecord) -> Run:
        run_id = run.info.run_id
        previous = run.data.tags.get("attempt", "1")
        attempt = int(previous) + 1 if previous.isdigit() else 2
        self._contents.send(run_id, tags=run_tags({**self._whereabouts(attempt), **_standing(record)}))
        self._welcome_back(run)
        self._store.client.update_run(run_id, status="RUNNING")
        return self._store.client.get_run(run_id)

    def _finish(self, run: Run, tags: Mapping[str, str]) -> None:
        """Ends the run after as long as its numbers took to compute; MLflow shows that as its duration."""
        made = computing_time(tags)
        end = None if made is None else run.info.start_time + made[1]
        if run.info.status != "FINISHED" or (end is not None and end != run.info.end_time):
            self._store.client.set_terminated(run.info.run_id, status="FINISHED", end_time=end)

    def _note_content(self, run: Run, record: CellRecord) -> None:
        contents = dict.fromkeys((*contents_of(run), record.digest))
        wanted = {"current": "true", CONTENT_TAG: json.dumps([*contents])}
        changed = {key: value for key, value in wanted.items() if run.data.tags.get(key) != value}
        if run.info.run_name != record.name:  # of the same cell, as earlier versions called it
            self._store.client.update_run(run.info.run_id, name=record.name)
        self._contents.send(run.info.run_id, tags=run_tags(changed))
        self._welcome_back(run)

    def _welcome_back(self, run: Run) -> None:
        if "superseded_by" in run.data.tags:
            self._store.client.delete_tag(run.info.run_id, "superseded_by")

    def _abandon(self, run_id: str, status: str) -> None:
        try:
            self._store.impatient.set_terminated(run_id, status=status)
        except Exception as error:  # the first error is the one to tell
            _log.warning("run %s could not be marked %s: %s", run_id, status, self._store.address.mask(str(error)))

    def _whereabouts(self, attempt: int) -> dict[str, str]:
        code = checkout()
        # A server with users asked for a login: that is who wrote it.
        names = {} if is_anonymous() else {"mlflow.user": self._store.address.user or user()}
        commit = (
            {} if code is None else {"mlflow.source.git.commit": code.commit, "bandana.clean": str(code.is_clean).lower()}
        )
        return {"host": self._host, "pid": str(os.getpid()), "attempt": str(attempt), **names, **commit}


def _standing(record: CellRecord) -> dict[str, str]:
    """The tags of a run that is being written: current, and full once it is FINISHED."""
    return {"current": "true", CONTENT_TAG: json.dumps([record.digest])}
