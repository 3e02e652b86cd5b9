"""How scores are sorted into bins, and the log odds that are learned from them."""

import numpy as np
import pytest
from scipy.special import expit

from bandana.audits.bounds.samples import _logistic_fit


def test_two_bins_are_fitted_by_their_own_log_odds():
    counts = np.array([[300.0, 100.0], [50.0, 400.0]])
    columns = np.array([[1.0, -1.0], [1.0, 1.0]])
    for shift in (0.0, 0.7):
        odds, loss = _logistic_fit(counts, columns, shift)
        assert odds == pytest.approx(np.log(counts[1] / counts[0]) - shift, abs=2e-2)
        share = counts[1] / counts.sum(axis=0)
        assert loss == pytest.approx(-(counts[1] @ np.log(share) + counts[0] @ np.log(1 - share)), rel=1e-4)


def test_a_fit_is_where_the_gradient_vanishes_also_where_bins_are_nearly_pure():
    """Newton's steps find it in the iterations that they have; other curvatures would creep there."""
    places = np.linspace(-3, 3, 9)
    total = 1000.0
    counts = np.stack([total * expit(-4 * places), total * expit(4 * places)])
    columns = np.stack([np.ones_like(places), places, np.maximum(places, 0.0)], axis=1)
    odds, _ = _logistic_fit(counts, columns, 0.0)
    assert odds == pytest.approx(4 * places, rel=0.05, abs=0.05)
    residual = columns.T @ (counts[1] - total * expit(odds))
    assert np.abs(residual).max() < 1.0
