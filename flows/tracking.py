"""One MLflow run for each cell of an experiment, written once, resumed after a crash, compared on one page.

The only module that imports MLflow. A run is found again by the content key of its cell, so that a rerun
never makes a second one; an audit adds its numbers to the run that the benchmark wrote.
"""

from __future__ import annotations

import errno
import fcntl
import importlib.metadata
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.comparison_view import VIEW_KEY, VIEW_TAG, comparison_state, encode_view, run_color

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment, Metric, Run

_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    # MLflow's own patience with a server that is down is four minutes.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
_CHUNK = 1000  # metric points in one request, MLflow's limit
_PAIRS = 100  # parameters in one request, MLflow's limit
_PARAM_LENGTH, _TAG_LENGTH, _DIGEST_LENGTH, _NAME_LENGTH = 6000, 8000, 36, 250
_SQLITE_PATIENCE = 60  # seconds that a writer waits for another one
_CURVES = "curves.parquet"
_PALETTE_TAG = "bandana.palette"
_RUN_KEY = re.compile(r"[A-Za-z0-9._:-]{1,200}")
_KEY_NAME = re.compile(r"[A-Za-z0-9_./ :-]{1,250}")
_log = logging.getLogger(__name__)


class TrackingError(RuntimeError):
    """MLflow cannot be written or read; the message says what to do."""


@dataclass(frozen=True)
class CellRecord:
    """What MLflow keeps of one cell: one algorithm with one set of parameters on one environment.

    Attributes:
      run_key: content hash of the cell; equal keys share one run.
      name: what people read, for example 'adar-ucb tight eps=1'.
      params: public parameters; `epsilon` is a number, or absent where the run is not private.
      tags: further labels.
      metrics: final scalars, for example 'regret/final'; values that are not finite are left out.
      curves: name -> (rounds, values), 150 to 250 log-spaced rounds; the page shows at most 320.
      artifacts: files or folders to keep with the run.
      dataset: 'name', 'digest' and 'source' (text) of the data played on, or None.
    """

    run_key: str
    name: str
    params: Mapping[str, str | float | int] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[Sequence[int], Sequence[float]]] = field(default_factory=dict)
    artifacts: list[Path] = field(default_factory=list)
    dataset: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not _RUN_KEY.fullmatch(self.run_key):
            raise ValueError(f"run_key holds at most 200 letters, digits and . _ : -, got {self.run_key!r}")
        for name in (*self.params, *self.metrics, *self.curves):
            if not _KEY_NAME.fullmatch(name):
                raise ValueError(f"a name holds at most {_NAME_LENGTH} letters, digits, spaces and _ - . : /, got {name!r}")
        if both := set(self.metrics) & set(self.curves):
            raise ValueError(f"{sorted(both)} are both metrics and curves; give each under one name")
        for name, (rounds, values) in self.curves.items():
            if len(rounds) != len(values):
                raise ValueError(f"curve {name!r}: {len(rounds)} rounds, {len(values)} values; they pair up")
        names = [path.name for path in self.artifacts]
        if len(set(names)) < len(names):
            raise ValueError(f"artifacts need different file names, got {sorted(names)}")


class Tracker:
    """Writes to MLflow: a store below `data_dir`, or any server.

    Every write is idempotent. Processes with one data folder may write at once: each key has a file lock.

    Args:
      data_dir: where the default store and the locks live; created where missing.
      tracking_uri: an MLflow tracking URI; None for SQLite at `data_dir`/mlflow/mlflow.db.

    Raises:
      TrackingError: the store cannot be opened.
    """

    def __init__(self, data_dir: Path, tracking_uri: str | None = None) -> None:
        for name, value in _ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        self._root = Path(data_dir).absolute() / "mlflow"
        self._database = None if tracking_uri else self._root / "mlflow.db"
        self.tracking_uri = tracking_uri or f"sqlite:///{self._database}"
        self._host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname())
        with self._explained():
            (self._root / "locks").mkdir(parents=True, exist_ok=True)
            if self._database is not None:
                (self._root / "artifacts").mkdir(exist_ok=True)
                _check_sqlite(self._database)
            elif self.tracking_uri.startswith(("http://", "https://")):
                _check_server(self.tracking_uri)
            with self._lock("store"):  # a fresh database is laid out by one process
                self._client.search_experiments(max_results=1)

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
        with self._explained():
            found = self._experiment(suite)
            wanted = {
                "mlflow.note.content": description[:_TAG_LENGTH],
                "mlflow.experimentKind": "custom_model_development",
                VIEW_TAG: encode_view(comparison_state(), created_ms=found.creation_time or 0),
            }
            with self._lock(f"suite-{suite}"):  # MLflow fails when two writers add one tag at once
                tags = self._client.get_experiment(found.experiment_id).tags
                for key, value in wanted.items():
                    if tags.get(key) != value:
                        self._client.set_experiment_tag(found.experiment_id, key, value)
            return str(found.experiment_id)

    def log_cell(self, suite: str, cell: CellRecord) -> str:
        """Writes a cell's run, or what its run does not hold yet.

        A finished run keeps every number that it has and takes only what is new; an unfinished one goes
        on under its own id as the next attempt.

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
        )
        return self._write(suite, record, role="suite")

    def mark_dead_runs(self) -> int:
        """Marks as KILLED the runs that a dead process of this machine left RUNNING; they can be resumed.

        Returns:
          how many were marked.
        """
        with self._explained():
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
          base: where the MLflow server answers.

        Raises:
          TrackingError: the suite has no experiment yet.
        """
        with self._explained():
            found = self._client.get_experiment_by_name(suite)
        if found is None:
            raise TrackingError(f"MLflow has no experiment {suite!r} yet: run the suite first")
        return (
            f"{base.rstrip('/')}/#/experiments/{found.experiment_id}/runs"
            f"?workflowType=machine_learning&compareRunsMode=CHART&viewStateShareKey={VIEW_KEY}"
        )

    def server_arguments(self, port: int = 5000) -> list[str]:
        """What follows the Python interpreter to serve this store's pages, on the loopback interface only.

        Raises:
          TrackingError: the tracker writes to a server, which has its own pages.
        """
        if self._database is None:
            raise TrackingError(f"the pages are at {self.tracking_uri}: no second server is needed")
        return [
            "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
            "--backend-store-uri", self.tracking_uri, "--default-artifact-root", self._artifact_root.as_uri(),
        ]  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        # A client holds connections; each process opens its own.
        return {name: value for name, value in self.__dict__.items() if name != "_opened"}

    @property
    def _client(self) -> MlflowClient:
        if "_opened" not in self.__dict__:
            from mlflow import MlflowClient  # 2 seconds: not when `--help` is all that is asked

            uri = self.tracking_uri
            if self._database is not None:
                uri += f"?timeout={_SQLITE_PATIENCE}"
            logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)  # "Creating tables"
            self._opened = MlflowClient(tracking_uri=uri)
        return self._opened

    @property
    def _artifact_root(self) -> Path:
        return self._root / "artifacts"

    def _experiment(self, suite: str) -> Experiment:
        if not suite or "/" in suite or "'" in suite:
            raise ValueError(f"suite needs a name without '/' and quotes, got {suite!r}")
        with self._lock(f"suite-{suite}"):
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
        return found

    def _create_experiment(self, suite: str) -> None:
        from mlflow.exceptions import MlflowException

        # A server decides itself where artifacts go.
        location = None if self._database is None else (self._artifact_root / suite).as_uri()
        try:
            self._client.create_experiment(suite, artifact_location=location)
        except MlflowException as error:
            # Another machine was faster.
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def _write(self, suite: str, record: CellRecord, role: str) -> str:
        missing = [str(path) for path in record.artifacts if not path.exists()]
        if missing:
            raise FileNotFoundError(f"artifacts of {record.name!r} do not exist: {', '.join(missing)}")
        with self._explained():
            experiment = self._experiment(suite)
            with self._lock(f"{role}-{record.run_key}"):
                run = self._find(experiment.experiment_id, role, record.run_key)
                is_finished = run is not None and run.info.status == "FINISHED"
                if run is None:
                    run = self._create(experiment, suite, role, record)
                elif not is_finished:
                    run = self._resume(run)
                run_id = str(run.info.run_id)
                try:
                    self._fill(run, record, replace_artifacts=role == "suite" or not is_finished)
                    if not is_finished:
                        self._client.set_terminated(run_id, status="FINISHED")
                except BaseException as error:
                    if not is_finished:
                        self._abandon(run_id, "FAILED" if isinstance(error, Exception) else "KILLED")
                    raise
            return run_id

    def _find(self, experiment_id: str, role: str, run_key: str) -> Run | None:
        found = self._client.search_runs(
            [experiment_id],
            filter_string=f"tags.run_key = '{run_key}' and tags.role = '{role}'",
            order_by=["attributes.start_time ASC"],
            max_results=1,
        )
        return found[0] if found else None

    def _create(self, experiment: Experiment, suite: str, role: str, record: CellRecord) -> Run:
        tags = {
            **{key: str(value)[:_TAG_LENGTH] for key, value in record.tags.items()},
            "mlflow.source.name": "bandana",
            "mlflow.source.type": "LOCAL",
            "suite": suite,
            "role": role,
            "run_key": record.run_key,
            "bandana.version": _version(),
            **self._whereabouts(attempt=1),
        }
        if role == "cell":
            tags["mlflow.runColor"] = self._color(experiment.experiment_id, record)
        return self._client.create_run(
            experiment.experiment_id, start_time=int(time.time() * 1000), tags=tags, run_name=record.name
        )

    def _resume(self, run: Run) -> Run:
        run_id = run.info.run_id
        previous = run.data.tags.get("attempt", "1")
        attempt = int(previous) + 1 if previous.isdigit() else 2
        for key, value in self._whereabouts(attempt).items():
            self._client.set_tag(run_id, key, value)
        self._client.update_run(run_id, status="RUNNING")
        return self._client.get_run(run_id)

    def _abandon(self, run_id: str, status: str) -> None:
        try:
            self._client.set_terminated(run_id, status=status)
        except Exception as error:  # the first error is the one to tell
            _log.warning("run %s could not be marked %s: %s", run_id, status, error)

    def _whereabouts(self, attempt: int) -> dict[str, str]:
        return {"host": self._host, "pid": str(os.getpid()), "attempt": str(attempt)}

    def _color(self, experiment_id: str, record: CellRecord) -> str:
        words = [record.params.get(name, "") for name in ("algorithm", "calibration", "privacy_model")]
        family = " ".join(map(str, words))
        with self._lock(f"palette-{experiment_id}"):
            tags = self._client.get_experiment(experiment_id).tags
            families = json.loads(tags.get(_PALETTE_TAG, "[]"))
            if family not in families:
                families.append(family)
                self._client.set_experiment_tag(experiment_id, _PALETTE_TAG, json.dumps(families))
        epsilon = record.params.get("epsilon")
        return run_color(families.index(family), float(epsilon) if isinstance(epsilon, int | float) else None)

    def _fill(self, run: Run, record: CellRecord, *, replace_artifacts: bool) -> None:
        from mlflow.entities import Param, RunTag

        run_id, data = run.info.run_id, run.data
        given = {key: _text(value) for key, value in record.params.items() if _is_loggable(value)}
        metrics = {key: float(value) for key, value in record.metrics.items() if _is_finite(value)}
        _tell_kept(record, data, given, metrics)
        params = [Param(key, value) for key, value in given.items() if key not in data.params]
        for start in range(0, len(params), _PAIRS):
            self._client.log_batch(run_id, params=params[start : start + _PAIRS])
        tags = [RunTag(k, str(v)[:_TAG_LENGTH]) for k, v in record.tags.items() if k not in data.tags]
        for start in range(0, len(tags), _PAIRS):
            self._client.log_batch(run_id, tags=tags[start : start + _PAIRS])
        new = {key: value for key, value in metrics.items() if key not in data.metrics}
        points = self._points(run, new, record.curves)
        for start in range(0, len(points), _CHUNK):
            self._client.log_batch(run_id, metrics=points[start : start + _CHUNK])
        if record.dataset is not None:
            self._log_dataset(run, record.dataset)
        held = {item.path for item in self._client.list_artifacts(run_id)}
        if record.curves:
            self._log_curves(run_id, record.curves, is_held=_CURVES in held)
        for path in record.artifacts:
            if replace_artifacts or path.name not in held:
                if path.is_dir():
                    self._client.log_artifacts(run_id, str(path), artifact_path=path.name)
                else:
                    self._client.log_artifact(run_id, str(path))

    def _points(self, run: Run, metrics: Mapping[str, float], curves: Mapping[str, Any]) -> list[Metric]:
        from mlflow.entities import Metric

        # The time of a point depends on the point alone: sent again, it is the same point.
        start = run.info.start_time
        points = [Metric(key, value, start, 0) for key, value in metrics.items()]
        for key, (rounds, values) in curves.items():
            held = set()
            if key in run.data.metrics:
                held = {point.step for point in self._client.get_metric_history(run.info.run_id, key)}
            finite = {int(t): float(v) for t, v in zip(rounds, values, strict=True) if _is_finite(v)}
            points += [Metric(key, v, start + t, t) for t, v in finite.items() if t not in held]
        return points

    def _log_dataset(self, run: Run, dataset: Mapping[str, Any]) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        name, digest = str(dataset["name"])[:_NAME_LENGTH], str(dataset["digest"])[:_DIGEST_LENGTH]
        held = run.inputs.dataset_inputs if run.inputs is not None else []
        if any((item.dataset.name, item.dataset.digest) == (name, digest) for item in held):
            return
        source = json.dumps({"tags": {"mlflow.source.name": str(dataset.get("source", ""))}})
        context = [InputTag("mlflow.data.context", "benchmark")]
        self._client.log_inputs(run.info.run_id, [DatasetInput(Dataset(name, digest, "code", source), context)])

    def _log_curves(self, run_id: str, curves: Mapping[str, Any], *, is_held: bool) -> None:
        import pandas as pd

        table = pd.DataFrame(
            [
                (key, int(t), float(v))
                for key, (rounds, values) in curves.items()
                for t, v in zip(rounds, values, strict=True)
            ],
            columns=["curve", "round", "value"],
        )
        with tempfile.TemporaryDirectory(dir=self._root) as folder:
            if is_held:
                held = pd.read_parquet(self._client.download_artifacts(run_id, _CURVES, folder))
                table = table[~table["curve"].isin(held["curve"])]
                if table.empty:
                    return
                table = pd.concat([held, table], ignore_index=True)
            path = Path(folder) / _CURVES
            table.to_parquet(path, index=False)
            self._client.log_artifact(run_id, str(path))

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        safe = re.sub(r"[^A-Za-z0-9._-]", "-", name)
        with open(self._root / "locks" / f"{safe}.lock", "w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turns what MLflow, SQLite and the disk say into one sentence with an advice."""
        try:
            yield
        except (TrackingError, FileNotFoundError, ValueError):
            raise
        except Exception as error:
            if (advice := _advice(error, self.tracking_uri, self._root)) is None:
                raise
            raise TrackingError(advice) from error


def _advice(error: Exception, uri: str, root: Path) -> str | None:
    """What went wrong and what to do, or None for an error that is a mistake in the code."""
    from_disk = isinstance(error, OSError) and not isinstance(error, urllib.error.URLError)
    number = error.errno if isinstance(error, OSError) else None
    text = str(error).lower()
    if number in (errno.ENOSPC, errno.EDQUOT) or "disk is full" in text or "no space left" in text:
        return f"the disk that holds {root} is full: free some space and run again; finished work is kept"
    if "database is locked" in text:
        return (
            f"the database {uri} is locked by another program: wait for it, or close what holds it open "
            "(a copy, a backup, a database browser), and run again"
        )
    if any(hint in text for hint in ("not a database", "malformed", "file is encrypted")):
        return (
            f"the database {uri} is damaged or is no SQLite file: move it away and run again; "
            "finished results are kept in the data folder and are logged anew"
        )
    if any(hint in text for hint in ("out-of-date database schema", "can't locate revision")):
        return f"the database {uri} is of another MLflow: run `mlflow db upgrade {uri}`, or update MLflow"
    if any(hint in text for hint in ("readonly database", "unable to open database")) or (
        from_disk and number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
    ):
        return f"{root} cannot be written ({error}): choose another data folder, or change its permissions"
    if "401" in text or "403" in text or "permission_denied" in text:
        return (
            f"the MLflow server {uri} refuses us ({error}): set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD, or have this host added to the server's --allowed-hosts"
        )
    network = ("api request to", "connection", "max retries", "timed out", "failed to establish")
    if isinstance(error, urllib.error.URLError | TimeoutError) or any(hint in text for hint in network):
        return f"the MLflow server {uri} does not answer ({error}): start it, or check the address"
    if from_disk or type(error).__module__.split(".")[0] in ("mlflow", "sqlalchemy", "sqlite3"):
        return f"MLflow at {uri} failed: {error}"
    return None


def _check_sqlite(path: Path) -> None:
    # MLflow tries a broken database for a minute and a half before it says so.
    with closing(sqlite3.connect(path, timeout=_SQLITE_PATIENCE, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        database.execute("ROLLBACK")


def _check_server(uri: str) -> None:
    try:
        with urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=10):
            pass
    except urllib.error.HTTPError:
        pass  # it answers; what it thinks of us shows at the first call


def _pages(search: Any, **arguments: Any) -> list[Any]:
    found, token = [], None
    while True:
        page = search(**arguments, page_token=token)
        found += page
        if not (token := page.token):
            return found


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


def _is_finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def _is_loggable(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _text(value: Any) -> str:
    return str(value)[:_PARAM_LENGTH]


def _tell_kept(record: CellRecord, data: Any, params: Mapping[str, str], metrics: Mapping[str, float]) -> None:
    """Says which numbers of an earlier run stay although others came: a run is one consistent record."""
    changed = [k for k, v in params.items() if k in data.params and data.params[k] != v]
    changed += [k for k, v in metrics.items() if not math.isclose(data.metrics.get(k, v), v, rel_tol=1e-6)]
    changed += [k for k, v in record.tags.items() if data.tags.get(k, str(v)) != str(v)[:_TAG_LENGTH]]
    if changed:
        _log.warning(
            "the MLflow run of %r keeps its earlier values of %s; delete the run to have it written anew",
            record.name, ", ".join(sorted(changed)),
        )  # fmt: skip


def _version() -> str:
    try:
        return importlib.metadata.version("bandana")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
