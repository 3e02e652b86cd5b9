"""The dataset of an MLflow run: data that are public are told, a private table only by what its owner declared."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_spec import SMALL

from bandana.flows.plan.plan import cells_of
from bandana.flows.results.summaries import dataset_record
from bandana.flows.spec.spec import load_spec


@pytest.fixture
def record_of(tmp_path):
    """The dataset record of a spec on a table of its own, with what is declared public."""

    def build(values: np.ndarray, public: list[str]) -> dict:
        path = tmp_path / "trial.csv"
        np.savetxt(path, values, delimiter=",", header="control,treated", comments="", fmt="%.17g")
        tree = yaml.safe_load(SMALL)
        tree |= {"environment": {"kind": "table", "path": str(path), "low": 0, "high": 1, "public": public}, "horizon": 60}
        spec = Path(tmp_path / "spec.yaml")
        spec.write_text(yaml.safe_dump(tree, sort_keys=False))
        return dataset_record(cells_of(load_spec(spec))[0])

    return build


@pytest.fixture
def values():
    return np.random.Generator(np.random.SFC64(3)).random((60, 2))


def test_a_private_table_leaves_no_trace_of_its_rows(record_of, values):
    other = values.copy()
    other[-1] = 1 - other[-1]
    first = record_of(values, [])
    assert first == record_of(other, []), "whoever knows all rows but one learns nothing"
    assert first["profile"] == {"rounds": 60, "arms": 2, "lowest reward": 0.0, "highest reward": 1.0}
    assert first["columns"] == ["control", "treated"]


def test_a_public_table_is_told_by_a_digest_of_its_rows(record_of, values):
    other = values.copy()
    other[-1] = 1 - other[-1]
    first, second = record_of(values, ["values"]), record_of(other, ["values"])
    assert first["digest"] != second["digest"]
    np.testing.assert_allclose(first["profile"]["means"], values.mean(axis=0))


def test_the_source_names_the_file_and_not_where_it_lies(record_of, values, tmp_path):
    for public in ([], ["values"]):
        record = record_of(values, public)
        assert "trial.csv" in record["source"]
        assert str(tmp_path) not in json.dumps(record)


def test_cells_on_one_environment_share_one_dataset(write_spec):
    records = [dataset_record(cell) for cell in cells_of(load_spec(write_spec()))]
    assert len(records) == 2
    assert records[0] == records[1]
    assert records[0]["name"] == "bernoulli"
    assert records[0]["profile"]["means"] == [0.8, 0.4]
