"""Baselines and the regression gate, by hand and by simulation; nothing here needs a server."""

import json
import math

import numpy as np
import pytest
import yaml
from pydantic import ValidationError
from scipy import stats

from bandana.audits.evidence import recompute
from bandana.flows.cells.audits import audit_cell
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.results import baseline
from bandana.flows.results.baseline import Audited, Baseline, CellFacts, Estimate
from bandana.flows.results.gate import compare, in_report, tell, told
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import SpecError


def _cell(label, finals=None, setting="s", audit=None):
    regret = None if finals is None else baseline.regret(np.asarray(finals, float), setting)
    return CellFacts(label=label, regret=regret, audit=audit)


def _worse(before, now):
    return [row for row in compare(before, now)[0] if row["is_worse"]]


def _base(*cells):
    return Baseline(suite="x", code="c", spec="", cells=list(cells))


def _tight(value, error, verdict="PASS", setting="a"):
    estimate = Estimate.of("tightness of mu", value, error, 59)
    return Audited(setting=setting, verdict=verdict, tightness=[estimate])


def test_the_interval_of_a_difference_is_welchs():
    rng = np.random.default_rng(0)
    old, new = rng.normal(10, 1, 12), rng.normal(11, 3, 30)
    ((row,), _) = compare(_base(_cell("a", old)), _base(_cell("a", new)))
    found = stats.ttest_ind(new, old, equal_var=False).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((found.low, found.high), rel=1e-9)
    assert row["difference"] == pytest.approx(new.mean() - old.mean())


def test_an_estimate_of_a_mean_has_one_degree_of_freedom_less_than_runs():
    final = baseline.regret(np.array([1.0, 2.0, 3.0, 6.0]), "s").final
    assert (final.value, final.freedom) == (3.0, 3)
    assert final.standard_error == pytest.approx(math.sqrt(14 / 3 / 4))
    with pytest.raises(ValidationError, match="frozen"):
        final.value = 2.0


def test_more_comparisons_widen_every_interval():
    old, new = [9.0, 10.0, 11.0], [10.0, 11.0, 12.0]
    one = compare(_base(_cell("a", old)), _base(_cell("a", new)))[0][0]
    many = compare(_base(*(_cell(str(i), old) for i in range(10))), _base(*(_cell(str(i), new) for i in range(10))))[0][0]
    assert many["high"] - many["low"] > 1.5 * (one["high"] - one["low"])


def test_a_planted_regression_fails_and_an_improvement_does_not():
    rng = np.random.default_rng(1)
    slow, fast = rng.normal(100, 10, 50), rng.normal(50, 5, 50)
    ((worse,), _) = compare(_base(_cell("a", fast)), _base(_cell("a", slow)))
    assert worse["quantity"] == "final regret"
    assert worse["is_worse"]
    assert "worse than the baseline" in tell(worse)
    ((better,), _) = compare(_base(_cell("a", slow)), _base(_cell("a", fast)))
    assert not better["is_worse"]
    assert "not worse" in tell(better)


def test_noise_alone_rarely_fails_the_gate():
    """400 gates of ten cells where nothing changed: each fails with probability at most 2.5 %.

    More than 22 of 400 would come by chance with probability 4e-4 at most (binomial).
    """
    rng = np.random.default_rng(2)
    alarms = 0
    for _ in range(400):
        old, new = (_base(*(_cell(str(i), rng.normal(100, 20, 20)) for i in range(10))) for _ in range(2))
        alarms += bool(_worse(old, new))
    assert stats.binom.sf(22, 400, 0.025) < 4e-4
    assert alarms <= 22


def test_regret_without_spread_is_compared_by_its_value():
    assert not _worse(_base(_cell("a", [3.0, 3.0])), _base(_cell("a", [3.0 + 1e-12, 3.0 + 1e-12])))
    assert _worse(_base(_cell("a", [3.0, 3.0])), _base(_cell("a", [3.1, 3.1])))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_what_rounding_may_do_grows_with_what_is_compared(size):
    """A millionth of the value is a difference, a part in 10^12 of it is none."""
    before = _base(_cell("a", [size, size]))
    assert _worse(before, _base(_cell("a", [size * (1 + 1e-6)] * 2)))
    assert not _worse(before, _base(_cell("a", [size * (1 + 1e-12)] * 2)))


def test_one_replication_is_no_baseline_for_regret():
    assert baseline.regret(np.array([3.0]), "s") is None


def test_tightness_is_worse_only_if_it_fell_by_more_than_its_width():
    before = _base(_cell("a", audit=_tight(0.9, 0.02)))
    assert _worse(before, _base(_cell("a", audit=_tight(0.7, 0.02))))
    assert not _worse(before, _base(_cell("a", audit=_tight(0.87, 0.02))))
    assert not _worse(before, _base(_cell("a", audit=_tight(1.2, 0.02))))


@pytest.mark.parametrize(
    ("old", "new", "is_worse"),
    [("PASS", "FAIL", True), ("PASS", "INCONCLUSIVE", True), ("INCONCLUSIVE", "FAIL", True), ("FAIL", "PASS", False),
     ("FAIL", "FAIL", False)],
)  # fmt: skip
def test_a_worse_verdict_is_worse(old, new, is_worse):
    found = _worse(_base(_cell("a", audit=_tight(0.9, 0.02, old))), _base(_cell("a", audit=_tight(0.9, 0.02, new))))
    assert [row["quantity"] for row in found] == (["verdict"] if is_worse else [])


def test_cells_that_are_new_gone_or_changed_are_told_and_not_compared():
    before = _base(_cell("gone", [1.0, 2.0]), _cell("changed", [1.0, 2.0]), _cell("unrun", [1.0, 2.0]))
    now = _base(
        _cell("new", [1.0, 2.0]), _cell("changed", [8.0, 9.0], setting="other"), _cell("unrun", audit=_tight(0.9, 0.1))
    )
    rows, notes = compare(before, now)
    assert not rows
    told = " | ".join(notes)
    for words in ("gone: in the baseline, but not in this run", "new: new", "changed: regret: parameters, data or effort",
                  "unrun: regret: in the baseline, but the present code has no result", "unrun: audit: new"):  # fmt: skip
        assert words in told


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small spec, benchmarked and audited into a store."""
    from small_spec import SMALL

    folder = tmp_path_factory.mktemp("baseline")
    path = folder / "small.yaml"
    path.write_text(SMALL)
    spec, store = load_spec(path), Store(folder / "results")
    for cell in cells_of(spec):
        for block in cell.blocks():
            benchmark_block(block, store)
        if cell.is_private:
            audit_cell(cell, store)
    return spec, store


def test_a_recorded_baseline_reads_back_and_holds_the_numbers(small, tmp_path):
    spec, store = small
    found = baseline.record(Plan.of(spec), "text", store)
    baseline.write(tmp_path / "b.json", found)
    assert baseline.read(tmp_path / "b.json") == found
    twin, private = found.cells
    assert (twin.label, twin.audit) == ("ucb", None)
    assert private.regret.replications == 6
    finals = np.concatenate([store.load("benchmark", b.key)[0]["regret"][:, -1] for b in cells_of(spec)[1].blocks()])
    assert private.regret.final.value == pytest.approx(finals.mean())
    half = stats.t.ppf(0.975, 5) * finals.std(ddof=1) / np.sqrt(6)
    assert private.regret.final.high - private.regret.final.value == pytest.approx(half)
    (tightness,) = private.audit.tightness
    outcome = audit_cell(cells_of(spec)[1], store)
    mu = outcome.numbers[outcome.main]
    assert tightness.value == pytest.approx(mu.measured / mu.claimed)
    assert 0 < tightness.standard_error < 0.2
    assert private.audit.verdict == "PASS"


def test_a_baseline_held_against_itself_passes(small):
    spec, store = small
    found = baseline.record(Plan.of(spec), "text", store)
    rows, notes = compare(found, found)
    assert [row["is_worse"] for row in rows] == [False] * 3
    assert not notes


def test_half_the_regret_in_the_baseline_fails(small):
    spec, store = small
    tree = json.loads(baseline.record(Plan.of(spec), "text", store).to_json())
    for cell in tree["cells"]:
        final = cell["regret"]["final"]
        for name in ("value", "standard_error", "low", "high"):
            final[name] /= 4
    worse = _worse(Baseline.model_validate(tree), baseline.record(Plan.of(spec), "text", store))
    assert {row["label"] for row in worse} == {"ucb", "adar-ucb tight eps=1"}


def test_what_a_private_table_holds_stands_in_no_baseline(tmp_path, small_text):
    rewards = tmp_path / "people.csv"
    rewards.write_text("a,b\n" + "\n".join(f"0.{i % 7},0.{i % 5}" for i in range(60)) + "\n")
    tree = yaml.safe_load(small_text) | {"horizon": 60, "environment": {"kind": "table", "path": "people.csv"}}
    texts = {}
    for public in ([], ["regret"]):
        tree["environment"]["public"] = public
        (tmp_path / "spec.yaml").write_text(yaml.safe_dump(tree))
        spec, store = load_spec(tmp_path / "spec.yaml"), Store(tmp_path / "results")
        for cell in cells_of(spec):
            for block in cell.blocks():
                benchmark_block(block, store)
        texts[bool(public)] = baseline.record(Plan.of(spec), "", store)
    assert not texts[False].cells
    assert [cell.regret is not None for cell in texts[True].cells] == [True, True]
    # The same rows in another order: another file, and no hash of it to tell them apart by.
    setting = texts[True].cells[0].regret.setting
    rewards.write_text("a,b\n" + "\n".join(f"0.{i % 5},0.{i % 7}" for i in range(60)) + "\n")
    for cell in cells_of(load_spec(tmp_path / "spec.yaml")):
        for block in cell.blocks():
            benchmark_block(block, store)
    assert baseline.record(Plan.of(load_spec(tmp_path / "spec.yaml")), "", store).cells[0].regret.setting == setting


def test_a_public_table_is_known_by_its_rows(tmp_path, small_text):
    """Other rows are another setting, of which a baseline says nothing."""
    rewards, settings = tmp_path / "coins.csv", []
    tree = yaml.safe_load(small_text) | {"horizon": 60}
    tree["environment"] = {"kind": "table", "path": "coins.csv", "public": ["regret", "values"]}
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(tree))
    for low in (0.2, 0.2, 0.3):
        rewards.write_text("a,b\n" + f"{low},0.5\n" * 60)
        settings.append(baseline._setting(cells_of(load_spec(tmp_path / "spec.yaml"))[0]))
    assert settings[0] == settings[1] != settings[2]


def test_the_bootstrap_finds_how_much_a_bound_scatters(small):
    """Against the spread over 30 fresh sets of replays: within a factor of 2 of its own standard error of 13 %."""
    from dataclasses import replace

    spec, store = small
    outcome = audit_cell(cells_of(spec)[1], store)
    bound = next(b for b in outcome.bounds if b.method == "mu-curve")
    rng = np.random.default_rng(3)

    def fresh():
        return 0.5 + rng.standard_normal(8000), -0.5 + rng.standard_normal(8000)

    bound = replace(bound, scores="x")
    real = np.std([recompute(bound, fresh()[::-1]) for _ in range(30)], ddof=1)
    guessed = np.median([baseline.standard_error(bound, {"x": fresh()[::-1]}, seed) for seed in range(5)])
    assert real / 2 < guessed < 2 * real


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "other"}', "[1]"])
def test_a_file_that_is_no_baseline_is_refused(tmp_path, text):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(SpecError, match="is not a baseline"):
        baseline.read(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"replications":', '"replications": 1, "replications":', "the field 'replications' stands twice: remove one"),
        ('"replications": 3', '"replications": true', "cells.0.regret.replications: must be a whole number"),
        ('"replications": 3', '"replications": "3"', "cells.0.regret.replications: must be a whole number"),
    ],
)
def test_a_baseline_is_taken_as_it_is_written_or_refused(tmp_path, before, after, message):
    place, known = tmp_path / "b.json", _base(_cell("a", [1.0, 2.0, 1.5]))
    baseline.write(place, known)
    assert baseline.read(place) == known
    text = place.read_text()
    assert before in text
    place.write_text(text.replace(before, after, 1))
    with pytest.raises(SpecError, match=message):
        baseline.read(place)


def test_no_file_is_no_baseline(tmp_path):
    assert baseline.read(tmp_path / "none.json") is None


def test_the_report_is_told_rows_in_its_own_words(tmp_path):
    found = told(tmp_path / "baseline.json", _base(_cell("a", [1.0, 2.0, 1.5])), _base(_cell("a", [8.0, 9.0, 8.5])))
    shown = in_report(found)
    assert shown["baseline"] == "baseline.json, code c"
    assert shown["rows"][0]["is_worse"]
    assert "worse if all of the interval lies above 0" in shown["rows"][0]["text"]
    assert in_report(None) is None
    assert in_report({"baseline": None, "rows": [], "notes": []}) is None


def test_a_file_of_a_baseline_has_a_field_a_line():
    """So that a repository shows which number moved."""
    assert _base(_cell("a", [1.0, 2.0])).to_json().startswith('{\n "')
