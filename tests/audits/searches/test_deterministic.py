"""The deterministic audit: it finds each planted fault, says where, and finds nothing in an honest run."""

import json
import math
from dataclasses import fields, replace

import hypothesis
import numpy as np
import pytest
from nightly import first

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.problem import Problem
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.releases import GENERIC
from bandana.audits.neighbors.pairs import Pair, canary_pairs
from bandana.audits.outcome import DETERMINISTIC
from bandana.audits.searches import counterexample, deterministic
from bandana.audits.searches.cases import CaseSpace, Walk, as_tuples
from bandana.audits.searches.deterministic import Case, examine, examine_pair, search
from bandana.audits.testbeds.blocks import RunningSumBed, trials
from bandana.privacy_core import Gaussian, GaussianDP, Interval, Laplace, LocalSum, RenyiDP, TreeSum

UNIT = Interval(0.0, 1.0)
ENTRY = find("adar-ucb")
CLAIM = GaussianDP(1.0)
PLANTED = {control.name: control.plant for control in (*CONTROLS["adar-ucb"], *GENERIC[::-1])}


def _honest(calibration="printed", n_actions=2, reward_range=UNIT):
    return ENTRY.build(ENTRY.settings(Problem(n_actions, reward_range), calibration, RenyiDP(2.0, 1.0)))


@pytest.mark.parametrize(
    ("calibration", "n_actions"), first(1, [("printed", 2), ("tight", 2), ("printed", 5), ("tight", 5)])
)
def test_an_honest_algorithm_has_no_counterexample(calibration, n_actions):
    assert search(_honest(calibration, n_actions), UNIT, CLAIM, max_examples=200, max_rounds=300) is None


@pytest.mark.parametrize("reward_range", [Interval(-3.0, -1.0), Interval(-0.1, 0.2)])
def test_nor_in_another_range(reward_range):
    assert search(_honest(reward_range=reward_range), reward_range, CLAIM, max_examples=60) is None


def test_nor_in_a_range_so_wide_that_far_outside_it_sums_are_not_exact():
    wide = Interval(0.0, 2e4)
    assert search(_honest(reward_range=wide), wide, CLAIM, max_examples=40, max_rounds=400) is None


def test_one_user_may_stay_where_all_others_walk_on():
    space = CaseSpace(2, UNIT, 4, private_records=True, episode=(2, 3, 2))
    stay, walk = (as_tuples(space.tree(walk, b"\0")) for walk in (Walk.STAY, Walk.NEXT_STATE))

    def is_alone(case):
        others = {*case.covariates[: case.record], *case.covariates[case.record + 1 :]}
        return case.covariates[case.record] == stay and others == {walk}

    assert hypothesis.find(
        space.cases(), is_alone, settings=hypothesis.settings(derandomize=True, database=None, max_examples=500)
    )


REASONS = {
    "noise-redrawn": "compose to",
    "no-forgetting": "exact value moved",
    "half-the-sensitivity": "times its sensitivity",
    "one-noise-for-all": "compose to",
    "first-pull-exact": "without noise",
    "not-clipped": "times its sensitivity",
}


@pytest.mark.parametrize("control", CONTROLS["adar-ucb"], ids=lambda control: control.name)
def test_each_fault_is_found_for_its_own_reason(control):
    found = search(control.plant(_honest()), UNIT, CLAIM, max_examples=100)
    assert found is not None
    assert REASONS[control.name] in str(found)
    assert found == search(control.plant(_honest()), UNIT, CLAIM, max_examples=100)


@pytest.mark.parametrize("control", [c for c in GENERIC if DETERMINISTIC in c.caught_by], ids=lambda control: control.name)
def test_faults_behind_a_faulty_ledger_are_found_in_one_example(control):
    """The first case of a search is a canary that jumps over the whole range, the simplest there is."""
    assert search(control.plant(_honest()), UNIT, CLAIM, max_examples=20, shrinks=False) is not None


# --- the table that is printed ------------------------------------------------------------------------------------


NO_FORGETTING = """\
record 0 of 4 rounds changes from [0, 0] on D to [1, 1] on D' (noise seed 0, replicate 1 of 32)
release 2 declares the records [2, 3), yet its exact value moved by 1

   round  arm  rewards on D  rewards on D'
>      0    0  0 0           1 1
       1    1  0 0           same
       2    0  0 0           same
       3    1  0 0           same

   release  rounds  mechanism  records  reads record 0  moved by  allowed  times
         0       1  Gaussian   [0, 1)   yes                    1        1      1
         1       2  Gaussian   [1, 2)   no                     0        0      0
>        2       3  Gaussian   [2, 3)   no                     1        0    inf
         3       4  Gaussian   [3, 4)   no                     0        0      0"""

NOISE_REDRAWN = """\
record 0 of 4 rounds changes from [0, 0] on D to [1, 1] on D' (noise seed 0, replicate 1 of 32)
the releases on one record compose to 2-GDP; the claim is 1-GDP

   round  arm  rewards on D  rewards on D'
>      0    0  0 0           1 1
       1    1  0 0           same
       2    0  0 0           same
       3    1  0 0           same

   release  rounds  mechanism  records  reads record 0  cost
>        0       1  Gaussian   [0, 1)   yes             1-GDP
>        1       2  Gaussian   [0, 2)   yes             1-GDP
>        2       3  Gaussian   [0, 3)   yes             1-GDP
>        3       4  Gaussian   [0, 4)   yes             1-GDP

record 0 pays for the 4 releases that are marked: 2-GDP together, the claim is 1-GDP (2 times)"""

FIRST_PULL_EXACT = """\
record 0 of 4 rounds changes from [0, 0] on D to [1, 1] on D' (noise seed 0, replicate 0 of 32)
a value was released without noise

   round  arm  rewards on D  rewards on D'
>      0    0  0 0           1 1
       1    1  0 0           same
       2    0  0 0           same
       3    1  0 0           same

   release  rounds  mechanism  records  reads record 0  cost
>        0       1  Exact      [0, 1)   yes             no privacy
>        1       2  Exact      [1, 2)   no              no privacy
         2       3  Gaussian   [2, 3)   no              1-GDP
         3       4  Gaussian   [3, 4)   no              1-GDP"""


@pytest.mark.parametrize(
    ("name", "text"),
    [("no-forgetting", NO_FORGETTING), ("noise-redrawn", NOISE_REDRAWN), ("first-pull-exact", FIRST_PULL_EXACT)],
)
def test_a_counterexample_is_a_table_that_a_person_can_read(name, text):
    found = search(PLANTED[name](_honest()), UNIT, CLAIM, max_examples=100)
    assert found is not None
    assert "\n".join(found.lines()) == text


def test_a_decision_shows_where_both_runs_part():
    found = search(PLANTED["decides-from-exact"](trials()["tree"].algorithm), UNIT, CLAIM, max_examples=60)
    assert found is not None
    assert found.lines() == [
        "record 0 of 4 rounds changes from [0, 0] on D to [1, 1] on D' (noise seed 0, replicate 0 of 32)",
        "both runs saw the same released values, yet their schedules or actions differ: something was decided from",
        "values that were not released",
        "",
        "   round  arm  arm on D'  rewards on D  rewards on D'",
        ">      0    0          0  0 0           1 1",
        "       1    0          1  0 0           same",
        "       2    0          0  0 0           same",
        "       3    0          0  0 0           same",
        "",
        "they part in round 1: arm 0 is played on D, arm 1 on D'",
    ]
    assert (found.difference.round, found.difference.arm, found.difference.neighbor_arm) == (1, 0, 1)


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_a_counterexample_is_plain_json_and_narrow(name):
    bed = trials()["gram-joint"].algorithm if name == "decides-from-exact" else _honest(n_actions=7)
    found = search(PLANTED[name](bed), UNIT, CLAIM, max_examples=30, shrinks=False)
    if found is None:
        assert DETERMINISTIC not in next(c for c in GENERIC if c.name == name).caught_by
        return
    told = json.loads(json.dumps(found.describe(), allow_nan=False))
    assert told["summary"] == str(found)
    assert told["lines"] == found.lines()
    assert max(map(len, found.lines())) <= 110
    rewards = [tuple(run["rewards"]) for run in told["case"]["rewards"] for _ in range(run["start"], run["stop"])]
    again = Case(tuple(rewards), told["case"]["record"], tuple(told["case"]["after"]), told["case"]["seed"])
    assert again == found.case
    assert examine(PLANTED[name](bed), again, UNIT, CLAIM) == found
    if found.release >= 0:
        row = found.rows[found.release]
        assert row.release == found.release
        assert row.is_offending or found.kind == "decision"


def test_long_tables_are_cut_and_what_matters_stays():
    rewards = tuple((0.0, 0.125 + 2**-20) * 6 for _ in range(300))
    case = Case(rewards, 150, (1e4 / 3,) * 12, 5)
    bed = RunningSumBed(12, UNIT, LocalSum(Gaussian(0.75, 1.0)))
    found = examine(bed, case, UNIT, CLAIM)
    assert found is not None
    assert found.release == 150
    lines = found.lines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 110
    assert sum("more" in line for line in lines) == 4
    assert [line.split() for line in lines if line.startswith(">")] == [
        [">", "150", "0", "0", "...", "0.125001", "3333.33", "...", "3333.33"],
        [">", "150", "151", "Gaussian", "[150,", "151)", "yes", "1", "0.75", "1.33333"],
    ]
    assert len(found.describe()["releases"]) < 200
    assert found.describe()["n_releases"] == 300


def test_of_many_offending_releases_the_first_and_the_last_are_shown():
    bed = RunningSumBed(2, UNIT, trials(n_users=300)["repeated"].algorithm.sums)
    found = examine(bed, Case(((0.0, 0.0),) * 300, 0, (1.0, 1.0), 0), UNIT, GaussianDP(0.5))
    assert found is not None
    assert sum(row.is_offending for row in found.rows) == 300
    assert len(found.lines()) < 60
    assert found.lines()[-1].startswith(
        "record 0 pays for the 300 releases that are marked: 1-GDP together, the claim is 0.5"
    )


def test_the_book_names_the_record_that_pays_even_if_another_one_changed():
    bed = trials()["tree"].algorithm
    found = examine(bed, Case(((0.0, 0.0),) * 24, 20, (1.0, 1.0), 0), UNIT, GaussianDP(0.9))
    assert found is not None
    assert found.release == -1
    assert found.total.record == 0
    assert found.total.amount == pytest.approx(1.0)
    assert [row.span for row in found.rows if row.is_offending] == ["[0, 1)", "[0, 2)", "[0, 4)", "[0, 8)", "[0, 16)"]


# --- what is decided from exact values ----------------------------------------------------------------------------


def _as(kind):
    honest = _honest()
    return kind(**{field.name: getattr(honest, field.name) for field in fields(honest)})


def test_a_decision_from_values_that_were_not_released_is_found():
    class Peeking(type(_honest())):
        def absorb(self, sensitive, released, record, ledger):
            sensitive, released = super().absorb(sensitive, released, record, ledger)
            released.mean[:, 0] += 100 * (record.rewards[:, 0] > 0)
            return sensitive, released

    case = Case(tuple((0.0, 0.0) for _ in range(12)), 0, (1.0, 1.0), 0)
    assert examine(_honest(), case, UNIT, CLAIM) is None
    found = examine(_as(Peeking), case, UNIT, CLAIM)
    assert found is not None
    assert "not released" in found.reason
    assert found.difference.arm != found.difference.neighbor_arm


def test_a_phase_that_ends_early_for_some_data_is_found():
    class Impatient(RunningSumBed):
        def length(self, actions):
            return np.full(len(actions), 3)

        def hold(self, released, actions):
            return np.where(released.arm > 1, 1, super().hold(released, actions))

        def absorb(self, sensitive, released, record, ledger):
            sensitive, after = super().absorb(sensitive, released, record, ledger)
            return sensitive, after._replace(left=np.where(record.rewards[:, 0] >= 2.5, 1, after.left))

    bed = Impatient(2, UNIT, TreeSum(Gaussian(1.0, 3.0), 24))
    found = examine(bed, Case(((1.0, 1.0),) * 12, 1, (0.0, 0.0), 0), UNIT, CLAIM)
    assert found is not None
    assert "a phase of 1 rounds begins on D, one of 3 rounds on D'" in found.difference.summary
    assert found.difference.round == 3


def test_a_release_that_is_made_for_some_data_only_is_found():
    class Twofold(type(_honest())):
        def absorb(self, sensitive, released, record, ledger):
            sums = self.sums
            if record.rewards[0, 0] > 0:
                phase, *_ = sums.close(sums.init(ledger.n_reps), ledger)
                del phase
            return super().absorb(sensitive, released, record, ledger)

    found = examine(_as(Twofold), Case(((0.0, 0.0),) * 6, 1, (1.0, 1.0), 0), UNIT, CLAIM)
    assert found is not None
    assert found.release == 1
    assert "release 1, after 2 rounds, is Gaussian of scale 2 on [1, 2) on D and Gaussian of scale 1 on [0, 0) on D'" in (
        found.difference.summary
    )


def test_a_value_that_is_no_number_for_some_data_is_found():
    class Dividing(RunningSumBed):
        def contribution(self, record):
            with np.errstate(invalid="ignore", divide="ignore"):
                return record.rewards[:, 0] * (1 - record.rewards[:, 0]) / (1 - record.rewards[:, 0])

    bed = Dividing(2, UNIT, LocalSum(Gaussian(1.0, 1.0)))
    found = examine(bed, Case(((0.5, 0.5),) * 6, 1, (1.0, 1.0), 0), UNIT, CLAIM)
    assert found is not None
    assert (found.kind, found.release) == ("not a number", 1)
    assert found.describe()["releases"][1]["moved"] is None
    assert examine(bed, Case(((1.0, 1.0),) * 6, 1, (1.0, 1.0), 0), UNIT, CLAIM) is None


# --- the search ----------------------------------------------------------------------------------------------------


def test_the_same_cases_are_tried_each_time_and_reach_ties_and_ends(monkeypatch):
    def tried():
        seen = []
        monkeypatch.setattr(deterministic, "examine", lambda algorithm, case, *rest: seen.append(case))
        assert search(_honest(), UNIT, CLAIM, max_examples=200, max_rounds=500) is None
        return seen

    cases = tried()
    assert cases == tried()
    assert cases[0] == Case(((0.0, 0.0),) * 4, 0, (1.0, 1.0), 0)
    lengths = [len(case.rewards) for case in cases]
    assert min(lengths) == 4
    assert 5 < sum(length > 24 for length in lengths) < 100
    assert max(lengths) > 200
    tables = [np.array(case.rewards) for case in cases]
    assert all(((table >= 0) & (table <= 1)).all() for table in tables)
    ties = [table for table in tables if (table[2:] == table[2:, :1]).all()]
    assert 60 < len(ties) < 199
    assert all(case.replacement != case.rewards[case.record] for case in cases)
    values = {value for case in cases for value in case.replacement}
    assert values == {0.0, 0.25, 0.5, 1.0, 5.0, -2.0, 1 + 1 / 64, -1 / 64}
    assert sum(case.record < 4 for case in cases) > 50


def test_a_tie_that_one_reward_tips_is_reached():
    bed = RunningSumBed(2, UNIT, LocalSum(Gaussian(1.0, 1.0)))
    for name in ("tree", "local", "gram-joint", "elimination"):
        planted = PLANTED["decides-from-exact"](trials()[name].algorithm)
        assert search(planted, UNIT, CLAIM, max_examples=10, shrinks=False) is not None, name
    assert search(bed, UNIT, CLAIM, max_examples=10) is None


@pytest.mark.parametrize(("slack", "factor"), [(0.05, 1.05), (1.0, 2.0)])
def test_a_range_that_is_clipped_a_little_too_late_is_found(slack, factor):
    honest = _honest()
    found = search(replace(honest, reward_range=Interval(-slack / 4, 1 + slack)), UNIT, CLAIM, max_examples=60)
    assert found is not None
    assert found.kind == "sensitivity"
    assert max(row.times for row in found.rows) == pytest.approx(factor, rel=0.01)


def test_short_sums_need_short_tables():
    bed = RunningSumBed(2, UNIT, TreeSum(Gaussian(1.0, 2.0), 3))
    assert search(bed, UNIT, CLAIM, max_examples=40, max_rounds=3) is None
    with pytest.raises(ValueError, match="3 steps"):
        search(bed, UNIT, CLAIM, max_examples=40)


def test_a_counterexample_is_shrunk_to_something_a_person_can_read():
    found = search(CONTROLS["adar-ucb"][2].plant(_honest()), UNIT, CLAIM, max_examples=100)
    assert found is not None
    assert len(found.case.rewards) == 4
    assert all(reward == 0 for row in found.case.rewards for reward in row)


# --- no claim, and pairs from elsewhere ---------------------------------------------------------------------------


def test_without_a_claim_the_book_is_not_compared_but_all_else_is():
    bed = RunningSumBed(2, UNIT, LocalSum(Laplace(1.0, 2.0)))
    assert search(bed, UNIT, None, max_examples=40) is None
    redrawn = search(PLANTED["noise-redrawn"](_honest()), UNIT, None, max_examples=40)
    assert redrawn is not None
    assert redrawn.kind == counterexample.STATE  # it keeps exact sums beside the released ones
    for name in ("no-forgetting", "half-the-sensitivity", "first-pull-exact", "not-clipped"):
        assert search(PLANTED[name](_honest()), UNIT, None, max_examples=60, shrinks=False) is not None, name


def test_a_pure_book_is_priced_as_such():
    bed = RunningSumBed(2, UNIT, LocalSum(Laplace(1.0, 2.0)))
    found = examine(bed, Case(((0.0, 0.0),) * 5, 3, (1.0, 1.0), 0), UNIT, GaussianDP(0.01))
    assert found is not None
    assert [row.cost for row in found.rows] == ["0.5-DP"] * 5
    assert sum(row.is_offending for row in found.rows) == 1


def test_a_pair_is_examined_as_a_case():
    table = RewardTable(np.full((40, 2), 0.5), UNIT)
    for pair in canary_pairs(table, (0, 7)):
        assert examine_pair(_honest(), pair, CLAIM, seed=1) is None
        found = examine_pair(PLANTED["half-the-sensitivity"](_honest()), pair, CLAIM, seed=1)
        assert found is not None
        assert found.case.record == pair.record
        assert math.isclose(found.rows[found.release].times, 2.0)
    data = table.replaced(3, (0.0, 0.0))
    outside = Pair(data, data.replaced(3, (4.0, 4.0), Interval(0.0, 4.0)), 3)
    assert examine_pair(_honest(), outside, CLAIM, seed=1) is None
    assert examine_pair(PLANTED["not-clipped"](_honest()), outside, CLAIM, seed=1) is not None


def test_covariates_are_shown_as_one_vector_or_as_those_of_the_actions():
    assert counterexample._covariates((1, 2)) == "[1, 2]"
    assert counterexample._covariates(((0.5, 1.0), (0.5, 1.0))) == "all [0.5, 1]"
    assert counterexample._covariates(((1.0,), (2.0,))) == "[1], [2]"
