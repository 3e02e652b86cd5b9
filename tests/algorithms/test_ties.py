"""Equal numbers that differ in their last bits: the first is chosen, and only a real difference counts."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from bandana.algorithms.ties import TIE, first_largest, is_larger

UP = 1 + 4e-16
ROOT = Path(__file__).parents[2] / "algorithms"


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


def test_kernels_know_the_same_tie():
    """A cached kernel must not read another module, so each has the number itself."""
    found = {path.name: re.findall(r"^_TIE = (\S+)$", path.read_text("utf-8"), re.M) for path in ROOT.rglob("*.py")}
    assert {float(value) for values in found.values() for value in values} == {TIE}
    assert sum(map(len, found.values())) >= 3
