"""The search for generators that rewards seed, in a plain function of (rewards, seed): neighbors of drawn tables, one seed.

A bandit may well seed generators by what it played, say one for each arm: where a reward changes its later play, later seeds
differ too, and nothing is wrong. So seeds are compared only where a reward cannot have changed them by way of an action:
where all actions agree, or where some differ that were played before the reward was paid.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.external.drawn import Menu
from bandana.audits.external.plays import Play, play_rewards
from bandana.audits.external.releases.coupling import Coupling, Seeds, differ

_TABLES = 4
_MOST_RECORDS = 64


def compare_plays(play: Play, menu: Menu, shape: tuple[int, int], seed: int) -> Coupling:
    """Plays drawn tables and, with the same seed, each again with the reward of one record replaced.

    Every record is replaced in each of four tables, or 64 that are drawn and the last one, if there are more; on half of the
    tables rewards are from the ends of the range, on the others from the whole menu.

    Args:
      play: (rewards, seed) -> actions, see `bandana.audits.external.plays.play_rows`.
      menu: values of rewards.
      shape: rounds and arms.
      seed: of tables, records and runs.
    """
    rng, n_seen, last = np.random.default_rng([seed, 14]), 0, shape[0] - 1
    numbers = rng.integers(0, 2**32, _TABLES).tolist()
    with Seeds.watched() as seeds:

        def run(codes: IntArray, number: int) -> tuple[IntArray | None, list[Any]]:
            rewards = np.broadcast_to(menu.values[codes][None, :, None], (1, *shape))
            return seeds.of(partial(_played, play, rewards, number))

        for table, number in enumerate(numbers):
            n_values = len(menu) if table % 2 else 2
            codes = rng.integers(0, n_values, shape[0])
            actions, handed = run(codes, number)
            chosen = rng.permutation(last)[:_MOST_RECORDS].tolist()
            for record in (last, *sorted(chosen)) if actions is not None else ():
                changed = codes.copy()
                changed[record] = (codes[record] + rng.integers(1, n_values)) % n_values
                others, handed_there = run(changed, number)
                if actions is None or others is None or not is_telling(actions, others, record):
                    continue
                n_seen += len(handed)
                if differ(handed, handed_there):
                    return Coupling.found(n_seen, number, f"a neighbor that differs in record {record}")
    return Coupling(n_seen)


def is_telling(data: IntArray, neighbor: IntArray, record: int) -> bool:
    """Whether seeds cannot differ by way of an action: all agree, or some differ up to the record's own.

    Args:
      data: (..., n_rounds) actions on a data set.
      neighbor: the same on its neighbor.
      record: the first one in which they differ.
    """
    if np.ndim(data) == 0 or np.shape(data) != np.shape(neighbor):
        return False  # a run that failed has no actions
    differs = np.asarray(data) != np.asarray(neighbor)
    return not differs.any() or bool(differs[..., : record + 1].any())


def _played(play: Play, rewards: FloatArray, seed: int) -> IntArray | None:
    """The actions; None where it fails, which other runs will tell."""
    try:
        return play_rewards(play, rewards, seed)
    except Exception:
        return None
