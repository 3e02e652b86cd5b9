"""How often an audit accuses an honest mechanism: a thousand audits of algorithms whose claims are met with equality."""

from __future__ import annotations

from itertools import cycle, islice

from scipy.stats import binom

from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import MU, Effort
from bandana.audits.replays.measure import measure as measure_privacy
from bandana.audits.replays.measure import plan_bounds
from bandana.audits.subjects import Subject, subjects
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


def measure() -> list[Result]:
    """The share of accused audits; its limit is the 99.9 % quantile of what a rate of 5 % gives."""
    honest = [subjects()[label]() for label in HONEST]
    accused = sum(is_accused(subject, seed) for seed, subject in enumerate(islice(cycle(honest), AUDITS)))
    limit = binom.ppf(0.999, AUDITS, 1 - CONFIDENCE) / AUDITS
    return [Result(f"false alarms in {AUDITS} audits of honest mechanisms at 95 %", accused / AUDITS, float(limit), "share")]
