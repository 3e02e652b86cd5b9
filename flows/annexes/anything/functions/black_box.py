"""The audit of a plain function: rewards and a seed go in, actions come out, and nothing else is seen.

The function plays drawn rewards, which show the record that later play depends on most (`screening`), and then a data set
and its neighbor many times. A score for "this was the neighbor" is learned from the actions on one part of the replays;
another part chooses the best of four learners and its bound; the rest, which nothing was chosen on, gives the bound. Such an
audit sees less than one of the ledger, so that its bounds are lower; they hold for any function whose replicates are
independent, and assume nothing about its noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.bounds import power
from bandana.audits.bounds.methods import method_of
from bandana.audits.claims import ClaimError, Quantity
from bandana.audits.coverage import Coverage
from bandana.audits.neighbors.candidates import Candidate, candidate_pairs, reward_changes
from bandana.audits.neighbors.neighbor import Context, Others
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.outcome import ACTIONS, SAMPLING, Effort, Outcome, Setup, StatedBound, TriedControl
from bandana.audits.plan import PlannedBound, levels
from bandana.audits.replays.classifiers import features, learn_counts, learn_logistic, learn_stumps
from bandana.audits.replays.measure import Measurement, rounded
from bandana.audits.searches.lines import LinesRun
from bandana.audits.searches.sampling import too_few
from bandana.flows.annexes.anything.functions.drawn import BLOCK, Menu, draw
from bandana.flows.annexes.anything.functions.drawn_bounds import Screened, screened_by
from bandana.flows.annexes.anything.functions.function_faults import planted_faults
from bandana.flows.annexes.anything.functions.joint import Together
from bandana.flows.annexes.anything.functions.plays import Play, Shape, play_rewards, play_rows
from bandana.flows.annexes.anything.outputs.bounds import (
    LEAST,
    Contender,
    check_calls,
    most_promising,
    promised,
    rarest_event,
)
from bandana.flows.annexes.anything.outputs.shares import learn_parity
from bandana.flows.annexes.anything.outputs.signs import with_signs
from bandana.flows.annexes.anything.outputs.trees import learn_trees
from bandana.privacy_core import Interval, Relation, TrustModel

_NOTED_SECONDS, _MOST_CODES = 2.0, 4096


class Played(NamedTuple):
    """Replays of one side.

    Attributes:
      actions: (n_replays, n_rounds)
      block: (n_replays,) which call each came from.
    """

    actions: IntArray
    block: IntArray


def replay(play: Play, table: Table, n_replays: int, seed: np.random.SeedSequence) -> Played:
    """Many replays of one data set, in calls of at most 4096 rows with a seed each."""
    sizes = [min(BLOCK, n_replays - start) for start in range(0, n_replays, BLOCK)]
    seeds = seed.generate_state(len(sizes), np.uint32).tolist()
    rows = [play_rows(play, table, size, number) for size, number in zip(sizes, seeds, strict=True)]
    return Played(np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes))


Scorer = Callable[[IntArray], FloatArray]
_MOST_LEARNED = 40_000


def learn(data: IntArray, neighbor: IntArray, record: int, n_arms: int) -> dict[str, Scorer]:
    """Scores, larger where the neighbor is likelier, taught on the given replays; the last ones of shares of a secret."""
    x = np.concatenate([features(side, record, n_arms) for side in (data, neighbor)])
    y = np.concatenate([np.zeros(len(data)), np.ones(len(neighbor))])
    logistic, stumps = learn_logistic(x, y), learn_stumps(x, y)
    one, other = (side[:, record + 1 :] for side in (data, neighbor))
    codes, pair = _learn_codes(one, other, n_arms), Together.learn(one, other, n_arms)
    parity = learn_parity(one.astype(float), other.astype(float))
    shared: dict[str, Scorer] = {"two actions together": lambda actions: pair.score(actions[:, record + 1 :])}
    if parity is not None:
        shared["parity of actions"] = lambda actions: parity(actions[:, record + 1 :].astype(float))
    return {
        "counted log odds": lambda actions: codes(actions[:, record + 1 :]),
        "logistic regression": lambda actions: logistic(features(actions, record, n_arms)),
        "boosted stumps": lambda actions: stumps(features(actions, record, n_arms)),
        "boosted trees": _trees(data[:_MOST_LEARNED], neighbor[:_MOST_LEARNED], record),
        **shared,
    }


def _trees(data: IntArray, neighbor: IntArray, record: int) -> Scorer:
    """Boosted histogram trees on all actions but the record's own: several actions in turn decide."""

    def columns(actions: IntArray) -> FloatArray:
        others = np.delete(actions, record, axis=1)
        return np.concatenate([others, actions[:, record + 1 :] == actions[:, [record]]], axis=1).astype(np.float32)

    trees = learn_trees(columns(data), columns(neighbor), rounds=40, least_in_leaf=16, shrinkage=0.5)
    return lambda actions: trees(columns(actions))


def _chosen(
    scorers: dict[str, Scorer], data: IntArray, neighbor: IntArray, quantity: Quantity, level: float, seed: int
) -> Contender:
    """The score that promises most on runs that it was not learned from; for epsilon also the sign of each."""
    method, parameters = method_of(quantity, seed, is_learned=True)
    signs = with_signs(scorers, data, neighbor) if quantity.name == "epsilon" else {}
    return most_promising([
        Contender(name, scorer, method, parameters, promised(scorer(data), scorer(neighbor), quantity, level, seed))
        for name, scorer in (scorers | signs).items()
    ])  # fmt: skip


def measure(play: Play, pairs: tuple[Pair, ...], claim: Claim, effort: Effort, n_pairs: int | None = None) -> Measurement:
    """Two bounds a pair, on the claim's own quantity and on epsilon, and the held-out scores.

    Args:
      play: the function.
      pairs: neighbors to try.
      claim: whose quantity is bounded.
      effort: how many replays, and the confidence.
      n_pairs: how many pairs share the failure probability, where it is not the number of those given.

    Raises:
      BrokenSubject: see `play_rows`, or the replays of a call are not independent.
    """
    main, rest, _ = levels(effort.confidence, n_pairs or len(pairs))
    own, epsilon = Quantity.of(claim.stated), Quantity("epsilon", effort.delta)
    stated: list[StatedBound] = []
    scores: dict[str, tuple[FloatArray, FloatArray]] = {}
    seeds = np.random.SeedSequence(effort.seed, spawn_key=(3,)).spawn(2 * len(pairs))
    half, quarter = effort.replays // 2, effort.replays // 4
    for index, pair in enumerate(pairs):
        sides = [replay(play, table, effort.replays, seeds[2 * index + side])
                 for side, table in enumerate((pair.data, pair.neighbor))]  # fmt: skip
        scorers = learn(sides[0].actions[:quarter], sides[1].actions[:quarter], pair.record, pair.data.n_actions)
        held, held_n = (side.actions[quarter:half] for side in sides)
        for quantity, level in ((own, main), (epsilon, rest)):
            chosen = _chosen(scorers, held, held_n, quantity, level, effort.seed)
            key = f"{chosen.name.replace(' ', '_')}{index}"
            data, neighbor = (rounded(chosen.scorer(side.actions[half:])) for side in sides)
            for side, score in zip(sides, (data, neighbor), strict=True):
                check_calls(score, side.block[half:])
            scores[key] = data, neighbor
            stated.append(chosen.state(ACTIONS, pair.difference, quantity, level, scores[key], key))
    return Measurement(tuple(stated), scores)


def tried_pairs(shape: Shape, span: Interval, records: tuple[int, ...], seed: int, outside: bool) -> list[Pair]:
    """Pairs worth a pilot: `candidate_pairs`, and each record to the middle and, if asked for, far outside of the range."""
    n_rounds, n_arms = shape
    changes = [
        change
        for change in reward_changes(span)[1:]
        if outside or (span.low <= change.before <= span.high and span.low <= change.after <= span.high)
    ]
    even, context = RewardTable(np.full(shape, span.low), span), Context(span.low, span.high, Others.LOWEST)
    return [
        *candidate_pairs(n_rounds, n_arms, span, records, seed),
        *(Candidate(record, change, context).pair(even) for record in records[:2] for change in changes),
    ]


def find_pairs(play: Play, tried: list[Pair], seed: int, n_replays: int = 2048, n_pairs: int = 2) -> tuple[Pair, ...]:
    """The pairs on which a pilot tells most; its replays are used for nothing else, so that bounds stay valid.

    Args:
      play: the function.
      tried: candidates.
      seed: of the pilot, which has seeds of its own.
      n_replays: of the pilot, on each side of each candidate.
      n_pairs: how many to return.
    """
    children = np.random.SeedSequence(seed, spawn_key=(5,)).spawn(2 * len(tried))
    half, worth = n_replays // 2, []
    for index, pair in enumerate(tried):
        data, neighbor = (
            replay(play, table, n_replays, children[2 * index + side]).actions
            for side, table in enumerate((pair.data, pair.neighbor))
        )
        codes = _learn_codes(data[:half, pair.record + 1 :], neighbor[:half, pair.record + 1 :], pair.data.n_actions)
        held = [codes(side[half:, pair.record + 1 :]) for side in (data, neighbor)]
        worth.append(promised(held[0], held[1], Quantity("mu"), 0.05, seed))
    order = sorted(range(len(tried)), key=lambda index: -round(worth[index], 9))
    return tuple(tried[index] for index in order[:n_pairs])


_PART, _FEWEST_OF_PART = 4, 4000


def _caught(play: Play, menu: Menu, shape: Shape, claim: Claim, effort: Effort, key: int) -> float:
    """Bound on a planted fault: from a part of the replays, and from all of them where that is too little."""
    quantity, worst = Quantity.of(claim.stated), 0.0
    for part in (_PART, 1):
        if part > 1 and effort.replays < part * _FEWEST_OF_PART:
            continue
        tried = replace(effort, replays=effort.replays // part)
        limit = quantity.limit(claim.stated)
        worst = max(worst, screened_by(play, menu, shape, claim, tried, key=key, enough=limit).measurement.lower(quantity))
        if worst > limit:
            break
    return worst


def planted_and_searched(play: Play, menu: Menu, shape: Shape, claim: Claim, effort: Effort) -> tuple[TriedControl, ...]:
    """Each planted fault, and whether the audit catches it; see `examine`."""
    quantity, span, tried = Quantity.of(claim.stated), Interval(menu.low, menu.high), []
    limit = quantity.limit(claim.stated)
    planted = planted_faults(play, claim, shape[0], span, effort, levels(effort.confidence, 1)[2])
    for key, (name, fault, faulty) in enumerate(planted, start=1):
        worst = _caught(faulty, menu, shape, claim, effort, key)
        tried.append(TriedControl(name, fault, (SAMPLING,), (SAMPLING,) if worst > limit else (), worst, limit))
    return tuple(tried)


def examine(
    play: Play,
    claim: Claim,
    pairs: tuple[Pair, ...],
    effort: Effort,
    subject: Mapping[str, str],
    about: Setup,
    screened: Screened | None = None,
    menu: Menu | None = None,
    file: Path | None = None,
    faults: Callable[[], tuple[TriedControl, ...]] | None = None,
) -> Outcome:
    """Audits a function that `check` accepts, in the actions alone.

    Nobody looks into the function, so that faults are planted in what it returns, at random places, and are searched for as
    the function's own: where one is missed, silence says nothing.

    Args:
      play: (rewards, seed) -> actions, see `play_rows`.
      claim: what it promises.
      pairs: data sets and neighbors.
      effort: replays and confidence; `examples` does not matter here.
      subject: see `Outcome`.
      about: see `Outcome`.
      screened: what runs on drawn rewards showed; None: they are made here.
      menu: values of drawn rewards; None: see `Menu.of`.
      file: where the function stands, to tell which of its lines never run.
      faults: answers with what `planted_and_searched` returns, if that is under way already.

    Raises:
      ClaimError: a claim of local privacy.
      ValueError: a canary in the last round, after which nothing is played.
      BrokenSubject: see `measure`.
    """
    check_trust(claim)
    if late := [pair for pair in pairs if pair.record > pair.data.n_users - 2]:
        raise ValueError(
            f"a canary must lie in [0, {late[0].data.n_users - 1}), before the last round, got {late[0].record}"
        )
    quantity = Quantity.of(claim.stated)
    limit = quantity.limit(claim.stated)
    span, shape = pairs[0].data.reward_range, (pairs[0].data.n_users, pairs[0].data.n_actions)
    menu = menu or Menu.of(span)
    screened = screened or screened_by(play, menu, shape, claim, effort)
    measured = measure(play, pairs, claim, effort)
    level = levels(effort.confidence, len(pairs))[0]
    n = effort.replays - effort.replays // 2
    caveats = too_few(limit, level, n, effort, PlannedBound(ACTIONS, quantity, 1.0))
    method, parameters = method_of(quantity, effort.seed, is_learned=True)
    return Outcome(
        subject=subject,
        claim=claim,
        effort=effort,
        failure=1 - effort.confidence,
        bounds=(*screened.measurement.bounds, *measured.bounds),
        scores={**screened.measurement.scores, **measured.scores},
        events=None,
        counterexample=None,
        noise_finding=None,
        controls=faults() if faults else planted_and_searched(play, menu, shape, claim, effort),
        power=power.smallest_factor_caught(method, parameters, level, limit, n),
        caveats=caveats,
        about=about,
        coverage=replace(
            _coverage(menu, shape, quantity, limit, effort), never_ran=_never_run(play, menu, shape, effort.seed, file)
        ),
    )


def _coverage(menu: Menu, shape: Shape, quantity: Quantity, limit: float, effort: Effort) -> Coverage:
    """Coverage of runs on drawn rewards: every record, each value of the menu, and events that are not too rare."""
    level, n_bound = levels(effort.confidence, 1)[2], max(LEAST, effort.replays // 4)
    rarest = rarest_event(quantity, limit, effort.seed, level, effort.replays, n_bound)
    return Coverage(
        views=("actions",),
        records=tuple(range(shape[0])),  # after the last one nothing is played
        rounds=shape[0],
        values=tuple(sorted(menu.values.tolist())),
        cases=(shape[0] - 1) * (len(menu) - 1),
        rarest=1.0 if rarest is None else rarest,
    )


def _never_run(play: Play, menu: Menu, shape: Shape, seed: int, file: Path | None) -> tuple[str, ...]:
    """Lines of the function's file that no run on drawn rewards reaches, of 256 runs under 16 seeds."""
    root = np.random.SeedSequence(seed, spawn_key=(14,))
    with LinesRun(file, _NOTED_SECONDS) as lines:
        draw(lambda rewards, number: play_rewards(play, rewards, number), menu, shape, 256, 16, root)
    return lines.never


def check_trust(claim: Claim) -> None:
    """Refuses a claim of local privacy, and one on trajectories.

    Raises:
      ClaimError: it is one.
    """
    if claim.trust is TrustModel.LOCAL:
        raise ClaimError("a function shows its actions only, and local privacy is a promise on messages: audit its ledger")
    if claim.relation is Relation.REPLACE_TRAJECTORY:
        raise ClaimError("a function plays rounds and no episodes, and one reward is replaced: claim relation=reward")


def _learn_codes(data: IntArray, neighbor: IntArray, n_arms: int) -> Scorer:
    """Log odds of the order in which arms follow each other: the first switches of (n, n_rounds) actions, counted."""
    most = max(1, int(np.log(_MOST_CODES) / np.log(n_arms + 1)))

    def codes(later: IntArray) -> IntArray:
        code, taken = later[:, 0] + 1, np.ones(len(later), dtype=np.int64)
        for t in range(1, later.shape[1]):
            is_switch = (later[:, t] != later[:, t - 1]) & (taken < most)
            code = np.where(is_switch, code * (n_arms + 1) + later[:, t] + 1, code)
            taken += is_switch
        return code

    counted = learn_counts(codes(data), codes(neighbor))
    return lambda later: counted(codes(later))
