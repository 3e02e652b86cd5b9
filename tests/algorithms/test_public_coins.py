"""Public coins: known answers, independence of calls, and the law of independent uniform numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bandana.algorithms import public_coins
from bandana.algorithms.public_coins import uniform

N = 200_000
PINNED = [3275816369181258, 4952264260692867, 1821366427283395]


def test_the_generator_is_splitmix64():
    """The first outputs for the seed 1234567, as the reference implementations print them."""
    outputs = public_coins._output(np.array([1234567], dtype=np.uint64), np.arange(5, dtype=np.uint64))
    assert outputs.tolist() == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


def test_coins_are_the_same_on_every_machine():
    """To the last bit: only whole numbers, and floats that hold them exactly."""
    assert (uniform(2**40, 7, np.arange(3)) * 2**53).tolist() == PINNED


def test_compiled_coins_of_decisions_are_the_same_to_the_last_bit():
    keys, users = np.array([0, 1, 2**62 - 1, 987654321]), np.array([0, 2**40, 7, 2**62])
    for step, n_coins in ((0, 1), (5, 3), (2**31, 2)):
        coins = public_coins.of_decisions(keys, users, step, n_coins)
        assert coins.tolist() == uniform(keys[:, None], users[:, None], step, np.arange(n_coins)).tolist()
    assert public_coins.of_decisions(keys, users, 0, 0).shape == (4, 0)


def test_a_coin_depends_on_its_words_alone():
    rows, columns = np.arange(4)[:, None], np.arange(5)
    together = uniform(3, rows, columns)
    assert together.shape == (4, 5)
    assert all(together[i, j] == uniform(3, i, j)[0] for i in range(4) for j in range(5))
    assert len(np.unique(together)) == 20
    assert uniform(1, 2)[0] != uniform(2, 1)[0]
    assert uniform(1)[0] != uniform(1, 0)[0]


@pytest.mark.parametrize("words", [(5, np.arange(N)), (np.arange(N), 5), (0, np.arange(N) // 500, 1, np.arange(N) % 500)])
def test_coins_are_uniform_and_neighbors_are_independent(words):
    """Room of five deviations, which one in a million hash functions leaves; the words are fixed, so never by chance."""
    coins = uniform(*words)
    assert 0 <= coins.min() < 1e-3
    assert 0.999 < coins.max() < 1
    counts = np.bincount((64 * coins).astype(int), minlength=64)
    assert abs(((counts - N / 64) ** 2).sum() / (N / 64) - 63) < 5 * np.sqrt(2 * 63)
    for lag in (1, 2, 500):
        pairs = np.bincount((8 * coins[:-lag]).astype(int) * 8 + (8 * coins[lag:]).astype(int), minlength=64)
        expected = len(coins[lag:]) / 64
        assert abs(((pairs - expected) ** 2).sum() / expected - 63) < 6 * np.sqrt(2 * 63)
        assert abs(np.corrcoef(coins[:-lag], coins[lag:])[0, 1]) < 5 / np.sqrt(N)


def test_each_bit_of_a_word_changes_half_of_a_coins_bits():
    words = np.arange(2000) * 982_451_653
    for bit in (0, 1, 20, 50):
        one, other = ((uniform(1, w, 2) * 2**53).astype(np.uint64) for w in (words, words ^ (1 << bit)))
        flipped = np.bitwise_count(one ^ other).mean() / 53
        assert abs(flipped - 0.5) < 0.01


@pytest.mark.parametrize(
    ("words", "message"), [((), "at least one"), ((-1,), "whole numbers of at least 0"), ((0.5,), "whole numbers")]
)
def test_refusals(words, message):
    with pytest.raises(ValueError, match=message):
        uniform(*words)
