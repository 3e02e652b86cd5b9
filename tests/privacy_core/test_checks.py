"""Each check passes what it should, and names argument and value of what it should not."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from bandana.privacy_core.checks import (
    at_least,
    failure_of,
    level,
    non_negative,
    number,
    one_of,
    order,
    positive,
    probability,
    rates,
    small_delta,
    suggestion,
)

NAN, INF = math.nan, math.inf
TINY, HUGE = 5e-324, 1.7976931348623157e308


@pytest.mark.parametrize(
    ("check", "good", "bad", "rule"),
    [
        (positive, [TINY, 1, HUGE, np.float32(2.0)], [0, 0.0, -0.0, -TINY, NAN, INF, -INF], "a finite number above 0"),
        (non_negative, [0, -0.0, TINY, HUGE], [-TINY, -1, NAN, INF, -INF], "a finite number of at least 0"),
        (probability, [TINY, 0.5, 1 - 1e-16], [0, 1, 0.0, 1.0, -TINY, 1.5, NAN, INF], "strictly between 0 and 1"),
        (order, [1 + 3e-16, 2, HUGE], [1, 1.0, 0.5, -3, NAN, INF], "a finite Renyi order above 1"),
    ],
)
def test_numbers(check, good, bad, rule):
    for value in good:
        found = check("size", value)
        assert type(found) is float
        assert found == value
    for value in bad:
        with pytest.raises(ValueError, match=rf"^size must .*{rule}, got {re.escape(repr(value))}$"):
            check("size", value)


@pytest.mark.parametrize("check", [positive, non_negative, probability, order])
@pytest.mark.parametrize("value", ["1.5", None, [0.5], 1j])
def test_what_is_no_number(check, value):
    with pytest.raises(TypeError):
        check("size", value)


@pytest.mark.parametrize("least", [0, 1, 5])
def test_whole_numbers(least):
    for value in (least, least + 3, np.int64(least), np.uint8(least), 10**30):
        found = at_least("size", value, least)
        assert type(found) is int
        assert found == value
    for value in (
        least - 1,
        float(least),
        least + 0.5,
        NAN,
        INF,
        True,
        False,
        None,
        "3",
        Fraction(least + 1),
        np.float64(least),
    ):
        with pytest.raises(
            ValueError, match=rf"^size must be a whole number of at least {least}, got {re.escape(repr(value))}$"
        ):
            at_least("size", value, least)


def test_rates():
    assert rates("fpr", 0.25).shape == ()
    assert rates("fpr", [[0, 1], [0.5, -0.0]]).tolist() == [[0, 1], [0.5, 0]]
    assert rates("fpr", []).shape == (0,)
    for bad in (-1e-300, 1.0000000000000002, NAN, INF, -INF):
        with pytest.raises(ValueError, match=rf"^fpr must lie in \[0, 1\], got .*{re.escape(str(bad))}"):
            rates("fpr", [[0.5, 0.1], [bad, 7.0]])


def test_one_of():
    assert one_of("scheme", "static", ("static", "geometric")) == "static"
    with pytest.raises(ValueError, match=r"^scheme must be one of static, geometric, got 'other'$"):
        one_of("scheme", "other", ("static", "geometric"))


def test_failure_of():
    """1 / horizon; of a single round 1/2, as a bound that fails with probability 1 is none."""
    assert [failure_of(None, horizon) for horizon in (1, 2, 3, 1000)] == [0.5, 0.5, pytest.approx(1 / 3), 0.001]
    assert failure_of(0.25, 1) == 0.25
    for bad in (0.0, 1.0, NAN):
        with pytest.raises(ValueError, match=r"^failure must lie strictly between 0 and 1"):
            failure_of(bad, 10)
    for failure in (None, 0.1):
        with pytest.raises(ValueError, match=r"^horizon must be a whole number of at least 1, got 0$"):
            failure_of(failure, 0)


@pytest.mark.parametrize(
    ("check", "good", "bad", "rule"),
    [
        (level, [1e-9, 1, 1e9], [0.9e-9, 1.1e9, 0, -1, NAN, INF], "lie between 1e-09 and 1e+09"),
        (small_delta, [TINY, 1e-5, 0.1], [0, 0.11, -TINY, 1, NAN, INF], "be above 0 and at most 0.1"),
    ],
)
def test_levels_that_users_may_ask_for(check, good, bad, rule):
    for value in good:
        assert check("size", value) == value
    for value in bad:
        with pytest.raises(ValueError, match=re.escape(f"size must {rule}, got {value!r}")):
            check("size", value)


def test_the_name_that_is_most_alike_is_suggested():
    assert suggestion("Linucb", ["LinUCB", "linucb-tight", "dp-ucb"]) == "; did you mean 'LinUCB'?"
    assert suggestion("xyz", ["LinUCB", "dp-ucb"]) == ""


def test_numbers_are_read_in_plain_digits():
    texts = {"1000": 1000, " .5": 0.5, "1e-5 ": 1e-5, "-2.": -2, "+7E2": 700}
    assert [number(text) for text in texts] == list(texts.values())
    for text in ("1_0", "1e999", "nan", "inf", "", "0x1", "١", "1 2"):
        with pytest.raises(ValueError, match=re.escape(f"must be a number such as 1000, 0.5 or 1e-5, got {text!r}")):
            number(text)
