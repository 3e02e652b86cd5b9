"""Noise for deployment: on a grid, as large as it says, and never dearer to a record than what is charged."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from doubles import GridOnly, span
from hypothesis import given, settings
from hypothesis import strategies as st
from nightly import first
from noise_fit import N_SAMPLES, is_distributed_as
from scipy import stats
from scipy.special import ndtri_exp

from bandana.privacy_core import (
    ZCDP,
    BoundedRangeEvent,
    BudgetExceeded,
    Carried,
    ConcentratedEvent,
    DiscreteGaussian,
    DoublingSum,
    Exact,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    JointGaussian,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    NonPrivateEvent,
    PhaseSum,
    PrivacyCurve,
    PureDP,
    PureEvent,
    RenyiDP,
    ResponseEvent,
    SecureNoise,
    SymmetricGaussian,
    TreeSum,
)
from bandana.privacy_core.accounting.factorization import factorize
from bandana.privacy_core.noise import sources as noise

MULTIPLIERS = st.floats(-3, 5).map(lambda exponent: 10.0**exponent)
MAKERS = {
    "Gaussian": lambda m, s: Gaussian(s, m),
    "Laplace": lambda m, s: Laplace(s, m),
    "symmetric": lambda m, s: SymmetricGaussian(s, m),
    "symmetric, equal": lambda m, s: SymmetricGaussian(s, m, 1.0),
    "joint": lambda m, s: JointGaussian(s, 1.0, m, vector_ratio=0.7),
}


@pytest.fixture
def no_laplace(monkeypatch):
    """The same for Laplace noise, which has no method of its own."""
    scales = []

    def draw(kind, scale, shape):
        scales.append(scale)
        return np.zeros(shape, dtype=np.int64)

    monkeypatch.setattr(noise, "_opendp", draw)
    return scales


def shape_of(kind, d):
    return {"symmetric": (1, d, d), "symmetric, equal": (1, d, d), "joint": (1, d, d + 1)}.get(kind, (1, d))


def neighbors(kind, mechanism, d, rng):
    """Two values at a distance of exactly the sensitivity; close to where rounding is worst."""
    shape = shape_of(kind, d)
    value = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4) * min(mechanism.scale, mechanism.sensitivity)
    direction = rng.normal(size=shape) * (rng.random(shape) < 0.7)
    if kind not in ("Gaussian", "Laplace"):
        value[..., :d] += np.swapaxes(value[..., :d], 1, 2)
        direction[..., :d] += np.swapaxes(direction[..., :d], 1, 2)
    elif rng.random() < 0.5:
        # Each coordinate half a step away from the next whole number, so that a touch moves all of them.
        step = SecureNoise._STEP * min(1.0, 1 / mechanism.noise_multiplier) / (math.sqrt(d) if kind == "Gaussian" else d)
        step *= mechanism.scale * (SecureNoise._WIDER_GAUSSIAN if kind == "Gaussian" else SecureNoise._WIDER_LAPLACE)
        value = (np.rint(value / step) + 0.5 - 1e-7) * step
        direction = np.abs(direction) + 1e-3
    if not direction.any():
        direction += 1.0
    length = float(mechanism.change(np.zeros(shape), direction)[0])
    return value, value + direction * (mechanism.sensitivity / length)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("max_examples", first(1, [100, 300]))
def test_no_pair_of_neighbors_is_further_apart_than_what_is_charged(kind, max_examples, no_laplace):
    @settings(max_examples=max_examples)
    @given(MULTIPLIERS, st.floats(-3, 3).map(lambda e: 10.0**e), st.integers(1, 24), st.integers(0, 10**6))
    def check(multiplier, sensitivity, d, seed):
        d = min(d, 6) if kind not in ("Gaussian", "Laplace") else d
        mechanism, source = MAKERS[kind](multiplier, sensitivity), GridOnly()
        no_laplace.clear()
        pair = neighbors(kind, mechanism, d, np.random.default_rng(seed))
        for value in pair:
            mechanism.draw(source, value)
        difference = np.abs(source.whole[0] - source.whole[1]).ravel()
        # The very floating-point numbers that are added may round; the sensitivity of the given pair is exact to 1e-9.
        slack = 1 + 1e-9 + 1e-14 * float(np.abs(np.stack(pair)).max()) / mechanism.scale
        event = source.cost(mechanism.event)
        if kind == "Laplace":
            (scale,) = set(no_laplace)
            assert difference.sum() / scale <= event.epsilon * slack
        else:
            (scale,) = set(source.scales)
            squared = sum(int(x) ** 2 for x in difference.tolist())
            assert scale >= 2**13, "what the cost of a lattice rests on"
            assert Fraction(squared) / Fraction(scale) ** 2 <= Fraction((event.mu / (1 + 2.6 * 2.0**-13) * slack) ** 2)

    check()


def test_the_search_for_a_bad_pair_can_succeed(no_laplace):
    """Without its allowance for rounding the cost is too small for some pair."""
    rng, source, found = np.random.default_rng(1), GridOnly(), 0.0
    for _ in range(200):
        mechanism = Gaussian(1.0, 1.0)
        pair = neighbors("Gaussian", mechanism, 16, rng)
        for value in pair:
            mechanism.draw(source, value)
        difference = source.whole[-1] - source.whole[-2]
        found = max(found, float(np.linalg.norm(difference)) / source.scales[-1])
    # sensitivity over scale is 1, plus a share of the 2^-13 that all coordinates' rounding may add.
    assert (1 + 2.0**-15) / SecureNoise._WIDER_GAUSSIAN < found <= 1 / (1 + 2.6 * 2.0**-13)


@given(MULTIPLIERS)
def test_a_release_costs_what_its_mechanism_promises(multiplier):
    for event in (GaussianEvent(multiplier), LaplaceEvent(multiplier)):
        assert SecureNoise().cost(event) == event
    assert 1 < SecureNoise._WIDER_LAPLACE < 1.000125 < SecureNoise._WIDER_GAUSSIAN < 1.00044


def tail_scores(scale, places):
    """Scores z with P(N(0, 1) >= z) = P(K >= m), K discrete Gaussian, in logarithms: also far out."""
    steps = np.arange(int(12 * scale))
    log_total = math.log(2 * np.exp(-((steps / scale) ** 2) / 2).sum() - 1)
    tails = [np.log(np.exp(-(2 * m * steps + steps**2) / (2 * scale**2)).sum()) - m**2 / (2 * scale**2) for m in places]
    return -ndtri_exp(np.array(tails) - log_total)


@pytest.mark.parametrize(("scale", "slack"), [(64, 0.0), (2**13, 1e-6)])
def test_discrete_gaussian_noise_is_gaussian_dp_within_the_lattice_factor(scale, slack):
    """One step of the lattice moves the score by at most (1 + 2.6 / s) / s, in the middle and 35 deviations out.

    So any number of steps, and of coordinates, costs at most that much more than continuous noise. By hand, a step costs
    more by 1 / (24 s^2); the slack is rounding.
    """
    steps = np.concatenate(
        [np.diff(tail_scores(scale, (m, m + 1))) for m in np.linspace(0, 35 * scale, 36, dtype=int).tolist()]
    )
    assert (steps * scale <= 1 + 2.6 / scale).all()
    assert steps[0] * scale >= 1 - slack, "continuous noise costs no more"


@pytest.mark.parametrize("event", [ConcentratedEvent(0.3), NonPrivateEvent()], ids=str)
def test_the_cost_of_what_lies_on_a_grid_already(event):
    assert SecureNoise().cost(event) == event


CASES = [
    (Gaussian(2.0, 0.75), stats.norm(scale=1.5)),
    pytest.param(Gaussian(1.0, 40.0), stats.norm(scale=40.0), marks=pytest.mark.nightly),
    pytest.param(Laplace(3.0, 0.5), stats.laplace(scale=1.5), marks=pytest.mark.nightly),
    (Laplace(1.0, 20.0), stats.laplace(scale=20.0)),
]


@pytest.mark.parametrize(("mechanism", "distribution"), CASES)
def test_the_noise_is_as_large_as_it_says_and_each_coordinate_has_its_own(mechanism, distribution):
    value = np.linspace(-3.0, 3.0, N_SAMPLES).reshape(N_SAMPLES // 4, 2, 2)
    kept = value.copy()
    added = mechanism.draw(SecureNoise(), value) - value
    assert np.array_equal(value, kept), "the exact value must not be touched"
    assert is_distributed_as(added, distribution)
    assert not is_distributed_as(added * 1.3, distribution)
    assert not is_distributed_as(added * 0.7, distribution)
    # Ten standard errors of the variance, of Gaussian or Laplace noise.
    assert added.var() == pytest.approx(mechanism.deviation**2, rel=10 * math.sqrt(5 / N_SAMPLES))
    # Each correlation is near N(0, 4 / N_SAMPLES): 10 standard deviations, false alarm below 1e-21 for all six.
    coordinates = np.corrcoef(added.reshape(-1, 4).T) - np.eye(4)
    assert np.abs(coordinates).max() < 10 / math.sqrt(N_SAMPLES / 4)
    # Rows are replicates: each is independent of the next one, too.
    assert np.abs(np.corrcoef(added[::2].ravel(), added[1::2].ravel())[0, 1]) < 10 / math.sqrt(N_SAMPLES / 2)


@pytest.mark.parametrize(
    "mechanism", [Gaussian(2.0, 0.3), Gaussian(0.1, 77.0), Laplace(2.0, 3.0), Laplace(2.0, 0.3)], ids=str
)
@pytest.mark.parametrize("d", [1, 7])
def test_outputs_lie_on_the_grid(mechanism, d):
    m = mechanism.noise_multiplier
    step = 2.0**-13 * min(1.0, 1 / m) / (d if isinstance(mechanism, Laplace) else math.sqrt(d))
    step *= SecureNoise._WIDER_LAPLACE if isinstance(mechanism, Laplace) else SecureNoise._WIDER_GAUSSIAN
    output = mechanism.draw(SecureNoise(), np.random.default_rng(0).normal(size=(500, d)))
    steps = output / (step * mechanism.scale)
    assert steps == pytest.approx(np.rint(steps), rel=1e-14)
    assert len(np.unique(np.rint(steps))) > 100


@pytest.mark.parametrize(
    "mechanism", [Gaussian(1.0, 1.0), Laplace(1.0, 1.0), SymmetricGaussian(1.0, 1.0)], ids=lambda m: type(m).__name__
)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 2.0**40, -1e200])
def test_values_that_no_grid_holds(mechanism, bad):
    value = np.zeros((2, 2, 2))
    value[1, 0, 1] = bad
    with pytest.raises(ValueError, match=r"the value .* cannot be put on a grid of noise scale 1\.000\d* x 2"):
        mechanism.draw(SecureNoise(), value)


def test_a_value_near_the_largest_number():
    with pytest.raises(ValueError, match="cannot be put on a grid"):
        Gaussian(1e-3, 1.0).draw(SecureNoise(), np.array([1e308]))


def test_more_noise_than_whole_numbers_hold():
    """At a noise multiplier of 1e17 nearly all draws are the largest number, to which the exact value is added."""
    outputs = []
    for value in (0.0, -3e3):
        try:
            outputs.append(set(Gaussian(1.0, 1e17).draw(SecureNoise(), np.full(200, value)).tolist()))
        except ValueError:
            return
    assert outputs[0] & outputs[1] or min(map(len, outputs)) > 100


@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 1, 1)])
def test_shapes(shape):
    for mechanism in (Gaussian(1.0, 1.0), Laplace(1.0, 1.0)):
        assert mechanism.draw(SecureNoise(), np.zeros(shape)).shape == shape


class TestLedger:
    def test_gaussian_noise_promises_gdp(self):
        ledger = LiveLedger(1, SecureNoise())
        ledger.release(Gaussian(1.0, 2.0), np.zeros(1), records=span(0, 4))
        ledger.release(Gaussian(5.0, 4.0), np.zeros((1, 3)), records=span(3, 9))
        found, mu = ledger.guarantee(), math.sqrt(0.25 + 0.0625)
        assert type(found) is GaussianDP
        assert found.mu == pytest.approx(mu, rel=1e-12)

    def test_laplace_noise_promises_pure_dp(self):
        ledger = LiveLedger(1, SecureNoise(), budget=PureDP(1.0))
        ledger.release(Laplace(1.0, 2.0), np.zeros(1), records=span(0, 4))
        found = ledger.guarantee()
        assert type(found) is PureDP
        assert found.epsilon == 0.5
        ledger.release(Laplace(1.0, 2.0), np.zeros(1), records=span(0, 4))
        with pytest.raises(BudgetExceeded):
            ledger.release(Laplace(1.0, 1e6), np.zeros(1), records=span(0, 4))

    def test_both_are_a_curve(self):
        ledger = LiveLedger(1, SecureNoise())
        for mechanism in (Gaussian(1.0, 2.0), Laplace(1.0, 2.0), DiscreteGaussian(1.0, 2.0, 1.0)):
            ledger.release(mechanism, np.zeros(1), records=span(0, 4))
        found = ledger.guarantee()
        assert type(found) is PrivacyCurve
        exact = PrivacyCurve.of({GaussianEvent(2.0): 2, LaplaceEvent(2.0): 1})
        assert exact.epsilon(1e-6) < found.epsilon(1e-6) < 1.2 * exact.epsilon(1e-6)

    @pytest.mark.parametrize("budget", [GaussianDP(math.sqrt(0.8)), ZCDP(0.4), RenyiDP(3.0, 1.2)], ids=str)
    def test_every_budget_counts_it(self, budget):
        """Three releases of 1/8 and 0.025 fit, and nothing more."""
        ledger = LiveLedger(1, SecureNoise(), budget=budget)
        for _ in range(3):
            ledger.release(Gaussian(1.0, 2.0), np.zeros(1), records=span(0, 4))
        ledger.release(Gaussian(1.0, math.sqrt(0.5 / 0.025)), np.zeros(1), records=span(0, 4))
        with pytest.raises(BudgetExceeded):
            ledger.release(Gaussian(1.0, 1e3), np.zeros(1), records=span(0, 4))

    def test_one_gdp_costs_what_it_costs_in_real_numbers(self):
        """zCDP would price the same release at 4.729."""
        ledger = LiveLedger(1, SecureNoise())
        ledger.release(Gaussian(1.0, 1.0), np.zeros(1), records=span(0, 4))
        assert ledger.curve().epsilon(1e-5) == pytest.approx(GaussianDP(1.0).epsilon_at(1e-5), rel=1e-12)

    def test_a_gdp_budget_cannot_count_a_mechanism_of_which_only_zcdp_is_known(self):
        ledger = LiveLedger(1, SecureNoise(), budget=GaussianDP(10.0))
        with pytest.raises(ValueError, match="state the budget as zCDP or RDP"):
            ledger.release(DiscreteGaussian(1.0, 2.0, 1.0), np.zeros(1), records=span(0, 4))

    def test_exact_values_pass_unchanged(self):
        value = np.array([0.1, 0.2])
        assert LiveLedger(2, SecureNoise()).release(Exact(), value, records=span(0, 1, 2)).tolist() == [0.1, 0.2]

    def test_the_source_names_itself(self):
        assert "secure" in SecureNoise.name
        assert "opendp" in SecureNoise.name
        assert "cryptographic" in SecureNoise.name


@pytest.mark.parametrize(
    "sums",
    [
        PhaseSum(Gaussian(1.0, 1.0)),
        TreeSum(Gaussian(1.0, 1.0), 8),
        TreeSum(Gaussian(1.0, 1.0), 8, honaker=True),
        TreeSum(Laplace(1.0, 1.0), 8),
        TreeSum(SymmetricGaussian(1.0, 1.0), 8),
        PhaseSum(JointGaussian(1.0, 1.0, 1.0)),
        FactorizedSum(Gaussian(1.0, 1.0), 8),
        FactorizedSum(SymmetricGaussian(1.0, 1.0), 8, 2),
        FactorizedSum(JointGaussian(1.0, 1.0, 1.0), 8),
        DoublingSum(partial(FactorizedSum, Gaussian(1.0, 1.0)), 2, growth=2),
    ],
    ids=str,
)
def test_sums_run_on_it(sums):
    shape = {"SymmetricGaussian": (2, 2), "JointGaussian": (2, 3)}.get(type(sums.mechanism).__name__, (3,))
    ledger = LiveLedger(2, SecureNoise(), n_records=8)
    state, total = sums.init(2, shape), np.zeros((2, *shape))
    for step in range(8):
        value = np.full((2, *shape), 0.1)
        total = value if isinstance(sums, PhaseSum) else total + value
        state = sums.add(state, value, np.ones(2, dtype=np.int64))
        state, noisy, n_records = sums.close(state, ledger)
        assert noisy.shape == (2, *shape)
        assert n_records.tolist() == [1, 1]
        # Twelve standard deviations, at most sqrt 2 of it on a diagonal; false alarm below 1e-14.
        assert (np.abs(noisy - total) < 17 * sums.noise_deviation(step + 1)).all()
    found = ledger.guarantee()
    assert type(found) is (PureDP if isinstance(sums.mechanism, Laplace) else GaussianDP)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 4.0])
def test_the_grid_s_cost_of_a_selection_by_hand(epsilon):
    """Four steps of 2^-13 min(1, epsilon), and the rounding of a division, 2^-11 of that."""
    pure = SecureNoise().cost(PureEvent(epsilon)).epsilon - epsilon
    assert pure == pytest.approx(4 * 2.0**-13 * min(1, epsilon) * (1 + 2.0**-11), rel=1e-9)
    ranged, answer = (SecureNoise().cost(kind) for kind in (BoundedRangeEvent(epsilon), ResponseEvent(epsilon, 4)))
    assert epsilon < ranged.epsilon <= epsilon * (1 + 1e-11)
    assert (epsilon < answer.epsilon <= epsilon * (1 + 1e-11), answer.n_options) == (True, 4)


def test_the_wider_noise_pays_for_lattice_and_rounding():
    """In exact fractions: a distance of 1 + 2^-13 (1 + 2^-11) in units of the noise, at the lattice's factor, is below 1."""
    step, rounding = Fraction(1, 2**13), 1 + Fraction(1, 2**11)
    lattice = 1 + Fraction(26, 10) * step
    gaussian, laplace = Fraction(SecureNoise._WIDER_GAUSSIAN), Fraction(SecureNoise._WIDER_LAPLACE)
    for wider, factor in ((gaussian, lattice), (laplace, Fraction(1))):
        spent = factor * (1 / wider + step * rounding)
        assert 1 - Fraction(1, 10**11) < spent < 1


def test_a_row_meets_the_grid_with_what_it_lost():
    """What a row of a sequence lost in floating point comes back before it is rounded."""
    noise = GridOnly()
    ledger = LiveLedger(1, noise)
    carried = Carried("", np.zeros(1, dtype=np.int64), factorize(3), lambda: np.full((1, 1), 0.5))
    output = ledger.release(Gaussian(1.0, 1.0), np.full((1, 1), 2.0), records=span(0, 1), carried=carried)
    assert output == pytest.approx(2.5, abs=1e-3)


def test_a_value_far_below_zero_is_named():
    with pytest.raises(ValueError, match=r"the value -1e\+30 cannot be put on a grid"):
        Gaussian(1.0, 1.0).draw(SecureNoise(), np.array([[0.0, -1e30, 5.0]]))
