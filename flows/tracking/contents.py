"""Contents of a run: parameters, tags, metrics, curves, its data set and its artifacts, each written once."""

from __future__ import annotations

import json
import logging
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bandana.flows.folder import scratch
from bandana.flows.folder.private_files import mode_in
from bandana.flows.spec.spec import is_finite
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.tracking.record import NAME_LENGTH, CellRecord, Curve, is_loggable
from bandana.flows.tracking.store.client import TAG_LENGTH, TrackingStore
from bandana.flows.tracking.store.errors import Patient

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Metric, Param, Run, RunData, RunTag

_BATCH = 1000  # entities in one request, MLflow's limit
_PAIRS = 100  # parameters in one request, and tags, MLflow's limits
_PARAM_LENGTH, _DIGEST_LENGTH = 6000, 36
_CURVES = "curves.parquet"  # of all points
_SHOWN = 50  # points of a curve among the metrics: a chart shows no more, and a thousand take longer to write than to play
_log = logging.getLogger(__name__)


class Contents:
    """Writes what the runs of a store do not hold yet."""

    def __init__(self, store: TrackingStore) -> None:
        self._store = store

    def fill(self, run: Run, record: CellRecord, *, is_new: bool, replace_artifacts: bool) -> None:
        """Writes the parts of the record that the run lacks; a new run holds nothing yet.

        With `replace_artifacts` it also writes the artifacts that the run holds already.
        """
        from mlflow.entities import Param

        run_id, data = run.info.run_id, run.data
        given = {key: str(value)[:_PARAM_LENGTH] for key, value in record.params.items() if is_loggable(value)}
        metrics = {key: float(value) for key, value in record.metrics.items() if is_finite(value)}
        if not is_new:
            _tell_kept(record, data, given, metrics)
        made = {key: value for key, value in record.provenance.items() if data.tags.get(key) != value}
        for key in record.made_of(data.tags).keys() - record.provenance.keys():
            self._store.client.delete_tag(run_id, key)
        self.send(
            run_id,
            params=[Param(key, value) for key, value in given.items() if key not in data.params],
            tags=run_tags({key: value for key, value in record.tags.items() if key not in data.tags} | made),
            points=self._points(run, {k: v for k, v in metrics.items() if k not in data.metrics}, record.curves),
        )
        if record.dataset is not None:
            self._log_dataset(run, record.dataset)
        held = {} if is_new else {item.path: item.file_size for item in self._store.client.list_artifacts(run_id)}
        if record.curves:
            self._log_curves(run, record.curves, is_held=_CURVES in held)
        for path in record.artifacts:
            # Another size: whoever copied it was killed on the way. Made anew: the file says so, too.
            if replace_artifacts or made or path.name not in held or held[path.name] not in (None, path.stat().st_size):
                self._store_artifact(run, path)

    def send(
        self, run_id: str, params: Sequence[Param] = (), tags: Sequence[RunTag] = (), points: Sequence[Metric] = ()
    ) -> None:
        """Everything in as few requests as MLflow's limits allow."""
        while params or tags or points:
            room = _BATCH - len(params[:_PAIRS]) - len(tags[:_PAIRS])
            self._store.client.log_batch(run_id, metrics=points[:room], params=params[:_PAIRS], tags=tags[:_PAIRS])
            params, tags, points = params[_PAIRS:], tags[_PAIRS:], points[room:]

    def _points(self, run: Run, metrics: Mapping[str, float], curves: Mapping[str, Curve]) -> list[Metric]:
        from mlflow.entities import Metric

        # The time of a point depends on the point alone: sent again, it is the same point.
        start = run.info.start_time
        points = [Metric(key, value, start, 0) for key, value in metrics.items()]
        for key, (rounds, values) in curves.items():
            held = set()
            if key in run.data.metrics:
                held = {point.step for point in self._store.client.get_metric_history(run.info.run_id, key)}
            every = slice(None, None, -max(1, math.ceil(len(rounds) / _SHOWN)))  # from the end, which is always there
            finite = {int(t): float(v) for t, v in zip(rounds[every], values[every], strict=True) if is_finite(v)}
            points += [Metric(key, v, start + t, t) for t, v in finite.items() if t not in held]
        return points

    def _log_dataset(self, run: Run, dataset: JsonObject) -> None:
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
        self._store.client.log_inputs(run.info.run_id, [DatasetInput(record, context)])

    def _store_artifact(self, run: Run, path: Path) -> None:
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        # As the client does it, but for its asking the store again where the run's artifacts lie.
        place = Patient(get_artifact_repository(run.info.artifact_uri, tracking_uri=self._store.uri))
        if path.is_dir():
            place.log_artifacts(str(path), path.name)
        else:
            place.log_artifact(str(path))

    def _log_curves(self, run: Run, curves: Mapping[str, Curve], *, is_held: bool) -> None:
        import pandas as pd

        table = pd.DataFrame(
            [
                (key, int(t), float(v))
                for key, (rounds, values) in curves.items()
                for t, v in zip(rounds, values, strict=True)
            ],
            columns=["curve", "round", "value"],
        )
        with tempfile.TemporaryDirectory(scratch.SUFFIX, scratch.prefix("curves"), self._store.root) as folder:
            held = self._curves_of(run.info.run_id, folder) if is_held else None
            if held is not None:
                table = table[~table["curve"].isin(held["curve"])]
                if table.empty:
                    return
                table = pd.concat([held, table], ignore_index=True)
            path = Path(folder) / _CURVES
            path.touch(mode_in(self._store.root))  # the artifact gets the same mode
            table.to_parquet(path, index=False)
            self._store_artifact(run, path)

    def _curves_of(self, run_id: str, folder: str) -> pd.DataFrame | None:
        """The table of a run's curves; None where whoever wrote it was killed on the way."""
        import pandas as pd

        try:
            return pd.read_parquet(self._store.client.download_artifacts(run_id, _CURVES, folder))
        except (ValueError, OSError):  # of pyarrow: no table, or cut off
            return None


def run_tags(tags: Mapping[str, object]) -> list[RunTag]:
    """Tags as MLflow takes them, cut to its limit."""
    from mlflow.entities import RunTag

    return [RunTag(key, str(value)[:TAG_LENGTH]) for key, value in tags.items()]


def _tell_kept(record: CellRecord, data: RunData, params: Mapping[str, str], metrics: Mapping[str, float]) -> None:
    """Warns of values that an existing run keeps although new ones differ: a run must be one consistent record."""
    changed = [k for k, v in params.items() if k in data.params and data.params[k] != v]
    checked = {k: v for k, v in metrics.items() if k not in record.fills}
    changed += [k for k, v in checked.items() if not math.isclose(data.metrics.get(k, v), v, rel_tol=1e-6)]
    changed += [k for k, v in record.tags.items() if data.tags.get(k, str(v)) != str(v)[:TAG_LENGTH]]
    if changed:
        _log.warning(
            "the MLflow run of %r keeps its earlier values of %s; delete the run to have it written anew",
            record.name, ", ".join(sorted(changed)),
        )  # fmt: skip
