"""Bad parameters are refused with the argument's name and its value."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    ConcentratedEvent,
    DiscreteGaussian,
    Exact,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Interval,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    NonPrivateEvent,
    NoPrivacy,
    PrivacyCurve,
    PureDP,
    RenyiDP,
    account,
    calibrate,
)
from bandana.privacy_core.accounting.accountant import classical

NAN, INF = float("nan"), float("inf")
NOT_POSITIVE = [NAN, INF, 0.0, -1.0]
NOT_A_PROBABILITY = [NAN, 0.0, 1.0, -1e-5, 2.0]
NOT_AN_ORDER = [NAN, INF, 1.0, 0.5, -2.0]
CURVES = [
    PrivacyCurve.of({GaussianEvent(1.0): 1}),
    account({GaussianEvent(1.0): 1, LaplaceEvent(1.0): 1}),
    account({GaussianEvent(1.0): 1, LaplaceEvent(1.0): 1, ConcentratedEvent(0.1): 2}),
    PrivacyCurve.of({NonPrivateEvent(): 1}),
]


def refuses(make, name, value):
    with pytest.raises(ValueError, match=rf"{name} must .*got {re.escape(repr(value))}$"):
        make(value)


@pytest.mark.parametrize("value", NOT_POSITIVE)
def test_scales(value):
    refuses(GaussianDP, "mu", value)
    refuses(ZCDP, "rho", value)
    refuses(PureDP, "epsilon", value)
    refuses(lambda x: RenyiDP(2.0, x), "epsilon", value)
    refuses(lambda x: GaussianDP.from_renyi(2.0, x), "epsilon", value)
    refuses(GaussianEvent, "noise_multiplier", value)
    refuses(LaplaceEvent, "noise_multiplier", value)
    refuses(lambda x: Gaussian(x, 1.0), "sensitivity_l2", value)
    refuses(lambda x: Gaussian(1.0, x), "noise_multiplier", value)
    refuses(lambda x: Laplace(x, 1.0), "sensitivity_l1", value)
    refuses(lambda x: Laplace(1.0, x), "noise_multiplier", value)
    refuses(ConcentratedEvent, "rho", value)
    refuses(lambda x: DiscreteGaussian(x, 1.0, 1.0), "sensitivity_l2", value)
    refuses(lambda x: DiscreteGaussian(1.0, x, 1.0), "noise_multiplier", value)
    refuses(lambda x: DiscreteGaussian(1.0, 1.0, x), "grid", value)
    refuses(lambda x: classical(x, 1e-5), "epsilon", value)
    for mechanism in (Gaussian(1.0, 1.0), Laplace(1.0, 1.0), DiscreteGaussian(1.0, 1.0, 1.0)):
        refuses(mechanism.scaled, "noise_multiplier", value)
    refuses(Exact().scaled, "factor", value)


@pytest.mark.parametrize("value", [NAN, INF, -1.0])
def test_epsilons_that_may_be_zero(value):
    refuses(lambda x: ApproxDP(x, 1e-5), "epsilon", value)
    refuses(GaussianDP(1.0).delta, "epsilon", value)
    refuses(lambda x: GaussianDP.from_epsilon_delta(x, 1e-5), "epsilon", value)
    for curve in CURVES:
        refuses(curve.delta, "epsilon", value)


@pytest.mark.parametrize("value", NOT_A_PROBABILITY)
def test_deltas(value):
    refuses(lambda x: ApproxDP(1.0, x), "delta", value)
    refuses(lambda x: GaussianDP.from_epsilon_delta(1.0, x), "delta", value)
    for guarantee in (GaussianDP(1.0), ZCDP(1.0), RenyiDP(2.0, 1.0), ApproxDP(1.0, 1e-5), NoPrivacy()):
        refuses(guarantee.epsilon_at, "delta", value)
        refuses(guarantee.approx, "delta", value)
    refuses(PureDP(1.0).approx, "delta", value)
    refuses(GaussianDP(1.0).epsilon, "delta", value)
    refuses(lambda x: classical(0.5, x), "delta", value)
    if value != 0:
        refuses(PureDP(1.0).epsilon_at, "delta", value)
    for curve in CURVES:
        refuses(curve.epsilon, "delta", value)
        refuses(curve.epsilon_at, "delta", value)


@pytest.mark.parametrize("value", NOT_AN_ORDER)
def test_orders(value):
    refuses(lambda x: RenyiDP(x, 1.0), "alpha", value)
    refuses(GaussianDP(1.0).rdp, "alpha", value)
    refuses(ZCDP(1.0).rdp, "alpha", value)
    refuses(lambda x: GaussianDP.from_renyi(x, 1.0), "alpha", value)
    for guarantee in (GaussianDP(1.0), ZCDP(1.0), RenyiDP(2.0, 1.0), PureDP(1.0), ApproxDP(1.0, 1e-5), NoPrivacy()):
        refuses(guarantee.renyi, "alpha", value)
    for event in (GaussianEvent(1.0), LaplaceEvent(1.0), LaplaceEvent(1e6), ConcentratedEvent(1.0), NonPrivateEvent()):
        refuses(event.rdp, "alpha", value)
    refuses(PureDP(1.0).rdp, "alpha", value)
    refuses(PureDP(1e-9).rdp, "alpha", value)
    for curve in CURVES:
        refuses(curve.rdp, "alpha", value)


@pytest.mark.parametrize("value", [NAN, INF, -1e-9, 1.5])
def test_rates(value):
    for curve in (GaussianDP(1.0), *CURVES):
        with pytest.raises(ValueError, match=rf"fpr must lie in \[0, 1\], got .*{value}"):
            curve.tradeoff([0.5, value])


@pytest.mark.parametrize("count", [0, -3])
def test_counts(count):
    refuses(lambda x: calibrate(GaussianDP(1.0), x), "releases", count)
    refuses(lambda x: LiveLedger(x, None), "n_reps", count)
    with pytest.raises(ValueError, match=rf"count of GaussianEvent.*at least 1, got {count}"):
        account({GaussianEvent(1.0): count})


def test_no_noise_meets_no_privacy():
    with pytest.raises(ValueError, match="no noise is calibrated to no privacy"):
        calibrate(NoPrivacy())


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (1.0, 0.0), (NAN, 1.0), (0.0, INF), (-INF, 0.0)])
def test_ranges(low, high):
    with pytest.raises(ValueError, match=re.escape(f"[{low!r}, {high!r}]")):
        Interval(low, high)


def test_clipping():
    clipped = Interval(-1.0, 2.0).clip([[-INF, -1.5, 0.25], [2.0, 3.0, INF]])
    assert clipped.tolist() == [[-1.0, -1.0, 0.25], [2.0, 2.0, 2.0]]
    assert Interval(-1.0, 2.0).width == 3.0
    with pytest.raises(ValueError, match=r"NaN.*\(1, 0\)"):
        Interval(0.0, 1.0).clip(np.array([[0.5, 1.0], [NAN, 0.0]]))
