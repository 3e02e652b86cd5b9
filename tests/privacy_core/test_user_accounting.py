"""Users with several records: what the worst one pays, by hand and against every set of records."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from doubles import ConstantNoise, span
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import toeplitz

from bandana.privacy_core import (
    ByUsers,
    DiscreteGaussian,
    DoublingSum,
    Exact,
    Factorized,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    LocalSum,
    Mixture,
    Participation,
    PhaseSum,
    PureDP,
    RandomizedResponse,
    Relation,
    Releases,
    Tree,
    TreeSum,
    TrustModel,
    calibrate,
)
from bandana.privacy_core.accounting.factorization import MOST_BUFFERS, BufferedFactorization, factorize, optimal_buffers
from bandana.privacy_core.accounting.returning import is_log_convex, overlaps, squared_sensitivities


def ledger_of(sums, n_records, n_reps=1, lengths=None):
    """The ledger of a sum that is closed after every record, or after phases of the given lengths."""
    ledger, state = LiveLedger(n_reps, ConstantNoise()), sums.init(n_reps)
    for length in lengths or [1] * n_records:
        state, _, _ = sums.close(sums.add(state, np.zeros(n_reps), np.full(n_reps, length)), ledger)
    return ledger


def mu_of(ledger, most, separation=1):
    found = ledger.user_guarantee(Participation(most, separation))
    assert found.relation is Relation.USER
    return found.mu


def placements(n_records, most, separation):
    for k in range(1, most + 1):
        for chosen in combinations(range(n_records), k):
            if all(b - a >= separation for a, b in pairwise(chosen)):
                yield chosen


# --- by hand --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_records_of_one_phase_add_up_before_they_are_squared(most):
    ledger = ledger_of(PhaseSum(Gaussian(1.0, 2.0)), 14, lengths=[7, 7])
    assert mu_of(ledger, most) == pytest.approx(most / 2)


def test_records_in_disjoint_spans_compose_as_the_root_of_their_number():
    ledger = ledger_of(LocalSum(Gaussian(1.0, 2.0)), 9)
    assert mu_of(ledger, 4) == pytest.approx(math.sqrt(4) / 2)


def test_a_user_fills_short_phases_before_the_next():
    ledger = ledger_of(PhaseSum(Gaussian(1.0, 1.0)), 6, lengths=[2, 3, 1])
    assert mu_of(ledger, 5) == pytest.approx(math.sqrt(9 + 4))
    # Three records apart, no phase of three holds two.
    assert mu_of(ledger, 2, separation=3) == pytest.approx(math.sqrt(2))


def test_a_tree_of_eight_steps():
    # Of users 0 and 1: leaf 0 alone, and the nodes of 2, 4 and 8 steps with both.
    tree = ledger_of(TreeSum(Gaussian(1.0, 1.0), 8), 8)
    assert mu_of(tree, 1) == pytest.approx(2.0)
    assert mu_of(tree, 2) == pytest.approx(math.sqrt(1 + 4 + 4 + 4))
    whole = ledger_of(TreeSum(Gaussian(1.0, 1.0), 8, honaker=True), 8)
    assert mu_of(whole, 2) == pytest.approx(math.sqrt(2 + 4 + 4 + 4))


def test_pure_epsilons_add_up_wherever_the_records_lie():
    tree = ledger_of(TreeSum(Laplace(1.0, 10.0), 8), 8)
    found = tree.user_guarantee(Participation(3))
    assert isinstance(found, PureDP)
    # The records 0, 2 and 4 lie in 4, 3 and 3 nodes.
    assert found.epsilon == pytest.approx((4 + 3 + 3) / 10)


def test_a_randomized_response_pays_once_for_any_other_input():
    ledger = LiveLedger(1, ConstantNoise())
    ledger.release(RandomizedResponse(3, 0.5), np.array([[0.0, 1.0, 0.0]]), records=span(0, 4))
    assert ledger.user_guarantee(Participation(4)).epsilon == pytest.approx(2.0)


def test_zcdp_grows_with_the_square_of_the_records():
    ledger = LiveLedger(1, ConstantNoise())
    ledger.release(DiscreteGaussian(1.0, 2.0, 0.5), np.zeros(1), records=span(0, 4))
    assert ledger.user_guarantee(Participation(3)).rho == pytest.approx(9 / 8)


def test_gaussian_and_laplace_noise_in_one_curve():
    ledger = LiveLedger(1, ConstantNoise())
    ledger.release(Gaussian(1.0, 2.0), np.zeros(1), records=span(0, 4))
    ledger.release(Laplace(1.0, 4.0), np.zeros(1), records=span(0, 4))
    curve = ledger.user_guarantee(Participation(2))
    assert curve.epsilon(1e-5) <= 0.5 + GaussianDP(1.0).epsilon(1e-5)
    assert curve.epsilon(1e-5) >= GaussianDP(1.0).epsilon(1e-5)
    assert curve.relation is Relation.USER


def test_one_record_a_user_is_the_guarantee_of_records():
    ledger = ledger_of(TreeSum(Gaussian(1.0, 3.0), 8), 8)
    assert mu_of(ledger, 1) == ledger.guarantee().mu


def test_a_value_without_noise_has_no_user_privacy():
    ledger = LiveLedger(1, ConstantNoise())
    ledger.release(Exact(), np.zeros(1), records=span(0, 1))
    assert str(ledger.user_guarantee(Participation(2))) == "no privacy"
    assert LiveLedger(1, ConstantNoise()).user_guarantee(Participation(2)) is None


def test_replicates_may_have_different_schedules():
    ledger = LiveLedger(2, ConstantNoise())
    ledger.release(Gaussian(1.0, 1.0), np.zeros(1), records=span(0, 1), reps=np.array([0]))
    ledger.release(Gaussian(1.0, 1.0), np.zeros(1), records=span(0, 3), reps=np.array([1]))
    assert mu_of(ledger, 3) == pytest.approx(3.0)
    assert ledger.worst_users(Participation(3), rep=0)[0].total() == 1


# --- against every set of records -----------------------------------------------------------------------------------


@st.composite
def nested_spans(draw):
    """Spans of which any two are nested or disjoint, with their noise multipliers."""
    found = []

    def fill(start, stop, depth):
        if draw(st.booleans()):
            found.append((start, stop, draw(st.sampled_from([0.5, 1.0, 2.0]))))
        if depth and stop - start > 1:
            middle = draw(st.integers(start + 1, stop - 1))
            fill(start, middle, depth - 1)
            fill(middle, stop, depth - 1)

    fill(0, draw(st.integers(2, 8)), 3)
    return found


def brute_force(spans, n_records, most, separation):
    return max(
        sum((sum(start <= r < stop for r in chosen) / noise) ** 2 for start, stop, noise in spans)
        for chosen in placements(n_records, most, separation)
    )


@settings(max_examples=150)
@given(nested_spans(), st.integers(2, 5), st.integers(1, 3))
def test_nested_spans_against_every_placement(spans, most, separation):
    ledger = LiveLedger(1, ConstantNoise())
    for start, stop, noise in spans:
        ledger.release(Gaussian(1.0, noise), np.zeros(1), records=span(start, stop))
    if not spans:
        return
    found, exact = mu_of(ledger, most, separation) ** 2, brute_force(spans, 8, most, separation)
    assert found >= exact * (1 - 1e-9)
    if separation == 1:
        assert found == pytest.approx(exact)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.sampled_from([0.5, 1.0])), min_size=2, max_size=6))
def test_crossing_spans_are_never_below_the_worst_user(drawn):
    spans = [(start, start + length, noise) for start, length, noise in drawn]
    ledger = LiveLedger(1, ConstantNoise())
    for start, stop, noise in spans:
        ledger.release(Gaussian(1.0, noise), np.zeros(1), records=span(start, stop))
    assert mu_of(ledger, 3) ** 2 >= brute_force(spans, 10, 3, 1) * (1 - 1e-9)


# --- factorized sums ------------------------------------------------------------------------------------------------


def exact_square(gram, most, gap):
    return max(gram[np.ix_(chosen, chosen)].sum() for chosen in placements(len(gram), most, gap))


@pytest.mark.parametrize(("n_steps", "n_buffers"), [(9, None), (9, 2), (10, 4), (40, None)])
@pytest.mark.parametrize("gap", [1, 2, 3])
def test_the_earliest_steps_are_the_worst(n_steps, n_buffers, gap):
    factors = factorize(n_steps, n_buffers)
    assert is_log_convex(factors)
    gram, most = overlaps(factors, np.arange(n_steps)), 3 if n_steps > 10 else 4
    found = squared_sensitivities(factors, most, gap)
    for k in range(1, most + 1):
        assert found[k] == pytest.approx(exact_square(gram, k, gap))
        assert found[k] >= exact_square(gram, k, gap) * (1 - 1e-12)


def test_products_of_buffered_columns_against_the_matrix():
    factors = factorize(50, 3)
    powers = np.array(factors.theta) ** np.arange(49)[:, None]
    coefficients = np.concatenate([[1.0], (np.array(factors.omega) * powers).sum(axis=1)])
    matrix = toeplitz(coefficients, np.zeros(50)) / factors.column_norms
    assert np.allclose(overlaps(factors, np.arange(50)), matrix.T @ matrix, rtol=1e-12, atol=1e-12)


def test_every_row_of_the_table_has_log_convex_coefficients():
    for n_buffers in range(1, MOST_BUFFERS + 1):
        for power in range(1, 41):
            assert is_log_convex(BufferedFactorization(2**power, *optimal_buffers(2**power, n_buffers)))


def test_other_coefficients_fall_back_to_the_plain_bound():
    factors = BufferedFactorization(20, (0.5,), (0.9,))
    assert not is_log_convex(factors)
    assert squared_sensitivities(factors, 3, 2) == (0.0, 1.0, 4.0, 9.0)


@pytest.mark.parametrize("most", [2, 3])
def test_a_factorized_sum_is_no_composition_of_independent_releases(most):
    """The trap: each record pays one event at its step, yet two of one user do not compose as sqrt(2)."""
    ledger = ledger_of(FactorizedSum(Gaussian(1.0, 2.0), 8), 8)
    square = exact_square(overlaps(factorize(8), np.arange(8)), most, 1)
    assert mu_of(ledger, most) == pytest.approx(math.sqrt(square) / 2)
    assert math.sqrt(square) > math.sqrt(most) * 1.1


def test_users_far_apart_overlap_less():
    ledger = ledger_of(FactorizedSum(Gaussian(1.0, 1.0), 64), 64)
    near, far = mu_of(ledger, 4), mu_of(ledger, 4, separation=16)
    assert 2.0 < far < near < 4.0


def test_steps_of_several_records_may_hold_all_of_a_user():
    ledger = ledger_of(FactorizedSum(Gaussian(1.0, 1.0), 4), 12, lengths=[3, 3, 3, 3])
    assert mu_of(ledger, 3) == pytest.approx(3.0)
    # Four apart: never in one step, at least one step apart.
    square = exact_square(overlaps(factorize(4), np.arange(4)), 3, 1)
    assert mu_of(ledger, 3, separation=4) == pytest.approx(math.sqrt(square))


def test_segments_of_a_doubling_sum_are_sequences_of_their_own():
    sums = DoublingSum(lambda n: FactorizedSum(Gaussian(1.0, 1.0), n), first=1, growth=2)
    ledger = ledger_of(sums, 3)
    # Segments of one and of two steps: records 1 and 2 overlap, record 0 stands alone.
    square = exact_square(overlaps(factorize(2), np.arange(2)), 2, 1)
    assert mu_of(ledger, 3) == pytest.approx(math.sqrt(1 + square))


# --- structures and calibration -------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(1, 20), st.integers(1, 4), st.integers(1, 3))
def test_structures_say_what_ledgers_hold(n_steps, most, separation):
    users = Participation(most, separation)
    for sums, structure in [
        (TreeSum(Gaussian(1.0, 2.0), n_steps, honaker=True), Tree(n_steps)),
        (FactorizedSum(Gaussian(1.0, 2.0), n_steps), Factorized(n_steps)),
        (LocalSum(Gaussian(1.0, 2.0)), Releases(1)),
    ]:
        claimed = GaussianDP(1.0)
        multiplier = calibrate(claimed, ByUsers(structure, users, longest=1))
        derived = ledger_of(sums, n_steps).user_guarantee(users).mu * 2.0 / multiplier
        assert derived <= claimed.mu * (1 + 1e-9)
        if most <= n_steps and separation == 1:
            assert derived == pytest.approx(claimed.mu)


def test_calibration_without_a_longest_step_is_the_plain_bound():
    users = Participation(5, 100)
    for structure in (Releases(1), Tree(100), Factorized(100)):
        times = calibrate(GaussianDP(1.0), ByUsers(structure, users)) / calibrate(GaussianDP(1.0), structure)
        assert times == pytest.approx(5.0)
    times = calibrate(PureDP(1.0), ByUsers(Tree(100), users)) / calibrate(PureDP(1.0), Tree(100))
    assert times == pytest.approx(5.0)


def test_a_long_tree_is_solved_at_once():
    assert calibrate(GaussianDP(1.0), ByUsers(Tree(10**7), Participation(50), 1)) > 0


def test_participation_of_a_column():
    assert Participation.of(["a", "b", "a", "c", "a"]) == Participation(3, 2)
    assert Participation.of(["a", "b", "c", "a"]) == Participation(2, 3)
    assert Participation.of([1, 2, 3]) == Participation(1)
    assert str(Participation(3, 2)) == "up to 3 records a user, 2 or more records apart"
    with pytest.raises(ValueError, match="records of one user must be a whole number of at least 1, got 0"):
        Participation.of([])
    with pytest.raises(ValueError, match="separation must be a whole number of at least 1, got 0"):
        Participation(2, 0)


def test_one_kind_of_noise_is_calibrated_for_users():
    with pytest.raises(ValueError, match="one kind of noise"):
        calibrate(GaussianDP(1.0), ByUsers(Mixture({LaplaceEvent(1.0): 1}), Participation(2)))


def test_what_users_are_promised_keeps_the_trust():
    """In closed form, and where two replicates paid in noise of two kinds, of which neither is worse at every delta."""
    ledger = LiveLedger(2, ConstantNoise(), trust=TrustModel.LOCAL)
    ledger.release(Gaussian(1.0, 2.0), np.zeros(1), records=span(0, 2), reps=np.array([0]))
    one = ledger.user_guarantee(Participation(2))
    assert (one.mu, one.trust, one.relation) == (pytest.approx(1.0), TrustModel.LOCAL, Relation.USER)
    ledger.release(Laplace(1.0, 5.0), np.zeros(1), records=span(0, 2), reps=np.array([1]))
    both = ledger.user_guarantee(Participation(2))
    assert (both.trust, both.relation) == (TrustModel.LOCAL, Relation.USER)
    assert both.epsilon(1e-5) == pytest.approx(GaussianDP(1.0).epsilon(1e-5), rel=1e-9)
    assert both.epsilon(0.38) <= 0.4


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_there_is_one_sensitivity_for_each_number_of_records(most):
    """Five steps, two apart: three records fit, and more move no more."""
    squares = squared_sensitivities(factorize(5), most, 2)
    assert len(squares) == most + 1
    assert squares[:2] == (0.0, 1.0)
    assert list(squares) == sorted(squares)
    assert all(value == squares[3] for value in squares[3:])


def test_parts_with_laplace_noise_beside_others_are_not_calibrated_for_users():
    mixture = Mixture({GaussianEvent(1.0): 1, LaplaceEvent(1.0): 1})
    for noise in (LaplaceEvent, GaussianEvent):
        with pytest.raises(ValueError, match="noise for users is calibrated to one kind of noise"):
            ByUsers(mixture, Participation(2)).events(1.0, noise)


def test_spans_that_cross_cost_a_user_the_worst_record_s_times_his_records():
    """Three spans of which two at most hold a record: four times what that record pays, and as pure epsilons twice."""
    gaussian, laplace = LiveLedger(1, ConstantNoise()), LiveLedger(1, ConstantNoise())
    for start, stop in ((0, 3), (2, 5), (4, 7)):
        gaussian.release(Gaussian(1.0, 2.0), np.zeros(1), records=span(start, stop))
        laplace.release(Laplace(1.0, 2.0), np.zeros(1), records=span(start, stop))
    assert mu_of(gaussian, 2) == pytest.approx(math.sqrt(4 * 2 / 4), rel=1e-8)
    assert laplace.user_guarantee(Participation(2)).epsilon == pytest.approx(2 * 2 / 2, rel=1e-8)
