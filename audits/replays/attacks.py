"""Attacks of adversaries with several views: one score a replay, larger where the neighbor is likelier.

An attack is fitted on some replays of both sides and scores others. Replays are split once and for all: a quarter to learn
from, a quarter to choose among attacks (and thresholds) by, and half for the bound, which nothing was chosen on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.ties import is_larger
from bandana.audits.outcome import ACTIONS, REPORT, TRANSCRIPT
from bandana.audits.replays.classifiers import FINE, Matrix, learn_counts, learn_logistic, learn_stumps
from bandana.audits.replays.later_actions import Features, Layout, first_divergence, most_common
from bandana.audits.replays.replay import Replays

TRAIN_SHARE, SELECT_SHARE = 0.25, 0.25
_MOST_LEARNED, _MOST_COMPARED = 1 << 13, 1 << 13
_MOST_ROUNDS = 64
_MOST_ONE_HOT = 8

Scorer = Callable[[Replays], FloatArray]


class Parts(NamedTuple):
    """One side's replays, each in one part; the bound part must be scored only after everything was chosen."""

    train: Replays
    select: Replays
    bound: Replays


def split(replays: Replays) -> Parts:
    """A quarter to learn from, a quarter to choose by, and the rest.

    Raises:
      ValueError: fewer than four replays.
    """
    n = len(replays)
    if n < 4:
        raise ValueError(f"replays must be at least 4 to be split in three parts, got {n}")
    first, second = int(TRAIN_SHARE * n), int((TRAIN_SHARE + SELECT_SHARE) * n)
    return Parts(replays[:first], replays[first:second], replays[second:])


@dataclass(frozen=True)
class Attack:
    """One way to tell the sides apart.

    Attributes:
      name: for the report.
      view: what it sees: the whole transcript, the canary's own messages, or the actions of the users after it.
      fit: (replays of the data set, replays of the neighbor) to learn from -> a function from other replays to (n_replays,)
        scores, float64, no NaN where the replays have none, larger where the neighbor is likelier.
    """

    name: str
    view: str
    fit: Callable[[Replays, Replays], Scorer]


@dataclass(frozen=True)
class Chosen:
    """The attack that promised most.

    Attributes:
      attack: which.
      scorer: fitted; to be applied to the parts that bounds are taken from.
      promise: what it promised on the selecting part.
    """

    attack: Attack
    scorer: Scorer
    promise: float


def strongest(
    attacks: Sequence[Attack], data: Replays, neighbor: Replays, select: Callable[[FloatArray, FloatArray], float]
) -> Chosen:
    """Fits attacks on one part of the replays and takes the one that promises most on another.

    Args:
      attacks: of one view, at least one; of equal promises the first counts.
      data: replays of the data set, all of them: the parts are those of `split`.
      neighbor: the same of the neighbor.
      select: (data scores, neighbor scores) -> promise, of any scale.

    Returns:
      the attack, fitted. It depends on the train and select parts alone, so that scores of the bound parts are fresh.

    Raises:
      ValueError: no attacks, or of several views.
    """
    if len({attack.view for attack in attacks}) != 1:
        raise ValueError(f"attacks must be at least one, all of one view, got {[attack.view for attack in attacks]}")
    (train, chosen_by, _), (train_n, chosen_by_n, _) = split(data), split(neighbor)
    best: Chosen | None = None
    for attack in attacks:
        scorer = attack.fit(train, train_n)
        promise = float(select(scorer(chosen_by), scorer(chosen_by_n)))
        if best is None or is_larger(promise, best.promise):
            best = Chosen(attack, scorer, promise)
    assert best is not None
    return best


def likelihood_ratio(replays: Replays) -> FloatArray:
    """(n_replays,) the exact log-likelihood ratio of the transcript: no test of the transcript is more powerful.

    View: every release and every action. Source: the Neyman-Pearson lemma.
    """
    return replays.log_ratio


def report_ratio(replays: Replays) -> FloatArray:
    """(n_replays,) the exact log-likelihood ratio of what the canary alone sent.

    View: the messages that one user sends, given what was public before them: what local DP protects.
    """
    return replays.report_log_ratio


def fit_codes(data: Replays, neighbor: Replays) -> Scorer:
    """Learns the log odds of each sequence of arms in the first phases by counting, with half a count added to each."""
    counted = learn_counts(data.action_code, neighbor.action_code)
    return lambda replays: counted(replays.action_code)


def fit_divergence(data: Replays, neighbor: Replays) -> Scorer:
    """Learns the log odds of when the actions leave the commonest sequence of actions, by counting.

    Rounds are distinguished one by one where few occur, else in bins that grow with the round.
    """
    layout = _layout(data, neighbor)
    compared = np.concatenate([side.actions[:_MOST_COMPARED] for side in (data, neighbor)])
    reference = most_common(compared, layout)
    rounds = [first_divergence(side.actions, layout, reference) for side in (data, neighbor)]
    seen = np.unique(np.concatenate(rounds))
    if len(seen) > _MOST_ROUNDS:
        seen = np.unique(np.append(np.geomspace(1, max(1, layout.n_later), _MOST_ROUNDS).astype(np.int64), layout.n_later))
    counted = learn_counts(*(_bin(seen, side) for side in rounds))
    return lambda replays: counted(_bin(seen, first_divergence(replays.actions, layout, reference)))


def _bin(edges: IntArray, rounds: IntArray) -> IntArray:
    return np.searchsorted(edges, rounds, side="right").astype(np.int64)


def _fit_columns(
    learn: Callable[[Matrix, FloatArray], Callable[[Matrix], FloatArray]], columns: Callable[[Features, Layout], Matrix]
) -> Callable[[Replays, Replays], Scorer]:
    """Learns log odds from columns of what is kept of the later actions."""

    def fit(data: Replays, neighbor: Replays) -> Scorer:
        layout = _layout(data, neighbor)
        sides = [columns(side.actions[:_MOST_LEARNED], layout) for side in (data, neighbor)]
        learned = learn(np.concatenate(sides), np.repeat([0.0, 1.0], [len(side) for side in sides]))
        return lambda replays: learned(columns(replays.actions, layout))

    return fit


def _layout(data: Replays, neighbor: Replays) -> Layout:
    if data.layout is None or data.layout != neighbor.layout:
        raise ValueError(
            f"both sides must hold later actions of one layout, as from replay; got {data.layout} and {neighbor.layout}"
        )
    return data.layout


def _one_hot(rows: Features, layout: Layout) -> Features:
    """The rows; where there are three to eight actions, with those of the first runs one by one instead of their numbers."""
    if not 2 < layout.n_actions <= _MOST_ONE_HOT:
        return rows
    arms = rows[:, layout.arms]
    hot = [(arms == arm).astype(np.float32) for arm in range(layout.n_actions)]
    return np.concatenate([rows[:, : layout.arms.start], rows[:, layout.arms.stop :], *hot], axis=1)


ALL: tuple[Attack, ...] = (
    Attack("exact likelihood ratio", TRANSCRIPT, lambda data, neighbor: likelihood_ratio),
    Attack("exact likelihood ratio of the report", REPORT, lambda data, neighbor: report_ratio),
    Attack("counted log odds", ACTIONS, fit_codes),
    Attack("action counts", ACTIONS, _fit_columns(learn_logistic, lambda rows, layout: rows[:, layout.counts])),
    Attack("first divergence", ACTIONS, fit_divergence),
    Attack("logistic regression", ACTIONS, _fit_columns(learn_logistic, _one_hot)),
    Attack("boosted stumps", ACTIONS, _fit_columns(partial(learn_stumps, quantiles=FINE), _one_hot)),
)
"""All attacks; the first two are exact and learn nothing."""


def of_view(view: str) -> tuple[Attack, ...]:
    """The attacks of one view.

    Raises:
      ValueError: there is no such view.
    """
    attacks = tuple(attack for attack in ALL if attack.view == view)
    if not attacks:
        raise ValueError(f"view must be one of {sorted({str(attack.view) for attack in ALL})}, got {view!r}")
    return attacks
