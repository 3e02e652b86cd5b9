"""A command derives the plan of its spec once, and builds each environment once, whatever its steps.

For `serve` and `verify`, `test_schedule.py` and `test_bundles.py` of their annexes say the same.
"""

import pytest

import bandana as library

ARMS = {"kind": "bernoulli", "means": [0.8, 0.4]}
QUICK = {
    "horizon": 60, "replications": 2, "block_size": 1, "report": {"formats": ["html"]},
    "audit__rounds": 8, "audit__replays": 1000, "audit__examples": 2,
}  # fmt: skip


@pytest.fixture
def spec(write_spec, tmp_path):
    """Arms, and a table with the given public fields."""
    (tmp_path / "people.csv").write_text("a,b\n" + "0.5,1\n0.25,0\n" * 50)

    def write(public):
        table = {"kind": "table", "path": "people.csv", "public": public}
        return write_spec(environment=[ARMS, table], twins=True, **QUICK)

    return write


@pytest.mark.slow
def test_a_benchmark_with_audits_and_report_derives_one_plan(bandana, spec, data, counts):
    done = bandana("run", spec(["values"]), "--audit", "--executor", "local", "--data", data)
    assert done.exit_code == 0, done.output
    assert (data / "suites" / "small" / "report.html").exists()
    assert counts == {"plans": 1, "environments": 2}


def test_the_same_from_python_derives_one_plan(spec, tmp_path, counts):
    result = library.run(spec(["values"]), audit=True, track=True, data=tmp_path / "data", executor="local")
    assert {"PASS", "INCONCLUSIVE"} & set(result.frame()["verdict"].dropna())
    result.report(tmp_path / "report.json")
    assert counts == {"plans": 1, "environments": 2}


def test_only_the_first_run_on_a_private_file_derives_a_second_plan_bound_to_the_new_secret(spec, tmp_path, counts):
    library.run(spec([]), data=tmp_path / "data", executor="local")
    assert counts == {"plans": 2, "environments": 4}
    counts.clear()
    library.run(spec([]), data=tmp_path / "data", executor="local")
    assert counts == {"plans": 1, "environments": 2}


def test_an_explanation_derives_one_plan_and_makes_no_data_folder(bandana, spec, tmp_path, counts):
    done = bandana("check", spec([]), "--data", tmp_path / "data")
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "data").exists()
    assert counts["plans"] == 1
