"""Rows of later actions, computed from all rounds at once."""

import numpy as np

from bandana.audits.replays.later_actions import RUNS, Layout


def later_features(actions, record, n_actions):
    """The rows that `LaterActions` gathers.

    Args:
      actions: (n_reps, n_rounds), each in [0, n_actions).
      record: the canary's position, in [0, n_rounds).
      n_actions: number of actions.

    Returns:
      (n_reps, n_features)
    """
    n_reps, n_rounds = actions.shape
    at = Layout(n_actions, n_rounds - record - 1)
    later, rows = actions[:, record + 1 :], at.empty(n_reps)
    is_played = [later == arm for arm in range(n_actions)]
    rows[:, at.counts] = np.stack([played.sum(axis=1) for played in is_played], axis=1)
    for index, window in enumerate(at.windows.tolist()):
        for arm in range(n_actions - 1):
            rows[:, at.early.start + index * (n_actions - 1) + arm] = is_played[arm][:, :window].sum(axis=1)
    if not at.n_later:
        return rows
    is_new = np.concatenate([np.ones((n_reps, 1), dtype=bool), later[:, 1:] != later[:, :-1]], axis=1)
    rank = np.cumsum(is_new, axis=1) - 1
    rows[:, -1] = rank[:, -1]
    replicate, at_round = np.nonzero(is_new & (rank < RUNS))
    run = rank[replicate, at_round]
    rows[replicate, at.arms.start + run] = later[replicate, at_round]
    begun = run > 0
    rows[replicate[begun], at.starts.start + run[begun] - 1] = at_round[begun]
    return rows
