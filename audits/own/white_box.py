"""Facts that an audit needs of anybody's algorithm that keeps the protocol, to treat it as any of the catalog.

Canaries stand where the algorithm's own ledger says that a record pays most, the planted faults are those of
`bandana.audits.faults.releases`, and a claim on other neighbors than its mechanisms are made for is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bandana.algorithms.coins import Coins
from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.claims import ClaimError, Quantity, restated
from bandana.audits.faults.fault import Control, without
from bandana.audits.faults.late import late_leak
from bandana.audits.faults.places import planted_at_random
from bandana.audits.faults.releases import GENERIC, NOT_CLIPPED, REUSED, NotClipped
from bandana.audits.outcome import MU, Effort, Events, Outcome, Setup, accounted_as, claimed_as, main_quantity
from bandana.audits.own.rescaled import NotRescalable, rescaled
from bandana.audits.searches.walk import n_cases_of, rarest_of, tail_of, values_of
from bandana.audits.seeds import derive
from bandana.audits.testbeds.catalog import NEAR_TEST_BUDGET
from bandana.audits.trial import Audited, Trial
from bandana.privacy_core import (
    ZCDP,
    BoundedEvent,
    GaussianDP,
    Guarantee,
    Interval,
    LiveLedger,
    NoSuchConversion,
    PureDP,
    Relation,
    ReproducibleNoise,
    TrustModel,
    is_selection,
)

_PROBED = 64


def _recorded(algorithm: Algorithm, table: Table, seed: int) -> LiveLedger:
    """The ledger of some live runs."""
    root = np.random.SeedSequence(seed)
    ledger = LiveLedger(_PROBED, ReproducibleNoise(root), keeps_transcript=True)
    run(algorithm, table, ledger, coins=Coins(root, _PROBED))
    return ledger


def find_probes(algorithm: Algorithm, table: Table, seed: int) -> tuple[int, ...]:
    """Records to plant canaries at: the first one, the first that is not a first pull, and the one that pays most.

    What a record pays is the sum of the Renyi divergences of the releases that read it, on average over some live runs.
    """
    ledger = _recorded(algorithm, table, seed)
    paid = np.zeros(table.n_users + 1)
    for release in ledger.transcript:
        cost = min(release.mechanism.event.rdp(2.0), 1e6)
        np.add.at(paid, release.records.start, cost)
        np.add.at(paid, release.records.stop, -cost)
    most_costly = int(np.argmax(np.round(np.cumsum(paid)[:-1], 9)))
    return tuple(sorted({0, min(algorithm.n_actions, table.n_users - 1), most_costly}))


def check_scope(algorithm: Algorithm, table: Table, claim: Claim, seed: int) -> None:
    """Refuses a claim on other neighbors, or another trust model, than the algorithm's releases are made for.

    Raises:
      ClaimError: the message says what to change.
    """
    ledger = _recorded(algorithm, table, seed)
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
    if claim.relation is Relation.REPLACE_TRAJECTORY and getattr(algorithm, "episode_length", None) is None:
        raise ClaimError(
            "relation=trajectory needs an algorithm that plays episodes; this one plays rounds, of which an audit replaces "
            "one: claim relation=record, or relation=reward where contexts are public"
        )
    if claim.trust is TrustModel.LOCAL:
        widest = max((int((r.records.stop - r.records.start).max(initial=0)) for r in ledger.transcript), default=0)
        if widest > 1:
            raise ClaimError(
                f"the claim is local, but one release reads {widest} records: under local privacy each record noises "
                "its own message; claim trust=central, or release record by record"
            )


def foreign_mechanisms(algorithm: Algorithm, table: Table, seed: int) -> tuple[str, ...]:
    """Names of the mechanisms that are none of privacy_core's: nobody has checked that they draw what they declare."""
    ledger = _recorded(algorithm, table, seed)
    kinds = {type(release.mechanism) for release in ledger.transcript}
    return tuple(sorted(kind.__name__ for kind in kinds if not kind.__module__.startswith("bandana.privacy_core.")))


def plantable(trial: Trial, controls: tuple[Control, ...], seed: int) -> tuple[Control, ...]:
    """The faults that the algorithm can have.

    Selections show no noise, so none can be used twice. If no released value depends on rewards outside the range where
    nobody clips them, as in a response to a bit, not to clip is no fault.
    """
    transcript = _recorded(trial.algorithm, trial.table, seed).transcript
    if transcript and all(is_selection(release.mechanism) for release in transcript):
        controls = without(controls, REUSED.name)
    names = {control.name for control in controls}
    return controls if NOT_CLIPPED.name not in names or _needs_clipping(trial, seed) else without(controls, NOT_CLIPPED.name)


def _needs_clipping(trial: Trial, seed: int) -> bool:
    span = trial.table.reward_range
    outside = np.full(trial.table.rewards.shape, span.high + span.width)
    table = trial.table.with_rewards(outside, Interval(span.low, span.high + span.width))
    sides = [_recorded(algorithm, table, seed) for algorithm in (trial.algorithm, NotClipped(trial.algorithm))]
    values = [[release.value for release in ledger.transcript] for ledger in sides]
    return len(values[0]) != len(values[1]) or not all(map(np.array_equal, *values))


def at_test_budget(trial: Trial) -> Trial | None:
    """The same algorithm with noise of another size, at which factors show.

    A claim that is held against mu or a pure epsilon is tested at 1 unless it is near 1. Any other, on noise that is not
    Gaussian, is tested where the ledger spends about that: at a pure epsilon of 1 if all noise is of pure DP, else at a rho
    of 1/2, which is a mu of 1 for Gaussian noise.

    Returns:
      None where the claim is near 1, or a mechanism cannot be rescaled.
    """
    stated, events = trial.claim.stated, derive(trial.algorithm, trial.table, 0)
    main = main_quantity(stated, events)
    goal: Guarantee
    if main in (MU, Quantity("epsilon")):
        strength, goal = claimed_as(main, stated, events), GaussianDP(1.0) if main == MU else PureDP(1.0)
        is_near = NEAR_TEST_BUDGET[0] <= strength <= NEAR_TEST_BUDGET[1]
    else:
        strength, goal = _strength(events)
        spent, claimed = accounted_as(main, events), claimed_as(main, stated, events)
        is_near = NEAR_TEST_BUDGET[0] <= strength <= NEAR_TEST_BUDGET[1] and claimed <= 2 * spent
        # At a small delta few replays show a factor in epsilon, unless the noise has a pure epsilon that they show.
        is_near &= main.name != "epsilon" or isinstance(goal, PureDP)
    if is_near or not 0 < strength < math.inf:
        return None
    try:
        algorithm = rescaled(trial.algorithm, strength)
        derive(algorithm, trial.table, 0, n_reps=1)
    except NotRescalable:
        return None
    return replace(trial, algorithm=algorithm, claim=restated(trial.claim, goal))


def _strength(events: Events) -> tuple[float, Guarantee]:
    """Spending of the noise, 1 at the test budget; and the claim there."""
    if all(isinstance(event, BoundedEvent) for event, _ in events):
        return accounted_as(Quantity("epsilon"), events), PureDP(1.0)
    return math.sqrt(2 * accounted_as(Quantity("rho"), events)), ZCDP(0.5)


def examine(
    trial: Trial, effort: Effort, subject: Mapping[str, str], about: Setup, controls: tuple[Control, ...] | None = None
) -> Outcome:
    """Audits an algorithm that keeps the protocol (`bandana.audits.own.conformance` says whether it does), and faults.

    Args:
      trial: the algorithm, its claim and its data.
      effort: how hard to look; too little for the claim is INCONCLUSIVE.
      subject: who is audited, for the evidence.
      about: what the evidence says of the table, the seeds and the code.
      controls: the planted faults; None: those of releases, if there are any, and some at random places.
    """
    audited = audited_as(trial, effort, controls)
    return audit(
        trial,
        audited.controls,
        effort,
        at_test_budget=audited.at_test_budget,
        subject=subject,
        about=about,
        caveats=audited.caveats,
    )


def audited_as(trial: Trial, effort: Effort, controls: tuple[Control, ...] | None = None) -> Audited:
    """The trial with its test budget and with the faults that it can have, as `examine` audits it."""
    caveats: tuple[str, ...] = ()
    if foreign := foreign_mechanisms(trial.algorithm, trial.table, effort.seed):
        caveats = (
            f"it releases through {', '.join(foreign)}, which is none of privacy_core's mechanisms: the likelihood ratio "
            "believes what a mechanism declares of its noise, and nobody has checked that it draws so",
        )
    controls = plantable(trial, _planted(trial, effort) if controls is None else controls, effort.seed)
    return Audited(trial, at_test_budget(trial), controls, caveats=caveats)


def faults_at_places(trial: Trial, effort: Effort) -> tuple[Control, ...]:
    """Faults at random places of the trial's data, and beyond it, which the search for a counterexample claims to cover."""
    inside, _ = values_of(trial.algorithm, trial.table)
    n_cases = n_cases_of(trial.algorithm, trial.table, 2 * effort.replays)
    transcript = _recorded(trial.algorithm, trial.table, effort.seed).transcript
    has_digits = any(not is_selection(release.mechanism) for release in transcript)
    rarest = rarest_of(trial.table, n_cases)
    late = () if trial.whole is None else (late_leak(trial.table.n_users, trial.whole.table.n_users),)
    at_random = planted_at_random(
        trial.table.n_users, tuple(inside), rarest, effort.seed, has_digits=has_digits, tail=tail_of(transcript, rarest)
    )
    return (*at_random, *late)


def with_places(audited: Audited, effort: Effort) -> Audited:
    """The same audit with faults at random places beside its own, where faults are planted."""
    trial = audited.at_test_budget or audited.trial
    return replace(audited, controls=(*audited.controls, *faults_at_places(trial, effort)))


def _planted(trial: Trial, effort: Effort) -> tuple[Control, ...]:
    """Faults of the releases, where there are any, and faults at random places."""
    releases = GENERIC if _recorded(trial.algorithm, trial.table, effort.seed).transcript else ()
    return (*releases, *faults_at_places(trial, effort))
