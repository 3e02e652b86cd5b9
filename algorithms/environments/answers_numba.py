"""Answers of streams: sums over spans of a table's column, and single Bernoulli draws."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def span_sums(prefix, unit, user, n_records, actions, out):  # type: ignore[no-untyped-def]
    """out[r] = (prefix[user + n_records, action] - prefix[user, action]) * unit.

    prefix: (n_users + 1, n_actions) int64; the others (n_reps,).
    """
    for r in range(len(user)):
        a = actions[r]
        out[r] = (prefix[user[r] + n_records[r], a] - prefix[user[r], a]) * unit


@njit(cache=True, nogil=True)
def bernoulli_answers(uniform, means, n_records, actions, out):  # type: ignore[no-untyped-def]
    """out[r] = 1 where uniform[r] < means[action] and n_records[r] is 1, else 0. means: (n_actions,), else (n_reps,)."""
    for r in range(len(out)):
        # Assigning the comparison itself avoids a branch, which would be unpredictable.
        out[r] = (uniform[r] < means[actions[r]]) & (n_records[r] > 0)
