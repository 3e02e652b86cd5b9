"""The bound from runs on drawn rewards: screened and learned on some, chosen on others, taken on the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.data_sets import Change
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.bounds import methods
from bandana.audits.bounds.methods import bounds_on
from bandana.audits.claims import Quantity
from bandana.audits.neighbors.neighbor import Changed, Context, Others
from bandana.audits.outcome import ACTIONS, DRAWN, Effort
from bandana.audits.plan import levels
from bandana.audits.replays.measure import Measurement, rounded
from bandana.flows.annexes.anything.functions.drawn import BLOCK, Drawn, Menu, draw
from bandana.flows.annexes.anything.functions.plays import Play, Shape, play_rewards
from bandana.flows.annexes.anything.functions.screening import Suspect, learn, screen
from bandana.flows.annexes.anything.outputs.bounds import LEAST, WARY, Contender, check_calls, most_promising

_LEARN, _CHOOSE = 0.4, 0.2


@dataclass(frozen=True)
class Screened:
    """Results of a batch of runs on drawn rewards.

    Attributes:
      measurement: one bound, on the claim's own quantity, and its scores.
      suspects: the records that later play depends on most, the strongest first.
      n_runs: of the batch.
    """

    measurement: Measurement
    suspects: tuple[Suspect, ...]
    n_runs: int


def screened_by(
    play: Play,
    menu: Menu,
    shape: Shape,
    claim: Claim,
    effort: Effort,
    *,
    key: int = 0,
    block: int = BLOCK,
    enough: float = math.inf,
) -> Screened:
    """Plays twice the effort's replays on drawn rewards, and bounds the claim's own quantity at the worst record.

    Args:
      play: (rewards, seed) -> actions.
      menu: values of rewards.
      shape: rounds and arms.
      claim: whose quantity is bounded.
      effort: replays, confidence and seed.
      key: of the seeds, another one for each function of an audit.
      block: runs of one call, at most.
      enough: once the runs that choose promise more than this, no further suspect is learned.
    """
    quantity, level = Quantity.of(claim.stated), levels(effort.confidence, 1)[2]
    seed = np.random.SeedSequence(effort.seed, spawn_key=(10, key))
    drawn = draw(partial(play_rewards, play), menu, shape, 2 * effort.replays, block, seed)
    n = len(drawn)
    first, second = math.ceil(_LEARN * n), math.ceil((_LEARN + _CHOOSE) * n)
    taught, held, rest = drawn[:first], drawn[first:second], drawn[second:]
    suspects = screen(taught)
    tried: list[tuple[Contender, Suspect]] = []
    for suspect in suspects:
        scorer = learn(taught, suspect, effort.seed)
        sides = _sides(scorer, held, suspect)
        for method, parameters in bounds_on(quantity, effort.seed):
            promise = 0.0 if sides is None else methods.bound(method, *sides, WARY * level, **parameters)
            tried.append((Contender(suspect.attack, scorer, method, parameters, promise), suspect))
        if max(contender.promise for contender, _ in tried) > enough:
            break
    chosen = most_promising([contender for contender, _ in tried])
    suspect = next(suspect for contender, suspect in tried if contender is chosen)
    sides = _sides(chosen.scorer, rest, suspect, check_calls)
    if sides is None:
        return Screened(Measurement((), {}), suspects, n)
    bound = chosen.state(ACTIONS, _changed(menu, suspect), quantity, level, sides, f"{DRAWN}0")
    return Screened(Measurement((bound,), {bound.scores: sides}), suspects, n)


def _changed(menu: Menu, suspect: Suspect) -> Changed:
    change = Change(float(menu.values[suspect.first]), float(menu.values[suspect.second]))
    return Changed((suspect.record,), change, Context(menu.low, menu.high, Others.DRAWN))


def _sides(
    scorer: Callable[[Drawn], FloatArray],
    drawn: Drawn,
    suspect: Suspect,
    check: Callable[[FloatArray, IntArray], None] | None = None,
) -> tuple[FloatArray, FloatArray] | None:
    """Equally many scores of both values, in the order of the runs; None where there are too few."""
    runs = drawn.sides(suspect.record, suspect.first, suspect.second)
    scores = rounded(scorer(runs))
    is_second = runs.codes[:, suspect.record] == suspect.second
    n = min(int(is_second.sum()), int((~is_second).sum()))
    if n < LEAST:
        return None
    if check is not None:
        for side in (is_second, ~is_second):
            check(scores[side], runs.block[side])
    return scores[~is_second][:n], scores[is_second][:n]
