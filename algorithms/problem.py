"""Public facts of the problem that an algorithm plays on."""

from __future__ import annotations

from dataclasses import dataclass

from bandana.algorithms.mdp.models import LinearModel, MixtureModel
from bandana.algorithms.rkhs.kernels import Kernel
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import Interval

FINITE, LINEAR, CONTEXTUAL, KERNEL, POOLED = "finite", "linear", "contextual", "kernel", "pooled"
"""Kinds of actions: arms; arms with known features; vectors that each user brings; points of [-1, 1]^d that each user
brings, with a kernel for how alike they are; such points, of a finite public pool."""


MIXTURE, LINEAR_MDP = "linear-mixture", "linear-mdp"
"""Users live through episodes, of a linear-mixture or of a linear Markov decision process."""


EPISODIC = (MIXTURE, LINEAR_MDP)
"""Kinds in which a user is an episode."""


ARMS = (FINITE, LINEAR)
"""Kinds in which actions are arms, the same for all users: each is played once first."""


@dataclass(frozen=True)
class Problem:
    """Public facts of the problem that an algorithm plays on.

    Attributes:
      n_actions: number of arms, or of actions that each user brings.
      reward_range: declared range of a reward.
      horizon: rounds or episodes; None where nobody asked.
      features: (n_actions, d) of linear arms.
      dimension: d of the vectors or points that users bring.
      kernel: of the points; they lie in [-1, 1]^d.
      pool: all that users may bring, if that is a finite public set.
      model: of episodes, all but the parameters.
    """

    n_actions: int
    reward_range: Interval
    horizon: int | None = None
    features: tuple[tuple[float, ...], ...] | None = None
    dimension: int | None = None
    kernel: Kernel | None = None
    pool: Pool | None = None
    model: MixtureModel | LinearModel | None = None

    def __post_init__(self) -> None:
        if self.model is not None and self.model.n_actions != self.n_actions:
            raise ValueError(f"model has {self.model.n_actions} actions, and the problem {self.n_actions}: they must agree")
        if self.kernel is not None and self.dimension is None:
            raise ValueError("dimension must be given with a kernel: it is that of the points")
        if self.pool is None:
            return
        if self.kernel is None:
            raise ValueError("a pool is one of points: give its kernel too")
        if (self.pool.n_actions, self.pool.dimension) != (self.n_actions, self.dimension):
            raise ValueError(
                f"pool has {self.pool.n_actions} actions of dimension {self.pool.dimension}, and the problem "
                f"{self.n_actions} of dimension {self.dimension}: they must agree"
            )

    @property
    def kind(self) -> str:
        """finite, linear, contextual, kernel, pooled, linear-mixture or linear-mdp."""
        if self.model is not None:
            return MIXTURE if isinstance(self.model, MixtureModel) else LINEAR_MDP
        if self.kernel is not None:
            return KERNEL if self.pool is None else POOLED
        if self.dimension is not None:
            return CONTEXTUAL
        return FINITE if self.features is None else LINEAR

    @property
    def known_horizon(self) -> int:
        """The horizon, of an algorithm that needs it.

        Raises:
          ValueError: it is not known.
        """
        if self.horizon is None:
            raise ValueError("this algorithm needs the horizon")
        return self.horizon
