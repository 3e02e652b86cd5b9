"""Where things are kept, and the settings of Prefect and MLflow that must stand before either is imported."""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bandana.flows.folder.scratch import sweep
from bandana.flows.folder.shared import address_in, files_at, local_part

DEFAULT_DATA = "bandana_data"
ANONYMOUS = "BANDANA_ANONYMOUS"
"""Environment variable: whether results leave out who computed them; `--anonymous` sets it, and workers inherit it."""
_NEEDED_BYTES = 128 << 20

# Failures are told in one line by the command itself: the logs of Prefect and MLflow stay silent but for --debug.
_QUIET = {
    "DO_NOT_TRACK": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_SERVER_LOGGING_LEVEL": "CRITICAL",
    "DASK_LOGGING__DISTRIBUTED": "critical",
    # A temporary server on a busy machine needs longer than the default to start, and records tasks in batches.
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "240",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "200",
    # The first request waits for that start.
    "PREFECT_API_REQUEST_TIMEOUT": "240",
    # A command that was stopped leaves semaphores; their keeper clears them away, and need not speak of it.
    "PYTHONWARNINGS": "ignore::UserWarning:multiprocessing.resource_tracker",
}
# Blocks run side by side, one thread each; sums of many threads need not be the same bit for bit.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


def data_root(root: Path | str | None = None) -> Path:
    """Where the data folder is, or would be; of a shared store, its part on this machine."""
    return local_part(_named(root), DEFAULT_DATA).absolute()


def _named(root: Path | str | None) -> str:
    return str(root or os.environ.get("BANDANA_DATA") or DEFAULT_DATA)


def is_anonymous() -> bool:
    """True if results leave out user and host: BANDANA_ANONYMOUS is set, to anything but 0, no, off and false."""
    return os.environ.get(ANONYMOUS, "").strip().lower() not in ("", "0", "no", "off", "false")


def use_one_thread() -> None:
    """One thread for each linear-algebra library; call before NumPy is imported. A user's own settings stay."""
    for name in _THREADS:
        os.environ.setdefault(name, "1")


@dataclass(frozen=True)
class DataFolder:
    """The one folder that everything is written to."""

    root: Path

    @classmethod
    def open(cls, root: Path | str | None = None) -> DataFolder:
        """Creates the folder where it is missing, with mode 0700; None means `bandana_data` in the current directory."""
        folder = cls(data_root(root))
        folder.root.parent.mkdir(parents=True, exist_ok=True)
        folder.root.mkdir(0o700, exist_ok=True)
        if (address := address_in(_named(root))) is not None:
            files_at(address).join(folder.root)
        return folder

    @property
    def results(self) -> Path:
        """Finished blocks and audits, by content key."""
        return self.root / "results"

    @property
    def prefect(self) -> Path:
        """Prefect's home: the database of its temporary server."""
        return self.root / "prefect"

    @property
    def login(self) -> Path:
        """The login of Prefect's pages under `bandana serve`, which the owner alone can read."""
        return self.prefect / "login"

    def book(self, name: str) -> Path:
        """A budget book that specs name."""
        return self.root / "books" / f"{name}.sqlite"

    def suite(self, name: str) -> Path:
        """A suite's spec, report and evidence."""
        return self.root / "suites" / name

    def journal(self, suite: str) -> Path:
        """Journal of what happened in a suite, and when."""
        return self.suite(suite) / "log.jsonl"

    def evidence(self, suite: str, name: str) -> Path:
        """An audit's evidence file, under a name that people can type."""
        return self.suite(suite) / "evidence" / f"{name}.npz"

    def sweep(self) -> None:
        """Removes what killed processes left half-written; runs that go on beside this one keep theirs."""
        sweep(place for place in self.root.iterdir() if place.is_dir() and place != self.prefect)

    def prepare(self) -> None:
        """Sets the environment for Prefect and MLflow; call before either is imported. A user's own settings stay.

        Raises:
          OSError: the disk has no room for their databases; a server that cannot write would only time out.
        """
        if shutil.disk_usage(self.root).free < _NEEDED_BYTES:
            raise OSError(errno.ENOSPC, f"less than {_NEEDED_BYTES >> 20} MiB are free", str(self.root))
        self.set_environment()

    def set_environment(self) -> None:
        """Sets the environment as `prepare` does, also where the disk is full."""
        for name, value in {**_QUIET, "PREFECT_HOME": str(self.prefect)}.items():
            os.environ.setdefault(name, value)
        use_one_thread()


def n_workers() -> int:
    """Number of blocks that run side by side: BANDANA_WORKERS, or one a core that this process may use."""
    given = os.environ.get("BANDANA_WORKERS", "").strip() or str(len(os.sched_getaffinity(0)))
    if not (given.isdecimal() and given.isascii() and int(given)):
        raise ValueError(f"BANDANA_WORKERS must be a whole number of at least 1, got {given!r}")
    return int(given)
