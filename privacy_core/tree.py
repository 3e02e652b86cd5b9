r"""The binary tree: a running sum of which each record enters at most log2 T + 1 noisy nodes.

After step t the tree holds one noisy node for each binary digit 1 of t; the node of digit 2^k sums 2^k consecutive
steps, and keeps the noise that is drawn when it is complete.

Source: Dwork, Naor, Pitassi, Rothblum (2010); Chan, Shi, Song (2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.privacy_core.accounting.structures import Tree
from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import at_least
from bandana.privacy_core.ledger import Ledger, Span
from bandana.privacy_core.noise.mechanisms import Mechanism
from bandana.privacy_core.sums import RunningSum, count


class Nodes(NamedTuple):
    """The nodes that later ones may be built from: for each level the last one that was completed."""

    n_steps: IntArray
    """(n_reps,) steps taken."""
    exact: FloatArray
    """(n_levels, n_reps, ...) exact sums: sensitive."""
    start: IntArray
    """(n_levels, n_reps) first record of each."""
    estimate: FloatArray
    """(n_levels, n_reps, ...) estimate of the node's sum; Honaker's only."""
    answer: FloatArray
    """(n_levels, n_reps, ...) the running sum that was answered when the node was completed."""


@dataclass(frozen=True)
class TreeSum(RunningSum[Nodes]):
    r"""The running sum from a binary tree of at most `n_steps` steps.

    A node is released once, when it is complete; its span is the records of its steps. The first record lies in the nodes
    of length 1, 2, 4, ..., so in T.bit_length() of them, and none lies in more. Every step releases the one node that it
    completes and later answers need, of the lowest digit 1 of t; the answer sums the popcount(t) nodes of its digits.

    With `honaker` all nodes that a step completes are released, down to the single step, at the same cost (the first
    record lies in one of each length either way). A node's sum is then estimated from its own noisy value and from the
    estimates of its two halves, weighted by their precision: with v the variance of a half's estimate in units of one
    release, a node's is 2 v / (1 + 2 v), v = 1 for a leaf, which tends to 1/2. The answer's variance falls to 58 %.
    Source: Honaker (2015), Efficient use of differentially private binary trees, the estimate from below.

    Where a budget refuses one of a step's nodes, the smaller ones were released and paid for; the sum stays as it was.

    Memory: O(log n_steps) times the statistic. Cost: O(1) releases and additions a step on average.

    Attributes:
      mechanism: what adds the noise of one node; Gaussian (central or joint DP) or Laplace (pure DP).
      n_steps: most steps.
      honaker: see above.
    """

    mechanism: Mechanism
    n_steps: int
    honaker: bool = False

    def __post_init__(self) -> None:
        at_least("n_steps", self.n_steps, 1)

    @property
    def structure(self) -> Tree:
        """Structure of how its releases touch a record, for `calibrate`."""
        return Tree(self.n_steps)

    def remember_nothing(self, n_reps: int, shape: tuple[int, ...]) -> Nodes:
        """The memory before the first step: an empty tree."""
        levels = (self.structure.n_nodes, n_reps)
        estimate = np.zeros((*levels, *shape) if self.honaker else (0, n_reps, *shape))
        exact, answer = np.zeros((2, *levels, *shape))
        return Nodes(np.zeros(n_reps, dtype=np.int64), exact, np.zeros(levels, dtype=np.int64), estimate, answer)

    def push(self, memory: Nodes, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Takes in one step, releases its node (with `honaker`, all that it completes), and answers the running sum."""
        step = (memory.n_steps if reps is None else memory.n_steps[reps]) + 1
        if len(step) and step.max() > self.n_steps:
            raise ValueError(f"the tree was built for {self.n_steps} steps, this is step {int(step.max())}; use DoublingSum")
        # Rows of one level are handled together; in lockstep all are.
        if len(step) and (step == step[0]).all():
            parts: list[tuple[int, slice | IntArray]] = [(_digit_of(int(step[0])), slice(None))]
        else:
            level = _lowest_digit(step)
            parts = [(k, np.flatnonzero(level == k)) for k in sorted({*level.tolist()})]
        groups = [(k, rows, rows if reps is None else reps[rows]) for k, rows in parts]
        exact, start = value.copy(), records.start.copy()
        answers = np.empty_like(value)
        estimates = [np.empty(0)] * len(groups)
        if self.honaker:
            for index, (k, rows, owners) in enumerate(groups):
                span, chosen = Span(records.start[rows], records.stop[rows]), None if isinstance(owners, slice) else owners
                estimates[index] = self._estimate(memory, k, value[rows], span, ledger, chosen)
        for k, rows, owners in groups:
            for lower in range(k):
                exact[rows] += memory.exact[lower][owners]
            if k:
                start[rows] = memory.start[k - 1][owners]
        if not self.honaker:
            noisy = ledger.release(self.mechanism, exact, records=Span(start, records.stop), reps=reps)
            estimates = [noisy[rows] for _, rows, _ in groups]
        for (k, rows, owners), node in zip(groups, estimates, strict=True):
            answers[rows] = node + self._before(memory, step[rows] - (1 << k), owners)
            memory.exact[k][owners] = exact[rows]
            memory.start[k][owners] = start[rows]
            memory.answer[k][owners] = answers[rows]
            if self.honaker:
                memory.estimate[k][owners] = node
        count(memory.n_steps, reps)
        return answers

    @staticmethod
    def _before(memory: Nodes, step: IntArray, owners: slice | IntArray) -> FloatArray:
        """(n_rows, ...) what was answered after `step` (n_rows,) steps; after none zeros, or one for all rows."""
        if len(step) and (step == step[0]).all():
            return np.asarray(memory.answer[_digit_of(int(step[0]))][owners] if step[0] else 0.0)
        level = _lowest_digit(np.maximum(step, 1))
        answer = memory.answer[level, np.arange(len(level)) if isinstance(owners, slice) else owners]
        return np.where((step > 0).reshape(-1, *[1] * (answer.ndim - 1)), answer, 0.0)

    def _estimate(
        self, memory: Nodes, level: int, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None
    ) -> FloatArray:
        """Releases the nodes of levels 0, ..., level that the step completes; the estimate of the largest."""
        owners = slice(None) if reps is None else reps
        exact, start = value.copy(), records.start
        estimate = ledger.release(self.mechanism, exact, records=records, reps=reps)
        for k in range(1, level + 1):
            exact = exact + memory.exact[k - 1][owners]
            start = memory.start[k - 1][owners]
            own = ledger.release(self.mechanism, exact, records=Span(start.copy(), records.stop), reps=reps)
            weight = _honaker_variance(k)
            estimate = weight * own + (1 - weight) * (memory.estimate[k - 1][owners] + estimate)
        return np.asarray(estimate)

    def noise_variance(self, step: int) -> float:
        """One for each digit 1 of `step`; with `honaker` 2^k / (2^(k + 1) - 1) for digit 2^k."""
        step = at_least("step", step, 1)
        digits = [k for k in range(step.bit_length()) if step >> k & 1]
        return float(sum(_honaker_variance(k) if self.honaker else 1.0 for k in digits))


def _honaker_variance(level: int) -> float:
    """1, 2/3, 4/7, ...: v_k = 2 v / (1 + 2 v) of v = v_(k - 1), which is the weight of the node's own value too."""
    return float(2.0**level / (2.0 ** (level + 1) - 1))


def _digit_of(step: int) -> int:
    """The k where 2^k is the lowest binary digit 1 of a positive step."""
    return (step & -step).bit_length() - 1


def _lowest_digit(step: IntArray) -> IntArray:
    """(n_rows,) the same of each positive step."""
    return np.asarray(np.frexp((step & -step).astype(float))[1] - 1, dtype=np.int64)
