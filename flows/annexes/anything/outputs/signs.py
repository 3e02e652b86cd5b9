"""Signs of scores: guesses with equal weights, cut where both sides differ most."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bandana.algorithms.protocol import FloatArray
from bandana.audits.replays.classifiers import Scorer


def with_signs(scorers: Mapping[str, Scorer], data: NDArray[np.generic], neighbor: NDArray[np.generic]) -> dict[str, Scorer]:
    """The sign of each score at its most telling cut: 1 above it, and -1 elsewhere.

    Args:
      scorers: name -> score.
      data: (n, ...) what scores take, of the data set; those that the scores were learned from, or others.
      neighbor: (m, ...) the same of the neighbor.
    """

    def sign(scorer: Scorer) -> Scorer:
        cut = _telling_cut(scorer(data), scorer(neighbor))
        return lambda x: np.where(scorer(x) > cut, 1.0, -1.0)

    return {f"sign of {name}": sign(scorer) for name, scorer in scorers.items()}


def _telling_cut(data: FloatArray, neighbor: FloatArray) -> float:
    """The score up to which the shares of both sides differ most.

    A guess by every run, with all weights equal, is the best one where the likelihood ratio takes two values, as of counts
    with geometric noise; a ratio that is learned value by value makes rare values stand out by luck, and drops the others.

    Args:
      data: (n,) scores of the data set.
      neighbor: (m,) scores of the neighbor.
    """
    values = np.unique(np.concatenate([data, neighbor]))
    shares = [np.searchsorted(np.sort(side), values, "right") / len(side) for side in (data, neighbor)]
    return float(values[np.argmax(np.round(shares[0] - shares[1], 12))])
