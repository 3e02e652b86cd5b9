"""The experiments of a store, one a suite, and what is remembered of their current runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from bandana.flows.tracking.comparison_view import run_color
from bandana.flows.tracking.record import CellRecord
from bandana.flows.tracking.store.client import TrackingStore, pages
from bandana.flows.tracking.store.errors import TrackingError
from bandana.flows.tracking.store.locks import Locks

if TYPE_CHECKING:
    from mlflow.entities import Experiment, Run

CONTENT_TAG = "bandana.content"
_PALETTE_TAG = "bandana.palette"
_REFERENCE = "reference"
NIGHTS = " (nights)"
"""Ending of the name of the experiment that holds what a suite's schedule ran; no suite has a space in its name."""
IS_NIGHT = ContextVar("is_night", default=False)
"""True while a schedule's work is written, which stands apart from what somebody runs by hand."""


class Known(NamedTuple):
    """Memory of the tracker about a current run."""

    run_id: str
    name: str
    contents: frozenset[str]
    tags: Mapping[str, str]

    def holds(self, record: CellRecord) -> bool:
        """True if nothing of the record is to be written."""
        return record.digest in self.contents and record.provenance == record.made_of(self.tags)


class Experiments:
    """Finds and creates experiments; what it found is remembered for as long as the process lives."""

    def __init__(self, store: TrackingStore, locks: Locks) -> None:
        self._store, self._locks = store, locks
        self._experiments: dict[str, Experiment] = {}
        self._current: dict[str, dict[tuple[str, str], Known]] = {}
        self._families: dict[str, list[str]] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return Experiments, (self._store, self._locks)

    def of(self, suite: str) -> Experiment:
        """The suite's experiment, while `IS_NIGHT` that of its nights, created where missing.

        Raises:
          ValueError: the name is empty, or holds '/' or a quote.
          TrackingError: the experiment was deleted, or the server did not keep it.
        """
        if not suite or "/" in suite or "'" in suite:
            raise ValueError(f"suite needs a name without '/' and quotes, got {suite!r}")
        suite += NIGHTS if IS_NIGHT.get() else ""
        if suite in self._experiments:
            return self._experiments[suite]
        with self._locks.hold(f"suite-{suite}"):
            experiment = self._store.client.get_experiment_by_name(suite)
            if experiment is None:
                self._create(suite)
                experiment = self._store.client.get_experiment_by_name(suite)
        if experiment is None:
            raise TrackingError(f"MLflow did not keep the experiment {suite!r}: look at the server's log")
        if experiment.lifecycle_stage != "active":
            raise TrackingError(
                f"the experiment {suite!r} was deleted in MLflow; bring it back with "
                f"`mlflow experiments restore --experiment-id {experiment.experiment_id}`, or rename the suite"
            )
        self._experiments[suite] = experiment
        return experiment

    def _create(self, suite: str) -> None:
        from mlflow.exceptions import MlflowException

        # A server decides itself where artifacts go.
        is_theirs, folder = self._store.address.kind == "http", suite.replace(NIGHTS, ".nights")
        location = None if is_theirs else self._store.artifact_location(folder)
        try:
            self._store.client.create_experiment(suite, artifact_location=location)
        except MlflowException as error:
            # Another machine was faster, or an answer was lost.
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise

    def current(self, experiment: Experiment) -> dict[tuple[str, str], Known]:
        """The suite's current runs by role and key: one search tells a rerun what is done."""
        number = experiment.experiment_id
        if number not in self._current:
            runs = pages(self._store.client.search_runs, experiment_ids=[number], filter_string="tags.current = 'true'")
            self._current[number] = {
                (run.data.tags.get("role", ""), run.data.tags.get("run_key", "")): Known(
                    run.info.run_id,
                    run.info.run_name,
                    frozenset(contents_of(run) if run.info.status == "FINISHED" else ()),
                    dict(run.data.tags),
                )
                for run in runs
            }
        return self._current[number]

    def color(self, experiment_id: str, record: CellRecord) -> str:
        """The color of a cell's run: a hue for each algorithm, calibration, model and guarantee, a shade for epsilon.

        A cell without noise is of its cell's family; reference rows are gray, and counted by themselves.
        """
        role = str(record.params.get("role", "algorithm"))
        words = [record.params.get(name, "") for name in ("algorithm", "calibration", "privacy_model", "guarantee")]
        family = " ".join(map(str, ([_REFERENCE] if role == _REFERENCE else []) + words))
        families = self._families.setdefault(experiment_id, [])
        if family not in families:
            with self._locks.hold(f"palette-{experiment_id}"):
                tags = self._store.client.get_experiment(experiment_id).tags
                families[:] = json.loads(tags.get(_PALETTE_TAG, "[]"))
                if family not in families:
                    families.append(family)
                    self._store.client.set_experiment_tag(experiment_id, _PALETTE_TAG, json.dumps(families))
        epsilon = record.params.get("epsilon")
        alike = [each for each in families if each.startswith(f"{_REFERENCE} ") == (role == _REFERENCE)]
        return run_color(alike.index(family), float(epsilon) if isinstance(epsilon, int | float) else None, role)


def contents_of(run: Run) -> list[str]:
    """Digests of the records that a finished run holds."""
    try:
        return [str(digest) for digest in json.loads(run.data.tags.get(CONTENT_TAG, "[]"))]
    except (ValueError, TypeError):
        return []
