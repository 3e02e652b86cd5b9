"""The audit of a noise sampler's lowest bits: real noise would hide a value that its floating-point numbers give away.

Two values are released many times each; a score is learned from some of the outputs, once with and once without a look at
their low-order bits, and the most telling event is bounded on the others. What only the bits show is no matter of scale or
sensitivity: the sampler is at fault (Mironov 2012), and rounding its outputs to a coarse grid hides it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds.divergence_bounds import pure_epsilon_lower
from bandana.audits.replays.classifiers import Scorer
from bandana.privacy_core.checks import at_least, probability
from benchmarks.raw_outputs import low_order_bits, low_order_names, score_outputs

Sampler = Callable[[ArrayLike, int, int], ArrayLike]
_TRAIN_SHARE, _SEARCH_SHARE = 0.05, 0.1
_LEAST = 2000


@dataclass(frozen=True)
class Finding:
    """Bounds on what outputs reveal of the value behind them.

    Attributes:
      epsilon_of_bits: lower bound on the epsilon of pure DP, from an event that may look at low-order bits.
      epsilon_of_size: the same from an event of the outputs' sizes alone.
      event: what the first event depends on, in words; x is an output, v the value and w the neighbor.
      level: probability that either exceeds the truth, at most.
    """

    epsilon_of_bits: float
    epsilon_of_size: float
    event: str
    level: float

    def refutes(self, epsilon: float) -> bool:
        """Says whether a claim of epsilon-DP is refuted."""
        return max(self.epsilon_of_bits, self.epsilon_of_size) > epsilon


def examine(sampler: Sampler, value: ArrayLike, neighbor: ArrayLike, n_samples: int, level: float, seed: int) -> Finding:
    """Searches for an event that tells two values apart, and bounds from below what it shows.

    Scores are boosted stumps and each low-order column by itself. A twentieth of the samples teaches, another chooses.

    Args:
      sampler: (value, n, seed) -> (n,) or (n, k) noisy outputs.
      value: a number or (k,), in the sampler's range.
      neighbor: another one, as far away as a neighbor may be.
      n_samples: of each, at least 2000.
      level: probability that some bound is too large, at most.
      seed: of the samplers' seeds and the auditor's coins.

    Returns:
      two bounds, which hold together.

    Raises:
      ValueError: too few samples, outputs of another number, or a level out of (0, 1).

    Guarantee: see `pure_epsilon_lower`. An event that occurs in a share s of one value's outputs and never in the other's
    shows about log(0.8 n s / log(2 / level)).
    """
    at_least("n_samples", n_samples, _LEAST)
    probability("level", level)
    seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
    sides = [np.asarray(sampler(exact, n_samples, number)) for exact, number in zip((value, neighbor), seeds, strict=True)]
    if any(len(side) != n_samples for side in sides):
        raise ValueError(f"the sampler must return {n_samples} outputs, got {[len(side) for side in sides]}")
    first, second = int(_TRAIN_SHARE * n_samples), int(2 * _TRAIN_SHARE * n_samples)
    values = (value, neighbor)

    def bound(scorer: Scorer, rows: slice, failure: float) -> float:
        scored = [scorer(side[rows]) for side in sides]
        return pure_epsilon_lower(scored[0], scored[1], failure, seed=seed, train_share=_SEARCH_SHARE)

    tried: dict[str, Scorer] = {
        name: partial(_column, values, index)
        for index, name in enumerate(low_order_names(sides[0][0].size, len(values)))
    }  # fmt: skip
    tried["sizes and low-order bits together"] = score_outputs(sides[0][:first], sides[1][:first], values)
    event = max(tried, key=lambda name: bound(tried[name], slice(first, second), level))
    of_size = score_outputs(sides[0][:first], sides[1][:first])
    rest = slice(second, None)
    return Finding(bound(tried[event], rest, level / 2), bound(of_size, rest, level / 2), event, level)


def _column(values: tuple[ArrayLike, ArrayLike], index: int, outputs: ArrayLike) -> FloatArray:
    return np.asarray(low_order_bits(outputs, values)[:, index])
