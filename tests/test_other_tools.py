"""The comparison with public tools: its recorded data, its tables, and our own rows; no public tool is needed."""

import json
import sys

import jsonschema
import pytest

from benchmarks import comparison, comparison_page, comparison_runs
from benchmarks.comparison_page import BEGIN, END
from benchmarks.comparison_runs import OURS, PUBLIC, Plan

VALUE = {"type": "number", "minimum": 0}
CELLS = {"type": "object", "patternProperties": {"^1e?0+$": VALUE}, "additionalProperties": False}
SCHEMA = {
    "type": "object",
    "required": ["provenance", "level", "rows"],
    "additionalProperties": False,
    "properties": {
        "provenance": {"const": "recorded November 2026, two shared cores"},
        "level": {"const": 0.05},
        "rows": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["key", "tool", "method", "knows", "is_gdp", "cells", "seconds"],
                "additionalProperties": False,
                "properties": {
                    "key": {"type": "string"},
                    "tool": {"type": "string"},
                    "method": {"type": "string"},
                    "knows": {"enum": ["order", "outputs"]},
                    "is_gdp": {"type": "boolean"},
                    "cells": {"type": "object", "patternProperties": {"^(a1|a2|b)$": CELLS}, "additionalProperties": False},
                    "seconds": VALUE,
                },
            },
        },
    },
}  # fmt: skip


def test_the_recorded_values_are_whole():
    provenance, rows = comparison_page.recorded_rows()
    jsonschema.validate(json.loads(comparison_runs.RECORDED.read_text()), SCHEMA)
    assert provenance.startswith("recorded")
    assert len({row["key"] for row in rows}) == len(rows)
    known = {row.key for row in PUBLIC}
    assert {row["key"] for row in rows if row["knows"] == "order"} <= known


def fixed_result():
    """Two sizes, a row of ours, a public tool that is ahead once, and one that states too much."""

    def cell(epsilon, seconds):
        return {"epsilon": [epsilon, epsilon, epsilon + 1], "seconds": [seconds], "error": ""}

    return {
        "sizes": {"100000": 3, "1000000": 3}, "n_test": 1000, "limit": 60.0, "level": 0.05, "machine": "2 cores",
        "versions": {"jax-split": "9.8.7", "jax-raw": "9.8.7"},
        "cells": {
            "coins-learned": {"a1": {"100000": cell(0.61, 0.2), "1000000": cell(0.82, 0.3)}},
            "jax-split": {"a1": {"100000": cell(0.62, 0.2), "1000000": cell(0.8, 0.1)}},
            "jax-raw": {"a1": {"100000": cell(1.5, 0.2), "1000000": {"epsilon": [], "seconds": [], "error": "no"}}},
        },
        "tests": {
            "coins-learned": {"a1": {"false": 11, "repeats": 400, "error": ""}},
            "jax-split": {"a1": {"false": 0, "repeats": 0, "error": comparison_runs.STOPPED}},
            "jax-raw": {"a1": {"false": 60, "repeats": 400, "error": ""}},
        },
    }  # fmt: skip


def test_the_tables_of_a_fixed_result():
    shown = comparison_page.render(fixed_result())
    first = shown.split("###")[1].splitlines()
    assert first[2] == "| tool | method | a1, 1e5 | a1, 1e6 | a2, 1e5 | a2, 1e6 | b, 1e5 | b, 1e6 | s at 1e6 |"
    assert "| Bandana | Neyman-Pearson with coins | 0.610 | **0.820** |  |  |  |  | 0.3 |" in first
    assert "| jax-privacy 9.8.7 | Clopper-Pearson, threshold from half | **0.620** | 0.800 |  |  |  |  | 0.1 |" in first
    assert "| jax-privacy 9.8.7† | raw counts, an estimate | 1.500 | fails |  |  |  |  |  |" in first
    assert "in 1 of 2 columns" in shown
    assert "; on a1 at N = 1e5 jax-privacy (Clopper-Pearson, threshold from half) states 0.620, our best row 0.610." in shown
    assert (
        'always takes "Neyman-Pearson with coins" is behind the best of them on a1 at N = 1e5 (0.610 against 0.620)' in shown
    )
    assert "It takes 0.3 s; sooner: jax-privacy (Clopper-Pearson, threshold from half; 0.1 s), Microsoft" in shown
    assert (
        "| jax_privacy auditing* | Bonferroni over thresholds | 0.560 | 0.740 | 0.890 | 0.955 | **0.975** | **0.989** | 3 |"
        in first
    )
    assert "| jax_privacy auditing* | split " not in shown  # it was run
    assert "**60/400**" in shown
    assert "| 11/400 |" in shown
    assert "| stopped |" in shown
    assert "recorded November 2026, two shared cores" in shown


def test_few_false_bounds_do_not_make_a_tool_invalid():
    assert not any(comparison_page.is_invalid(*count) for count in [(0, 0), (0, 400), (20, 400), (30, 400), (1, 1), (2, 4)])
    assert comparison_page.is_invalid(40, 400)
    assert comparison_page.is_invalid(4, 4)


@pytest.fixture(scope="module")
def quick():
    return comparison_runs.measure(Plan({2000: 1}, 200, 1, 5.0))


def test_our_own_rows_on_small_samples(quick):
    assert quick["versions"] == {}
    assert set(quick["cells"]) == {row.key for row in OURS}
    assert json.loads(json.dumps(quick)) == quick
    for key, cases in quick["cells"].items():
        for case, sizes in cases.items():
            (bound,) = sizes["2000"]["epsilon"]
            assert 0 <= bound < 1.6, (key, case)
    assert 0.4 < quick["cells"]["coins"]["b"]["2000"]["epsilon"][0] < 1.1
    assert set(quick["tests"]["coins"]) == {case.name for case in comparison_runs.TESTS}


def test_a_gaussian_claim_is_not_bounded_on_laplace_noise(quick):
    assert set(quick["cells"]["mu-curve"]) == {"a1", "a2"}
    assert set(quick["cells"]["event"]) == {"b", "b'"}
    assert set(quick["cells"]["coins"]) == {"a1", "a2", "b"}


def test_public_tools_are_taken_from_an_earlier_run(quick, monkeypatch):
    monkeypatch.setattr(comparison_runs, "OURS", ())
    earlier = {**quick, "versions": {"jax-split": "9.8.7"}, "cells": {"jax-split": {"a1": {}}}, "tests": {}}
    found = comparison_runs.measure(Plan({2000: 1}, 200, 1, 5.0), earlier=earlier)
    assert found["cells"] == earlier["cells"]
    assert found["versions"] == earlier["versions"]
    with pytest.raises(ValueError, match="another plan"):
        comparison_runs.measure(Plan({2000: 2}, 200, 1, 5.0), earlier=earlier)


def test_the_command_says_what_is_wrong_with_an_interpreter(tmp_path, capsys):
    with pytest.raises(SystemExit):
        comparison.main(["--quick", "--tools-python", str(tmp_path / "none")])
    assert "--tools-python: no interpreter answers at" in capsys.readouterr().err
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho no numpy >&2\nexit 3\n")
    other.chmod(0o755)
    with pytest.raises(SystemExit):
        comparison.main(["--quick", "--tools-python", str(other)])
    assert "cannot run public_tools.py" in capsys.readouterr().err


def test_a_tool_is_run_by_the_interpreter_that_has_it(tmp_path, monkeypatch):
    """A stand-in for an interpreter: it answers two lines, and then what no tool may print."""
    stand_in = tmp_path / "python"
    answers = ['{"epsilon": 0.5, "seconds": 0.1}', '{"error": "ValueError: no"}']
    body = "import sys, time\nsys.stdin.read()\n" + "".join(f"print({a!r})\n" for a in answers)
    stand_in.write_text(f"#!{sys.executable}\n{body}")
    stand_in.chmod(0o755)
    cell = comparison_runs.run_public(PUBLIC[0], str(stand_in), tmp_path, comparison_runs.CASES[0], 30.0)
    assert cell == ([0.5], [0.1], "ValueError: no")
    stand_in.write_text(f"#!{sys.executable}\n{body}sys.stdout.flush()\ntime.sleep(60)\n")
    cell = comparison_runs.run_public(PUBLIC[0], str(stand_in), tmp_path, comparison_runs.CASES[0], 1.0)
    assert cell == ([0.5], [0.1], "ValueError: no")


def test_tables_go_between_the_marks(tmp_path):
    path = tmp_path / "x.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    comparison_page.write(path, "new\n")
    comparison_page.write(path, "newer\n")
    assert path.read_text() == f"before\n{BEGIN}\n\nnewer\n\n{END}\nafter\n"
    path.write_text("no marks\n")
    with pytest.raises(ValueError, match="must hold the lines"):
        comparison_page.write(path, "new\n")


def test_the_document_shows_what_was_measured():
    """Every figure in docs/comparison.md is in the file that the command wrote."""
    measured = comparison_runs.RECORDED.with_name("comparison.json")
    text = (comparison_runs.RECORDED.parents[2] / "docs" / "comparison.md").read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0].strip() == comparison_page.render(json.loads(measured.read_text())).strip()
