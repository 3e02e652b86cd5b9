"""Primitives of other libraries: priced where they are called, and frozen while a program runs on the neighbor.

Everything here is decided by pairs of runs: no test can fail by chance.
"""

import numpy as np
import pytest

from bandana.audits.claims import ClaimError
from bandana.flows.annexes.anything.foreign.frozen import examine
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject
from bandana.primitives import Price, priced, release
from bandana.privacy_core import ApproxDP, Gaussian, GaussianDP, Laplace, PureDP

OFF, ON = [1.0, 0.0], [1.0, 1.0]


@priced(Laplace(1.0, 1.0))
def noisy(value, rng):
    return value + rng.laplace(size=np.shape(value))


@priced(lambda value, rng, sigma: Gaussian(1.0, sigma))
def gaussian(value, rng, sigma):
    return value + sigma * rng.normal()


def total(data, seed):
    return noisy(np.sum(data), np.random.default_rng(seed))


def mean(data, seed):
    """Divides by the number of records, which nothing released."""
    return total(data, seed) / len(data)


def twice(data, seed):
    rng = np.random.default_rng(seed)
    return noisy(np.sum(data), rng), noisy(np.sum(data), rng)


def doubled(data, seed):
    return noisy(2 * np.sum(data), np.random.default_rng(seed))


def in_parallel(data, seed):
    """Each record has a release of its own: a change of one reaches one call."""
    rng = np.random.default_rng(seed)
    return [noisy(value, rng) for value in data]


def by_data(data, seed):
    rng = np.random.default_rng(seed)
    return [noisy(value, rng) for value in data if value > 0]


def cheaper_by_data(data, seed):
    return gaussian(np.sum(data), np.random.default_rng(seed), 1.0 + np.sum(data))


def adaptive(data, seed):
    """Decides by what was released, and by coins of its own."""
    rng = np.random.default_rng(seed)
    first = noisy(np.sum(data), rng)
    return (first, noisy(np.sum(data), rng)) if first + rng.normal() > 1 else first


def unseeded(data, seed):
    return noisy(np.sum(data), np.random.default_rng(seed)) + np.random.default_rng().normal()


def object_that_keeps(data, seed):
    """A primitive that is a method: what it leaves behind is replaced by what `release` returns."""
    rng = np.random.default_rng(seed)
    kept = {"sum": float(np.sum(data))}

    def draw():
        kept["sum"] += rng.laplace()
        return kept["sum"]

    kept["sum"] = release("object.add", Laplace(1.0, 1.0), kept["sum"], draw)
    return kept["sum"]


@pytest.mark.parametrize(
    ("program", "data", "stated", "accounted"),
    [
        (total, ON, PureDP(1.0), 1.0),
        (total, ON, ApproxDP(1.0, 1e-5), 0.99999),
        (object_that_keeps, ON, PureDP(1.0), 1.0),
        (twice, ON, PureDP(2.0), 2.0),
        (in_parallel, ON, PureDP(1.0), 1.0),
        (adaptive, ON, PureDP(2.0), 2.0),
        (total, [1.0, 0.0, 1.0], PureDP(1.0), 1.0),
    ],
)
def test_honest_programs_keep_all_but_what_is_released(program, data, stated, accounted):
    found = examine(program, OFF, data, stated, 0)
    assert not found.findings
    assert not found.note
    assert found.accounted == pytest.approx(accounted, rel=1e-4)
    assert found.n_pairs == 16


@pytest.mark.parametrize(
    ("program", "neighbor", "stated", "words"),
    [
        (mean, [1.0, 0.0, 1.0], PureDP(1.0), "the primitives released the same, and the output differs"),
        (twice, ON, PureDP(1.0), "the calls compose to epsilon = 2, the claim allows 1"),
        (doubled, ON, PureDP(1.0), "the value of call 1, noisy, moves by 2 in L1, its price covers 1"),
        (by_data, ON, PureDP(1.0), "which primitives are called depends on the data: as number 2"),
        (cheaper_by_data, ON, GaussianDP(1.0), "the price of call 1, gaussian, depends on the data"),
        (in_parallel, [1.0, 0.0, 1.0], PureDP(1.0), "which primitives are called depends on the data: as number 3"),
    ],
)
def test_one_pair_of_runs_shows_what_leaks(program, neighbor, stated, words):
    found = examine(program, OFF, neighbor, stated, 0)
    assert words in " ".join(found.findings)
    assert ("differs" in found.line) is not words.startswith("the calls compose")


def test_a_program_without_prices_is_left_alone():
    assert examine(lambda data, seed: np.sum(data), OFF, ON, PureDP(1.0), 0) is None
    assert noisy(1.0, np.random.default_rng(0)) == 1.0 + np.random.default_rng(0).laplace(size=())


def test_unseeded_randomness_is_told_and_nothing_is_concluded():
    found = examine(unseeded, OFF, ON, PureDP(0.1), 0)
    assert "draws more than its seed" in found.line
    assert not found.findings
    assert found.accounted is None


def test_prices_say_what_they_cover():
    rng = np.random.default_rng(0)
    assert Price("zcdp(rho=0.5)", 8.0).event.rho == 0.5
    assert Price("gdp(mu=2)", 1.0).event.mu == 2
    for norm, moved in (("L1", 7), ("L2", 5), ("Linf", 4)):
        assert Price("pure(epsilon=1)", 1.0, norm).change(np.zeros((1, 2)), np.array([[3.0, -4.0]])) == moved
    with pytest.raises(ClaimError, match="must be pure, zcdp or gdp"):
        Price("approx(epsilon=1, delta=1e-5)", 1.0)
    with pytest.raises(ValueError, match="sensitivity"):
        Price("pure(epsilon=1)", 0.0)
    with pytest.raises(ValueError, match="norm must be one of"):
        Price("pure(epsilon=1)", 1.0, "L3")
    with pytest.raises(BrokenSubject, match="must be numbers; that of noisy is none"):
        examine(lambda data, seed: noisy(data, rng), ["a"], ["b"], PureDP(1.0), 0)
    with pytest.raises(BrokenSubject, match="the price of gaussian cannot be told"):
        examine(lambda data, seed: gaussian(1.0, rng, -1.0), OFF, ON, PureDP(1.0), 0)
