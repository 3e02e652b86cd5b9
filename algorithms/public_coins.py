r"""Public coins: numbers in [0, 1) that are a pure function of whole numbers, equal to the last bit on every machine.

An algorithm holds no generator, yet some need coins: which points a projection spans, which of the active actions a user is
given. A coin here is named by words, such as a public seed, the replicate, the epoch and the round, and computed from them
when it is needed. Nothing is drawn, kept or counted, so a coin depends on no order of calls, batch or number of workers.

Public and free: the words are public parameters and counters, and no word may be a function of data, not even of released
ones. For every fixed value of the coins an algorithm is then a mechanism of its own, and its proof must hold for each. A
privacy claim that holds given the coins holds for any adversary who knows them, and for their mixture. What a proof of
*regret* asks of coins, that they are uniform and independent of contexts, rewards and noise, rests on the hash.

The hash is SplitMix64: from a 64-bit state x, its n-th output is mix(x + n g), g odd and mix a bijection. A word w replaces
the state by output w + 1 of the generator with that state, so words are read like a path in a tree of generators. Integers
modulo 2^64 have no rounding, and 53 bits are a float exactly.

Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (OOPSLA 2014), with the multipliers of their
Java library.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray, IntArray

_kernel = njit(cache=True, nogil=True)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ONE = np.uint64(1)
_BITS = 53


def uniform(*words: int | IntArray) -> FloatArray:
    """Coins in [0, 1), one for each combination of the words.

    Args:
      *words: whole numbers of at least 0 and below 2^63, or arrays of them, whose shapes are broadcast: the same words give
        the same coin, and other words, or the same in another order, give independent ones.

    Returns:
      array of the common shape, at least of shape (1,): multiples of 2^-53.

    Raises:
      ValueError: there are no words, or one is negative.
    """
    if not words:
        raise ValueError("words must be at least one whole number")
    state = np.zeros(1, dtype=np.uint64)
    for word in words:
        array = np.atleast_1d(np.asarray(word))
        if array.dtype.kind not in "iu" or (array.size and int(array.min()) < 0):
            raise ValueError(f"words must be whole numbers of at least 0, got {word!r}")
        state = _output(state, array.astype(np.uint64))
    return np.asarray((state >> np.uint64(64 - _BITS)) * 2.0**-_BITS)


@_kernel
def _output(state, n):  # type: ignore[no-untyped-def]
    """Output n, from 0, of the SplitMix64 generator with the given state; products are meant to overflow."""
    z = state + (n + _ONE) * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@_kernel
def of_decisions(keys, users, step, n_coins):  # type: ignore[no-untyped-def]
    """(n_reps, n_coins) `uniform(key, user, step, i)` for keys and users (n_reps,); words below 0 are not refused."""
    coins = np.empty((len(keys), n_coins))
    for r in range(len(keys)):
        state = np.uint64(0)
        for word in (keys[r], users[r], step):
            state = _output(state, np.uint64(word))
        for i in range(n_coins):
            coins[r, i] = (_output(state, np.uint64(i)) >> np.uint64(64 - _BITS)) * 2.0**-_BITS
    return coins
