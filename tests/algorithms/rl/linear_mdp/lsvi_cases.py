"""What the tests of LSVI-UCB play on, and the algorithm as the paper writes it, with a memory of all episodes."""

from __future__ import annotations

import dataclasses

import numpy as np

from bandana.algorithms.environments.episodes import EpisodeTable
from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.rl.linear_mdp.forms import LSVI
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, Interval, PureDP

UNIT = Interval(0.0, 1.0)
LENGTH, N_STATES, N_ACTIONS, D, HORIZON = 3, 3, 2, 4, 60
DELTA = 1e-5


def features(seed=0):
    """Features of mixed signs, the first of norm 1, the others shorter."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N_STATES, N_ACTIONS, D))
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    return x * np.linspace(1, 0.4, N_STATES * N_ACTIONS).reshape(N_STATES, N_ACTIONS, 1)


MODEL = LinearModel(features(), LENGTH)


def table(seed=0, n_users=HORIZON):
    rng = np.random.default_rng(seed)
    shape = (n_users, LENGTH, N_STATES, N_ACTIONS)
    return EpisodeTable(rng.integers(N_STATES, size=n_users), rng.integers(N_STATES, size=shape), rng.random(shape), UNIT)


def with_user(data, user, seed=1):
    """The same data set but for one user, whose whole tree is another one."""
    other = table(seed, 1)
    first, after, rewards = data.first_states.copy(), data.next_states.copy(), data.rewards.copy()
    first[user], after[user], rewards[user] = other.first_states[0], other.next_states[0], other.rewards[0]
    return EpisodeTable(first, after, rewards, UNIT)


TABLE = table()
_SCHEMES = {
    "printed": {"n_batches": 6},
    "static": {"batches": "static", "n_batches": 6},
    "geometric": {"batches": "geometric"},
    "determinant": {"batches": "determinant", "switch": 0.05},
}


def _private(kind, scheme):
    promise = ApproxDP(1.0, DELTA) if kind == "joint" else PureDP(1.0)
    calibration = scheme if scheme == "printed" else "tight"
    return lambda **more: LSVI(MODEL, HORIZON, **{**_SCHEMES[scheme], **more}).private(promise, calibration)


def _twin(scheme):
    return lambda **more: LSVI(MODEL, HORIZON, **{**_SCHEMES[scheme], **more}).twin()


PRIVATE = {f"{kind} {scheme}": _private(kind, scheme) for kind in ("joint", "pure") for scheme in _SCHEMES}
TWINS = {scheme: _twin(scheme) for scheme in _SCHEMES if scheme != "printed"}


def played(algorithm, ledger, data=TABLE):
    """Actions (n_reps, horizon, length), and both states."""
    log = ActionLog()
    sensitive, released = run(algorithm, data, ledger, observers=[log])
    return np.array(log.actions).T.reshape(ledger.n_reps, data.n_users, -1), sensitive, released


def quiet(algorithm, factor=1e-9):
    """The same algorithm with a part of its noise, and bounds to match."""
    return dataclasses.replace(
        algorithm,
        matrices=dataclasses.replace(algorithm.matrices, mechanism=algorithm.matrices.mechanism.scaled(factor)),
        vectors=tuple(mechanism.scaled(factor) for mechanism in algorithm.vectors),
        matrix_norms=tuple(norm * factor for norm in algorithm.matrix_norms),
        vector_norms=tuple(norm * factor for norm in algorithm.vector_norms),
    )


def as_written(algorithm, data, matrix_noise, vector_noise):
    """Algorithm 2 with a list of all episodes, on one replicate, where every look is an update.

    Args:
      algorithm: its public numbers.
      data: the users.
      matrix_noise: look -> (H, d, d) in the running sum.
      vector_noise: look, step -> (d,).

    Returns:
      actions (horizon, length), the last weights (H, d), the last values (H + 1, S).
    """
    phi, length, episodes, actions = algorithm.model.features, algorithm.episode_length, [], []
    q, weights, values = None, None, None
    for k in range(data.n_users):
        state, trajectory = int(data.first_states[k]), []
        for h in range(length):
            a = k // N_ACTIONS**h % N_ACTIONS if q is None else int(np.argmax(q[h][state]))
            after, reward = int(data.next_states[k, h, state, a]), float(data.rewards[k, h, state, a])
            trajectory.append((state, a, reward, after))
            state = after
        episodes.append(trajectory)
        actions.append([a for _, a, _, _ in trajectory])
        if k + 1 not in algorithm.schedule.looks:
            continue
        look = algorithm.schedule.looks.index(k + 1) + 1
        added, widths = algorithm.regularizer(look).added, algorithm.widths(look)
        q, weights = [None] * length, np.zeros((length, D))
        values = np.zeros((length + 1, N_STATES))
        for h in range(length - 1, -1, -1):
            gram, u = added * np.eye(D) + matrix_noise(look)[h], vector_noise(look, h).copy()
            for episode in episodes:
                s, a, reward, after = episode[h]
                gram += np.outer(phi[s, a], phi[s, a])
                u += phi[s, a] * (reward + values[h + 1, after] - algorithm.centers[h])
            weights[h] = np.linalg.solve(gram, u)
            norms = np.sqrt(np.einsum("sai,ij,saj->sa", phi, np.linalg.inv(gram), phi))
            q[h] = algorithm.centers[h] + phi @ weights[h] + widths[h] * norms
            values[h] = np.clip(q[h].max(axis=1), 0, algorithm.caps[h])
    return np.array(actions), weights, values


def goe_of(scale, weight):
    """(d, d) constant noise 1 on the packed triangle, unpacked."""
    noise = np.full((D, D), scale)
    np.fill_diagonal(noise, scale / weight)
    return noise
