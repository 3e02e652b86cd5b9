r"""Markov decision processes of linear structure, with their parameters: what algorithms of episodes are compared on.

An instance says what is public (`model`) and what is not (transitions, mean rewards), both checked when it is built: its
kernels are distributions, its norms are those that the model promises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.environments.mdps import FiniteMDP, checked_start
from bandana.algorithms.mdp.models import LinearModel, MixtureModel, checked_rewards, checked_transitions
from bandana.algorithms.mdp.planning import Plan, plan
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core.checks import at_least, probability


@dataclass(frozen=True, eq=False)
class Instance:
    """A Markov decision process of known structure.

    Attributes:
      model: what is public.
      transitions: (horizon, n_states, n_actions, n_states)
      rewards: (horizon, n_states, n_actions), means; public where the model has them.
      start: (n_states,) distribution of the first state.
      state_names: what the states are called.
      action_names: what the actions are called.
    """

    model: MixtureModel | LinearModel
    transitions: FloatArray
    rewards: FloatArray
    start: FloatArray
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    @property
    def best(self) -> Plan:
        """Values of the best policy."""
        return plan(self.transitions, self.rewards)

    def stream(self, n_users: int, seed: np.random.SeedSequence, law: str = "exact") -> FiniteMDP:
        """Users who live through it; `law` is that of rewards, see `FiniteMDP`."""
        mdp = FiniteMDP(self.transitions, self.rewards, n_users, seed, self.start, law)
        mdp.names = self.action_names
        return mdp


def kernel_mixture(
    kernels: ArrayLike,
    weights: ArrayLike,
    rewards: ArrayLike,
    start: ArrayLike | None = None,
    state_names: tuple[str, ...] = (),
    action_names: tuple[str, ...] = (),
) -> Instance:
    r"""Users are of unknown kinds, each with a known kernel: p_h(s'|s, a) = sum_i weight_(h, i) P_i(s'|s, a).

    Features are P_i(s'|s, a) / sqrt d, parameters sqrt d weight_h: sums of features over s' with weights in [0, 1] have a
    norm of at most 1, and parameters one of at most sqrt d, the model's bound.

    Args:
      kernels: (d, n_states, n_actions, n_states)
      weights: (horizon, d), or (d,) for all steps; at least 0, of sum 1.
      rewards: (horizon, n_states, n_actions), public means in [0, 1].
      start: (n_states,) of the first state; None: state 0.
      state_names: what the states are called; none: numbers.
      action_names: what the actions are called; none: numbers.
    """
    bases, mean = np.array(kernels, dtype=float), np.array(rewards, dtype=float)
    if bases.ndim != 4:
        raise ValueError(f"kernels must be of shape (d, n_states, n_actions, n_states), got {bases.shape}")
    if mean.ndim != 3:
        raise ValueError(f"rewards must be of shape (horizon, n_states, n_actions), got {mean.shape}")
    shares = np.array(weights, dtype=float)
    shares = np.broadcast_to(shares, (len(mean), len(bases))) if shares.ndim == 1 else shares
    if shares.shape != (len(mean), len(bases)) or not (shares >= 0).all() or np.abs(shares.sum(axis=1) - 1).max() > 1e-9:
        raise ValueError(
            f"weights must be {len(mean)} distributions over the {len(bases)} kernels, or one for all steps, got "
            f"{np.asarray(weights).tolist()}"
        )
    for kind, kernel in enumerate(bases):
        _check_kernel(kind, kernel)
    root = math.sqrt(len(bases))
    model = MixtureModel(bases.transpose(1, 2, 3, 0) / root, mean, root)
    return _instance(model, model.transitions(root * shares), model.rewards, start, state_names, action_names)


def _check_kernel(kind: int, kernel: FloatArray) -> None:
    """Checks that the rows of one kernel (n_states, n_actions, n_states) are distributions."""
    wrong = (kernel < 0).any(axis=2) | ~(np.abs(kernel.sum(axis=2) - 1) <= 1e-9)
    if wrong.any():
        state, action = (int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(
            f"kernel {kind} leads from state {state}, action {action} to next states with the chances "
            f"{kernel[state, action].tolist()}: they must be a distribution"
        )


def hypercube_chain(dimension: int, horizon: int, gap: float, base: float | None = None) -> Instance:
    r"""The instance of the lower bound for linear mixtures: a chain on which each step's action matters a little.

    States x_1, ..., x_(H+1) are a chain from which action a in {-1, 1}^(d-1) leads to the good state with probability base +
    gap <sign, a> / (d - 1), else one step on; the good state and the chain's end stay. Only the good state pays, 1 a step.
    The unknown `sign` of step h is (-1)^(h + i) in coordinate i, so that no action is best in all steps. Features are, with
    c = gap / (d - 1), alpha^2 = 1 / (1 + gap) and beta^2 = c / (1 + gap),

        phi(next|x_h, a) = (alpha (1 - base), -beta a),    phi(good|x_h, a) = (alpha base, beta a),

    (alpha, 0) where it stays, and w_h = (1 / alpha, c sign / beta), of norm 1 + gap, the model's bound: for all v in [0, 1]
    the squared norm of phi_v is at most alpha^2 + (d - 1) beta^2 = 1.

    Args:
      dimension: d, at least 2; there are 2^(d - 1) actions.
      horizon: H, at least 2; there are H + 2 states.
      gap: largest change of the probability; base - gap and base + gap lie in [0, 1].
      base: None: 1 / H, as in the lower bound.

    Source: Zhou, Gu and Szepesvari (2021), Nearly minimax optimal reinforcement learning for linear mixture Markov decision
    processes, the hard instance of their lower bound, where gap is (d - 1) sqrt(base / K) / (4 sqrt 2) for K episodes. We
    differ: the signs are fixed, and gap and base may be chosen, so that it is as easy as one likes.
    """
    d, length = at_least("dimension", dimension, 2), at_least("horizon", horizon, 2)
    middle = 1 / length if base is None else probability("base", base)
    if not 0 < gap <= min(middle, 1 - middle):
        raise ValueError(f"gap must be above 0 and at most base and 1 - base, with base = {middle:.6g}; got {gap!r}")
    actions = np.array(list(product((-1.0, 1.0), repeat=d - 1)))
    n_states, change = length + 2, gap / (d - 1)
    alpha, beta = math.sqrt(1 / (1 + gap)), math.sqrt(change / (1 + gap))
    features = np.zeros((n_states, len(actions), n_states, d))
    good, steps = n_states - 1, np.arange(length)
    features[steps, :, steps + 1, 0] = alpha * (1 - middle)
    features[steps, :, steps + 1, 1:] = -beta * actions
    features[steps, :, good, 0] = alpha * middle
    features[steps, :, good, 1:] = beta * actions
    for stays in (length, good):
        features[stays, :, stays, 0] = alpha
    rewards = np.zeros((length, n_states, len(actions)))
    rewards[:, good] = 1.0
    model = MixtureModel(features, rewards, 1 + gap)
    signs = (-1.0) ** (np.arange(length)[:, None] + np.arange(d - 1))
    parameters = np.concatenate([np.full((length, 1), 1 / alpha), change / beta * signs], axis=1)
    names = tuple(f"x{h + 1}" for h in range(length + 1))
    shown = tuple("".join("+" if sign > 0 else "-" for sign in action) for action in actions)
    return _instance(model, model.transitions(parameters), rewards, None, (*names, "good"), shown)


SEVERITIES = ("recovered", "mild", "moderate", "severe")
TREATMENTS = ("wait", "drug A", "drug B")
_KINDS = {  # kind of patient -> treatment -> chance that the severity falls by one, and that it rises by one, at a visit
    "self-limiting": ((0.50, 0.05), (0.55, 0.10), (0.55, 0.10)),
    "responds to A": ((0.10, 0.40), (0.80, 0.02), (0.15, 0.35)),
    "responds to B": ((0.10, 0.40), (0.15, 0.35), (0.80, 0.02)),
}
_COMFORT, _BURDEN = (1.0, 0.7, 0.35, 0.0), (0.0, 0.08, 0.08)


def patients(horizon: int = 4, shares: tuple[float, float, float] = (0.2, 0.2, 0.6)) -> Instance:
    """Arriving patients are treated over a few visits; of which kinds they are nobody knows beforehand. All is made up.

    States are severities, actions treatments. A patient's disease is of one of three kinds: it passes by itself, or it
    responds to one of two drugs. How each kind takes its course is known, from trials; the shares of the kinds among those
    who come are not: a linear mixture in them. What a visit pays is public: the patient's comfort, less what a treatment
    burdens. Patients arrive moderate or severe. One patient's course of illness is the record that must stay private.

    Args:
      horizon: visits of a patient.
      shares: of the kinds self-limiting, responds to A, responds to B.

    Source: none; the numbers are invented, of the kind that such a study would have.
    """
    at_least("horizon", horizon, 1)
    kernels = np.zeros((len(_KINDS), 4, 3, 4))
    for kind, chances in enumerate(_KINDS.values()):
        for action, severity in product(range(3), range(4)):
            better, worse = chances[action]
            for moved, chance in ((-1, better), (1, worse), (0, 1 - better - worse)):
                kernels[kind, severity, action, min(max(severity + moved, 0), 3)] += chance
        kernels[kind, 0] = np.eye(4)[0]  # who has recovered stays well
    rewards = np.maximum(np.array(_COMFORT)[:, None] - np.array(_BURDEN), 0.0)
    return kernel_mixture(
        kernels, shares, np.broadcast_to(rewards, (horizon, 4, 3)), (0.0, 0.0, 0.5, 0.5), SEVERITIES, TREATMENTS
    )  # fmt: skip


def modes(
    n_states: int, n_actions: int, dimension: int, horizon: int, seed: np.random.SeedSequence, sharpness: float = 4.0
) -> Instance:
    r"""A linear process of low rank: each action mixes d modes, and each mode has a law of the next state and a reward.

    phi(s, a) is a distribution over the modes, mu_h(s') the modes' laws, theta_h their rewards: p_h(s'|s, a) = <phi(s, a),
    mu_h(s')>. Mode 0 pays 1 and the others an evenly falling part of 1/2, in all steps; mode i leads to states near i S / d.
    Norms are those of the definition: |phi| <= 1, |sum mu v| <= sqrt d, |theta| <= sqrt d.

    Args:
      n_states: S, at least 2.
      n_actions: A, at least 2.
      dimension: d, at least 2.
      horizon: H, at least 1.
      seed: of features.
      sharpness: above 0; larger ones make features nearer to single modes, and actions differ more: the easier.

    Source: the simplex example of Jin and others (2020), Provably efficient reinforcement learning with linear function
    approximation; the numbers are drawn.
    """
    for name, value in (("n_states", n_states), ("n_actions", n_actions), ("dimension", dimension)):
        at_least(name, value, 2)
    at_least("horizon", horizon, 1)
    if not (math.isfinite(sharpness) and sharpness > 0):
        raise ValueError(f"sharpness must be a positive number, got {sharpness!r}")
    generator = np.random.Generator(np.random.SFC64(seed))
    features = np.exp(sharpness * generator.standard_normal((n_states, n_actions, dimension)))
    features /= features.sum(axis=2, keepdims=True)
    middles = np.arange(dimension) * n_states / dimension
    laws = np.exp(-np.abs(np.arange(n_states)[:, None] - middles))
    laws /= laws.sum(axis=0)
    pays = np.append(1.0, np.linspace(0.5, 0.0, dimension)[1:])
    model = LinearModel(features, horizon)
    transitions = model.transitions(np.broadcast_to(laws, (horizon, *laws.shape)))
    rewards = model.rewards(np.broadcast_to(pays, (horizon, dimension)))
    return _instance(model, transitions, rewards, None, (), ())


def one_hot(instance: Instance) -> Instance:
    """The same process as a linear one, with a feature of its own for each state and action: d = S A.

    Measures are the rows of the kernel, rewards their own parameters; all norms are in their bounds, as rows sum to 1.
    """
    names = instance.state_names, instance.action_names
    return tabular(instance.transitions, instance.rewards, instance.start, *names)


def tabular(
    transitions: ArrayLike,
    rewards: ArrayLike,
    start: ArrayLike | None = None,
    state_names: tuple[str, ...] = (),
    action_names: tuple[str, ...] = (),
) -> Instance:
    """A process without structure as a linear one, with a feature of its own for each state and action.

    Args: as in `Instance`, and
      rewards: (horizon, n_states, n_actions), means in [0, 1].
      start: (n_states,) distribution of the first state; None: always state 0.

    Raises:
      ValueError: a row is no distribution, a mean leaves [0, 1], or shapes disagree.
    """
    kernel = checked_transitions(transitions)
    length, n_states, n_actions, _ = kernel.shape
    d = n_states * n_actions
    means = checked_rewards(rewards, (n_states, n_actions))
    if len(means) != length:
        raise ValueError(f"rewards must be of {length} steps, as transitions are, got {len(means)}")
    model = LinearModel(np.eye(d).reshape(n_states, n_actions, d), length)
    law = model.transitions(kernel.reshape(length, d, n_states).transpose(0, 2, 1))
    return _instance(model, law, model.rewards(means.reshape(length, d)), start, state_names, action_names)


def _instance(
    model: MixtureModel | LinearModel,
    transitions: FloatArray,
    rewards: FloatArray,
    start: ArrayLike | None,
    state_names: tuple[str, ...],
    action_names: tuple[str, ...],
) -> Instance:
    n_states, n_actions = model.n_states, model.n_actions
    return Instance(
        model, transitions, checked_rewards(rewards, (n_states, n_actions)), checked_start(start, n_states),
        state_names or tuple(f"state {s}" for s in range(n_states)),
        action_names or tuple(f"action {a}" for a in range(n_actions)),
    )  # fmt: skip
