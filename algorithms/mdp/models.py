"""Public part of a Markov decision process with linear structure, and what its unknown parameters make of it.

States and actions are numbered from 0, steps of an episode from 0 in arrays and from 1 in messages, as in the papers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core.checks import at_least

_ROUNDING = 1e-9
_MOST_ENUMERATED = 16
"""States up to which all functions with values 0 and 1 are tried."""


class _Features:
    """Sizes of a model, read off its features (n_states, n_actions, ..., d)."""

    features: FloatArray

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return int(self.features.shape[0])

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return int(self.features.shape[1])

    @property
    def dimension(self) -> int:
        """Dimension d of the features."""
        return int(self.features.shape[-1])

    def _checked(self, parameters: ArrayLike, horizon: int, bound: float, name: str, shown: str) -> FloatArray:
        """(horizon, d) parameters, none of them longer than the bound."""
        array = _numbers("parameters", parameters, 2)
        if array.shape != (horizon, self.dimension):
            raise ValueError(f"parameters must be of shape (horizon, d) = {(horizon, self.dimension)}, got {array.shape}")
        norms = np.linalg.norm(array, axis=1)
        if norms.max() > bound * (1 + _ROUNDING):
            step = int(np.argmax(norms))
            raise ValueError(f"the {name} of step {step + 1} has norm {norms[step]:.6g}; it must be at most {shown}")
        return array


@dataclass(frozen=True, eq=False)
class MixtureModel(_Features):
    r"""A linear-mixture MDP but for its parameters: p_h(s'|s, a) = <phi(s'|s, a), w_h>, rewards r_h(s, a) known.

    Attributes:
      features: (n_states, n_actions, n_states, d), phi(s'|s, a), with |sum_s' phi(s'|s, a) v(s')| <= 1 for v in [0, 1]^S.
      rewards: (horizon, n_states, n_actions), mean rewards in [0, 1], public.
      parameter_bound: C_w >= |w_h|.

    Source: Luyo, Garcelon, Lazaric and Pirotta, Assumption 2; Ayoub and others (2020).
    """

    features: FloatArray
    rewards: FloatArray
    parameter_bound: float

    def __post_init__(self) -> None:
        features = _numbers("features", self.features, 4)
        if features.shape[0] != features.shape[2]:
            raise ValueError(f"features must be of shape (n_states, n_actions, n_states, d), got {features.shape}")
        rewards = checked_rewards(self.rewards, features.shape[:2])
        if not (math.isfinite(self.parameter_bound) and self.parameter_bound > 0):
            raise ValueError(f"parameter_bound must be a positive number, got {self.parameter_bound!r}")
        norms = _largest_norms(features)
        if norms.max() > 1 + _ROUNDING:
            state, action = (int(i) for i in np.unravel_index(np.argmax(norms), norms.shape))
            raise ValueError(
                f"features of state {state}, action {action} reach the norm {norms.max():.6g} when summed over next states "
                f"with weights in [0, 1]; it must be at most 1: divide all features by {norms.max():.6g} and multiply the "
                "parameters by it"
            )
        object.__setattr__(self, "features", _frozen(features))
        object.__setattr__(self, "rewards", _frozen(rewards))

    @property
    def horizon(self) -> int:
        """Steps H of an episode."""
        return len(self.rewards)

    def transitions(self, parameters: ArrayLike) -> FloatArray:
        """(horizon, n_states, n_actions, n_states) p_h(s'|s, a), under parameters w_h (horizon, d).

        Raises:
          ValueError: a parameter is too long, or what comes out is no distribution; the message names where.
        """
        bound = self.parameter_bound
        w = self._checked(parameters, self.horizon, bound, "parameter", f"parameter_bound = {bound:g}")
        return checked_transitions(np.einsum("satd,hd->hsat", self.features, w))


@dataclass(frozen=True, eq=False)
class LinearModel(_Features):
    r"""A linear MDP but for its parameters: p_h(s'|s, a) = <phi(s, a), mu_h(s')>, mean rewards <phi(s, a), theta_h>.

    Attributes:
      features: (n_states, n_actions, d), norm at most 1.
      horizon: H.

    Source: Luyo, Garcelon, Lazaric and Pirotta, Assumption 1; Jin and others (2020).
    """

    features: FloatArray
    horizon: int

    def __post_init__(self) -> None:
        features = _numbers("features", self.features, 3)
        at_least("horizon", self.horizon, 1)
        norms = np.linalg.norm(features, axis=2)
        if norms.max() > 1 + _ROUNDING:
            state, action = (int(i) for i in np.unravel_index(np.argmax(norms), norms.shape))
            raise ValueError(f"features of state {state}, action {action} have norm {norms.max():.6g}; it must be at most 1")
        object.__setattr__(self, "features", _frozen(features / np.maximum(norms, 1.0)[:, :, None]))

    def transitions(self, measures: ArrayLike) -> FloatArray:
        """(horizon, n_states, n_actions, n_states) p_h(s'|s, a), under measures mu_h(s') (horizon, n_states, d).

        Raises:
          ValueError: |sum_s' mu_h(s') v(s')| exceeds sqrt(d) for a v of values in [-1, 1], or what comes out is no
            distribution; the message names the step.
        """
        mu = _numbers("measures", measures, 3)
        shape = (self.horizon, self.n_states, self.dimension)
        if mu.shape != shape:
            raise ValueError(f"measures must be of shape (horizon, n_states, d) = {shape}, got {mu.shape}")
        reach = np.linalg.norm(mu, axis=2).sum(axis=1)
        most = math.sqrt(self.dimension)
        if reach.max() > most * (1 + _ROUNDING):
            signed = np.sqrt([_largest_signed_square(part) for part in mu])
            if signed.max() > most * (1 + _ROUNDING):
                step = int(np.argmax(signed))
                raise ValueError(
                    f"measures of step {step + 1} reach the norm {signed[step]:.6g} over functions with values in [-1, 1]; "
                    f"it must be at most sqrt(d) = {most:.6g}"
                )
        return checked_transitions(np.einsum("sad,htd->hsat", self.features, mu))

    def rewards(self, parameters: ArrayLike) -> FloatArray:
        """(horizon, n_states, n_actions) mean rewards under parameters theta_h (horizon, d), |theta_h| <= sqrt(d).

        Raises:
          ValueError: a parameter is too long, or a mean reward leaves [0, 1]; the message names step, state and action.
        """
        bound = math.sqrt(self.dimension)
        theta = self._checked(parameters, self.horizon, bound, "reward parameter", f"sqrt(d) = {bound:.6g}")
        return checked_rewards(np.einsum("sad,hd->hsa", self.features, theta), self.features.shape[:2])


class PlaysOnModel:
    """Sizes of what an algorithm plays on: those of its field `model`."""

    model: MixtureModel | LinearModel

    @property
    def n_actions(self) -> int:
        """Number of actions A."""
        return self.model.n_actions

    @property
    def n_states(self) -> int:
        """Number of states S."""
        return self.model.n_states

    @property
    def episode_length(self) -> int:
        """Steps H of an episode."""
        return self.model.horizon


def checked_transitions(transitions: ArrayLike) -> FloatArray:
    """Distributions of the next state, read-only, rounding removed.

    Args:
      transitions: (horizon, n_states, n_actions, n_states)

    Raises:
      ValueError: an entry is negative or a row does not sum to 1; the message names step, state and action.
    """
    p = _numbers("transitions", transitions, 4)
    if p.shape[1] != p.shape[3]:
        raise ValueError(f"transitions must be of shape (horizon, n_states, n_actions, n_states), got {p.shape}")
    if p.min() < -_ROUNDING:
        step, state, action, after = (int(i) for i in np.unravel_index(np.argmin(p), p.shape))
        raise ValueError(
            f"at step {step + 1} state {state}, action {action} leads to state {after} with probability {p.min():.6g}: "
            "transitions must be distributions"
        )
    sums = p.sum(axis=3)
    if np.abs(sums - 1).max() > _ROUNDING:
        step, state, action = (int(i) for i in np.unravel_index(np.argmax(np.abs(sums - 1)), sums.shape))
        raise ValueError(
            f"at step {step + 1} the probabilities from state {state}, action {action} sum to "
            f"{sums[step, state, action]:.6g}, not to 1: transitions must be distributions"
        )
    p = np.maximum(p, 0.0)
    return _frozen(p / p.sum(axis=3, keepdims=True))


def checked_rewards(rewards: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Mean rewards (horizon, n_states, n_actions) in [0, 1], rounding removed.

    Raises:
      ValueError: another shape, or a reward that leaves [0, 1]; the message names step, state and action.
    """
    r = _numbers("rewards", rewards, 3)
    if r.shape[1:] != shape:
        raise ValueError(
            f"rewards must be of shape (horizon, n_states, n_actions) = (H, {shape[0]}, {shape[1]}), got {r.shape}"
        )
    off = np.maximum(r - 1, -r)
    if off.max() > _ROUNDING:
        step, state, action = (int(i) for i in np.unravel_index(np.argmax(off), r.shape))
        raise ValueError(
            f"the mean reward of step {step + 1}, state {state}, action {action} is {r[step, state, action]:.6g}; it must "
            "lie in [0, 1]"
        )
    return _frozen(np.clip(r, 0.0, 1.0))


def _numbers(name: str, values: ArrayLike, n_axes: int) -> FloatArray:
    array = np.array(values, dtype=float)
    if array.ndim != n_axes or not array.size:
        raise ValueError(f"{name} must be an array of {n_axes} axes, none of them empty; got shape {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}{list(place)} is {array[place]!r}; it must be a finite number")
    return array


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array


def _largest_norms(features: FloatArray) -> FloatArray:
    """(n_states, n_actions) the largest |sum_s' phi(s') v(s')| over v in [0, 1]; above 16 states an upper bound.

    The norm is convex in v, so that it is largest where every v(s') is 0 or 1. The bound takes each coordinate's worst v.
    """
    n_states = features.shape[2]
    if n_states > _MOST_ENUMERATED:
        parts = np.maximum(np.maximum(features, 0).sum(axis=2), np.maximum(-features, 0).sum(axis=2))
        return np.asarray(np.linalg.norm(parts, axis=2))
    corners = ((np.arange(1 << n_states)[:, None] >> np.arange(n_states)) & 1).astype(float)
    return np.array([[np.linalg.norm(corners @ part, axis=1).max() for part in row] for row in features])


def _largest_signed_square(measures: FloatArray) -> float:
    """The largest |sum_s mu(s) v(s)|^2 over v in {-1, 1}; above 16 states an upper bound. `measures` is (n_states, d)."""
    n_states = len(measures)
    if n_states > _MOST_ENUMERATED:
        return float((np.abs(measures).sum(axis=0) ** 2).sum())
    corners = ((np.arange(1 << n_states)[:, None] >> np.arange(n_states)) & 1) * 2.0 - 1
    return float((np.linalg.norm(corners @ measures, axis=1) ** 2).max())
