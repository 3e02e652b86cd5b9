"""Other people's accountants, asked where they are right (opacus, dp-accounting)."""

from __future__ import annotations

import pytest

from privacy_core import ApproxDP, GaussianDP, GaussianEvent, LaplaceEvent, account, calibrate

DELTA = 1e-5


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_opacus_gdp(mu, delta):
    from opacus.accountants.analysis.gdp import eps_from_mu

    assert GaussianDP(mu).epsilon(delta) == pytest.approx(eps_from_mu(mu=mu, delta=delta), rel=1e-9)


@pytest.mark.parametrize(("sigma", "k"), [(1.0, 1), (5.0, 10), (5.0, 100), (20.0, 64)])
def test_opacus_rdp_is_an_upper_bound(sigma, k):
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    for _ in range(k):
        accountant.step(noise_multiplier=sigma, sample_rate=1.0)
    exact = account({GaussianEvent(sigma): k}).epsilon_at(DELTA)
    upper = accountant.get_epsilon(DELTA)
    assert exact <= upper <= 1.25 * exact


@pytest.mark.parametrize(("sigma", "k"), [(1.0, 1), (2.0, 7), (10.0, 100)])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_dp_accounting_pld_of_gaussians(sigma, k, delta):
    from dp_accounting import dp_event
    from dp_accounting.pld import pld_privacy_accountant

    accountant = pld_privacy_accountant.PLDAccountant()
    accountant.compose(dp_event.GaussianDpEvent(sigma), k)
    exact = account({GaussianEvent(sigma): k}).epsilon_at(delta)
    assert -1e-9 <= accountant.get_epsilon(delta) - exact <= 1.1e-5


def test_dp_accounting_rdp_is_an_upper_bound():
    from dp_accounting import dp_event
    from dp_accounting.rdp import rdp_privacy_accountant

    accountant = rdp_privacy_accountant.RdpAccountant()
    accountant.compose(dp_event.GaussianDpEvent(5.0), 10)
    exact = account({GaussianEvent(5.0): 10}).epsilon_at(DELTA)
    assert exact <= accountant.get_epsilon(DELTA) <= 1.25 * exact


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 10.0])
def test_dp_accounting_calibration(epsilon):
    from dp_accounting import get_epsilon_gaussian, get_sigma_gaussian

    ours = calibrate(ApproxDP(epsilon, DELTA))
    assert ours == pytest.approx(get_sigma_gaussian(epsilon, DELTA), rel=1e-7)
    assert get_epsilon_gaussian(ours, DELTA) == pytest.approx(epsilon, rel=1e-7)


@pytest.mark.parametrize("k", [1, 10])
def test_a_mixture_lies_between_its_gaussians_and_the_sum(k):
    gaussians = account({GaussianEvent(4.0): k}).epsilon_at(DELTA)
    both = account({GaussianEvent(4.0): k, LaplaceEvent(2.0): 1}).epsilon_at(DELTA)
    assert gaussians < both < gaussians + 0.5


def test_a_mixture_below_the_delta_that_the_library_gets_wrong_is_still_bounded():
    mixture = account({GaussianEvent(4.0): 1, LaplaceEvent(2.0): 1})
    gaussian_and_pure = GaussianDP(0.25).epsilon(9e-12) + 0.5
    assert mixture.epsilon_at(1.1e-11) < mixture.epsilon_at(9e-12) <= gaussian_and_pure
