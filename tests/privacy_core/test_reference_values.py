"""The accountant against 22-digit references, also where a value underflows a float."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest

from privacy_core import (
    ZCDP,
    ApproxDP,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    PrivacyCurve,
    PureDP,
    RenyiDP,
    account,
    calibrate,
)
from privacy_core.gaussian import delta_of, epsilon_of, log_delta, mu_of


def assert_log_delta(found: float, delta: str) -> None:
    """Compares logarithms, exact to 28 digits: the reference itself may be 1e-13578."""
    exact = float(Decimal(delta).ln())
    # A relative error of delta is an absolute one of its logarithm, itself good to some ulps.
    assert abs(found - exact) <= max(1e-12, 4e-16 * abs(exact) * 4), (found, exact)


def test_epsilon_of_one_gaussian(reference):
    for row in reference["a_gaussian_eps"]:
        mu = Gaussian(1.0, float(row["sigma"])).event.mu
        assert mu == pytest.approx(float(row["mu"]), rel=1e-15)
        assert epsilon_of(mu, float(row["delta"])) == pytest.approx(float(row["eps"]), rel=1e-12)


def test_delta_of_one_gaussian(reference):
    underflowing = 0
    for row in reference["a_gaussian_delta"]:
        mu, epsilon = 1 / float(row["sigma"]), float(row["eps"])
        assert_log_delta(log_delta(mu, epsilon), row["delta"])
        underflowing += float(row["delta"]) == 0
        assert delta_of(mu, epsilon) == pytest.approx(float(row["delta"]), rel=1e-12, abs=0)
    assert underflowing == 3


def test_epsilon_of_many_gaussians(reference):
    for row in reference["b_gaussian_kfold"]:
        guarantee = account({GaussianEvent(float(row["sigma"])): row["k"]})
        assert isinstance(guarantee, GaussianDP)
        assert guarantee.mu == pytest.approx(float(row["mu"]), rel=1e-14)
        assert guarantee.epsilon(float(row["delta"])) == pytest.approx(float(row["eps"]), rel=1e-12)


def test_epsilon_of_a_binary_tree(reference):
    for row in reference["e_binary_tree"]:
        assert row["nodes_touched"] == row["n_leaves"].bit_length()
        guarantee = account({GaussianEvent(float(row["sigma"])): row["nodes_touched"]})
        assert guarantee.mu == pytest.approx(float(row["mu"]), rel=1e-14)
        assert guarantee.epsilon_at(float(row["delta"])) == pytest.approx(float(row["eps"]), rel=1e-12)


def test_calibration(reference):
    for row in reference["g_calibration"]:
        epsilon, delta, k = float(row["eps"]), float(row["delta"]), row["k"]
        assert mu_of(epsilon, delta) == pytest.approx(float(row["mu"]), rel=1e-11)
        sigma = calibrate(ApproxDP(epsilon, delta), k)
        assert float(row["sigma"]) <= sigma <= float(row["sigma"]) * (1 + 1e-11)


def test_corner_cases_of_delta(reference):
    for row in reference["l_corner_cases"]["delta"]:
        assert_log_delta(log_delta(float(row["mu"]), float(row["eps_float"])), row["delta"])


def test_corner_cases_of_epsilon(reference):
    for row in reference["l_corner_cases"]["eps"]:
        found = epsilon_of(1 / float(row["sigma"]), float(row["delta"]))
        assert found == pytest.approx(float(row["eps"]), rel=1e-12), row


def test_improved_conversion(reference):
    for row in reference["d_conversion_gaussian"]:
        rho, delta, improved = float(row["rho"]), float(row["delta"]), float(row["eps_improved"])
        assert ZCDP(rho).epsilon_at(delta) == pytest.approx(improved, rel=1e-10)
        alpha = float(row["alpha_improved"])
        assert RenyiDP(alpha, rho * alpha).epsilon_at(delta) == pytest.approx(improved, rel=1e-10)
        assert float(row["eps_exact"]) < improved < float(row["eps_mironov"])


def test_laplace_conversion_is_randomized_response(reference):
    single = [row for row in reference["c_laplace_kfold"] if row["k"] == 1]
    assert len(single) == 2
    for row in single:
        found = PureDP(float(row["eps0"])).epsilon_at(float(row["delta"]))
        assert found == pytest.approx(float(row["eps_kov_optimal_pureDP"]), rel=1e-12)
        assert found > float(row["eps_exact"])


def test_laplace_composition_adds(reference):
    for row in reference["c_laplace_kfold"]:
        guarantee = account({LaplaceEvent(float(row["b"])): row["k"]})
        assert isinstance(guarantee, PureDP)
        assert guarantee.epsilon == pytest.approx(float(row["eps_pure_basic"]), rel=1e-14)


def test_laplace_zcdp(reference):
    for row in reference["c_laplace_kfold"]:
        rho = row["k"] * PureDP(float(row["eps0"])).zcdp().rho
        found = ZCDP(rho).epsilon_at(float(row["delta"]))
        assert found == pytest.approx(float(row["eps_zcdp_half_eps0sq_improved"]), rel=1e-10)


def test_mixed_ledger(reference):
    section = reference["f_mixed_ledger"]
    events = {GaussianEvent(float(sigma)): 1 for sigma in section["gauss_sigmas"]}
    events |= {LaplaceEvent(1 / float(epsilon)): 1 for epsilon in section["laplace_eps0"]}
    mixture = account(events)
    assert isinstance(mixture, PrivacyCurve)
    for row in section["eps_at_delta"]:
        exact, found = float(row["eps"]), mixture.epsilon_at(float(row["delta"]))
        assert exact - 1e-9 <= found <= exact + 1.1e-5
        assert found < float(row["eps_gauss_exact_plus_pure_laplace"])


def test_the_comparison_of_logarithms_can_fail():
    assert_log_delta(math.log(1e-5), "1e-5")
    with pytest.raises(AssertionError):
        assert_log_delta(math.log(1e-5) + 2e-12, "1e-5")
    with pytest.raises(AssertionError):
        assert_log_delta(float(Decimal("1e-13578").ln()) * (1 + 1e-14), "1e-13578")
