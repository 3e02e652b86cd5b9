"""A ledger that cheats: the book stays in order, the noise does not, and the likelihood ratio knows."""

import math

import numpy as np
import pytest
from nightly import first
from own_cases import UNIT, EveryRound, example

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import random_table
from bandana.algorithms.problem import Problem
from bandana.audits.claims import parse
from bandana.audits.faults.releases import GENERIC, NotClipped, Planted, exact_in_some, repeating, weakened
from bandana.audits.faults.wrapped import WithLedgerWrapper
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import DETERMINISTIC, MU, SAMPLING, Effort, Verdict
from bandana.audits.own.white_box import check_scope, examine, find_probes
from bandana.audits.replays.replay import replay
from bandana.audits.seeds import derive
from bandana.audits.trial import Trial
from bandana.privacy_core import (
    DiscreteGaussian,
    Exact,
    FactorizedSum,
    Gaussian,
    Laplace,
    LocalSum,
    PhaseSum,
    Relation,
    RenyiDP,
    ReproducibleNoise,
    TreeSum,
)

BANDIT = example("own_bandit").bandit
TABLE = random_table(16, 2, UNIT, 0)
CLAIM = parse("gdp(mu=1, relation=reward)")
FAULTS = {control.name: control for control in GENERIC}


def _scores(algorithm, record=0, n=4000, on_neighbor=True):
    pair = canary_pairs(TABLE, (record,))[0]
    return replay(algorithm, pair, on_neighbor, n, np.random.SeedSequence(5)).log_ratio


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "released-again"])
def test_the_book_of_a_faulty_ledger_is_the_honest_one(name):
    assert derive(FAULTS[name].plant(BANDIT), TABLE, 0) == derive(BANDIT, TABLE, 0)


def test_a_second_release_that_reads_nobody_costs_nobody():
    assert derive(FAULTS["released-again"].plant(BANDIT), TABLE, 0) == derive(BANDIT, TABLE, 0)


@pytest.mark.parametrize(
    ("name", "mu"), [("noise-halved", 2.0), ("noise-sqrt2", math.sqrt(2)), ("released-again", math.sqrt(2))]
)
def test_the_likelihood_ratio_is_that_of_the_true_law(name, mu):
    """The log ratio is N(+-mu^2/2, mu^2) on either side; 5 standard errors."""
    faulty = FAULTS[name].plant(BANDIT)
    for on_neighbor, sign in ((True, 1), (False, -1)):
        scores = _scores(faulty, on_neighbor=on_neighbor)
        assert scores.mean() == pytest.approx(sign * mu**2 / 2, abs=5 * mu / math.sqrt(len(scores)))
        assert scores.std() == pytest.approx(mu, rel=0.1)


def test_noise_that_is_reused_or_missing_hides_nothing():
    for name in ("noise-reused", "first-release-exact"):
        faulty = FAULTS[name].plant(BANDIT)
        assert (_scores(faulty) == np.inf).all()
        assert (_scores(faulty, on_neighbor=False) == -np.inf).all()


def test_without_a_fault_nothing_changes():
    for honest in (WithLedgerWrapper(BANDIT), Planted(BANDIT, lambda request, memory: request.release())):
        assert np.array_equal(_scores(honest), _scores(BANDIT))


def test_reused_noise_says_nothing_of_records_outside():
    """The canary comes after every episode that is released: the transcripts have one law."""
    short = random_table(14, 2, UNIT, 0)  # episodes of 4: the last two rounds are never released
    pair = canary_pairs(short, (13,))[0]
    scores = replay(FAULTS["noise-reused"].plant(BANDIT), pair, True, 100, np.random.SeedSequence(0)).log_ratio
    assert (scores == 0).all()


@pytest.mark.parametrize(
    "mechanism",
    [Gaussian(1.0, 1.0, Relation.REPLACE_REWARD), Laplace(1.0, 1.0), DiscreteGaussian(1.0, 1.0, 2.0**-20)],
    ids=lambda m: type(m).__name__,
)
def test_a_pretending_mechanism_declares_what_the_honest_one_does(mechanism):
    value, nowhere = np.arange(6.0).reshape(3, 2), np.zeros(3, dtype=bool)
    never = np.full((3, 2), np.nan)
    for faulty in (weakened(mechanism, 0.5), exact_in_some(mechanism, nowhere), repeating(mechanism, never)):
        for name in ("relation", "norm", "sensitivity", "scale", "deviation", "event"):
            assert getattr(faulty, name) == getattr(mechanism, name)
        assert hasattr(faulty, "grid") == hasattr(mechanism, "grid")
        assert np.array_equal(faulty.change(value, value + 1), mechanism.change(value, value + 1))
        assert np.array_equal(faulty.color(faulty.whiten(value), value.shape), value)
        assert faulty.draw(ReproducibleNoise(np.random.SeedSequence(0)), value).shape == value.shape
        assert faulty != mechanism
        assert mechanism != faulty


def test_schedules_are_compared_without_hidden_state():
    honest = Gaussian(1.0, 1.0)
    faulty = repeating(honest, np.ones(1))
    assert faulty == repeating(honest, np.full(1, np.nan))
    assert hash(faulty) == hash(repeating(Gaussian(1.0, 1.0), np.zeros(1)))
    assert faulty != repeating(Gaussian(1.0, 2.0), np.ones(1))


def test_rows_that_do_not_match_are_scored_as_honest_ones():
    honest, rows = Gaussian(1.0, 1.0), np.zeros((2, 1))
    for faulty in (exact_in_some(honest, np.ones(3, dtype=bool)), repeating(honest, np.zeros((3, 1)))):
        assert np.array_equal(faulty.log_density_ratio(rows, rows, rows + 1), honest.log_density_ratio(rows, rows, rows + 1))


def test_the_range_is_widened_for_the_loop_only():
    wide = NotClipped(BANDIT)
    assert wide.reward_range.width == pytest.approx(2001)
    assert derive(wide, TABLE, 0) == derive(BANDIT, TABLE, 0)


GAUSSIAN = Gaussian(1.0, 1.0, Relation.REPLACE_REWARD)
EFFORT = Effort(replays=6000, confidence=0.999, delta=1e-5, examples=30, seed=4)


def _examine(algorithm, claim=CLAIM, effort=EFFORT, **more):
    probes = find_probes(algorithm, TABLE, 0)
    return examine(Trial(algorithm, claim, TABLE, probes), effort, {"name": "x"}, {}, **more)


def _adar_ucb():
    entry = find("adar-ucb")
    return entry.build(entry.settings(Problem(2, UNIT), "tight", RenyiDP(2.0, 1.0)))


HONEST = {
    "factorized": (EveryRound(FactorizedSum(GAUSSIAN, n_steps=24)), "zcdp(rho=0.5, relation=reward)"),
    "example": (BANDIT, "gdp(mu=1, relation=reward)"),
    "adar-ucb": (_adar_ucb(), "rdp(alpha=2, epsilon=1, relation=reward)"),
    "local": (EveryRound(LocalSum(GAUSSIAN)), "gdp(mu=1, relation=reward, trust=local)"),
    "tree": (EveryRound(TreeSum(GAUSSIAN, 24)), f"gdp(mu={math.sqrt(5)!r}, relation=reward)"),
    "laplace": (EveryRound(LocalSum(Laplace(1.0, 0.5, Relation.REPLACE_REWARD))), "pure(epsilon=2, relation=reward)"),
}


@pytest.mark.parametrize(("algorithm", "claim"), first(1, [pytest.param(*one, id=name) for name, one in HONEST.items()]))
def test_honest_algorithms_pass_and_every_generic_fault_is_caught(algorithm, claim):
    claim = parse(claim)
    check_scope(algorithm, TABLE, claim, 0)
    outcome = _examine(algorithm, claim)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    assert {control.name for control in GENERIC} <= {control.name for control in outcome.all_controls}
    for control in outcome.all_controls:
        assert control.is_caught, control
    generic = [control for control in outcome.all_controls if control.name in {known.name for known in GENERIC}]
    assert all(SAMPLING in control.expected for control in generic)
    assert {c.name for c in generic if DETERMINISTIC in c.expected} == {"released-again", "not-clipped"}


def test_the_example_that_never_forgets_fails_in_all_three_ways():
    outcome = _examine(example("broken_bandit").bandit, controls=())
    assert outcome.verdict is Verdict.FAIL
    text = " ".join(outcome.reasons)
    for part in ("measured exceeds claimed: mu", "measured exceeds accounted", "counterexample", "declares the records"):
        assert part in text


def test_noise_for_another_claim_is_refuted_by_the_accountant_too():
    outcome = _examine(BANDIT, parse("gdp(mu=0.5, relation=reward)"), controls=())
    assert outcome.verdict is Verdict.FAIL
    assert "accounted exceeds claimed: the ledger composes to mu = 1, the claim is 0.5-GDP" in outcome.reasons


def test_an_algorithm_without_noise_fails():
    outcome = _examine(EveryRound(PhaseSum(Exact())), controls=())
    assert outcome.verdict is Verdict.FAIL
    assert "the ledger composes to no finite mu, the claim is 1-GDP" in outcome.reasons[0]


def test_gaussian_noise_keeps_no_pure_claim():
    outcome = _examine(BANDIT, parse("pure(epsilon=2, relation=reward)"), controls=())
    assert outcome.verdict is Verdict.FAIL
    assert "the ledger composes to no finite epsilon, the claim is 2-DP" in outcome.reasons[0]


def test_laplace_noise_under_an_approximate_claim_is_held_against_that_claim():
    laplace = EveryRound(LocalSum(Laplace(1.0, 0.5, Relation.REPLACE_REWARD)))
    claim = parse("approx(epsilon=2, delta=1e-5, relation=reward)")
    outcome = _examine(laplace, claim, controls=(FAULTS["noise-halved"],))
    assert outcome.verdict is Verdict.PASS


def test_an_algorithm_that_never_releases_does_not_pass():
    outcome = _examine(type(BANDIT)(length=100))
    assert outcome.verdict is Verdict.NOT_REFUTED, outcome.reasons
    assert "nothing was released in the audited rounds" in outcome.reasons
    assert all(bound.lower == 0 for bound in outcome.bounds)


def test_scores_that_are_nan_are_inconclusive():
    class Undefined(Gaussian):
        def log_density_ratio(self, output, value, neighbor):
            return np.full(len(output), np.nan)

    bandit = EveryRound(LocalSum(Undefined(1.0, 1.0, Relation.REPLACE_REWARD)))
    outcome = _examine(bandit, controls=(FAULTS["noise-halved"],))
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert any("NaN" in reason for reason in outcome.reasons)


def test_a_mechanism_of_ones_own_is_not_believed():
    class NoNoise(Gaussian):
        def draw(self, noise, value):
            return value.copy()

    outcome = _examine(EveryRound(LocalSum(NoNoise(1.0, 1.0, Relation.REPLACE_REWARD))))
    assert outcome.verdict is not Verdict.PASS
    assert any("it releases through NoNoise" in caveat for caveat in outcome.all_caveats)


def test_an_algorithm_that_decides_from_exact_values_fails():
    """The ledger's book and every released value are honest."""
    smuggling = FAULTS["decides-from-exact"].plant(BANDIT)
    for rounds in (16, 32):
        table = random_table(rounds, 2, UNIT, 0)
        outcome = examine(Trial(smuggling, CLAIM, table, (0, 2)), EFFORT, {"name": "x"}, {}, controls=())
        assert outcome.verdict is Verdict.FAIL
        assert outcome.numbers[MU].measured > 3


def test_too_few_replays_for_the_confidence_are_inconclusive_and_how_many_are_needed_is_said():
    few = Effort(replays=1000, confidence=0.999999, delta=1e-5, examples=5, seed=0)
    outcome = _examine(BANDIT, parse("gdp(mu=8, relation=reward)"), effort=few, controls=())
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "1000 replays are too few" in outcome.reasons[0]
    assert int(outcome.reasons[0].rpartition("about ")[2]) > 1000


def test_without_controls_there_is_no_pass():
    assert _examine(BANDIT, controls=()).reasons == ("no planted fault proves the audit's power",)


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("gdp(mu=1, relation=record)", "bound the change for 'replace one reward'"),
        ("gdp(mu=1, relation=trajectory)", "give both one relation"),
        ("gdp(mu=1, relation=reward, trust=local)", "one release reads 4 records"),
    ],
)
def test_a_claim_that_the_releases_are_not_made_for_is_refused(claim, message):
    with pytest.raises(ValueError, match="claim") as caught:
        check_scope(BANDIT, TABLE, parse(claim), 0)
    assert message in str(caught.value)


def test_a_mechanism_for_adding_or_removing_is_refused():
    other = EveryRound(LocalSum(Gaussian(1.0, 1.0, Relation.ADD_REMOVE)))
    with pytest.raises(ValueError, match="add or remove one record"):
        check_scope(other, TABLE, CLAIM, 0)


def test_canaries_stand_where_a_record_pays_most():
    assert find_probes(EveryRound(TreeSum(GAUSSIAN, 24)), TABLE, 0) == (0, 2)
    late = EveryRound(PhaseSum(GAUSSIAN))
    assert find_probes(late, TABLE, 0)[0] == 0
