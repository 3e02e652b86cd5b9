"""How often an audit accuses an honest subject: a thousand audits each of algorithms, samples, functions and releases.

Their claims are met with equality. `python -m benchmarks.false_alarms` runs all kinds, in an hour and a half;
`python -m benchmarks.false_alarms releases` the last alone;
`python -m benchmarks` leaves out functions and releases, whose audits take most of it. Releases are run by the audit itself,
with all its checks and stages; in one of forty audits with first calls of processes too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import binom

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import MU, Effort
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.measure import measure as measure_privacy
from bandana.audits.subjects import Subject, subjects
from bandana.flows.annexes.anything.files import FUNCTION, Loaded
from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.own import Request, audit_own
from bandana.flows.annexes.anything.pairs import stages
from bandana.flows.annexes.anything.pairs.release import Samples, examine
from bandana.flows.annexes.anything.pairs.starts import set_aside
from bandana.flows.annexes.anything.pairs.subject import Subject as Release
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, Relation
from benchmarks.result import Result

AUDITS, REPLAYS, CONFIDENCE = 1000, 1000, 0.95
HONEST = ("adar-ucb tight", "block tree", "block local", "block elimination")


def is_accused(subject: Subject, seed: int) -> bool:
    """Whether some bound of one audit exceeds what the subject claims."""
    trial, claim = subject.trial, subject.trial.claim
    effort = Effort(REPLAYS, CONFIDENCE, 1e-5, 1, seed)
    found = measure_privacy(
        trial.algorithm, canary_pairs(trial.table, trial.probes), effort, plan_bounds(claim.stated, 1e-5)
    )
    allowed = {
        bound.quantity: claim.gaussian.mu if bound.quantity == MU else bound.quantity.limit(claim.gaussian)
        for bound in found.bounds
    }
    return any(bound.lower > allowed[bound.quantity] for bound in found.bounds)


RELEASES: tuple[tuple[str, Guarantee], ...] = (
    ("normal", GaussianDP(1.0)),
    ("normal", ZCDP(0.5)),
    ("normal", ApproxDP(GaussianDP(1.0).epsilon(1e-5), 1e-5)),
    ("laplace", PureDP(1.0)),
)
"""The law of unit noise on a number that moves by one, and what it promises exactly."""


def is_release_accused(case: tuple[str, Guarantee], seed: int) -> bool:
    """Whether an audit of samples of one release ends in FAIL."""
    law, stated = case
    sides = [getattr(np.random.default_rng([seed, side]), law)(side, 1.0, REPLAYS) for side in (0, 1)]
    return str(examine(Samples(*sides), stated, confidence=CONFIDENCE, seed=seed).verdict) == "FAIL"


def answers(rewards: FloatArray, seed: int) -> IntArray:
    """One action tells, truly with probability e / (1 + e), whether the first reward was high; the others are coins."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(0, 2, rewards.shape[:2])
    actions[:, 0] = 0
    actions[:, 1] = (rewards[:, 0, 0] > 0.5) ^ (rng.random(len(rewards)) > math.e / (1 + math.e))
    return actions


def follows(rewards: FloatArray, seed: int) -> IntArray:
    """Actions that follow one noisy sum of four rewards, which moves by one under noise of scale one."""
    rng = np.random.default_rng(seed)
    actions = np.zeros(rewards.shape[:2], dtype=np.int64)
    noisy = np.clip(rewards[:, :4, 0], 0, 1).sum(axis=1) + rng.normal(size=len(rewards))
    actions[:, 4:] = (noisy[:, None] > np.array([0.5, 1.5, 2.5, 3.5])).astype(np.int64)
    return actions


FUNCTIONS: tuple[tuple[Callable[..., Any], str], ...] = (
    (answers, "pure(epsilon=1, relation=reward)"),
    (follows, "gdp(mu=1, relation=reward)"),
)


def is_function_accused(case: tuple[Callable[..., Any], str], seed: int) -> bool:
    """Whether an audit of one function ends in FAIL."""
    play, claim = case
    loaded = Loaded(FUNCTION, play, Path(__file__), play.__name__, "")
    request = Request(loaded.label, claim, replays=1024, rounds=8, confidence=CONFIDENCE, examples=1, seed=seed)
    return audit_own(request, loaded)[1].verdict == "FAIL"


def noisy_number(data: float, seed: int) -> float:
    """A number with Laplace noise of scale one."""
    return data + float(np.random.default_rng(seed).laplace())


def noisy_count(data: float, seed: int) -> int:
    """A count with geometric noise."""
    coins = np.random.default_rng(seed).geometric(1 - math.exp(-1.0), 2)
    return int(data) + int(coins[0] - coins[1])


def response(data: float, seed: int) -> dict[str, object]:
    """The truth with probability e / (1 + e), as a word beside random bits."""
    rng = np.random.default_rng(seed)
    is_true = bool(data) == (rng.random() < math.e / (1 + math.e))
    return {"answer": "yes" if is_true else "no", "bits": rng.integers(0, 2, 6).tolist()}


class Fitted:
    """An estimator, whose attribute is noisy."""

    def __init__(self, mean: float) -> None:
        self.mean_ = mean


def estimator(data: float, seed: int) -> Fitted:
    """An object that holds a noisy number."""
    return Fitted(noisy_number(data, seed))


def shares(data: float, seed: int) -> list[float]:
    """Two numbers, random each, whose sum is the noisy number."""
    rng = np.random.default_rng(seed)
    one = float(rng.normal(0.0, 100.0))
    return [one, data + float(rng.laplace()) - one]


AUDITED: tuple[Callable[..., Any], ...] = (noisy_number, noisy_count, response, estimator, shares)
"""Releases of epsilon 1 on a number that moves by one."""


def is_audit_accused(release: Callable[..., Any], seed: int) -> bool:
    """Whether the whole audit of one release ends in FAIL; no faults are planted, as they can only make it INCONCLUSIVE."""
    starts = set_aside(release) if seed // len(AUDITED) % 40 == 0 else None
    caller = inspect_call(release, 0.0, 1.0, seed)
    effort = Effort(8000, CONFIDENCE, 1e-5, 1, seed)
    claimed = PureDP(1.0, relation=Relation.GIVEN_PAIR)
    subject = Release(caller, 0.0, 1.0)
    with mock.patch.multiple(stages, SLOW=(), QUICK=()):
        outcome = stages.audit_subject(subject, claimed, effort, 60.0, starts=starts)
    return str(outcome.verdict) == "FAIL"


def _share(what: str, cases: Iterable[Any], is_accused: Callable[[Any, int], bool]) -> Result:
    """The share of accused audits; its limit is the 99.9 % quantile of what a rate of 5 % gives."""
    accused = sum(is_accused(case, seed) for seed, case in enumerate(islice(cycle(cases), AUDITS)))
    limit = binom.ppf(0.999, AUDITS, 1 - CONFIDENCE) / AUDITS
    return Result(f"false alarms in {AUDITS} audits of honest {what} at 95 %", accused / AUDITS, float(limit), "share")


def measure() -> list[Result]:
    """The shares of accused algorithms and releases."""
    return [
        _share("algorithms", [subjects()[label]() for label in HONEST], is_accused),
        _share("samples of releases", RELEASES, is_release_accused),
    ]


if __name__ == "__main__":
    results = [] if sys.argv[1:] else [*measure(), _share("functions", FUNCTIONS, is_function_accused)]
    results.append(_share("releases, audited whole", AUDITED, is_audit_accused))
    for result in results:
        print(f"{result.name}: {result.measured:.3f} (at most {result.limit:.3f})")
    sys.exit(0 if all(result.is_met for result in results) else 1)
