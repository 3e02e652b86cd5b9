"""Choice of the lower bound that holds for an algorithm on a problem."""

from __future__ import annotations

from bandana.algorithms.entry import Claim, Settings
from bandana.algorithms.logistic import LogisticProblem
from bandana.algorithms.lower_bounds import contextual, episodes, finite_arms, kernels
from bandana.algorithms.lower_bounds.lower_bound import LowerBound, Privacy
from bandana.algorithms.problem import CONTEXTUAL, EPISODIC, FINITE, KERNEL, LINEAR, POOLED
from bandana.algorithms.protocol import FloatArray, IntArray


def lower_bound(
    settings: Settings, claim: Claim | None, means: FloatArray | None, grid: IntArray, *, is_bernoulli: bool = False
) -> LowerBound | None:
    """The sharpest known lower bound on the regret of all algorithms with the claimed privacy, on such problems.

    Finitely many arms with known means: the asymptotic bound on this very problem; else the bound on the worst problem of
    the same size.

    Args:
      settings: problem, and parameters, which do not matter.
      claim: the entry's promise at these settings; None for a non-private algorithm.
      means: (n_actions,) mean rewards, where they may be shown.
      grid: (n_grid,) numbers of rounds or episodes.
      is_bernoulli: whether every reward is one of the two ends of its range: without it the asymptotic bound does not hold.

    Returns:
      None where nothing is known.
    """
    problem, privacy = settings.problem, Privacy.of(claim)
    kind, span = problem.kind, problem.reward_range
    if kind == FINITE:
        on_this = finite_arms.asymptotic_bound(grid, means, span, privacy) if means is not None and is_bernoulli else None
        return on_this or finite_arms.minimax_bound(grid, problem.n_actions, span, privacy)
    if kind == LINEAR:
        assert problem.features is not None
        return finite_arms.linear_minimax_bound(grid, len(problem.features[0]), span, privacy)
    if kind == CONTEXTUAL:
        assert problem.dimension is not None
        if isinstance(problem, LogisticProblem):
            return contextual.logistic_bound(grid, problem.dimension, problem.logit_bound, span.width, privacy)
        return contextual.minimax_bound(grid, problem.dimension, span, privacy)
    if kind in (KERNEL, POOLED):
        assert problem.kernel is not None
        assert problem.dimension is not None
        if problem.pool is not None:
            return kernels.pooled_bound(grid, problem.kernel, problem.pool, span, privacy)
        return kernels.minimax_bound(grid, problem.kernel, problem.dimension, span, privacy)
    if kind in EPISODIC:
        assert problem.model is not None
        return episodes.minimax_bound(grid, problem.model, privacy)
    return None
