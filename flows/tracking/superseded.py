"""Runs that another run took the place of: which of them nothing stands on, and how they are removed for good.

MLflow deletes in two steps: a deleted run is only marked, and `mlflow gc` removes its rows and files. Both steps are taken
here for exactly the runs that were chosen; a server of others keeps the second step to itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from bandana.flows.folder.sqlite_file import compact
from bandana.flows.tracking.store.client import TrackingStore, pages
from bandana.flows.tracking.store.locks import Locks
from bandana.flows.tracking.store.mlflow_private import delete_for_good

if TYPE_CHECKING:
    from mlflow.entities import Run

YOUNG, BASELINE, EVIDENCE = "younger", "tagged as a baseline", "with evidence that a report lists"
_DIGITS = 64
_SHA256 = re.compile(rb"[0-9a-f]{64}")


@dataclass(frozen=True)
class OldRun:
    """A superseded run that nothing stands on.

    Attributes:
      run_id: of MLflow.
      suite: name of its experiment.
      name: of its cell.
      key: content key of its cell.
      n_bytes: what its files take, where they lie on this machine.
    """

    run_id: str
    suite: str
    name: str
    key: str
    n_bytes: int


class Superseded:
    """Finds and removes superseded runs of a store."""

    def __init__(self, store: TrackingStore, locks: Locks) -> None:
        self._store, self._locks = store, locks

    def find(self, before_ms: float, evidence: Collection[str]) -> tuple[list[OldRun], dict[str, int]]:
        """Runs of cells that are off their comparison page and ended before a time.

        Args:
          before_ms: the time, in milliseconds since 1970.
          evidence: SHA-256 of evidence files that reports list.

        Returns:
          the runs, and why others stay -> how many.
        """
        superseded, kept = [], Counter[str]()
        with self._store.explained():
            suites = {each.experiment_id: str(each.name) for each in pages(self._store.client.search_experiments)}
            runs = pages(
                self._store.client.search_runs,
                experiment_ids=list(suites),
                filter_string="tags.current = 'false' and tags.role = 'cell'",
            ) if suites else []  # fmt: skip
            for run in runs:
                if (why := self._why_kept(run, before_ms, evidence)) is not None:
                    kept[why] += 1
                    continue
                suite, key = suites[run.info.experiment_id], run.data.tags["run_key"]
                n_bytes = sum(path.stat().st_size for path in self._files(run))
                superseded.append(OldRun(run.info.run_id, suite, run.info.run_name, key, n_bytes))
        return superseded, dict(kept)

    def remove(self, runs: Sequence[OldRun]) -> bool:
        """Removes runs, those that became current again meanwhile excepted; whether their rows and files are gone too."""
        is_gone = self._store.address.kind != "http"
        with self._store.explained():
            for old in runs:
                with self._locks.hold(f"cell-{old.key}"):  # a spec that returns takes its old run up again under this lock
                    run = self._store.client.get_run(old.run_id)
                    if run.data.tags.get("current") == "true":
                        continue
                    self._store.client.delete_run(old.run_id)
                    if is_gone:
                        self._purge(run)
            if is_gone and runs and (database := self._store.address.database) is not None:
                compact(database)
        return is_gone

    def _why_kept(self, run: Run, before_ms: float, evidence: Collection[str]) -> str | None:
        if run.data.tags.get("baseline") == "true":
            return BASELINE
        if run.info.status == "RUNNING" or (run.info.end_time or run.info.start_time) >= before_ms:
            return YOUNG
        if any(_stated_hash(path) in evidence for path in self._files(run)):
            return EVIDENCE
        return None

    def _files(self, run: Run) -> list[Path]:
        """A run's files, where they lie on this machine."""
        address = urlsplit(run.info.artifact_uri or "")
        if address.scheme not in ("", "file"):
            return []
        folder = Path(unquote(address.path))
        return [path for path in folder.rglob("*") if path.is_file()] if folder.is_absolute() else []

    def _purge(self, run: Run) -> None:
        """Does what `mlflow gc` does with one deleted run."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        repository: Any = get_artifact_repository(run.info.artifact_uri)
        repository.delete_artifacts()
        address = urlsplit(run.info.artifact_uri)
        if address.scheme in ("", "file"):
            with suppress(OSError):  # it holds something else
                Path(unquote(address.path)).parent.rmdir()
        delete_for_good(self._store.impatient, run.info.run_id)


def _stated_hash(path: Path) -> str | None:
    """The SHA-256 that ends an evidence file; None for other files."""
    if path.suffix != ".npz":
        return None
    tail = path.read_bytes()[-_DIGITS:]
    return tail.decode() if _SHA256.fullmatch(tail) else None
