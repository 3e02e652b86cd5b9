"""Mechanisms with a fault that textbooks warn of, and honest ones, as functions of (data, seed); all claim pure epsilon 1.

Data are five counts, and neighbors differ by one in each or in one, as each function says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

Release = Callable[[Sequence[float], int], object]
_ONE = ([0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0])
_ALL = ([0.0, 1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0])
_DOWN = ([1.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0])


class Planted(NamedTuple):
    """A release on a pair.

    Attributes:
      function: of (data, seed).
      pair: a data set and its neighbor.
      is_broken: whether it breaks the claim on this pair.
    """

    function: Release
    pair: tuple[list[float], list[float]]
    is_broken: bool


def _generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def laplace(data: Sequence[float], seed: int) -> object:
    """Laplace noise of scale 1 on a count."""
    return data[0] + _generator(seed).laplace()


def half_the_noise(data: Sequence[float], seed: int) -> object:
    """Laplace noise of half the scale."""
    return data[0] + 0.5 * _generator(seed).laplace()


def a_little_less_noise(data: Sequence[float], seed: int) -> object:
    """Laplace noise of 0.9 of the scale."""
    return data[0] + 0.9 * _generator(seed).laplace()


def now_and_then_exact(data: Sequence[float], seed: int) -> object:
    """The exact count in one of 200 runs."""
    generator = _generator(seed)
    return data[0] if generator.random() < 0.005 else data[0] + generator.laplace()


def rounded_before_noise(data: Sequence[float], seed: int) -> object:
    """Noise of the scale that the count without its factor of ten would need."""
    return round(10 * data[0]) / 10 + 0.1 * _generator(seed).laplace()


def one_noise_for_all(data: Sequence[float], seed: int) -> object:
    """One draw for all five counts: it cancels in differences."""
    return (np.asarray(data) + 2 * _generator(seed).laplace()).tolist()


def histogram(data: Sequence[float], seed: int) -> object:
    """Noise of scale 1 on each count; one record is in one cell."""
    return (np.asarray(data) + _generator(seed).laplace(size=5)).tolist()


def histogram_without_zeros(data: Sequence[float], seed: int) -> object:
    """Noise on the counts that are not zero; the others are left out."""
    generator = _generator(seed)
    return [count + generator.laplace() if count else 0.0 for count in data]


def noisy_argmax(data: Sequence[float], seed: int) -> object:
    """The index of the largest of noisy counts, all of which may change by one."""
    return int(np.argmax(np.asarray(data) + _generator(seed).laplace(scale=2.0, size=5)))


def noisy_max_with_value(data: Sequence[float], seed: int) -> object:
    """The largest of noisy counts itself: five counts may change, and are shown by one draw each."""
    return float(np.max(np.asarray(data) + _generator(seed).laplace(scale=0.5, size=5)))


def _sparse_vector(data: Sequence[float], seed: int, on_query: float, most: int, *, shows: bool = False) -> object:
    """Answers whether each count exceeds a noisy threshold, until `most` do; see Lyu, Su, Li (2017)."""
    generator = _generator(seed)
    threshold, answers, n_above = 0.5 + generator.laplace(scale=2.0), [], 0
    for count in data:
        noisy = count + (generator.laplace(scale=on_query) if on_query else 0.0)
        is_above = noisy >= threshold
        answers.append(float(noisy) if is_above and shows else float(is_above) - 10.0)
        n_above += is_above
        if n_above >= most:
            break
    return answers + [-20.0] * (5 - len(answers))


def sparse_vector(data: Sequence[float], seed: int) -> object:
    """The sparse vector technique with one positive answer."""
    return _sparse_vector(data, seed, 4.0, 1)


def sparse_vector_that_shows(data: Sequence[float], seed: int) -> object:
    """It shows the noisy count of a positive answer (Roth's lecture notes)."""
    return _sparse_vector(data, seed, 2.0, 1, shows=True)


def sparse_vector_without_query_noise(data: Sequence[float], seed: int) -> object:
    """Counts get no noise (Stoddard, Chen, Machanavajjhala)."""
    return _sparse_vector(data, seed, 0.0, 5)


def sparse_vector_without_an_end(data: Sequence[float], seed: int) -> object:
    """Positive answers without limit, noise for one (Chen, Xiao, Zhang, Xu)."""
    return _sparse_vector(data, seed, 2.0, 5)


def randomized_response(data: Sequence[float], seed: int) -> object:
    """The truth with probability e / (1 + e)."""
    return bool(data[0]) == (_generator(seed).random() < np.e / (1 + np.e))


def truthful_response(data: Sequence[float], seed: int) -> object:
    """The truth with probability 0.8."""
    return bool(data[0]) == (_generator(seed).random() < 0.8)


def parity_of_labels(data: Sequence[float], seed: int) -> object:
    """Five coins whose parity is the record."""
    coins = _generator(seed).integers(0, 2, 5)
    coins[4] = (coins[:4].sum() + int(data[0])) % 2
    return coins.tolist()


def prefix_sums(data: Sequence[float], seed: int) -> object:
    """Each prefix sum with noise for one of five."""
    return (np.cumsum(data) + _generator(seed).laplace(scale=5.0, size=5)).tolist()


def prefix_sums_at_one_price(data: Sequence[float], seed: int) -> object:
    """Each prefix sum with noise for one alone."""
    return (np.cumsum(data) + _generator(seed).laplace(size=5)).tolist()


PLANTED = tuple(
    Planted(function, pair, is_broken)
    for function, pair, is_broken in (
        (laplace, _ONE, False),
        (histogram, _ONE, False),
        (noisy_argmax, _ALL, False),
        (sparse_vector, _ALL, False),
        (randomized_response, _ONE, False),
        (prefix_sums, _ONE, False),
        (half_the_noise, _ONE, True),
        (a_little_less_noise, _ONE, True),
        (now_and_then_exact, _ONE, True),
        (rounded_before_noise, _ONE, True),
        (one_noise_for_all, _ONE, True),
        (histogram_without_zeros, _ONE, True),
        (noisy_max_with_value, _DOWN, True),
        (sparse_vector_that_shows, _DOWN, True),
        (sparse_vector_without_query_noise, _ALL, True),
        (sparse_vector_without_an_end, _ALL, True),
        (truthful_response, _ONE, True),
        (parity_of_labels, _ONE, True),
        (prefix_sums_at_one_price, _ONE, True),
    )
)
