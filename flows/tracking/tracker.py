"""One MLflow run for each cell of an experiment, written once, resumed after a crash, compared on one page.

The only module that imports MLflow. A run is found again by the content key of its cell, so that a rerun
never makes a second one; an audit adds its numbers to the run that the benchmark wrote. What a run holds, and
how to search, stands in docs/tracking.md.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import socket
import sqlite3
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bandana.flows.running import scratch
from bandana.flows.running.settings import is_anonymous
from bandana.flows.tracking.address import TrackingAddress, default_artifacts
from bandana.flows.tracking.comparison_view import VIEW_KEY, VIEW_TAG, comparison_state, encode_view, run_color
from bandana.flows.tracking.errors import Patient, TrackingError, advice
from bandana.flows.tracking.locks import Locks
from bandana.flows.tracking.record import NAME_LENGTH, CellRecord, is_finite, is_loggable

__all__ = ["CellRecord", "Tracker", "TrackingError"]

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Metric, Param, Run, RunTag

_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    # Who waits and tries again is `Patient`, the same for every kind of store; MLflow's own patience is four minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "60",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_BATCH = 1000  # entities in one request, MLflow's limit
_PAIRS = 100  # parameters in one request, and tags, MLflow's limits
_PARAM_LENGTH, _TAG_LENGTH, _DIGEST_LENGTH = 6000, 8000, 36
_SQLITE_PATIENCE = 60  # seconds that a writer waits for another one
_CURVES = "curves.parquet"
_PALETTE_TAG = "bandana.palette"
_CONTENT_TAG = "bandana.content"
_NOTES = {
    "cell": "One cell of the suite: `regret/` and `privacy/` come from its benchmark, `audit/` from its audit.",
    "suite": "The whole suite: its report is among the artifacts, the counts of its verdicts are `audit/` metrics.",
}
_log = logging.getLogger(__name__)


class _Known(NamedTuple):
    """What the tracker remembers of a current run."""

    run_id: str
    name: str
    contents: frozenset[str]
    tags: Mapping[str, str]

    def holds(self, record: CellRecord) -> bool:
        """Whether nothing of the record is to be written."""
        return record.digest in self.contents and record.provenance == _made(self.tags, record)


class Tracker:
    """Writes to MLflow: a store below `data_dir`, a PostgreSQL database, or an MLflow server.

    Every write is idempotent. Processes may write at once: each key has a lock (`bandana.flows.tracking.locks`).

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
        self._root = Path(data_dir).absolute() / "mlflow"
        folder = self._root if self.address.database is None else self.address.database.parent
        self._locks = Locks(folder / "locks", self.address)
        self._host = re.sub(r"[^A-Za-z0-9._-]", "-", scratch.machine() if is_anonymous() else socket.gethostname())
        self._forget()
        with _explained(self.address, self._root):
            (folder / "locks").mkdir(parents=True, exist_ok=True)
            self._root.mkdir(parents=True, exist_ok=True)
            _touch(self.address)
            with self._locks.hold("store"):  # a fresh database is laid out by one process
                self._client.search_experiments(max_results=1)

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
        """Whether `open` can work, told at once: for commands, before a server or any work is started.

        Raises:
          SpecError: BANDANA_TRACKING_URI cannot be used.
          TrackingError: the store does not answer, or cannot be written.
        """
        address = TrackingAddress.chosen(data_dir)
        root = Path(data_dir).absolute() / "mlflow"
        with _explained(address, root):
            (root if address.database is None else address.database.parent).mkdir(parents=True, exist_ok=True)
            _touch(address)

    @property
    def tracking_uri(self) -> str:
        """For MLflow; with PostgreSQL it may hold a password."""
        return self.address.uri

    def experiment(self, suite: str, description: str) -> str:
        """The suite's experiment, created where missing, with its description and its comparison page.

        Args:
          suite: name of the suite, without '/'.
          description: what a reader of the experiment's page should know.

        Returns:
          the experiment's id.

        Raises:
          ValueError: the name is empty or holds '/'.
          TrackingError: the store cannot be written.
        """
        with _explained(self.address, self._root):
            found = self._experiment(suite)
            wanted = {
                "mlflow.note.content": description[:_TAG_LENGTH],
                "mlflow.experimentKind": "custom_model_development",
                VIEW_TAG: encode_view(comparison_state(), created_ms=found.creation_time or 0),
            }
            with self._locks.hold(f"suite-{suite}"):  # MLflow fails when two writers add one tag at once
                tags = self._client.get_experiment(found.experiment_id).tags
                for key, value in wanted.items():
                    if tags.get(key) != value:
                        self._client.set_experiment_tag(found.experiment_id, key, value)
            return str(found.experiment_id)

    def log_cell(self, suite: str, cell: CellRecord) -> str:
        """Writes a cell's run, or what its run does not hold yet.

        A finished run keeps every number that it has and takes only what is new; an unfinished one goes
        on under its own id as the next attempt. The suite's other runs of this name (an older version of the
        code, an earlier spec) stay, marked as superseded.

        Args:
          suite: name of the suite.
          cell: what to write.

        Returns:
          the run's id.

        Raises:
          TrackingError: MLflow or the disk refused; the run is then FAILED and a rerun resumes it.
          FileNotFoundError: an artifact does not exist; nothing is written.
        """
        return self._write(suite, cell, role="cell")

    def log_suite(
        self,
        suite: str,
        run_key: str,
        params: Mapping[str, Any],
        metrics: Mapping[str, float],
        artifacts: Sequence[Path],
        provenance: Mapping[str, str] | None = None,
    ) -> str:
        """Writes the run that holds a suite's report; as `log_cell`, but new artifacts replace old ones.

        Returns:
          the run's id.
        """
        record = CellRecord(
            run_key=run_key,
            name=f"suite {suite}",
            params=dict(params),
            metrics=dict(metrics),
            artifacts=list(artifacts),
            provenance=provenance or {},
        )
        return self._write(suite, record, role="suite")

    def keep_only(self, suite: str, run_keys: Collection[str]) -> int:
        """Takes the suite's other cells off its comparison page: the spec no longer names them. They stay stored.

        Returns:
          how many were taken off.
        """
        with _explained(self.address, self._root):
            known = self._known(self._experiment(suite))
            others = [key for role, key in known if role == "cell" and key not in run_keys]
            for key in others:
                self._retire(known.pop(("cell", key)).run_id, by="")
            return len(others)

    def mark_baseline(self, suite: str, names: Collection[str]) -> int:
        """Tags the suite's current runs of these names with `baseline` = true, and takes the tag off all others.

        Returns:
          how many carry it now.
        """
        with _explained(self.address, self._root):
            found = self._client.get_experiment_by_name(suite)
            if found is None:
                return 0
            current = self._known(found)
            marked = {run.run_id for (role, _), run in current.items() if role == "cell" and run.name in names}
            tagged = _pages(
                self._client.search_runs, experiment_ids=[found.experiment_id], filter_string="tags.baseline = 'true'"
            )
            before = {run.info.run_id for run in tagged}
            for run_id in before - marked:
                self._client.delete_tag(run_id, "baseline")
            for run_id in marked - before:
                self._client.set_tag(run_id, "baseline", "true")
            return len(marked)

    def mark_dead_runs(self) -> int:
        """Marks as KILLED the runs that a dead process of this machine left RUNNING; they can be resumed.

        Returns:
          how many were marked.
        """
        with _explained(self.address, self._root):
            experiments = [e.experiment_id for e in _pages(self._client.search_experiments)]
            running = _pages(
                self._client.search_runs,
                experiment_ids=experiments,
                filter_string=f"attributes.status = 'RUNNING' and tags.host = '{self._host}'",
            )
            dead = [run for run in running if not _is_alive(run.data.tags.get("pid", ""))]
            for run in dead:
                self._client.set_terminated(run.info.run_id, status="KILLED")
            return len(dead)

    def compare_url(self, suite: str, base: str = "http://127.0.0.1:5000") -> str:
        """The address of the suite's comparison page.

        Args:
          suite: name of the suite.
          base: where the MLflow server answers; a tracker that writes to a server takes that one.

        Raises:
          TrackingError: the suite has no experiment yet.
        """
        with _explained(self.address, self._root):
            found = self._client.get_experiment_by_name(suite)
        if found is None:
            raise TrackingError(f"MLflow has no experiment {suite!r} yet: run the suite first")
        base = self.address.shown if self.address.kind == "http" else base
        return (
            f"{base.rstrip('/')}/#/experiments/{found.experiment_id}/runs"
            f"?workflowType=machine_learning&compareRunsMode=CHART&viewStateShareKey={VIEW_KEY}"
        )

    def server_arguments(self, port: int = 5000) -> list[str]:
        """What follows the Python interpreter to serve this store's pages, on the loopback interface only.

        The store's address is not among them but in `server_environment`: arguments are seen by every user of a machine.

        Raises:
          TrackingError: the tracker writes to a server, which has its own pages.
        """
        if self.address.kind == "http":
            raise TrackingError(f"the pages are at {self.address.shown}: no second server is needed")
        return ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]

    def server_environment(self) -> dict[str, str]:
        """The environment variables that name the store to the server of `server_arguments`."""
        return {
            "MLFLOW_BACKEND_STORE_URI": self.address.uri,
            "MLFLOW_DEFAULT_ARTIFACT_ROOT": self._artifact_location(""),
            "MLFLOW_DISABLE_TELEMETRY": "true",
            # Eight processes that wait for evaluations of language models.
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        }

    def __getstate__(self) -> dict[str, Any]:
        # A client holds connections; each process opens its own.
        return {name: value for name, value in self.__dict__.items() if name != "_opened"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        self._experiments: dict[str, Experiment] = {}
        self._current: dict[str, dict[tuple[str, str], _Known]] = {}
        self._families: dict[str, list[str]] = {}

    @property
    def _client(self) -> MlflowClient:
        """MLflow's client, which waits out short outages."""
        return Patient(self._impatient)  # type: ignore[return-value]

    @property
    def _impatient(self) -> MlflowClient:
        if "_opened" not in self.__dict__:
            names = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
            for name, value in zip(names, (self.address.user, self.address.password), strict=True):
                if value:
                    os.environ[name] = value
            for name, value in _ENVIRONMENT.items():
                os.environ.setdefault(name, value)
            from mlflow import MlflowClient  # 2 seconds: not when `--help` is all that is asked

            logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # "Creating tables", tracebacks
            logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
            with default_artifacts(None if self.address.artifacts is None else self._artifact_location("")):
                self._opened = MlflowClient(tracking_uri=self._uri)
        return self._opened

    @property
    def _uri(self) -> str:
        return f"{self.address.uri}?timeout={_SQLITE_PATIENCE}" if self.address.kind == "sqlite" else self.address.uri

    def _artifact_location(self, suite: str) -> str:
        root = str(self.address.artifacts)
        location = root if "://" in root else Path(root).absolute().as_uri()
        return f"{location}/{suite}".rstrip("/")

    def _experiment(self, suite: str) -> Experiment:
        if not suite or "/" in suite or "'" in suite:
            raise ValueError(f"suite needs a name without '/' and quotes, got {suite!r}")
        if suite in self._experiments:
            return self._experiments[suite]
        with self._locks.hold(f"suite-{suite}"):
            found = self._client.get_experiment_by_name(suite)
            if found is None:
                self._create_experiment(suite)
                found = self._client.get_experiment_by_name(suite)
        if found is None:
            raise TrackingError(f"MLflow did not keep the experiment {suite!r}: look at the server's log")
        if found.lifecycle_stage != "active":
            raise TrackingError(
                f"the experiment {suite!r} was deleted in MLflow; bring it back with "
                f"`mlflow experiments restore --experiment-id {found.experiment_id}`, or rename the suite"
            )
        self._experiments[suite] = found
        return found

    def _create_experiment(self, suite: str) -> None:
        from mlflow.exceptions import MlflowException

        # A server decides itself where artifacts go.
        location = None if self.address.kind == "http" else self._artifact_location(suite)
        try:
            self._client.create_experiment(suite, artifact_location=location)
        except MlflowException as error:
            # Another machine was faster, or an answer was lost.
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _known(self, experiment: Experiment) -> dict[tuple[str, str], _Known]:
        """The suite's current runs by role and key: one search tells a rerun what is done."""
        number = experiment.experiment_id
        if number not in self._current:
            runs = _pages(self._client.search_runs, experiment_ids=[number], filter_string="tags.current = 'true'")
            self._current[number] = {
                (run.data.tags.get("role", ""), run.data.tags.get("run_key", "")): _Known(
                    run.info.run_id,
                    run.info.run_name,
                    frozenset(_contents(run) if run.info.status == "FINISHED" else ()),
                    dict(run.data.tags),
                )
                for run in runs
            }
        return self._current[number]

    def _write(self, suite: str, record: CellRecord, role: str) -> str:
        missing = [str(path) for path in record.artifacts if not path.exists()]
        if missing:
            raise FileNotFoundError(f"artifacts of {record.name!r} do not exist: {', '.join(missing)}")
        with _explained(self.address, self._root):
            experiment = self._experiment(suite)
            known = self._known(experiment)
            held = known.get((role, record.run_key))
            if role == "cell" and held is not None and held.holds(record):
                return held.run_id
            with self._locks.hold(f"{role}-{record.run_key}"):
                run, is_new = self._claim(experiment, suite, role, record)
                run_id, is_finished = str(run.info.run_id), run.info.status == "FINISHED"
                try:
                    self._fill(run, record, is_new=is_new, replace_artifacts=role == "suite" or not is_finished)
                    if is_finished:
                        self._note_content(run, record)
                    else:
                        self._client.set_terminated(run_id, status="FINISHED")
                except BaseException as error:
                    if not is_finished:
                        self._abandon(run_id, "FAILED" if isinstance(error, Exception) else "KILLED")
                    raise
                contents = frozenset((*(_contents(run) if is_finished else ()), record.digest))
                tags = {key: value for key, value in run.data.tags.items() if key not in _made(run.data.tags, record)}
                tags |= record.provenance
            known[role, record.run_key] = _Known(run_id, record.name, contents, tags)
            for key, other in [*known.items()]:
                if key[0] == role and key[1] != record.run_key and other.name == record.name:
                    self._retire(other.run_id, by=run_id)
                    del known[key]
            return run_id

    def _claim(self, experiment: Experiment, suite: str, role: str, record: CellRecord) -> tuple[Run, bool]:
        """The run to write to, and whether it was made just now."""
        found = self._find(experiment.experiment_id, role, record.run_key)
        if found is None:
            made = self._create(experiment, suite, role, record)
            # A server has no lock to offer, and an answer that was lost is asked for twice: the oldest run stays.
            if self.address.kind == "sqlite":
                return made, True
            found = self._find(experiment.experiment_id, role, record.run_key)
            if found is None or found.info.run_id == made.info.run_id:
                return made, True
            self._client.delete_run(made.info.run_id)
        if found.info.status != "FINISHED":
            found = self._resume(found, record)
        return found, False

    def _find(self, experiment_id: str, role: str, run_key: str) -> Run | None:
        found = self._client.search_runs(
            [experiment_id],
            filter_string=f"tags.run_key = '{run_key}' and tags.role = '{role}'",
            order_by=["attributes.start_time ASC"],
        )
        for twin in found[1:]:
            if twin.data.tags.get("current") == "true":
                self._retire(twin.info.run_id, by=found[0].info.run_id)
        return found[0] if found else None

    def _create(self, experiment: Experiment, suite: str, role: str, record: CellRecord) -> Run:
        tags = {
            **{key: str(value)[:_TAG_LENGTH] for key, value in record.tags.items()},
            "mlflow.source.name": "bandana",
            "mlflow.source.type": "LOCAL",
            "mlflow.note.content": (record.note or _NOTES[role])[:_TAG_LENGTH],
            "suite": suite,
            "role": role,
            "run_key": record.run_key,
            "bandana.code": _code(),
            **self._whereabouts(attempt=1),
            **_standing(record),
        }
        if role == "cell":
            tags["mlflow.runColor"] = self._color(experiment.experiment_id, record)
        return self._client.create_run(
            experiment.experiment_id, start_time=int(time.time() * 1000), tags=tags, run_name=record.name
        )

    def _resume(self, run: Run, record: CellRecord) -> Run:
        run_id = run.info.run_id
        previous = run.data.tags.get("attempt", "1")
        attempt = int(previous) + 1 if previous.isdigit() else 2
        self._send(run_id, tags=_run_tags({**self._whereabouts(attempt), **_standing(record)}))
        self._welcome_back(run)
        self._client.update_run(run_id, status="RUNNING")
        return self._client.get_run(run_id)

    def _note_content(self, run: Run, record: CellRecord) -> None:
        contents = dict.fromkeys((*_contents(run), record.digest))
        wanted = {"current": "true", _CONTENT_TAG: json.dumps([*contents])}
        changed = {key: value for key, value in wanted.items() if run.data.tags.get(key) != value}
        self._send(run.info.run_id, tags=_run_tags(changed))
        self._welcome_back(run)

    def _welcome_back(self, run: Run) -> None:
        if "superseded_by" in run.data.tags:
            self._client.delete_tag(run.info.run_id, "superseded_by")

    def _retire(self, run_id: str, by: str) -> None:
        self._send(run_id, tags=_run_tags({"current": "false", **({"superseded_by": by} if by else {})}))

    def _abandon(self, run_id: str, status: str) -> None:
        try:
            self._impatient.set_terminated(run_id, status=status)
        except Exception as error:  # the first error is the one to tell
            _log.warning("run %s could not be marked %s: %s", run_id, status, self.address.mask(str(error)))

    def _whereabouts(self, attempt: int) -> dict[str, str]:
        return {"host": self._host, "pid": str(os.getpid()), "attempt": str(attempt)}

    def _color(self, experiment_id: str, record: CellRecord) -> str:
        words = [record.params.get(name, "") for name in ("algorithm", "calibration", "privacy_model")]
        family = " ".join(map(str, words))
        families = self._families.setdefault(experiment_id, [])
        if family not in families:
            with self._locks.hold(f"palette-{experiment_id}"):
                tags = self._client.get_experiment(experiment_id).tags
                families[:] = json.loads(tags.get(_PALETTE_TAG, "[]"))
                if family not in families:
                    families.append(family)
                    self._client.set_experiment_tag(experiment_id, _PALETTE_TAG, json.dumps(families))
        epsilon = record.params.get("epsilon")
        return run_color(families.index(family), float(epsilon) if isinstance(epsilon, int | float) else None)

    def _fill(self, run: Run, record: CellRecord, *, is_new: bool, replace_artifacts: bool) -> None:
        from mlflow.entities import Param

        run_id, data = run.info.run_id, run.data
        given = {key: _text(value) for key, value in record.params.items() if is_loggable(value)}
        metrics = {key: float(value) for key, value in record.metrics.items() if is_finite(value)}
        if not is_new:
            _tell_kept(record, data, given, metrics)
        made = {key: value for key, value in record.provenance.items() if data.tags.get(key) != value}
        for key in _made(data.tags, record).keys() - record.provenance.keys():
            self._client.delete_tag(run_id, key)
        self._send(
            run_id,
            params=[Param(key, value) for key, value in given.items() if key not in data.params],
            tags=_run_tags({key: value for key, value in record.tags.items() if key not in data.tags} | made),
            points=self._points(run, {k: v for k, v in metrics.items() if k not in data.metrics}, record.curves),
        )
        if record.dataset is not None:
            self._log_dataset(run, record.dataset)
        held = {} if is_new else {item.path: item.file_size for item in self._client.list_artifacts(run_id)}
        if record.curves:
            self._log_curves(run, record.curves, is_held=_CURVES in held)
        for path in record.artifacts:
            # Another size: whoever copied it was killed on the way. Made anew: the file says so, too.
            if replace_artifacts or made or path.name not in held or held[path.name] not in (None, path.stat().st_size):
                self._store_artifact(run, path)

    def _send(
        self, run_id: str, params: Sequence[Param] = (), tags: Sequence[RunTag] = (), points: Sequence[Metric] = ()
    ) -> None:
        """Everything in as few requests as MLflow's limits allow."""
        while params or tags or points:
            room = _BATCH - len(params[:_PAIRS]) - len(tags[:_PAIRS])
            self._client.log_batch(run_id, metrics=points[:room], params=params[:_PAIRS], tags=tags[:_PAIRS])
            params, tags, points = params[_PAIRS:], tags[_PAIRS:], points[room:]

    def _points(self, run: Run, metrics: Mapping[str, float], curves: Mapping[str, Any]) -> list[Metric]:
        from mlflow.entities import Metric

        # The time of a point depends on the point alone: sent again, it is the same point.
        start = run.info.start_time
        points = [Metric(key, value, start, 0) for key, value in metrics.items()]
        for key, (rounds, values) in curves.items():
            held = set()
            if key in run.data.metrics:
                held = {point.step for point in self._client.get_metric_history(run.info.run_id, key)}
            finite = {int(t): float(v) for t, v in zip(rounds, values, strict=True) if is_finite(v)}
            points += [Metric(key, v, start + t, t) for t, v in finite.items() if t not in held]
        return points

    def _log_dataset(self, run: Run, dataset: Mapping[str, Any]) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        name, digest = str(dataset["name"])[:NAME_LENGTH], str(dataset["digest"])[:_DIGEST_LENGTH]
        held = run.inputs.dataset_inputs if run.inputs is not None else []
        if any((item.dataset.name, item.dataset.digest) == (name, digest) for item in held):
            return
        source = json.dumps({"tags": {"mlflow.source.name": str(dataset.get("source", ""))}})
        columns = [{"type": "double", "name": str(column), "required": True} for column in dataset.get("columns", ())]
        schema = json.dumps({"mlflow_colspec": columns}) if columns else None
        profile = json.dumps(dict(dataset["profile"]), default=str) if dataset.get("profile") else None
        context = [InputTag("mlflow.data.context", str(dataset.get("context", "benchmark")))]
        record = Dataset(name, digest, "code", source, schema, profile)
        self._client.log_inputs(run.info.run_id, [DatasetInput(record, context)])

    def _store_artifact(self, run: Run, path: Path) -> None:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        # As the client does it, but for its asking the store again where the run's artifacts lie.
        place = Patient(get_artifact_repository(run.info.artifact_uri, tracking_uri=self._uri))
        if path.is_dir():
            place.log_artifacts(str(path), path.name)
        else:
            place.log_artifact(str(path))

    def _log_curves(self, run: Run, curves: Mapping[str, Any], *, is_held: bool) -> None:
        import pandas as pd

        table = pd.DataFrame(
            [
                (key, int(t), float(v))
                for key, (rounds, values) in curves.items()
                for t, v in zip(rounds, values, strict=True)
            ],
            columns=["curve", "round", "value"],
        )
        with tempfile.TemporaryDirectory(scratch.SUFFIX, scratch.prefix("curves"), self._root) as folder:
            held = self._curves_of(run.info.run_id, folder) if is_held else None
            if held is not None:
                table = table[~table["curve"].isin(held["curve"])]
                if table.empty:
                    return
                table = pd.concat([held, table], ignore_index=True)
            path = Path(folder) / _CURVES
            table.to_parquet(path, index=False)
            self._store_artifact(run, path)

    def _curves_of(self, run_id: str, folder: str) -> Any:
        """The table of a run's curves; None where whoever wrote it was killed on the way."""
        import pandas as pd

        try:
            return pd.read_parquet(self._client.download_artifacts(run_id, _CURVES, folder))
        except (ValueError, OSError):  # of pyarrow: no table, or cut off
            return None


@contextmanager
def _explained(address: TrackingAddress, root: Path) -> Iterator[None]:
    """Turns what MLflow, its database and the disk say into one sentence with an advice, without any password."""
    try:
        yield
    except (TrackingError, FileNotFoundError):
        raise
    except Exception as error:
        said = None if isinstance(error, ValueError) else advice(error, address, root)
        address.clean(error)
        if said is None:
            raise
        raise TrackingError(said) from error


def _touch(address: TrackingAddress) -> None:
    """Touches the store once: MLflow itself would try a broken one for minutes before it says so."""
    if address.kind == "http":
        try:
            with urllib.request.urlopen(f"{address.uri}/health", timeout=10):
                pass
        except urllib.error.HTTPError:
            pass  # it answers; what it thinks of us shows at the first call
    elif address.kind == "postgresql":
        from sqlalchemy import create_engine

        engine = create_engine(address.uri)
        try:
            engine.connect().close()
        finally:
            engine.dispose()
    else:
        assert address.database is not None
        with closing(sqlite3.connect(address.database, timeout=_SQLITE_PATIENCE, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            database.execute("ROLLBACK")
            # As durable as SQLite's default, at a third of its waits for the disk; and whoever reads keeps nobody waiting.
            with suppress(sqlite3.OperationalError):  # a file system that cannot: then as before
                database.execute("PRAGMA journal_mode = WAL")


def _pages(search: Any, **arguments: Any) -> list[Any]:
    found, token = [], None
    while True:
        page = search(**arguments, page_token=token)
        found += page
        if not (token := page.token):
            return found


def _standing(record: CellRecord) -> dict[str, str]:
    """The tags of a run that is being written: current, and full once it is FINISHED."""
    return {"current": "true", _CONTENT_TAG: json.dumps([record.digest])}


def _contents(run: Run) -> list[str]:
    """Digests of the records that a finished run holds."""
    try:
        return [str(digest) for digest in json.loads(run.data.tags.get(_CONTENT_TAG, "[]"))]
    except (ValueError, TypeError):
        return []


def _made(tags: Mapping[str, str], record: CellRecord) -> dict[str, str]:
    """Those of a run's tags that say how the record's numbers came to be."""
    kinds = tuple({f"{key.rpartition('.')[0]}." for key in record.provenance})
    return {key: value for key, value in tags.items() if key.startswith(kinds)}


def _run_tags(tags: Mapping[str, Any]) -> list[RunTag]:
    from mlflow.entities import RunTag

    return [RunTag(key, str(value)[:_TAG_LENGTH]) for key, value in tags.items()]


def _is_alive(pid: str) -> bool:
    if not pid.isdigit():
        return True  # not ours to judge
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _text(value: Any) -> str:
    return str(value)[:_PARAM_LENGTH]


def _tell_kept(record: CellRecord, data: Any, params: Mapping[str, str], metrics: Mapping[str, float]) -> None:
    """Says which numbers of an earlier run stay although others came: a run is one consistent record."""
    changed = [k for k, v in params.items() if k in data.params and data.params[k] != v]
    told = {k: v for k, v in metrics.items() if k not in record.fills}
    changed += [k for k, v in told.items() if not math.isclose(data.metrics.get(k, v), v, rel_tol=1e-6)]
    changed += [k for k, v in record.tags.items() if data.tags.get(k, str(v)) != str(v)[:_TAG_LENGTH]]
    if changed:
        _log.warning(
            "the MLflow run of %r keeps its earlier values of %s; delete the run to have it written anew",
            record.name, ", ".join(sorted(changed)),
        )  # fmt: skip


def _code() -> str:
    from bandana.flows.keys.identity import code_version

    return code_version()[:12]
