"""Equal numbers that differ in their last bits: the first is chosen, and only a real difference counts."""

import math

import numpy as np
import pytest

from bandana.algorithms.ties import TIE, first_largest, is_larger

UP = 1 + 4e-16


@pytest.mark.parametrize("scale", [1e-12, 1.0, -1.0, -1e6, 1e9])
@pytest.mark.parametrize("factor", [1.0, UP, 1 / UP])
def test_the_first_of_equal_ones_is_chosen_whatever_their_last_bits(scale, factor):
    assert first_largest(np.array([scale - 2 * abs(scale), scale, scale * factor, scale - abs(scale)])) == 1
    assert not is_larger(scale * factor, scale)
    assert not is_larger(scale, scale * factor)


@pytest.mark.parametrize("scale", [1e-12, 1.0, -1.0, 1e9])
def test_what_differs_by_more_than_rounding_is_told_apart(scale):
    more = scale + 2 * TIE * abs(scale)
    assert first_largest(np.array([scale, more, scale])) == 1
    assert is_larger(more, scale)
    assert not is_larger(scale, more)


def test_infinite_ones():
    assert first_largest(np.array([1.0, -math.inf])) == 0
    assert first_largest(np.array([1.0, math.inf, math.inf])) == 1
    assert first_largest(np.array([-math.inf, -math.inf])) == 0
    assert is_larger(0.0, -math.inf)
    assert is_larger(math.inf, 1e300)
    assert not is_larger(math.inf, math.inf)
    assert not is_larger(-math.inf, -math.inf)
