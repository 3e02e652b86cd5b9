"""The audit of anybody's algorithm that keeps the protocol: three numbers, planted faults, and every score kept.

It differs from a catalog audit in what is known beforehand, which is nothing: canaries stand where the algorithm's own
ledger says that a record pays most, the planted faults are those of `audits.faulty_ledgers`, and a fault counts as caught
where it breaks any inequality that the verdict rests on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from algorithms.catalog import Claim
from algorithms.environments.tables import RewardTable
from algorithms.protocol import Algorithm
from algorithms.run import run
from audits import attacks, bounds, sensitivity
from audits.audit import Effort, derive
from audits.claims import ClaimError, Quantity
from audits.controls import SAMPLING, STRUCTURAL, Control
from audits.faulty_ledgers import GENERIC
from audits.neighbors import Pair, canary_pairs
from audits.outcome import (
    MU,
    Outcome,
    Scores,
    StatedBound,
    TriedControl,
    accounted_as,
    main_quantity,
    split_levels,
)
from audits.replay import Replays, replay
from audits.tipping import candidates, tipping_pair
from privacy_core import (
    Event,
    GaussianEvent,
    Interval,
    LiveLedger,
    NoSuchConversion,
    Relation,
    ReproducibleNoise,
    TrustModel,
)

_PROBED = 64
TRANSCRIPT, ACTIONS = "transcript", "actions"


class NotANumber(ValueError):  # noqa: N818  (it says what the scores are)
    """Scores from which no bound can be taken."""


def random_table(rounds: int, n_actions: int, reward_range: Interval, seed: int) -> RewardTable:
    """Rewards at both ends of the range, by fair coins."""
    ends = np.array([reward_range.low, reward_range.high])
    coins = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(1,)))).integers(
        0, 2, (rounds, n_actions)
    )
    return RewardTable(ends[coins], reward_range)


def find_probes(algorithm: Algorithm, table: RewardTable, seed: int) -> tuple[int, ...]:
    """Records to plant canaries at: the first one, the first that is not a first pull, and the one that pays most.

    What a record pays is the sum of the Renyi prices of the releases that read it, on average over some live runs.
    """
    ledger = LiveLedger(_PROBED, ReproducibleNoise(np.random.SeedSequence(seed)), keeps_transcript=True)
    run(algorithm, table, ledger)
    paid = np.zeros(table.n_users + 1)
    for release in ledger.transcript:
        price = min(release.mechanism.event.rdp(2.0), 1e6)
        np.add.at(paid, release.records.start, price)
        np.add.at(paid, release.records.stop, -price)
    dearest = int(np.argmax(np.round(np.cumsum(paid)[:-1], 9)))
    return tuple(sorted({0, min(algorithm.n_actions, table.n_users - 1), dearest}))


def check_scope(algorithm: Algorithm, table: RewardTable, claim: Claim, seed: int) -> None:
    """Refuses a claim on other neighbors, or another trust model, than the algorithm's releases are made for.

    Raises:
      ClaimError: the message says what to change.
    """
    ledger = LiveLedger(_PROBED, ReproducibleNoise(np.random.SeedSequence(seed)), keeps_transcript=True)
    run(algorithm, table, ledger)
    relation = ledger.relation or claim.relation
    try:
        same = claim.gaussian.__class__(1.0, relation=relation).weakened(relation=claim.relation)
        follows = same.mu == 1.0 and relation is not Relation.ADD_REMOVE
    except NoSuchConversion:
        follows = False
    if not follows:
        raise ClaimError(
            f"the claim is for {claim.relation.value!r}, the algorithm's mechanisms bound the change for "
            f"{relation.value!r}: give both one relation"
        )
    if claim.trust is TrustModel.LOCAL:
        widest = max((int((r.records.stop - r.records.start).max(initial=0)) for r in ledger.transcript), default=0)
        if widest > 1:
            raise ClaimError(
                f"the claim is local, but one release reads {widest} records: under local privacy each record noises "
                "its own message; claim trust=central, or release record by record"
            )


def foreign_mechanisms(algorithm: Algorithm, table: RewardTable, seed: int) -> tuple[str, ...]:
    """Names of the mechanisms that are none of privacy_core's: nobody has checked that they draw what they declare."""
    ledger = LiveLedger(_PROBED, ReproducibleNoise(np.random.SeedSequence(seed)), keeps_transcript=True)
    run(algorithm, table, ledger)
    kinds = {type(release.mechanism) for release in ledger.transcript}
    return tuple(sorted(kind.__name__ for kind in kinds if kind.__module__.partition(".")[0] != "privacy_core"))


def least_replays(claimed: float, level: float, quantity: Quantity = MU) -> int:
    """The fewest replays a side with which a test that never errs could refute the claim.

    With fewer no outcome of the audit could speak against it, so its silence could not speak for it.
    """
    n = 2
    while n < 1 << 40:
        held_out = n - n // 2
        if quantity.lower(bounds.Errors(0.0, 0, held_out, 0, held_out), level) > claimed:
            return n
        n = math.ceil(n * 1.1) + 1
    return n


def too_few(claimed: float, level: float, effort: Effort, quantity: Quantity = MU) -> tuple[str, ...]:
    """Why so few replays can say nothing, in words; empty if they are enough."""
    needed = least_replays(claimed, level, quantity)
    if needed <= effort.replays:
        return ()
    return (
        f"{effort.replays} replays are too few: at {effort.confidence:.6g} confidence not even a test without errors could "
        f"refute {quantity} = {claimed:.6g}; that needs about {needed}",
    )


def measure(
    algorithm: Algorithm, pairs: tuple[Pair, ...], effort: Effort, main: Quantity = MU, enough: float = math.inf
) -> tuple[tuple[StatedBound, ...], Scores]:
    """As `audits.audit.measure`, and keeps the held-out scores of every bound.

    Args:
      algorithm: what to audit.
      pairs: neighbors to try.
      effort: how many replays, and the confidence.
      main: what is bounded beside epsilon.
      enough: pairs are tried in turn until a bound on it exceeds this.

    Returns:
      the bounds, four a pair, and the scores that they were counted on.

    Raises:
      NotANumber: some scores are NaN.
    """
    seeds = np.random.SeedSequence(effort.seed).spawn(2 * len(pairs))
    most, rest = split_levels(effort.confidence, len(pairs))
    epsilon = Quantity("epsilon", effort.delta)
    found: list[StatedBound] = []
    scores: dict[str, Any] = {}
    for index, pair in enumerate(pairs):
        (train, test), (train_n, test_n) = (
            _halves(replay(algorithm, pair, side, effort.replays, seeds[2 * index + side])) for side in (False, True)
        )
        views = (
            (TRANSCRIPT, "exact likelihood ratio", attacks.likelihood_ratio, most),
            (ACTIONS, "learned log odds", partial(attacks.learned_log_odds, train, train_n), rest),
        )
        for view, name, attack, level in views:
            learn, held_out = (attack(train), attack(train_n)), (attack(test), attack(test_n))
            key = f"{view}{index}"
            if any(np.isnan(side).any() for side in (*learn, *held_out)):
                raise NotANumber(
                    f"some scores of the {view} are NaN: a log density ratio, or a released value, is no number"
                )
            scores[key] = held_out
            for quantity, share in ((main, level), (epsilon, rest)):
                errors = bounds.Errors.count(*held_out, quantity.threshold(*learn, share))
                lower = quantity.lower(errors, share)
                found.append(StatedBound(view, name, pair.description, quantity, share, errors, lower, key))
        if largest(found, main) > enough:
            break
    return tuple(found), scores


def largest(found: tuple[StatedBound, ...] | list[StatedBound], quantity: Quantity) -> float:
    """The largest lower bound on the quantity; 0 if there is none."""
    return max((bound.lower for bound in found if bound.quantity == quantity), default=0.0)


def _halves(replays: Replays) -> tuple[Replays, Replays]:
    middle = len(replays.log_ratio) // 2
    return (
        Replays(replays.log_ratio[:middle], replays.action_code[:middle]),
        Replays(replays.log_ratio[middle:], replays.action_code[middle:]),
    )


def examine(
    algorithm: Algorithm,
    claim: Claim,
    table: RewardTable,
    probes: tuple[int, ...],
    effort: Effort,
    subject: Mapping[str, str],
    about: Mapping[str, str],
    controls: tuple[Control, ...] = GENERIC,
    on_progress: Callable[[str], None] = lambda what: None,
) -> Outcome:
    """Audits an algorithm that keeps the protocol (`audits.conformance` says whether it does), and its planted faults.

    Args:
      algorithm: what to audit.
      claim: what it promises.
      table: the data set, as long as each replay.
      probes: records to plant canaries at.
      effort: how hard to look; too little for the claim is INCONCLUSIVE.
      subject: who is audited, for the evidence.
      about: what the evidence says of the table, the seeds and the versions.
      controls: the planted faults.
      on_progress: called with a name as each part is done.
    """
    canaries = canary_pairs(table, probes)
    tried = candidates(table.n_users, table.n_actions, table.reward_range, (), effort.seed)
    pairs = (*canaries, tipping_pair(algorithm, tried, effort.seed))
    events = derive(algorithm, table, effort.seed)
    limit, main = _book_limit(claim, events), main_quantity(claim.stated)
    claimed = claim.gaussian.mu if main == MU else main.limit(claim.stated)
    try:
        found, scores = measure(algorithm, pairs, effort, main)
        doubts: tuple[str, ...] = ()
    except NotANumber as error:
        found, scores, doubts = (), {}, (str(error),)
    on_progress("replays")
    if foreign := foreign_mechanisms(algorithm, table, effort.seed):
        doubts += (
            f"it releases through {', '.join(foreign)}, which is none of privacy_core's mechanisms: the likelihood ratio "
            "believes what a mechanism declares of its noise, and nobody has checked that it draws so",
        )
    doubts += too_few(claimed, split_levels(effort.confidence, len(pairs))[0], effort, main)
    counterexample = _search(algorithm, table.reward_range, limit, pairs[-1], effort, shrinks=True)
    on_progress("audit without statistics")
    told = None if counterexample is None else str(counterexample)
    least = min(claimed, accounted_as(main, events))
    results = []
    for control in controls:
        results.append(_try(control, algorithm, main, least, limit, table, canaries, tried, effort))
        on_progress(control.name)
    return Outcome(subject, claim, effort, found, scores, events, told, tuple(results), doubts, about)


def _book_limit(claim: Claim, events: tuple[tuple[Event, int], ...]) -> Any:
    """What the book of a searched case must not exceed; noise that is not Gaussian composes to no mu there."""
    if all(isinstance(event, GaussianEvent) for event, _ in events):
        return claim.gaussian
    return SimpleNamespace(mu=math.inf)


def _search(
    algorithm: Algorithm, reward_range: Interval, limit: Any, tipping: Pair, effort: Effort, *, shrinks: bool
) -> sensitivity.Counterexample | None:
    """A counterexample among searched cases, or on the pair that tips a decision; the declared range is the honest one's."""
    rounds = max(24, tipping.data.n_users)
    found = sensitivity.search(algorithm, reward_range, limit, effort.examples, rounds, shrinks)
    if found is not None:
        return found
    rows, record = tipping.data.rewards.tolist(), tipping.record
    replacement = tuple(tipping.neighbor.rewards[record].tolist())
    case = sensitivity.Case(tuple(tuple(row) for row in rows), record, replacement, effort.seed)
    return sensitivity.examine(algorithm, case, reward_range, limit)


def _try(
    control: Control,
    algorithm: Algorithm,
    main: Quantity,
    limit: float,
    book_limit: Any,
    table: RewardTable,
    canaries: tuple[Pair, ...],
    tried: list[Pair],
    effort: Effort,
) -> TriedControl:
    faulty = control.plant(algorithm)  # type: ignore[arg-type]
    tipping = tipping_pair(faulty, tried, effort.seed)
    try:
        measured = largest(measure(faulty, (*canaries, tipping), effort, main, limit)[0], main)
    except NotANumber:
        measured = 0.0
    caught = [SAMPLING] if measured > limit else []
    is_asked = STRUCTURAL in control.caught_by
    if is_asked and _search(faulty, table.reward_range, book_limit, tipping, effort, shrinks=False) is not None:
        caught.append(STRUCTURAL)
    return TriedControl(control.name, control.fault, control.caught_by, tuple(caught), measured, limit)
