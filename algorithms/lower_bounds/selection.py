"""Choice of the lower bound that holds for an algorithm on a problem, and the bound for episodes."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from bandana.algorithms.entry import Claim, Settings
from bandana.algorithms.logistic import LogisticProblem
from bandana.algorithms.lower_bounds import contextual, finite_arms, kernels
from bandana.algorithms.lower_bounds.lower_bound import LowerBound, Privacy, Reach
from bandana.algorithms.lower_bounds.two_problems import worst_of_groups
from bandana.algorithms.mdp.models import LinearModel, MixtureModel
from bandana.algorithms.problem import CONTEXTUAL, EPISODIC, FINITE, KERNEL, LINEAR, POOLED
from bandana.algorithms.protocol import FloatArray, IntArray


def lower_bound(
    settings: Settings, claim: Claim | None, means: FloatArray | None, grid: IntArray, *, is_bernoulli: bool = False
) -> LowerBound | None:
    """The sharpest known lower bound on the regret of all algorithms with the claimed privacy, on such problems.

    For arms with known means that is a leading term; its text has the value on the worst problem of the same size beside it.

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
        worst = finite_arms.minimax_bound(grid, problem.n_actions, span, privacy)
        beside = f"on the worst problem of the same size, at each horizon: {worst.values[-1]:.4g} after {grid[-1]} rounds"
        return worst if on_this is None else on_this._replace(text=f"{on_this.text}; {beside}")
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
        return episodes_bound(grid, problem.model, privacy)
    return None


def episodes_bound(grid: ArrayLike, model: MixtureModel | LinearModel, privacy: Privacy) -> LowerBound | None:
    r"""Bound on the worst decision process of the same kind and sizes, for all algorithms, at each number of episodes K.

    The process: K / g episodes begin in state j, for each of g states. Its first step is a choice of two actions, which lead
    to a good state with probability (1 +- s_j) / 2, else to a bad one; s_j = +-s is unknown. Both are kept to the end, and
    the good one pays 1 a step. The gap is s (H - 1), and an episode's datum is where it leads: `two_problems` says the rest.

    Linear mixture, d dimensions, |w| <= C: phi(good | j, a) = (e_0 +- e_j) / 2, phi(bad | j, a) = (e_0 -+ e_j) / 2, e_0 for
    staying, w = (1, s_1, ..., s_g): g = min(d - 1, S - 2) and s <= min(1, sqrt((C^2 - 1) / g)). Linear process: phi(j, a) =
    (e_0 +- e_j) / sqrt 2, unit vectors f_1, f_2 for good and bad, mu(good) = (e_0 + sum s_j e_j) / sqrt 2 + f_1, mu(bad) =
    (e_0 - sum s_j e_j) / sqrt 2 + f_2: g = min(d - 3, S - 2), and as the norms of mu sum to at most sqrt d,
    g s^2 <= (d - 6) / 2.

    It holds for known rewards and starts that come in any public order. Under epsilon-joint-DP it adds (log 2) g (H - 1) /
    epsilon to the order (H - 1) sqrt(g K). The proof is ours, and two actions matter in it: a factor that grows with their
    number is missing. Tabular processes, of which Vietri, Balle, Krishnamurthy and Wu (2020), Private reinforcement learning
    with PAC and regret guarantees (joint), and Garcelon, Perchet, Pike-Burke and Pirotta (2021), Local differential privacy
    for regret minimization in reinforcement learning (local), prove lower bounds up to constants, are linear in d = S^2 A or
    S A dimensions.

    Args:
      grid: (n_grid,) numbers of episodes.
      model: public facts of the process: sizes and |w| or none.
      privacy: of the class of algorithms, joint or stronger; an episode is replaced.

    Returns:
      None where the sizes are too small for the process above.
    """
    d, n_states = model.dimension, model.n_states
    if isinstance(model, MixtureModel):
        groups = min(d - 1, n_states - 2)
        room = model.parameter_bound**2 - 1
    else:
        groups = min(d - 3, n_states - 2)
        room = (d - 6) / 2
    if groups < 1 or room <= 0 or model.horizon < 2 or model.n_actions < 2:
        return None
    spread = min(1.0, math.sqrt(room / groups))
    return LowerBound(
        worst_of_groups(grid, groups, spread, model.horizon - 1.0, privacy),
        f"all algorithms, {privacy}, on the worst process with d = {d}, S = {n_states}, H = {model.horizon}: in each of "
        f"{groups} starting states two actions to be distinguished, with all constants",
        Reach.WORST_PROBLEM,
    )
