"""Runs of a plain function in which every reward is a coin of its own: one batch shows every record at once.

The adversary may know all rewards but one. So a batch in which each replicate has rewards of its own, all drawn, is an audit
of every record: the runs in which record r has one value against those in which it has another are a data set and its
neighbor, with the other rewards drawn and known. If the claim holds for every pair, it holds for this mixture: a divergence
of mixtures with one law of a known part, hockey-stick or Rényi, is at most the largest part; trade-offs are convex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray
from bandana.privacy_core import Interval

BEYOND = 4.0
"""Most that a reward may lie outside of the range, in widths of it; a little outside is a hundredth of that."""
_MOST_CONSTANTS = 6
BLOCK = 4096
"""Runs of one call, at most."""


@dataclass(frozen=True)
class Menu:
    """The values that a reward is drawn from; the ends of the range stand first.

    Attributes:
      values: (n_values,) in the units of rewards.
      low: lower end of the range.
      high: upper end.
    """

    values: FloatArray
    low: float
    high: float

    @classmethod
    def of(cls, span: Interval, constants: tuple[float, ...] = (), goes_outside: bool = True) -> Menu:
        """Ends, middle and quarters of the range, constants of the code that lie in it, and values just and far outside.

        Args:
          span: declared range.
          constants: numbers that the function's text names.
          goes_outside: whether values outside of the range are drawn.
        """
        low, high, width = span.low, span.high, span.width
        inside = [low + part * width for part in (0.5, 0.25, 0.75)]
        named = [value for value in constants if low < value < high][:_MOST_CONSTANTS]
        step = 0.01 * BEYOND * width
        outside = [high + step, low - step, high + BEYOND * width, low - BEYOND * width] if goes_outside else []
        others = [value for value in dict.fromkeys([*inside, *named, *outside]) if value not in (low, high)]
        return cls(np.array([low, high, *others]), low, high)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def within(self) -> FloatArray:
        """The values in the range."""
        return self.values[(self.values >= self.low) & (self.values <= self.high)]

    def words(self) -> str:
        """The values, for a report."""
        return ", ".join(f"{value:g}" for value in np.sort(self.values))


@dataclass(frozen=True)
class Drawn:
    """A batch of runs on drawn rewards.

    Attributes:
      menu: values that rewards were drawn from.
      codes: (n, n_rounds) place of each round's reward in the menu, the same for all arms.
      actions: (n, n_rounds) what was played.
      block: (n,) which call each run came from.
      is_wide: (n,) whether rewards were drawn from the whole menu; else from its first two values alone.
      n_arms: arms.
    """

    menu: Menu
    codes: np.ndarray
    actions: IntArray
    block: IntArray
    is_wide: np.ndarray
    n_arms: int

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: IntArray | BoolArray | slice) -> Drawn:
        return Drawn(
            self.menu, self.codes[rows], self.actions[rows], self.block[rows], self.is_wide[rows], self.n_arms
        )  # fmt: skip

    @property
    def rewards(self) -> FloatArray:
        """(n, n_rounds) what each round paid."""
        return np.asarray(self.menu.values[self.codes])

    def sides(self, record: int, first: int, second: int) -> Drawn:
        """The runs in which the record has one of two values, which are equally likely given all other rewards.

        A value that only wide runs draw would be told by the other rewards of the run, and not by the function.
        """
        has_either = (self.codes[:, record] == first) | (self.codes[:, record] == second)
        return self[has_either & self.is_wide if max(first, second) > 1 else has_either]


def draw(
    play: Callable[[FloatArray, int], IntArray], menu: Menu, shape: tuple[int, int], n: int, block: int,
    seed: np.random.SeedSequence,
) -> Drawn:  # fmt: skip
    """Plays n runs; half of them draw from the ends of the range alone, so that both ends are equally likely in all runs.

    Args:
      play: (rewards, seed) -> (n_reps, n_rounds) actions.
      menu: values.
      shape: rounds and arms.
      n: runs.
      block: runs of one call, at most.
      seed: of rewards and calls.
    """
    n_rounds, n_arms = shape
    coins, calls = seed.spawn(2)
    generator = np.random.Generator(np.random.SFC64(coins))
    sizes = [min(block, n - start) for start in range(0, n, block)]
    seeds = calls.generate_state(len(sizes), np.uint32).tolist()
    codes, actions, wide = [], [], []
    for size, number in zip(sizes, seeds, strict=True):
        few = generator.integers(0, 2, (size, n_rounds), dtype=np.int8)
        many = generator.integers(0, len(menu), (size, n_rounds), dtype=np.int8)
        wide.append(generator.random(size) < 0.5)
        drawn = np.where(wide[-1][:, None], many, few)
        rewards = np.broadcast_to(menu.values[drawn][:, :, None], (size, n_rounds, n_arms))  # read-only
        codes.append(drawn)
        actions.append(play(rewards, number))
    calls_of = np.repeat(np.arange(len(sizes)), sizes)
    return Drawn(menu, np.concatenate(codes), np.concatenate(actions), calls_of, np.concatenate(wide), n_arms)
