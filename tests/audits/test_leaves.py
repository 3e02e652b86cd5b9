"""What is read of any object: each pair here differs in one thing, which some leaf shows, or is named as unread."""

import datetime
import decimal
import threading
from array import array
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bandana.audits.leaves import MOST_LEAVES, leaves


class Slotted:
    __slots__ = ("__hidden",)

    def __init__(self, hidden):
        self.__hidden = hidden


@dataclass
class Silent:
    exact: int = field(repr=False)


class WithoutState(SimpleNamespace):
    def __getstate__(self):
        return {}


def made(exact):
    """An object of a class that is made for it, and holds a number in an attribute and in a method's closure."""

    class Result:
        version = exact

        def mean(self):
            return exact

    return Result()


def with_more(table, **kept):
    for name, value in kept.items():
        object.__setattr__(table, name, value)
    return table


def shown(value):
    return [(path, label, None if numbers is None else numbers.tobytes()) for path, label, numbers, _ in leaves(value)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True), (1, 1.0), (0.0, -0.0), (2**60, 2**60 + 1), (10**40, 10**40 + 1), (1j, 2j), ("a", "b"), ("1", b"1"),
        ([1], (1,)),
        ([1.0, 2.0], [1.0, 3.0]), ({1: 2}, {"1": 2}), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({1}, frozenset({1})),
        (None, "None"),
        (np.float32(1), np.float64(1)), (np.zeros(2), np.zeros((2, 1))), (np.zeros((0, 3)), np.zeros((0, 4))),
        (np.zeros(2, "<f8"), np.zeros(2, ">f8")), (np.array([2**60]), np.array([2**60 + 1])),
        (np.array(["a"]), np.array(["b"])),
        (np.array([1, None]), np.array([2, None])), (np.datetime64("2020-01-01"), np.datetime64("2020-01-02")),
        (np.longdouble(1), np.longdouble(1) + np.finfo(np.longdouble).eps),
        (np.array([(1, 2)], dtype="i4,i4"), np.array([(1, 3)], dtype="i4,i4")),
        (Slotted(1), Slotted(2)), (Silent(1), Silent(2)), (SimpleNamespace(a=1), SimpleNamespace(a=2)),
        (WithoutState(a=1), WithoutState(a=2)), (ValueError("a"), ValueError("b")), (ValueError(1), TypeError(1)),
        (decimal.Decimal("1.00000000000000000001"), decimal.Decimal("1.00000000000000000002")),
        (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)), (np.random.default_rng(1), np.random.default_rng(2)),
        (lambda x=1: x, lambda x=2: x), (range(3), range(4)), (slice(1), slice(2)),
        (eval("lambda: 1"), eval("lambda: 2")), (array("d", [1.0]), array("d", [2.0])), (array("d"), array("f")),
        (memoryview(b"a"), memoryview(b"b")), (made(1), made(2)), (made(1).mean, made(2).mean),
        (type(made(1)), type(made(2))),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [2.0]})), (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1]})), (pd.DataFrame({"a": ["x"]}), pd.DataFrame({"a": ["y"]})),
        (pd.Series([1.0], index=[1]), pd.Series([1.0], index=[2])), (pd.Series([1.0], name="a"), pd.Series([1.0], name="b")),
        (with_more(pd.DataFrame({"a": [1.0]}), note=1), with_more(pd.DataFrame({"a": [1.0]}), note=2)),
        (with_more(pd.DataFrame({"a": [1.0]}), attrs={"n": 1}), with_more(pd.DataFrame({"a": [1.0]}), attrs={"n": 2})),
        (pd.Series(["a"], dtype=pd.CategoricalDtype(["a", "b"])), pd.Series(["a"], dtype=pd.CategoricalDtype(["a", "c"]))),
        (pd.MultiIndex.from_tuples([(1, 2)]), pd.MultiIndex.from_tuples([(1, 3)])),
        (pd.DatetimeIndex(["2020-01-01"]), pd.DatetimeIndex(["2020-01-02"])),
    ],
)  # fmt: skip
def test_what_differs_is_seen(one, other):
    assert shown(one) != shown(other)
    assert all(leaf.is_read for value in (one, other) for leaf in leaves(value))


def test_closures_are_read():
    def made(exact):
        return lambda: exact

    assert shown(made(1)) != shown(made(2))


def test_what_cannot_be_read_is_named():
    unread = [leaf for leaf in leaves({"lock": threading.Lock(), "x": 1.0}) if not leaf.is_read]
    assert [leaf.path for leaf in unread] == [".lock"]


def test_what_lies_behind_the_limit_is_named():
    found = list(leaves([None] * (MOST_LEAVES + 5)))
    assert len(found) == MOST_LEAVES + 1
    assert not found[-1].is_read


def test_an_object_may_hold_itself():
    loop = SimpleNamespace()
    loop.own = [loop]
    assert any(leaf.label == "itself" for leaf in leaves(loop))
