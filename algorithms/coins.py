r"""The coins of a policy that randomizes: the loop hands them out, so that no algorithm holds a generator.

An algorithm that needs coins declares how many a decision takes, `n_coins`; the loop then calls `act(released, context,
step, coins)` with `n_coins` numbers in [0, 1) for each replicate, and writes them into `Record.coins`. A coin is a pure
function of a seed, the replicate, the user, the step and its place among the decision's coins
(`bandana.algorithms.public_coins`). Nothing is drawn, kept or counted, so coins depend neither on the order of calls nor on
the size of a batch.

**Coins cost no privacy.** Let C be all coins of a run; their law depends on no data. Given C = c, actions are functions of
released values, so the ledger's theorem holds for the run: if the ledger composes to the trade-off function f for every c, a
test with false-positive rate x(c) given c has a false-negative rate of at least f(x(c)). As f is convex, a test of C and the
transcript with rate x = E x(C) has one of at least E f(x(C)) >= f(x), by Jensen's inequality. The guarantee thus holds
against an adversary who sees every coin, and therefore against one who sees fewer. For pure and Renyi guarantees the
argument is the same, with the likelihood ratio or its moment given C = c in place of the test.

**The score stays exact.** The density of C and the transcript is that of C times the product of the releases' densities,
each given C and the releases before it. The first factor is the same on neighbors, so the log-likelihood ratio is the sum
over the releases, as without coins.

**Coins protect nothing.** Noise that protects comes from `ledger.release`. An algorithm that adds a coin to a reward and
decides from the sum shows that reward to whoever knows the coin. Audits give both data sets the same coins, so they find
that its actions differ.

A proof of regret needs coins that are uniform and independent of contexts, rewards and noise; that rests on the hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.public_coins import of_decisions

_COINS = 0x636F_696E
"""Key of the seed's child that coins are made of; no noise and no reward comes from it."""


class Coins:
    """The coins of the replicates of one run, a function of their seeds.

    Args:
      seeds: one seed, from which each replicate gets a key of its own, or one seed for each replicate. The same seed may be
        used for noise: coins come from a child of it that nothing else uses, and it is not changed.
      n_reps: number of replicates; coins of a replicate do not depend on it.
      is_shared: gives all replicates the coins of the first.
    """

    def __init__(
        self, seeds: np.random.SeedSequence | Sequence[np.random.SeedSequence], n_reps: int, *, is_shared: bool = False
    ) -> None:
        self._seeds, self.n_reps, self._is_shared = seeds, n_reps, is_shared

    @cached_property
    def _keys(self) -> IntArray:
        """(n_reps,) 62 bits for each replicate."""
        if not isinstance(self._seeds, np.random.SeedSequence):
            return np.concatenate([_states(seed, 1) for seed in self._seeds])
        return np.repeat(_states(self._seeds, 1), self.n_reps) if self._is_shared else _states(self._seeds, self.n_reps)

    def draw(self, user: IntArray, step: int, n_coins: int) -> FloatArray:
        """(n_reps, n_coins) in [0, 1), multiples of 2^-53: the coins of the decision on user[r] at a step of the episode."""
        return np.asarray(of_decisions(self._keys, user, step, n_coins))


def _states(seed: np.random.SeedSequence, n: int) -> IntArray:
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, _COINS), pool_size=seed.pool_size)
    return (child.generate_state(n, np.uint64) >> np.uint64(2)).astype(np.int64)


def coins_of(algorithm: object) -> int:
    """Number of coins that each decision takes: the algorithm's `n_coins`, 0 where it declares none.

    Raises:
      ValueError: it is no whole number of at least 0.
    """
    declared = getattr(algorithm, "n_coins", 0)
    if isinstance(declared, bool) or not isinstance(declared, int | np.integer) or declared < 0:
        raise ValueError(f"n_coins must be a whole number of at least 0, got {declared!r}")
    return int(declared)
