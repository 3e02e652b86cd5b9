"""What an adversary computes from what it sees: one score a replay, larger where the neighbor is likelier."""

from __future__ import annotations

import numpy as np

from algorithms.protocol import FloatArray
from audits.replay import Replays


def likelihood_ratio(replays: Replays) -> FloatArray:
    """(n_replays,) the exact log-likelihood ratio of the transcript: no test of the transcript is more powerful.

    View: every release and every action. Source: the Neyman-Pearson lemma.
    """
    return replays.log_ratio


def learned_log_odds(data: Replays, neighbor: Replays, replays: Replays) -> FloatArray:
    """(n_replays,) log odds of the later actions, learned from other replays.

    View: the arms played in the phases after the canary, and nothing else. Each sequence of arms is scored by its log
    odds in `data` and `neighbor`, with half a count added to each.

    Args:
      data: replays of the data set to learn from.
      neighbor: replays of the neighbor to learn from.
      replays: the replays to score; they must not be among those learned from.
    """
    size = int(max(r.action_code.max() for r in (data, neighbor, replays))) + 1
    counts = [np.bincount(r.action_code, minlength=size) + 0.5 for r in (neighbor, data)]
    log_odds = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    return np.asarray(log_odds[replays.action_code])
