"""What prints can mean beyond what is built, and the loss of one record where a ledger adds up more."""

from __future__ import annotations

import math

import pytest

from bandana.algorithms.papers import luyo
from bandana.algorithms.papers.readings import EXTRAS, READINGS, attained_share, separate_statistics
from bandana.privacy_core import Gaussian, Laplace, StackedGaussian, StackedLaplace
from bandana.privacy_core.noise import sensitivities


def test_separate_statistics_have_a_worst_pair_of_each_step():
    """No pair is worst for all steps at once: the last one has a smaller value."""
    matrix_sd, vector_sd = luyo.lsvi_printed_sds(1.0, 1e-5, 5, 6)
    values, nodes, updates = [6.0] * 4 + [1.0], 3, 5
    t = [i / 10_000 for i in range(10_001)]
    steps = [
        [nodes * 2 * (1 - x**2) / matrix_sd**2 + updates * 2 * m**2 * (1 + x) / vector_sd**2 for x in t] for m in values
    ]
    matrices = Gaussian(math.sqrt(5), matrix_sd / math.sqrt(2 * 5))  # GOE noise of deviation matrix_sd / sqrt 2
    vectors = tuple(Gaussian(2 * value, vector_sd / (2 * value)) for value in values)
    proved, attained = separate_statistics(matrices, vectors, nodes, updates, 4)
    assert proved == attained
    assert proved**2 == pytest.approx(sum(map(max, steps)), rel=1e-6)
    assert proved**2 > max(map(sum, zip(*steps, strict=True))) * 1.005


def test_separate_statistics_in_the_l1_norm_lie_between_two_bounds():
    d, values = 3, (4.0, 1.0)
    vectors = tuple(Laplace(2 * math.sqrt(d) * value, 7.0) for value in values)
    proved, attained = separate_statistics(Laplace(2 * sensitivities.matrix_l1_bound(d), 5.0), vectors, 2, 3, d)
    scale = 2 * sensitivities.matrix_l1_bound(d) * 5.0
    for found, change in ((proved, sensitivities.pair_l1_bound), (attained, sensitivities.pair_l1_witness)):
        assert found == pytest.approx(sum(change(d, 2 / scale, 3 * v / (2 * math.sqrt(d) * v * 7.0)) for v in values))
    assert attained < proved < 2 / 5 + 2 * 3 / 7


def test_stacked_laplace_noise_alone_is_not_known_to_be_attained():
    stacked = StackedLaplace((1.0, 0.5), (1.0, 2.0), (1.0, 0.7), 8, 3.0, 1.5)
    assert 0.9 < attained_share(stacked) < 1
    alone = StackedLaplace((1.0,), (1.0,), (1.0,), 8, 3.0)
    assert attained_share(alone) == pytest.approx(sensitivities.pair_l1_witness(8) / sensitivities.pair_l1_bound(8))
    assert attained_share(StackedGaussian((1.0,), (1.0,), (1.0,), 3.0)) == attained_share(Laplace(1.0, 2.0)) == 1.0


def test_readings_and_their_parameters_are_of_private_algorithms():
    assert set(EXTRAS) <= set(READINGS)
    for (_, model, guarantee), readings in READINGS.items():
        assert model in ("joint", "local")
        assert guarantee in ("approximate", "pure")
        assert len(readings) > 1
        assert all(reading.meaning for reading in readings.values())
