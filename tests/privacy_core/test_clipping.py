"""What one record may contribute is bounded, whatever it holds."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bandana.privacy_core import Ball, Interval

radii = st.floats(-6, 6).map(lambda exponent: 10.0**exponent)
entries = st.floats(-1e100, 1e100)
vectors = hnp.arrays(float, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6), elements=entries)


@given(radii, vectors)
def test_no_vector_is_longer_than_the_radius(radius, values):
    kept = values.copy()
    found = Ball(radius).clip(values)
    assert np.array_equal(values, kept), "the argument is not touched"
    assert found.shape == values.shape
    assert not np.shares_memory(found, values)
    assert (np.linalg.norm(found, axis=-1) <= radius * (1 + 1e-15)).all()


@pytest.mark.parametrize("d", [1, 2, 100, 10_000])
def test_the_norm_to_one_part_in_1e15(d):
    vectors = np.random.default_rng(d).normal(size=(200, d))
    vectors *= 50 / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = Ball(0.7).clip(vectors)
    exact = [math.sqrt(math.fsum((row.astype(np.longdouble) ** 2).tolist())) for row in found]
    assert max(exact) <= 0.7 * (1 + 1e-15)
    assert min(exact) >= 0.7 * (1 - 1e-14)


@given(radii, vectors)
def test_directions_stay_and_short_vectors_stay_as_they_are(radius, values):
    found, norm = Ball(radius).clip(values), np.linalg.norm(values, axis=-1)
    short = norm <= radius
    assert np.array_equal(found[short], values[short])
    for before, after, length in zip(values[~short], found[~short], norm[~short], strict=True):
        assert after == pytest.approx(before * (radius / length), rel=1e-13, abs=radius * 1e-13)


@given(radii, vectors)
def test_clipping_twice_is_clipping_once(radius, values):
    once = Ball(radius).clip(values)
    assert Ball(radius).clip(once) == pytest.approx(once, rel=1e-15, abs=1e-300)


def test_by_hand():
    assert Ball(5.0).clip([[3.0, 4.0], [6.0, 8.0], [0.0, -20.0]]).tolist() == [[3.0, 4.0], [3.0, 4.0], [0.0, -5.0]]
    assert Ball(1.0).clip([0.0, 0.0]).tolist() == [0.0, 0.0]
    assert Ball(1.0).clip(np.array([2, 0])).tolist() == [1.0, 0.0]
    assert Ball(1.0).clip([1e-200, 1e-200]).tolist() == [1e-200, 1e-200]
    assert Ball(1e-200).clip(np.zeros((3, 0))).shape == (3, 0)
    assert Ball(1.0).clip(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("radius", [4.0, 5.0, 1e6, 1e100])
def test_a_zero_vector_in_a_large_ball(radius):
    assert Ball(radius).clip(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert Ball(radius).clip([[1e-310, 0.0], [radius * 1e-3, 0.0]]).tolist() == [[1e-310, 0.0], [radius * 1e-3, 0.0]]


@pytest.mark.parametrize("radius", [1e-200, 1e-160, 1e-100, 1.0, 3.0, 1e100, 1e200, 1e300])
@pytest.mark.parametrize("share", [0.5, 1 - 1e-7, 1 - 1e-12, 1.0, 1 + 1e-15, 1 + 1e-12, 1 + 1e-7, 2.0])
def test_lengths_around_the_radius(radius, share):
    vectors = radius * share * np.array([[0.6, 0.8], [0.0, 1.0], [1e-3, 0.0]])
    found = Ball(radius).clip(vectors)
    norms = np.hypot(*(found / radius).T)
    assert (norms <= 1 + 1e-15).all()
    if share <= 1 - 1e-12:
        assert np.array_equal(found, vectors), "what is inside stays as it is"
    assert norms[:2] == pytest.approx(min(share, 1.0), rel=1e-12)
    assert not np.shares_memory(found, vectors)


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_vector_near_the_largest_number():
    assert Ball(5.0).clip([3e200, 4e200]) == pytest.approx([3.0, 4.0])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_cannot_be_clipped_to_a_ball(bad):
    values = np.zeros((2, 3, 4))
    values[1, 0, 2] = values[1, 2, 3] = bad
    with pytest.raises(ValueError, match=re.escape(f"cannot clip a vector with the entry {bad} (at index (1, 0, 2))")):
        Ball(1.0).clip(values)


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan, math.inf])
def test_radii_that_are_none(radius):
    with pytest.raises(ValueError, match=f"radius must be a finite number above 0, got {radius}"):
        Ball(radius)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), hnp.arrays(float, 7, elements=st.floats(allow_nan=False)))
def test_an_interval_moves_to_the_nearest_end(low, width, values):
    interval = Interval(low, low + width)
    found = interval.clip(values)
    assert ((found >= interval.low) & (found <= interval.high)).all()
    inside = (values >= interval.low) & (values <= interval.high)
    assert np.array_equal(found[inside], values[inside])
    assert (found[values < interval.low] == interval.low).all()
    assert (found[values > interval.high] == interval.high).all()
    assert np.ptp(found) <= interval.width


def test_a_radius_whose_square_has_lost_its_digits():
    """Sixty-four squares that are rounded down to whole multiples of 5e-324 add up to less than the true one."""
    unit, radius = 2.0**-1074, math.sqrt(2005) * 2.0**-537
    entry = math.sqrt(31.4) * 2.0**-537
    assert 64 * (entry * entry) < radius * radius - 10 * unit
    clipped = Ball(radius).clip(np.full(64, entry))
    assert np.linalg.norm(clipped * 2.0**537) <= math.sqrt(2005) * (1 + 1e-14)


def test_an_interval_in_words():
    assert str(Interval(-0.5, 2.0)) == "[-0.5, 2]"
    assert Interval(0.0, 1.0).clip(3.0).shape == ()
