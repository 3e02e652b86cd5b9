"""Mechanisms that select: probabilities by hand and by simulation, privacy loss at most epsilon, every source of noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chisquare

from bandana.privacy_core import (
    AboveThreshold,
    Exponential,
    LiveLedger,
    NoisyMax,
    NoNoise,
    PermuteAndFlip,
    RandomizedResponse,
    ReproducibleNoise,
    ScriptedLedger,
    SecureNoise,
    Span,
    is_selection,
    without_noise,
)

OF_RANGE = (Exponential(1.0, 1.0), PermuteAndFlip(1.0, 1.0), NoisyMax(1.0, 1.0))
ALL = (*OF_RANGE, AboveThreshold(1.0, 1.0), AboveThreshold(1.0, 1.0, is_monotone=True), RandomizedResponse(3, 1.0))
SCORES = np.array([[0.0, -1.0, 0.5], [2.0, 2.0, 2.0], [-3.0, 0.0, -0.5], [1.0, 1.0, -40.0]])


def _value(mechanism):
    return mechanism.one_hot([0, 2, 1, 1]) if isinstance(mechanism, RandomizedResponse) else SCORES


def _p(mechanism, *scores):
    return np.exp(mechanism.log_probabilities(np.array([scores], dtype=float)))[0].tolist()


# --- probabilities -------------------------------------------------------------------------------------------------------


def test_probabilities_by_hand():
    assert _p(Exponential(1.0, 1.0), 0, math.log(3)) == pytest.approx([1 / 4, 3 / 4])
    assert _p(Exponential(2.0, 0.5), 0, math.log(3)) == pytest.approx([1 / 4, 3 / 4]), "scale = range x noise multiplier"
    # The lesser of two: visited first with probability 1/2, and then selected with probability 1/2.
    assert _p(PermuteAndFlip(1.0, 1.0), 0, math.log(2)) == pytest.approx([1 / 4, 3 / 4])
    # Of weights 1, 1/2, 1/2: 1/2 * integral of (1 - u)(1 - u/2) = 1/2 * (1 - 3/4 + 1/6).
    assert _p(PermuteAndFlip(1.0, 1.0), math.log(2), 0, 0) == pytest.approx([7 / 12, 5 / 24, 5 / 24])
    assert _p(NoisyMax(1.0, 1.0), 0, 1) == pytest.approx([math.exp(-1) * 0.75, 1 - math.exp(-1) * 0.75])
    assert _p(RandomizedResponse(3, 1 / math.log(3)), 0, 1, 0) == pytest.approx([0.2, 0.6, 0.2])


def test_probabilities_of_above_threshold_by_hand():
    """Each of n noises of one law is equally likely to be the largest: with equal scales, P(none above) = 1 / (n + 1)."""
    monotone = AboveThreshold(1.0, 1.0, is_monotone=True)
    assert monotone.scales == pytest.approx((2.0, 2.0))
    assert _p(monotone, 0) == pytest.approx([1 / 2, 1 / 2])
    assert _p(monotone, 0, 0) == pytest.approx([1 / 2, 1 / 6, 1 / 3])
    lower = 0.5 * math.exp(-1.5) * (1 + 0.75)
    assert _p(monotone, 3) == pytest.approx([1 - lower, lower])
    first, second = AboveThreshold(1.0, 1.0).scales
    assert 1 / first + 2 / second == pytest.approx(1.0), "epsilon_1 + epsilon_2"
    assert (2 / second) / (1 / first) == pytest.approx(2 ** (2 / 3))


@pytest.mark.parametrize("mechanism", OF_RANGE, ids=repr)
@pytest.mark.parametrize("k", [2, 3, 9])
def test_equal_scores_are_equally_likely_and_shifts_change_nothing(mechanism, k):
    assert _p(mechanism, *[5.0] * k) == pytest.approx([1 / k] * k, rel=1e-9)
    scores = np.random.default_rng(k).normal(size=(20, k)) * 5
    found = mechanism.log_probabilities(scores)
    assert np.allclose(np.exp(found).sum(axis=1), 1, atol=1e-9)
    assert np.allclose(found, mechanism.log_probabilities(scores + 7), atol=1e-9)
    order = np.random.default_rng(0).permutation(k)
    assert np.allclose(found[:, order], mechanism.log_probabilities(scores[:, order]), atol=1e-9)


def test_two_noisy_scores_have_the_closed_form_of_the_integral():
    mechanism, gap = NoisyMax(1.0, 1.0), np.linspace(-30, 30, 13)
    two = mechanism.log_probabilities(np.stack([gap, 0 * gap], axis=1))
    three = mechanism.log_probabilities(np.stack([gap, 0 * gap, 0 * gap - 200], axis=1))
    assert np.allclose(two, three[:, :2], atol=1e-9)


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism():
    scores = np.random.default_rng(1).normal(size=(200, 5)) * 3
    means = [(np.exp(m.log_probabilities(scores)) * scores).sum(axis=1) for m in (PermuteAndFlip(1, 1), Exponential(1, 1))]
    assert (means[0] >= means[1] - 1e-9).all()


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_draws_follow_the_probabilities(mechanism):
    """Chi-square of 100,000 draws for each of four vectors of scores: p > 1e-6, so 1e-5 of all generators fail."""
    value = _value(mechanism)
    shares = np.exp(mechanism.log_probabilities(value))
    noise = ReproducibleNoise(np.random.SeedSequence(3))
    drawn = mechanism.draw(noise, np.repeat(value, 100_000, axis=0)).reshape(len(value), -1)
    assert drawn.dtype == np.int64
    for share, row in zip(shares, drawn, strict=True):
        counts = np.bincount(row, minlength=len(share))
        likely = share * len(row) > 5
        assert counts[~likely].sum() < 100
        expected = share[likely] / share[likely].sum() * counts[likely].sum()
        assert likely.sum() < 2 or chisquare(counts[likely], expected).pvalue > 1e-6


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_secure_draws_follow_the_probabilities(mechanism):
    """The same with 1,500 draws of one vector; every run has other noise, and one in a million fails."""
    value = _value(mechanism)[:1]
    share = np.exp(mechanism.log_probabilities(value))[0]
    counts = np.bincount(mechanism.draw(SecureNoise(), np.repeat(value, 1500, axis=0)), minlength=len(share))
    assert chisquare(counts, share * 1500).pvalue > 1e-6


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_without_noise_the_largest_is_selected(mechanism):
    value = _value(mechanism)
    wanted = [0, 0, 1, 0] if isinstance(mechanism, AboveThreshold) else np.argmax(value, axis=1).tolist()
    assert mechanism.draw(NoNoise(), value).tolist() == wanted
    assert without_noise(mechanism, value).tolist() == wanted
    assert is_selection(mechanism)
    if isinstance(mechanism, AboveThreshold):
        assert mechanism.without_noise(value - 50).tolist() == [3, 3, 3, 3]


# --- privacy -------------------------------------------------------------------------------------------------------------


def _losses(mechanism, value, neighbor):
    return mechanism.log_probabilities(neighbor) - mechanism.log_probabilities(value)


@pytest.mark.parametrize("mechanism", OF_RANGE, ids=repr)
@pytest.mark.parametrize("is_monotone", [True, False])
def test_no_loss_exceeds_epsilon_and_one_reaches_it(mechanism, is_monotone):
    """Scores that move by at most 1 the same way, or by at most 1/2 both ways: the range is 1 in both cases."""
    rng = np.random.default_rng(2)
    value = rng.normal(size=(400, 4)) * 4
    moved = rng.random((400, 4)) - (0 if is_monotone else 0.5)
    assert (mechanism.change(value, value + moved) <= 1 + 1e-12).all()
    loss = _losses(mechanism, value, value + moved)
    assert np.abs(loss).max() <= 1 + 1e-9
    if isinstance(mechanism, Exponential):
        assert np.ptp(loss, axis=1).max() <= 1 + 1e-9, "the range of the losses of one pair"
    far, one = np.array([[0.0, 25.0, 25.0, 25.0]]), np.array([[1.0, 0.0, 0.0, 0.0]])
    assert _losses(mechanism, far, far + one)[0, 0] == pytest.approx(1, abs=0.08)


def test_half_the_range_is_not_private_enough():
    far, one, mechanism = np.array([[0.0, 25.0]]), np.array([[1.0, 0.0]]), Exponential(0.5, 1.0)
    assert mechanism.change(far, far + one) > mechanism.sensitivity
    assert _losses(mechanism, far, far + one)[0, 0] > 1.9


@pytest.mark.parametrize("is_monotone", [True, False])
def test_above_threshold_loses_at_most_epsilon(is_monotone):
    mechanism = AboveThreshold(1.0, 1.0, is_monotone)
    rng = np.random.default_rng(3)
    value = rng.normal(size=(200, 6)) * 4
    moved = rng.choice([0.0, 1.0] if is_monotone else [-1.0, 0.0, 1.0], size=(200, 6))
    moved *= rng.choice([-1.0, 1.0], size=(200, 1))
    assert (mechanism.change(value, value + moved) <= 1 + 1e-12).all()
    assert np.abs(_losses(mechanism, value, value + moved)).max() <= 1 + 1e-9


def test_the_bound_of_above_threshold_is_attained():
    """Many queries far below that all rise, before one that falls: both parts of the budget are spent."""
    mechanism = AboveThreshold(1.0, 1.0)
    value = np.array([[0.0] * 40 + [-60.0]])
    moved = np.array([[1.0] * 40 + [-1.0]])
    assert -_losses(mechanism, value, value + moved)[0, 40] > 0.97


def test_queries_that_move_both_ways_are_not_monotone():
    mechanism = AboveThreshold(1.0, 1.0, is_monotone=True)
    value = np.array([[0.0] * 40 + [-60.0]])
    moved = np.array([[1.0] * 40 + [-1.0]])
    assert mechanism.change(value, value + moved) == np.inf
    assert -_losses(mechanism, value, value + moved)[0, 40] > 1.3


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_the_ratio_of_an_outcome_is_that_of_its_probabilities(mechanism):
    value = _value(mechanism)
    neighbor = value[::-1].copy()
    output = mechanism.draw(ReproducibleNoise(np.random.SeedSequence(0)), value)
    ratio = mechanism.log_density_ratio(output, value, neighbor)
    assert ratio == pytest.approx(_losses(mechanism, value, neighbor)[np.arange(4), output])
    assert (mechanism.log_density_ratio(output, value, value) == 0).all()


# --- the ledger ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ALL, ids=repr)
def test_a_ledger_releases_and_replays_selections(mechanism):
    value = _value(mechanism)
    spans = Span(np.zeros(4, dtype=np.int64), np.full(4, 2))
    live = LiveLedger(4, ReproducibleNoise(np.random.SeedSequence(1)), keeps_transcript=True)
    output = live.release(mechanism, value, records=spans)
    assert output.shape == (4,)
    assert dict(live.worst_record()) == {mechanism.event: 1}
    assert live.guarantee().epsilon == pytest.approx(1.0)
    script = ScriptedLedger(4, live.transcript, keeps_values=True)
    assert np.array_equal(script.release(mechanism, value[::-1].copy(), records=spans), output)
    assert script.log_ratio == pytest.approx(mechanism.log_density_ratio(output, value, value[::-1]))
    other = ScriptedLedger(4, live.transcript)
    elsewhere = Span(np.ones(4, dtype=np.int64), np.full(4, 2))
    assert np.array_equal(other.release(mechanism, value, records=elsewhere), mechanism.without_noise(value))
    assert (other.diverged == 0).all()


def test_a_response_to_what_is_no_option_is_refused():
    mechanism = RandomizedResponse(2, 1.0)
    assert mechanism.one_hot(np.array([1, 0])).tolist() == [[0, 1], [1, 0]]
    for wrong in (np.array([[1.0, 1.0]]), np.array([[0.5, 0.5]]), np.array([[1.0, 0.0, 0.0]])):
        with pytest.raises(ValueError, match="1 at one of 2 options and 0 at the others"):
            mechanism.draw(NoNoise(), wrong)


def test_noise_that_selections_do_not_show_is_refused():
    for call in (lambda m: m.whiten(SCORES), lambda m: m.color(SCORES, (4, 3))):
        with pytest.raises(TypeError, match="Exponential selects; what it releases has no noise"):
            call(Exponential(1.0, 1.0))
    assert math.isnan(Exponential(1.0, 1.0).deviation)


def test_the_closed_form_counts_gaps_in_units_of_the_scale():
    """The lesser of two scores that are 3 apart, at a scale of 2: e^-1.5 (1 + 0.75) / 2."""
    lesser = math.exp(-1.5) * 1.75 / 2
    assert _p(NoisyMax(1.0, 2.0), 0, 3) == pytest.approx([lesser, 1 - lesser])
    assert _p(NoisyMax(4.0, 0.5), 3, 0) == pytest.approx([1 - lesser, lesser])


def test_each_row_has_its_own_change():
    queries, moved = np.zeros((2, 3)), np.array([[0.1, -0.2, 0.0], [0.0, 0.7, 0.3]])
    assert AboveThreshold(1.0, 1.0).change(queries, moved).tolist() == [0.2, 0.7]
    assert AboveThreshold(1.0, 1.0, is_monotone=True).change(queries, moved).tolist() == [math.inf, 0.7]


def test_one_wrong_row_among_right_ones_is_refused():
    mechanism = RandomizedResponse(3, 1.0)
    value = mechanism.one_hot([0, 2])
    value[1] = [1.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="at one of 3 options"):
        mechanism.draw(NoNoise(), value)


class _Noted(ReproducibleNoise):
    """Keeps the scale and the noise multiplier that each call names."""

    def __init__(self):
        super().__init__(np.random.SeedSequence(0))
        self.named = []

    def add_laplace(self, value, scale, noise_multiplier):
        self.named.append((scale, noise_multiplier))
        return super().add_laplace(value, scale, noise_multiplier)


@pytest.mark.parametrize("mechanism", [NoisyMax(0.5, 3.0), AboveThreshold(0.5, 3.0), AboveThreshold(0.5, 3.0, True)])
def test_a_source_with_a_grid_is_given_scale_over_sensitivity(mechanism):
    noise = _Noted()
    mechanism.draw(noise, np.zeros((1, 4)))
    assert len(noise.named) == (2 if isinstance(mechanism, AboveThreshold) else 1)
    for scale, multiplier in noise.named:
        assert multiplier == pytest.approx(scale / mechanism.sensitivity, rel=1e-12)


@pytest.mark.parametrize("kind", [Exponential, PermuteAndFlip, NoisyMax])
def test_the_cost_and_the_scale_of_a_selection_by_hand(kind):
    """A range of 2 and a noise multiplier of 4: scores count in eighths, and epsilon is a quarter."""
    mechanism = kind(2.0, 4.0)
    assert (mechanism.scale, mechanism.event.epsilon) == (8.0, 0.25)
    assert _p(mechanism, 0, 8, 4) == pytest.approx(_p(kind(1.0, 1.0), 0, 1, 0.5))


@pytest.mark.parametrize("mechanism", ALL, ids=str)
def test_the_probabilities_of_each_row_add_up_to_one(mechanism):
    assert np.exp(mechanism.log_probabilities(_value(mechanism))).sum(axis=1) == pytest.approx(np.ones(4), rel=1e-9)
