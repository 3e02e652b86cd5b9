"""The noise that four papers print, in figures, at epsilon = 1 and delta = 1e-5 unless said."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bandana.algorithms.papers import azize_basu, dubey, luyo, pavlovic
from bandana.privacy_core import GaussianDP
from bandana.privacy_core.accounting.factorization import square_root_coefficients

DELTA = 1e-5


def agrees(found, text):
    """Whether a number rounds to the text, in as many significant digits as the text has."""
    mantissa = text.lower().partition("e")[0].replace(".", "").lstrip("0")
    digits = len(mantissa)
    return f"{found:.{digits - 1}e}" == f"{float(text):.{digits - 1}e}"


def test_the_helper_counts_digits():
    assert agrees(0.01951, ".0195")
    assert not agrees(0.01956, ".0195")
    assert agrees(502_523, "5.0e5")
    assert not agrees(511_000, "5.0e5")


# --- Azize and Basu ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "epsilon"), [(2.0, 1.0), (8.0, 0.5), (1.01, 30.0)])
def test_renyi_noise_meets_its_claim_with_equality(alpha, epsilon):
    for width in (1.0, 2.0):
        mu = width / azize_basu.reward_sum_sd(alpha, epsilon, width)
        assert mu == pytest.approx(math.sqrt(2 * epsilon / alpha))
        assert GaussianDP(mu).rdp(alpha) == pytest.approx(epsilon)


def test_the_number_of_updates_of_oful():
    assert azize_basu.most_updates(5, 10**5, 1.0, 1.0) == 71
    for updates, gain in ((10, "1.8"), (40, "2.8"), (71, "3.5")):
        assert agrees(math.sqrt(updates) / float((square_root_coefficients(updates) ** 2).sum()), gain)


def test_the_updates_of_oful_are_bounded():
    """A run that updates as often as it can, one direction after the other, stays within the bound."""
    d, ridge, switch, rounds = 2, 1.0, 0.3, 3000
    gram = ridge * np.eye(d)
    reference, updates = np.linalg.det(gram), 0
    for t in range(rounds):
        if np.linalg.det(gram) > (1 + switch) * reference:
            reference, updates = np.linalg.det(gram), updates + 1
        gram[t % d, t % d] += 1
    bound = azize_basu.most_updates(d, rounds, switch, ridge)
    assert 0.5 * bound < updates <= bound


# --- Pavlovic, Salgia and Zhao ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("horizon", "mu"), [(1024, ".0195"), (10**4, ".0145"), (10**5, ".0115"), (10**6, ".00955")])
def test_capri(horizon, mu):
    for bound, largest in ((3.0, 0.25), (1.0, 1.0)):
        assert agrees(2 * bound * largest / pavlovic.printed_sd(1.0, DELTA, horizon, bound, largest, "natural"), mu)


def test_capri_depends_on_the_base_of_the_logarithm_and_on_the_root():
    log10 = math.log10(1024)
    expected = 4 * log10 * math.sqrt(math.log(1.25e5 * log10))
    assert pavlovic.printed_sd(1.0, DELTA, 1024, 1.0, 1.0, "base-10") == pytest.approx(expected)
    natural, unrooted = (pavlovic.printed_sd(0.5, DELTA, 1024, 1.0, 0.3, name) for name in ("natural", "unrooted"))
    assert unrooted == pytest.approx(0.3 * natural)


# --- Dubey ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reading", "sd", "small"),
    [
        ("lemma-2", "6.7e4", "6.7e8"),
        ("sketch", "259", "2.59e4"),
        ("lemma-12", "5.9e4", "5.9"),
        ("lemma-12-proof", "367", "367"),
        ("consistent", "367", "3.67e4"),
    ],
)
def test_gp_ucb_joint_readings(reading, sd, small):
    assert agrees(dubey.joint_printed_sd(1.0, DELTA, 1024, 1.0, 0.0, reading), sd)
    assert agrees(dubey.joint_printed_sd(0.01, DELTA, 1024, 1.0, 0.0, reading), small)


def test_gp_ucb_joint_with_a_tail_of_rewards():
    assert agrees(dubey.joint_printed_sd(1.0, DELTA, 10**5, 1.0, 0.0, "consistent"), "469")
    assert dubey.joint_reward_bound(DELTA, 1024, 3.0, 0.0) == 3.0
    bound = dubey.joint_reward_bound(DELTA, 1024, 1.0, 4.0)
    assert bound == pytest.approx(math.sqrt(1 + 32 * math.log(8192e5)))
    wide, bounded = (dubey.joint_printed_sd(1.0, DELTA, 1024, *of, "lemma-12") for of in ((1.0, 4.0), (bound, 0.0)))
    assert wide / bounded == pytest.approx((2 + 16 * math.log(4096e5)) / (1 + bound**2))


def test_gp_ucb_local():
    matrix, vector = dubey.local_printed_sds(1.0, DELTA, 50, 1.0)
    assert agrees(matrix, "9.97")
    value = math.sqrt(1 + 2 * math.log(8 * 50 / DELTA))
    assert dubey.local_reward_bound("statement", DELTA, 50, 1.0, 2.0) == pytest.approx(value)
    assert dubey.local_reward_bound("proof", DELTA, 50, 1.0, 2.0) == pytest.approx(1 + 2 * math.sqrt(value**2 - 1))
    # Neither half is (epsilon/2, delta/2)-DP, as the proof has it: the sensitivities are sqrt 2 and 2 Y.
    assert agrees(GaussianDP.from_epsilon_delta(0.5, 0.5e-5).mu, ".1360")
    assert agrees(math.sqrt(2) / matrix, ".1418")
    assert agrees(2 * value / vector, ".195")


# --- Luyo, Garcelon, Lazaric and Pirotta --------------------------------------------------------------------------------


def test_ucrl_vtr():
    assert [f"{luyo.vtr_joint_printed_sd(1.0, DELTA, n, 5):.1e}" for n in (1024, 10**5)] == ["5.0e+05", "6.5e+05"]
    assert luyo.vtr_joint_printed_sd(0.1, DELTA, 1024, 5) == pytest.approx(10 * luyo.vtr_joint_printed_sd(1, DELTA, 1024, 5))
    for length, sd in ((3, "571"), (5, "2693"), (10, "2.206e4")):
        assert agrees(luyo.vtr_local_printed_sd(1.0, DELTA, length), sd)
    assert [luyo.depth(n) for n in (1, 2, 3, 1024, 10**5)] == [1, 2, 3, 11, 18]


def test_ucrl_vtr_plus():
    weighted, square = luyo.vtr_plus_joint_printed_sds(1.0, DELTA, 1024, 5, 4)
    assert square / weighted == pytest.approx(5**4 / 4)
    assert agrees(math.sqrt(4 * 11 * 4 * (16 / weighted**2 + 5**8 / square**2)), "4.4e-4")
    weighted, square = luyo.vtr_plus_local_printed_sds(1.0, DELTA, 10, 4)
    assert square / weighted == pytest.approx(10**4 / 4)
    assert agrees(math.sqrt(9 * 4.5 * (16 / weighted**2 + 10**8 / square**2)), ".0200")


def test_lsvi():
    batches = luyo.lsvi_batches(1.0, 10**5, 5, 4)
    matrix, vector = luyo.lsvi_printed_sds(1.0, DELTA, 5, batches)
    assert agrees(matrix, "1.9e6")
    assert agrees(vector, "3.9e6")
    assert luyo.lsvi_pure_printed_scales(1.0, 5, 4) == (240.0, 800.0)
    assert (batches, luyo.lsvi_batches(0.5, 10**5, 5, 4)) == (32, 24)
    assert luyo.lsvi_pure_batches(1.0, 1000, 5, 4) == 3
    assert luyo.lsvi_pure_batches(8.0, 1000, 5, 4) == 5


def test_the_schedule_of_lsvi():
    for episodes, batches in itertools.product(range(2, 60), range(1, 20)):
        starts = [i * math.ceil(episodes / batches) + 1 for i in range(batches)]
        updates = sum(start - 1 <= episodes for start in starts[1:])
        assert luyo.lsvi_updates(episodes, batches) == updates
