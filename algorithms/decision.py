"""Decision of an algorithm that identifies the best arm: its recommendation, and the round at which it stopped."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import Algorithm, IntArray


class Decision(NamedTuple):
    """A recommendation in each replicate."""

    arm: IntArray
    """(n_reps,) the arm that is recommended; of a test that has not stopped, the one that looks best."""
    stopped: IntArray
    """(n_reps,) rounds after which the test stopped; 0 where it has not."""


def decision(algorithm: Algorithm, released: Any, labels: IntArray | None = None) -> Decision | None:
    """Returns what an algorithm recommends after a run; None if it identifies nothing.

    Guarantee: a function of released values, so that it costs no privacy.

    Args:
      algorithm: one that identifies the best arm has a method `decide(released) -> Decision`.
      released: its last state.
      labels: as for `bandana.algorithms.run.run`; the arm is the stream's.
    """
    decide = getattr(algorithm, "decide", None)
    if decide is None:
        return None
    outcome: Decision = decide(released)
    return outcome if labels is None else outcome._replace(arm=labels[np.arange(len(labels)), outcome.arm])
