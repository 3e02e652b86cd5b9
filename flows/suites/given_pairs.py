"""Claims that name their two data sets, as in `gdp(mu=1, pair=(a.npy, b.npy))`: read, and audited on that pair alone.

Claims on users are audited in the same way, on the most telling of some pairs that differ in all rewards of one user.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.tables import RewardTable
from bandana.audits.claims import ClaimError, as_gdp, parse, split_pair
from bandana.audits.external import conformance
from bandana.audits.external.play_calls import accepts_outside, adapted
from bandana.audits.external.releases.audit import draw, examine
from bandana.audits.external.releases.bandits import prepared, replayed
from bandana.audits.external.releases.neighbors import most_telling
from bandana.audits.external.releases.outcome import ReleaseOutcome
from bandana.audits.external.releases.users import base_tables, replaced_users, users_of
from bandana.audits.outcome import Effort
from bandana.flows.running.child import one_call
from bandana.flows.suites.data_sets import read_data
from bandana.privacy_core import Interval, Relation

Given = tuple[Any, Any]


def read_claim(
    text: str,
    pair: Given | None,
    *,
    relation: str | None = None,
    trust: str | None = None,
    source: str = "the user",
    options: tuple[str, str] = ("--pair", "--pair"),
) -> tuple[Claim, Given | None]:
    """A claim, and the data sets that it names or that are given beside it; a text among them is read.

    Args:
      text: of the claim.
      pair: data sets, or how files and literals are written; None: those that the claim names, if it does.
      relation: see `bandana.audits.claims.parse`.
      trust: see there.
      source: see there.
      options: how the user calls both data sets, for messages.

    Raises:
      ClaimError: no claim, or a pair where another relation is claimed, or none where a pair is.
      SpecError: a data set that cannot be read.
    """
    rest, written = split_pair(text)
    if pair is not None and written is not None:
        raise ClaimError(f"claim {text!r}: the pair stands in the claim and beside it: give it once")
    pair = written if pair is None else pair
    if pair is not None and relation is None and "relation" not in rest:
        relation = "pair"
    claim = parse(rest, relation=relation, trust=trust, source=source)
    if claim.relation is Relation.GIVEN_PAIR and pair is None:
        raise ClaimError(f"claim {text!r}: relation=pair needs the two data sets, as in pair=(a.npy, b.npy)")
    if pair is None:
        return claim, None
    sides = [read_data(option, side) if isinstance(side, str) else side for option, side in zip(options, pair, strict=True)]
    return claim, (sides[0], sides[1])


def on_pair(claim: Claim) -> Claim:
    """The claim for the given pair alone, whatever relation it was made for."""
    stated = replace(claim.stated, relation=Relation.GIVEN_PAIR)
    return replace(
        claim, stated=stated, gaussian=as_gdp(stated)[0], relation=stated.relation, unit="what the pair differs in"
    )


def audit_pair(
    subject: Any, pair: Given, claim: Claim, effort: Effort, span: Interval, seconds: float
) -> tuple[ReleaseOutcome, str]:
    """Audits an algorithm, a function of rewards, or any release on two data sets.

    Args:
      subject: what to audit.
      pair: the data sets; tables of rewards, (n_rounds, n_arms), for a bandit.
      claim: on this pair.
      effort: replays, confidence and seed.
      span: declared range of a function's rewards.
      seconds: for all runs.

    Returns:
      what was found, and what was replayed, in words.

    Raises:
      BrokenFunction, BrokenRelease, ProtocolError: see `bandana.audits.external.releases.bandits.prepared`.
    """
    ready = prepared(subject, *pair, span, effort.seed, one_call)
    samples = draw(ready.caller, ready.data, ready.neighbor, effort.replays, effort.seed, seconds)
    samples = replace(samples, how=ready.how or samples.how, notes=(*samples.notes, *ready.notes))
    outcome = examine(samples, claim.stated, confidence=effort.confidence, seed=effort.seed)
    return replace(outcome, coupling=ready.compare(effort.seed)), ready.words


def audit_users(
    subject: Any, given: Any, claim: Claim, effort: Effort, shape: tuple[int, int], span: Interval, seconds: float, data: Any
) -> tuple[ReleaseOutcome, str]:
    """Audits an algorithm or a function of rewards on tables that differ in all rewards of one user.

    Args:
      subject: what to audit.
      given: whose each round is, or how many consecutive rounds a user has.
      claim: with relation=user.
      effort: replays, confidence and seed.
      shape: rounds and arms.
      span: declared range of rewards.
      seconds: for all runs.
      data: a table of rewards, in which users are replaced; None: one is drawn.

    Returns:
      what was found, and what was replayed, in words.

    Raises:
      BrokenFunction, BrokenRelease, ProtocolError: see `bandana.audits.external.releases.bandits.replayed`.
    """
    users, bases = users_of(given, shape[0]), base_tables(*shape, span, effort.seed, data)
    first = RewardTable(bases[0][1], span)
    against = replayed(subject, (first, first), span, effort.seed, one_call)
    is_function = bool(conformance.missing_members(subject))
    outside = not is_function or accepts_outside(adapted(subject, shape, span, one_call), shape, span)
    tried = replaced_users(against, bases, users, span, effort.seed, goes_outside=outside)
    ready, search = most_telling(tried, effort.replays, effort.seed, seconds)
    samples = draw(ready.caller, ready.data, ready.neighbor, effort.replays, effort.seed, seconds)
    samples = replace(samples, how=ready.how, notes=(*samples.notes, *ready.notes))
    outcome = examine(samples, claim.stated, confidence=effort.confidence, seed=effort.seed, pair=ready.words, search=search)
    return replace(outcome, coupling=ready.compare(effort.seed)), f"{shape[0]} rounds x {shape[1]} arms; {search}"
