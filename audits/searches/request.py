"""The request that all searches of one algorithm share, and the finding of one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Protocol

import numpy as np

from bandana.audits.claims import Quantity
from bandana.audits.contents import Description
from bandana.audits.coverage import Coverage
from bandana.audits.neighbors import users, worst_pair
from bandana.audits.neighbors.pairs import Pair, canary_pairs
from bandana.audits.outcome import Effort, Scores, StatedBound, View, accounted_as, all_gaussian, claimed_as, main_quantity
from bandana.audits.seeds import derive
from bandana.audits.trial import Trial
from bandana.privacy_core import Event, GaussianDP

_SHOWN, _FEW_REPLAYS, _NEAR = 0x7072_6F6D, 64, 0.9


@dataclass(frozen=True)
class Request:
    """An algorithm to examine, honest or with a planted fault, and all that the searches of it share.

    Attributes:
      trial: the algorithm, its claim and its data.
      effort: replays, cases and seed.
      failure: probability with which some bound exceeds the truth, at most.
      until_caught: any evidence against the algorithm will do, and the search for it ends there; for planted faults.
      must_catch: names of the searches that must catch a planted fault; another one that looks for it may stop early.
    """

    trial: Trial
    effort: Effort
    failure: float
    until_caught: bool = False
    must_catch: tuple[str, ...] = ()

    @property
    def claimed(self) -> float:
        """The claim in its main quantity."""
        return claimed_as(self.main, self.trial.claim.stated, self.events)

    @cached_property
    def main(self) -> Quantity:
        """Main quantity of the claim."""
        return main_quantity(self.trial.claim.stated, self.events)

    @cached_property
    def events(self) -> tuple[tuple[Event, int], ...]:
        """The events on the worst record, or the worst user, with counts."""
        return derive(self.trial.algorithm, self.trial.table, self.effort.seed, users=self.trial.users)

    @cached_property
    def accounted(self) -> float:
        """Composition of the events, in the claim's main quantity."""
        return accounted_as(self.main, self.events)

    @property
    def limit(self) -> float:
        """Limit that a bound on the main quantity must exceed to break an inequality of the verdict."""
        return min(self.claimed, self.accounted)

    @property
    def book_limit(self) -> GaussianDP | None:
        """Largest composition of a searched case's ledger; None where noise is not Gaussian, and there is no exact mu."""
        return self.trial.claim.gaussian if all_gaussian(self.events) else None

    @cached_property
    def canaries(self) -> tuple[Pair, ...]:
        """The neighbors that differ at the trial's probes; in all records of a user where the claim is on those."""
        if self.trial.users is not None:
            return users.user_pairs(self.trial.table, self.trial.users, self.trial.probes)
        return canary_pairs(self.trial.table, self.trial.probes, self.trial.private_records)

    @cached_property
    def least_favorable(self) -> worst_pair.WorstPair:
        """The least favorable pair that a search finds, and its analytic privacy loss."""
        trial = self.trial
        if trial.users is not None:
            return users.find(trial.algorithm, trial.table, trial.users, trial.probes, self.effort.seed)
        return worst_pair.find(trial.algorithm, trial.table, trial.probes, self.effort.seed, trial.private_records)

    @cached_property
    def shown(self) -> list[float]:
        """Mu that the releases of each canary give away in a few replays, which serve no bound; -1 where a loss is NaN."""
        seeds = np.random.SeedSequence(self.effort.seed, spawn_key=(_SHOWN,)).spawn(len(self.canaries))
        pairs = zip(self.canaries, seeds, strict=True)
        mus = [worst_pair.losses_of(self.trial.algorithm, pair, _FEW_REPLAYS, seed).mu for pair, seed in pairs]
        return [-1.0 if np.isnan(row).any() else worst_pair.visible_mu(row) for row in mus]

    @cached_property
    def replays(self) -> tuple[int, ...]:
        """Replays a side of each pair, the least favorable one last; fewer unless exact losses are a ninth above its own.

        Noise that is too small is so by one factor on all pairs, and a second pair that shows it as well tightens no bound.
        """
        n, least = self.effort.replays, self.least_favorable.mu_analytic
        return (*(n if _NEAR * shown > least else self.effort.fewer for shown in self.shown), n)


@dataclass(frozen=True)
class Finding:
    """Result of one search, which fills in the fields that it is about.

    Attributes:
      is_caught: it is evidence against the algorithm.
      bounds: all that were taken.
      scores: name -> scores of the data set and of the neighbor.
      measured: the largest bound on the main quantity.
      power: the smallest factor in the main quantity that would have been caught with 95 % probability.
      caveats: why the search can say nothing in favor of the claim, in words.
      no_number: view of which some scores are NaN, so that no bound was taken.
      counterexample: to the privacy argument, in JSON's own types.
      noise_finding: how the noise differs from its declaration, in words.
      coverage: what the search tried.
    """

    is_caught: bool
    bounds: tuple[StatedBound, ...] = ()
    scores: Scores = field(default_factory=lambda: MappingProxyType({}))
    measured: float = 0.0
    power: float = math.inf
    caveats: tuple[str, ...] = ()
    no_number: View | None = None
    counterexample: Description | None = None
    noise_finding: str | None = None
    coverage: Coverage | None = None


class Search(Protocol):
    """One way to catch a fault; the honest algorithm and each faulty one go through the same searches.

    Attributes:
      name: short name, by which planted faults say what must catch them.
    """

    name: str

    def examine(self, request: Request) -> Finding:
        """Searches one algorithm for evidence against it."""
