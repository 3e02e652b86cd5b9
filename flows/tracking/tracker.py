"""One MLflow run for each cell of an experiment, written once, resumed after a crash, compared on one page.

A run is found again by the content key of its cell, so that a rerun never makes a second one; an audit adds its numbers to
the run that the benchmark wrote. What a run holds, and how to search, stands in docs/tracking.md.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from bandana.flows.folder import scratch
from bandana.flows.folder.private_files import make_folder
from bandana.flows.folder.settings import is_anonymous
from bandana.flows.tracking.comparison_view import VIEW_TAG, compare_page, comparison_state, encode_view
from bandana.flows.tracking.descriptions import NOTE, described_anew, link_report
from bandana.flows.tracking.experiments import NIGHTS, Experiments
from bandana.flows.tracking.record import CellRecord
from bandana.flows.tracking.runs import Runs
from bandana.flows.tracking.store.address import TrackingAddress
from bandana.flows.tracking.store.client import TrackingStore, pages, touch
from bandana.flows.tracking.store.errors import TrackingError
from bandana.flows.tracking.store.locks import Locks
from bandana.flows.tracking.superseded import Superseded

__all__ = ["CellRecord", "Tracker", "TrackingError"]


class Tracker:
    """Writes to MLflow: a store below `data_dir`, a PostgreSQL database, or an MLflow server.

    Every write is idempotent. Processes may write at once: each key has a lock (`bandana.flows.tracking.store.locks`).
    `superseded` finds runs that another one took the place of, and removes them.

    Args:
      data_dir: where the default store and the locks live; created where missing.
      tracking_uri: an address as `TrackingAddress.parse` reads it; None for SQLite at `data_dir`/mlflow/mlflow.db.

    Raises:
      SpecError: the address cannot be used.
      TrackingError: the store cannot be opened.
    """

    def __init__(self, data_dir: Path, tracking_uri: str | TrackingAddress | None = None) -> None:
        if not isinstance(tracking_uri, TrackingAddress):
            tracking_uri = TrackingAddress.parse(tracking_uri, data_dir)
        self.address = tracking_uri
        self._store = TrackingStore(self.address, data_dir)
        locks = self._store.folder / "locks"
        self._locks = Locks(locks, self.address)
        self._experiments = Experiments(self._store, self._locks)
        host = re.sub(r"[^A-Za-z0-9._-]", "-", scratch.machine() if is_anonymous() else socket.gethostname())
        self._runs = Runs(self._store, self._locks, self._experiments, host)
        self.superseded = Superseded(self._store, self._locks)
        with self._store.explained():
            for folder in (locks, self._store.root):
                make_folder(folder)
            touch(self.address)
            with self._locks.hold("store"):  # a fresh database is laid out by one process
                self._store.lay_out()
                self._store.client.search_experiments(max_results=1)

    @classmethod
    def open(cls, data_dir: Path) -> Tracker:
        """The store that BANDANA_TRACKING_URI names, or the one in the data folder.

        Raises:
          SpecError: BANDANA_TRACKING_URI cannot be used.
          TrackingError: the store cannot be opened.
        """
        return cls(data_dir, TrackingAddress.chosen(data_dir))

    @staticmethod
    def check(data_dir: Path) -> None:
        """Checks that `open` can work, at once: for commands, before a server or any work is started.

        Raises:
          SpecError: BANDANA_TRACKING_URI cannot be used.
          TrackingError: the store does not answer, or cannot be written.
        """
        store = TrackingStore(TrackingAddress.chosen(data_dir), data_dir)
        with store.explained():
            make_folder(store.folder)
            touch(store.address)

    def experiment(self, suite: str, description: str) -> str:
        """Id of the suite's experiment, created where missing, with its description and its comparison page.

        The description is what a reader of the experiment's page should know.

        Raises:
          ValueError: the name is empty or holds '/'.
          TrackingError: the store cannot be written.
        """
        with self._store.explained(suite):
            experiment = self._experiments.of(suite)
            with self._locks.hold(f"suite-{suite}"):  # MLflow fails when two writers add one tag at once
                tags = self._store.client.get_experiment(experiment.experiment_id).tags
                wanted = {
                    NOTE: described_anew(description, tags.get(NOTE, ""), str(experiment.experiment_id)),
                    "mlflow.experimentKind": "custom_model_development",
                    VIEW_TAG: encode_view(comparison_state(), created_ms=experiment.creation_time or 0),
                }
                for key, value in wanted.items():
                    # A server with users says at once, and not after hours of work, that a reader may not write.
                    if tags.get(key) != value or (self.address.user is not None and key == "mlflow.experimentKind"):
                        self._store.client.set_experiment_tag(experiment.experiment_id, key, value)
            return str(experiment.experiment_id)

    def log_cell(self, suite: str, cell: CellRecord) -> str:
        """Writes a cell's run, or what its run does not hold yet, and returns the run's id.

        A finished run keeps every number that it has and takes only what is new; an unfinished one goes
        on under its own id as the next attempt. The suite's other runs of this name (an older version of the
        code, an earlier spec) stay, marked as superseded.

        Raises:
          TrackingError: MLflow or the disk refused; the run is then FAILED and a rerun resumes it.
          FileNotFoundError: an artifact does not exist; nothing is written.
        """
        return self._runs.write(suite, cell, role="cell")

    def log_suite(
        self,
        suite: str,
        run_key: str,
        params: Mapping[str, str | float | int],
        metrics: Mapping[str, float],
        artifacts: Sequence[Path],
        provenance: Mapping[str, str] | None = None,
    ) -> str:
        """Writes the run that holds a suite's report, and returns its id; new artifacts replace old ones.

        The descriptions of the experiment and of its current runs then link the report.
        """
        record = CellRecord(
            run_key=run_key,
            name=f"suite {suite}",
            params=dict(params),
            metrics=dict(metrics),
            artifacts=list(artifacts),
            provenance=provenance or {},
        )
        run_id = self._runs.write(suite, record, role="suite")
        with self._store.explained(suite), self._locks.hold(f"suite-{suite}"):
            link_report(self._store, self._experiments, suite, run_id, {path.name for path in artifacts})
        return run_id

    def keep_only(self, suite: str, run_keys: Collection[str]) -> int:
        """Takes the suite's other cells off its comparison page, and counts them; they stay stored."""
        with self._store.explained(suite):
            known = self._experiments.current(self._experiments.of(suite))
            others = [key for role, key in known if role == "cell" and key not in run_keys]
            for key in others:
                self._runs.retire(known.pop(("cell", key)).run_id, by="")
            return len(others)

    def mark_baseline(self, suite: str, names: Collection[str]) -> int:
        """Tags the suite's current runs of these cells, and no others, with `baseline` = true, and counts them."""
        with self._store.explained(suite):
            both = [self._store.client.get_experiment_by_name(name) for name in (suite, suite + NIGHTS)]
            if not (active := [experiment for experiment in both if experiment is not None]):
                return 0
            current = [item for experiment in active for item in self._experiments.current(experiment).items()]
            cells = [run for (role, _), run in current if role == "cell"]
            marked = {run.run_id for run in cells if run.tags.get("cell", run.name) in names}
            numbers = [experiment.experiment_id for experiment in active]
            tagged = pages(self._store.client.search_runs, experiment_ids=numbers, filter_string="tags.baseline = 'true'")
            before = {run.info.run_id for run in tagged}
            for run_id in before - marked:
                self._store.client.delete_tag(run_id, "baseline")
            for run_id in marked - before:
                self._store.client.set_tag(run_id, "baseline", "true")
            return len(marked)

    def mark_dead_runs(self) -> int:
        """Marks as KILLED, and counts, the runs that a dead process of this machine left RUNNING; they can be resumed."""
        with self._store.explained():
            return self._runs.mark_dead()

    def compare_url(self, suite: str, base: str = "http://127.0.0.1:5000") -> str:
        """The address of the suite's comparison page, on the server that the tracker writes to, else on the one at `base`.

        Raises:
          TrackingError: the suite has no experiment yet.
        """
        with self._store.explained(suite):
            experiment = self._store.client.get_experiment_by_name(suite)
        if experiment is None:
            raise TrackingError(f"MLflow has no experiment {suite!r} yet: run the suite first")
        base = self.address.shown if self.address.kind == "http" else base
        return f"{base.rstrip('/')}/{compare_page(experiment.experiment_id)}"

    def server_arguments(self, port: int = 5000) -> list[str]:
        """Arguments after the Python interpreter to serve this store's pages, on the loopback interface only.

        The store's address is not among them but in `server_environment`: arguments are seen by every user of a machine.

        Raises:
          TrackingError: the tracker writes to a server, which has its own pages.
        """
        if self.address.kind == "http":
            raise TrackingError(f"the pages are at {self.address.shown}: no second server is needed")
        return ["-m", "bandana.flows.tracking.pages_server", "--host", "127.0.0.1", "--port", str(port)]

    def server_environment(self) -> dict[str, str]:
        """The environment variables that name the store to the server of `server_arguments`."""
        return {
            "MLFLOW_BACKEND_STORE_URI": self.address.uri,
            "MLFLOW_DEFAULT_ARTIFACT_ROOT": self._store.artifact_location(""),
            "MLFLOW_DISABLE_TELEMETRY": "true",
            # Eight processes that wait for evaluations of language models.
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }
