"""Replays of pairs of neighbors, what adversaries with several views make of them, and bounds that hold together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bandana.algorithms.environments.data_sets import Change
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm, FloatArray
from bandana.audits.bounds import methods
from bandana.audits.bounds.methods import method_of
from bandana.audits.claims import Quantity
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.outcome import ACTIONS, ONE_RUN, Effort, Scores, StatedBound, View
from bandana.audits.plan import PlannedBound
from bandana.audits.replays import attacks, one_run
from bandana.audits.replays.replay import Replays, replay_both
from bandana.privacy_core import GaussianDP, PureDP

_ONE_RUN_ROUNDS = 4096
_LARGEST_RATIO = 3e38


class NotANumber(ValueError):  # noqa: N818  (it says what the scores are)
    """Scores of a view from which no bound can be taken."""

    def __init__(self, view: View) -> None:
        super().__init__(f"some scores of the {view} are NaN")
        self.view = view


@dataclass(frozen=True)
class Measurement:
    """All bounds on one algorithm; they hold together with probability at least 1 - `failure` of the request.

    Attributes:
      bounds: one for each planned bound and pair.
      scores: what they were computed from.
    """

    bounds: tuple[StatedBound, ...]
    scores: Scores

    def lower(self, quantity: Quantity) -> float:
        """The largest lower bound on the quantity; 0 if there is none."""
        return max((bound.lower for bound in self.bounds if bound.quantity == quantity), default=0.0)


def state(
    planned: PlannedBound,
    attack: str,
    pair: Pair,
    scores: tuple[FloatArray, FloatArray],
    name: str,
    level: float,
    effort: Effort,
) -> StatedBound:
    """Takes one bound and states it with its method and parameters."""
    is_learned = planned.view == ACTIONS
    method, parameters = method_of(planned.quantity, effort.seed, is_learned)
    lower = methods.bound(method, *scores, level, **parameters)
    return StatedBound(planned.view, attack, pair.difference, planned.quantity, method, parameters, level, lower, name)


def measure(
    algorithm: Algorithm,
    pairs: Iterable[Pair],
    effort: Effort,
    plan: tuple[PlannedBound, ...],
    *,
    failure: float | None = None,
    replays: Sequence[int] | None = None,
    enough: float = math.inf,
) -> Measurement:
    """Replays each pair on both sides and bounds the privacy loss from below, in each view.

    The transcript's score is exact and needs no learning: all its replays go into the bound, which holds out the few that it
    designs itself on. What is seen in the actions is learned on one quarter of the replays, the best attack is chosen on
    another, and the bound is taken on the rest. The failure probability is split between all bounds (Bonferroni), over
    planned bounds by their shares and over pairs evenly.

    Args:
      algorithm: what to audit.
      pairs: neighbors to try, at least one.
      effort: how many replays, and the confidence.
      plan: bounds to take; the first one decides what is enough.
      failure: probability with which some bound exceeds the truth, at most; 1 - confidence if None.
      replays: of each side of each pair, for all that share the failure probability; the effort's if None.
      enough: pairs and bounds are tried in turn until one on the first's quantity exceeds this; bounds stay valid.

    Raises:
      NotANumber: some scores are NaN.
    """
    failure = 1 - effort.confidence if failure is None else failure
    if replays is None:
        pairs = tuple(pairs)
        replays = [effort.replays] * len(pairs)
    seeds = np.random.SeedSequence(effort.seed).spawn(2 * len(replays))
    bounds: list[StatedBound] = []
    scores: dict[str, tuple[FloatArray, FloatArray]] = {}
    for index, pair in enumerate(pairs):
        data, neighbor = replay_both(algorithm, pair, replays[index], (seeds[2 * index], seeds[2 * index + 1]))
        seen: dict[str, tuple[str, str]] = {}
        for planned in plan:
            if planned.view == ONE_RUN:
                continue
            level = failure * planned.share / len(replays)
            if planned.view not in seen:
                name = f"{planned.view}{index}"
                attack, scores[name] = scored(planned, (data, neighbor), level, effort)
                seen[planned.view] = (attack, name)
                if any(np.isnan(side).any() for side in scores[name]):
                    raise NotANumber(planned.view)
            attack, name = seen[planned.view]
            bounds.append(state(planned, attack, pair, scores[name], name, level, effort))
            if planned.quantity == plan[0].quantity and bounds[-1].lower > enough:
                return Measurement(tuple(bounds), scores)
    return Measurement(tuple(bounds), scores)


def measure_one_run(
    algorithm: Algorithm, table: Table, claim: GaussianDP | PureDP, effort: Effort, level: float
) -> Measurement:
    """Bounds from a single run in which each record is a canary that a coin put in, see `one_run_audit`.

    Args:
      algorithm: what to audit.
      table: its range and number of arms are played; a short one is repeated until it has 4096 rounds. Rewards go from
        lowest to highest; in episodes, users walk along other paths too, as `DataSet.changes` has it first.
      claim: what the algorithm promises of one record.
      effort: seed, and delta.
      level: probability with which some bound exceeds the truth, at most.

    Returns:
      the bounds; none where the algorithm cannot play so many rounds.
    """
    span, data = table.reward_range, table.repeated(-(-_ONE_RUN_ROUNDS // table.n_users))
    change = Change(span.low, span.high)
    if table.rewards_may_be_public and (changes := table.changes()):
        change = replace(change, covariates=changes[0].covariates)
    data, neighbor = data.all_changed(change)
    try:
        examined = one_run.examine(algorithm, data, neighbor, effort.seed, claim=claim, delta=effort.delta, level=level)
    except ValueError:
        return Measurement((), {})
    return Measurement(examined.bounds, {ONE_RUN: (examined.scores, examined.is_in.astype(float))})


def scored(
    planned: PlannedBound, sides: tuple[Replays, Replays], level: float, effort: Effort
) -> tuple[str, tuple[FloatArray, FloatArray]]:
    """The attack's name, and the scores of both sides that the bound may use.

    They are rounded to single precision, in which evidence files keep them: bounds hold for any score.
    """
    candidates = attacks.of_view(planned.view)
    if planned.view != ACTIONS:
        (attack,) = candidates
        score = attack.fit(*sides)
        return attack.name, (rounded(score(sides[0])), rounded(score(sides[1])))
    method, parameters = method_of(planned.quantity, effort.seed, is_learned=True)
    chosen = attacks.strongest(
        candidates,
        *sides,
        lambda data, neighbor: methods.bound(method, rounded(data), rounded(neighbor), level, **parameters),
    )
    data, neighbor = (rounded(chosen.scorer(attacks.split(side).bound)) for side in sides)
    return chosen.attack.name, (data, neighbor)


def rounded(scores: FloatArray) -> FloatArray:
    """Scores rounded to single precision; infinite only where they were infinite before."""
    finite = np.isfinite(scores)
    return np.where(finite, np.clip(scores, -_LARGEST_RATIO, _LARGEST_RATIO), scores).astype(np.float32).astype(np.float64)
