"""Claims that name their two data sets, as in `gdp(mu=1, pair=(a.npy, b.npy))`, and the data sets that they name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bandana.algorithms.entry import Claim
from bandana.audits.claims import ClaimError, as_gdp, parse, split_pair
from bandana.flows.annexes.anything.data_sets import read_data
from bandana.privacy_core import Relation

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
