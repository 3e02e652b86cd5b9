"""Methods of published auditors of raw outputs, re-created: each says whether samples refute (epsilon, delta).

Their code is not on the package index. Each takes (n, k) numbers of both sides, in the order in which they were drawn,
learns on the first half and decides on the second, at a level that bounds how often an honest mechanism is refuted.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bandana.algorithms.protocol import FloatArray

Sides = tuple[FloatArray, FloatArray]
_BINS, _LARGEST_TRAINING = 20, 20_000
_TOP = 0.01
"""Share of the outputs that DP-Sniper's event takes."""
_BLOCK, _REMEMBERED = 500, 500


def logistic_score(data: FloatArray, neighbor: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A score that is larger where the neighbor is likelier: the log odds of a logistic regression."""
    n = min(len(data), len(neighbor), _LARGEST_TRAINING)
    learned = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learned.fit(np.concatenate([data[:n], neighbor[:n]]), np.repeat([0, 1], n))
    return lambda outputs: np.asarray(learned.decision_function(outputs), dtype=float)


def histogram(data: FloatArray, neighbor: FloatArray, epsilon: float, delta: float, level: float) -> bool:
    """Cells of quantiles of one output each; the event holds all cells that the claim is too small for on the first half.

    Source: the histogram tester of Kong, Munoz Medina, Ribero, Syed (2023), "DP-Auditorium".
    """
    share, half = level / (2 * data.shape[1]), len(data) // 2
    for column in range(data.shape[1]):
        sides = data[:, column], neighbor[:, column]
        both = np.concatenate([side[:half] for side in sides])
        edges = np.unique(np.quantile(both, np.linspace(0, 1, _BINS + 1)[1:-1], method="lower"))
        cells = [np.searchsorted(edges, side, side="right") + (_BINS + 1) * np.isin(side, edges) for side in sides]
        for one, other in ((0, 1), (1, 0)):
            counts = [np.bincount(cells[side][:half], minlength=2 * _BINS + 2) for side in (one, other)]
            event = counts[0] > math.exp(epsilon) * counts[1]
            hits = [event[cells[side][half:]] for side in (one, other)]
            if _is_refuted(hits[0], hits[1], epsilon, delta, share):
                return True
    return False


def hockey_stick(data: FloatArray, neighbor: FloatArray, epsilon: float, delta: float, level: float) -> bool:
    """The event where a small network finds one side more than e^epsilon times as likely as the other.

    Source: the hockey-stick tester of Kong, Munoz Medina, Ribero, Syed (2023), "DP-Auditorium".
    """
    half = len(data) // 2
    n = min(half, _LARGEST_TRAINING)
    learned = make_pipeline(StandardScaler(), MLPClassifier((100,), early_stopping=True, max_iter=50, random_state=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learned.fit(np.concatenate([data[:n], neighbor[:n]]), np.repeat([0, 1], n))
    likely = [np.asarray(learned.predict_proba(side[half:]))[:, 1] for side in (data, neighbor)]
    sure = 1 / (1 + math.exp(-epsilon))
    return _is_refuted(likely[1] > sure, likely[0] > sure, epsilon, delta, level / 2) or _is_refuted(
        likely[0] < 1 - sure, likely[1] < 1 - sure, epsilon, delta, level / 2
    )


def sniper(data: FloatArray, neighbor: FloatArray, epsilon: float, delta: float, level: float) -> bool:
    """The most telling 1 % of the outputs, by a logistic regression; ties at its border are thinned by coins.

    Source: Bichsel, Steffen, Bogunovic, Vechev (2021), "DP-Sniper". It knows pure epsilon only, where delta is 0.
    """
    half = len(data) // 2
    score = logistic_score(data[:half], neighbor[:half])
    coins = np.random.default_rng(0)
    for one, other, sign in ((neighbor, data, 1.0), (data, neighbor, -1.0)):
        scores = [sign * score(side) for side in (one, other)]
        border = float(np.quantile(scores[1][:half], 1 - _TOP, method="lower"))
        above, ties = float(np.mean(scores[1][:half] > border)), float(np.mean(scores[1][:half] == border))
        share = 0.0 if ties == 0 else min(1.0, max(0.0, (_TOP - above) / ties))
        hits = [(s[half:] > border) | ((s[half:] == border) & (coins.random(len(s) - half) < share)) for s in scores]
        if _is_refuted(hits[0], hits[1], epsilon, 0.0, level / 2):
            return True
    return False


def sequential_mmd(data: FloatArray, neighbor: FloatArray, epsilon: float, delta: float, level: float) -> bool:
    """Wagers against the claim, block by block: what is won is a likelihood of at most 1 on average while it holds.

    The stake is a witness of the kernel mean embeddings of the outputs so far, cut to [0, 1]; it pays its value on one side
    less e^epsilon times its value on the other, in units of the largest loss. A mixture of five stakes is held, and the
    claim is refuted when the wealth exceeds one over the level.

    Source: the sequential test of "Sequentially auditing differential privacy" (arXiv 2509.07055); pure epsilon only.
    """
    scale = np.concatenate([data[:_BLOCK], neighbor[:_BLOCK]])
    center, spread = scale.mean(axis=0), scale.std(axis=0)
    spread[spread == 0] = 1.0
    data, neighbor = (data - center) / spread, (neighbor - center) / spread
    stakes, ratio = np.array([0.02, 0.05, 0.1, 0.3, 0.9]), math.exp(epsilon)
    for one, other in ((neighbor, data), (data, neighbor)):
        wealth = np.zeros(len(stakes))
        for start in range(_BLOCK, len(data) - _BLOCK + 1, _BLOCK):
            past = slice(max(0, start - _REMEMBERED), start)
            now = slice(start, start + _BLOCK)
            witness = _witness(one[past], other[past], ratio)
            reached = float(np.quantile(np.abs(witness(one[past])), 0.95)) or 1.0
            payoff = (
                np.clip(witness(one[now]) / reached, 0, 1) - ratio * np.clip(witness(other[now]) / reached, 0, 1)
            ) / ratio
            wealth += np.log1p(stakes[:, None] * payoff).sum(axis=1)
            if np.logaddexp.reduce(wealth) - math.log(len(stakes)) > math.log(2 / level):
                return True
    return False


def _witness(one: FloatArray, other: FloatArray, ratio: float) -> Callable[[FloatArray], FloatArray]:
    """x -> mean k(x, one) - ratio mean k(x, other), with a Gaussian kernel as wide as the root of the number of columns."""
    width = 2.0 * one.shape[1]

    def kernel(x: FloatArray, y: FloatArray) -> FloatArray:
        squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T
        return np.asarray(np.exp(-np.maximum(squares, 0.0) / width))

    return lambda x: kernel(x, one).mean(axis=1) - ratio * kernel(x, other).mean(axis=1)


def _is_refuted(hits: NDArray[np.bool_], others: NDArray[np.bool_], epsilon: float, delta: float, level: float) -> bool:
    """Whether P(event) exceeds e^epsilon P'(event) + delta, by Clopper-Pearson limits of half the level each."""
    n, m, k, j = len(hits), len(others), int(hits.sum()), int(others.sum())
    low = 0.0 if k == 0 else float(stats.beta.ppf(level / 2, k, n - k + 1))
    high = 1.0 if j == m else float(stats.beta.ppf(1 - level / 2, j + 1, m - j))
    return low > math.exp(epsilon) * high + delta


RECREATED = {
    "histogram": ("dp_auditorium's histogram tester", histogram, False),
    "hockey-stick": ("dp_auditorium's hockey-stick tester", hockey_stick, False),
    "sniper": ("DP-Sniper", sniper, True),
    "mmd": ("sequential MMD", sequential_mmd, True),
}
"""Name -> words, function, and whether it knows pure epsilon only."""
