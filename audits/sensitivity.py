"""The audit without statistics: search for a run that breaks the proof.

Record a run on D, then script the same run on D' (one record replaced): both act alike, as in a proof of adaptive
composition. Then for every release: the schedule and the actions must be the same; the exact value must be the same if the
replaced record lies outside the release's span, and may move by at most the mechanism's sensitivity if it lies inside;
and the events that the ledger holds against the worst record must compose to no more than the claim. A single violation is
a proof that the privacy argument fails; Hypothesis searches for one and shrinks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from algorithms.environments.tables import RewardTable
from algorithms.observers import ActionLog
from algorithms.protocol import Algorithm
from algorithms.run import run
from audits.replay import actions_differ
from privacy_core import GaussianDP, Interval, LiveLedger, NoPrivacy, PureDP, ReproducibleNoise, ScriptedLedger, account

_ROUNDING = 1e-9
_REPLICATES = 4


@dataclass(frozen=True)
class Case:
    """One thing to try: a table, a record of it, and what replaces that record."""

    rewards: tuple[tuple[float, ...], ...]
    record: int
    replacement: tuple[float, ...]
    seed: int


@dataclass(frozen=True)
class Counterexample:
    """A run that breaks the privacy argument.

    Attributes:
      case: the shrunk input.
      release: index of the offending release in its replicate's run; -1 where the whole book is at fault.
      reason: what went wrong, in words with the numbers.
    """

    case: Case
    release: int
    reason: str

    def __str__(self) -> str:
        case = self.case
        return (
            f"{len(case.rewards)} rounds; record {case.record} changes from {list(case.rewards[case.record])} to "
            f"{list(case.replacement)}: {self.reason}"
        )


def examine(algorithm: Algorithm, case: Case, reward_range: Interval, claim: GaussianDP) -> Counterexample | None:
    """Runs one case on both sides and checks every release.

    Args:
      algorithm: what to audit.
      case: its rewards lie in `reward_range`; the replacement may lie outside.
      reward_range: the declared range.
      claim: what the events on the worst record must not exceed.

    Returns:
      what breaks first, or None.
    """
    data = RewardTable(case.rewards, reward_range)
    wide = Interval(min(reward_range.low, *case.replacement), max(reward_range.high, *case.replacement))
    neighbor = data.replaced(case.record, case.replacement, wide)
    noise = ReproducibleNoise(np.random.SeedSequence(case.seed))
    live = LiveLedger(_REPLICATES, noise, keeps_transcript=True, n_records=data.n_users)
    actions, shadow = ActionLog(), ActionLog()
    run(algorithm, data, live, observers=[actions])
    scripted = ScriptedLedger(_REPLICATES, live.transcript, keeps_values=True)
    run(algorithm, neighbor, scripted, observers=[shadow])
    scripted.finish()
    diverged = scripted.diverged.max()
    if diverged >= 0 or actions_differ(actions, shadow).any():
        return Counterexample(
            case, int(diverged), "both runs saw the same released values, yet their schedules or actions differ: something "
            "was decided from values that were not released"
        )  # fmt: skip
    for index, (release, value) in enumerate(zip(live.transcript, scripted.values, strict=True)):
        change = release.mechanism.change(release.value, value)
        leaking = ~release.reads(case.record) & (change > _ROUNDING)
        if leaking.any():
            row = int(np.argmax(leaking))
            span = f"[{release.records.start[row]}, {release.records.stop[row]})"
            return Counterexample(
                case, index,
                f"release {index} declares the records {span}, yet its exact value moved by {change[row]:.6g}",
            )  # fmt: skip
        limit = release.mechanism.sensitivity
        if (change > limit * (1 + _ROUNDING)).any():
            worst = float(change.max())
            return Counterexample(
                case,
                index,
                f"release {index} moved by {worst:.6g}, {worst / limit:.4g} times its sensitivity {limit:.6g}",
            )
    if (sequence := _outgrown(live, scripted)) is not None:
        label, worst, limit = sequence
        return Counterexample(
            case, -1, f"the rows of the sequence {label!r} together moved by {worst:.6g}, {worst / limit:.4g} times the "
            f"sensitivity {limit:.6g} that is paid for once"
        )  # fmt: skip
    derived = account(live.worst_record())
    if isinstance(derived, NoPrivacy):
        return Counterexample(case, -1, "a value was released without noise")
    mu = derived.gdp().mu if isinstance(derived, GaussianDP | PureDP) else (0.0 if derived is None else math.inf)
    if mu > claim.mu * (1 + _ROUNDING):
        return Counterexample(case, -1, f"the releases on one record compose to {mu:.6g}-GDP; the claim is {claim}")
    return None


def _outgrown(live: LiveLedger, scripted: ScriptedLedger) -> tuple[str, float, float] | None:
    """A sequence of carried rows whose changes together exceed the sensitivity: its label, the change, the sensitivity.

    A record pays for all rows of a sequence at once, as for one vector, so it is the vector's change that is bounded.
    """
    squares: dict[tuple[str, float], np.ndarray] = {}
    for release, value in zip(live.transcript, scripted.values, strict=True):
        if release.carried is not None:
            key = (release.carried.label, release.mechanism.sensitivity)
            total = squares.setdefault(key, np.zeros(_REPLICATES))
            total[slice(None) if release.reps is None else release.reps] += (
                release.mechanism.change(release.value, value) ** 2
            )
    for (label, limit), total in squares.items():
        if np.sqrt(total.max()) > limit * (1 + _ROUNDING):
            return label, float(np.sqrt(total.max())), limit
    return None


def search(
    algorithm: Algorithm,
    reward_range: Interval,
    claim: GaussianDP,
    max_examples: int,
    max_rounds: int = 24,
    shrinks: bool = True,
) -> Counterexample | None:
    """Searches tables, records and replacements for a counterexample, the same ones each time, and shrinks it.

    Replacements may leave the declared range: a promise holds whatever a neighbor holds.

    Args:
      algorithm: what to audit.
      reward_range: the declared range.
      claim: see `examine`.
      max_examples: how many cases to try.
      max_rounds: longest table.
      shrinks: look for the smallest counterexample; without, any one will do.

    Returns:
      a counterexample, or None.
    """
    n_actions, low, width = algorithm.n_actions, reward_range.low, reward_range.width
    honest = st.sampled_from([low, low + width / 4, low + width / 2, low + width])
    anything = st.one_of(honest, st.sampled_from([low - 2 * width, low + 5 * width]))

    @st.composite
    def cases(draw: Callable[[Any], Any]) -> Case:
        n_rounds = draw(st.integers(n_actions + 2, max(max_rounds, n_actions + 2)))
        row = st.tuples(*[honest] * n_actions)
        return Case(
            rewards=tuple(draw(st.lists(row, min_size=n_rounds, max_size=n_rounds))),
            record=draw(st.integers(0, n_rounds - 1)),
            replacement=draw(st.tuples(*[anything] * n_actions)),
            seed=draw(st.integers(0, 2**16)),
        )

    try:
        smallest = find(
            cases(),
            lambda case: examine(algorithm, case, reward_range, claim) is not None,
            settings=settings(
                max_examples=max_examples,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.generate, Phase.shrink] if shrinks else [Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )
    except NoSuchExample:
        return None
    return examine(algorithm, smallest, reward_range, claim)
