"""Neighbors of a bandit's table that differ in all rewards of one user; the audit runs on those that tell most.

The rounds of a user are given, or consecutive. A data set has infinitely many neighbors, and a few for each user are tried:
all rewards of the user go from one end of the range to the other, or, once, far outside of it; and those of one arm go up
while those of all others go down, since a change of all arms alike may change no action.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bandana.algorithms.environments.tables import RewardTable, random_table
from bandana.algorithms.protocol import FloatArray
from bandana.audits.external.drawn import BEYOND
from bandana.audits.external.releases.bandits import NoTables, Prepared, Tables, tables_of
from bandana.audits.external.releases.calls import BrokenRelease
from bandana.audits.external.releases.neighbors import Neighborhood, chosen_users, records_of
from bandana.privacy_core import Interval


def users_of(given: Any, n_rounds: int) -> list[Hashable]:
    """Whose each round is.

    Args:
      given: one number or name for each round, or a whole number k: users stay for k consecutive rounds.
      n_rounds: rounds.

    Raises:
      BrokenRelease: neither of these.
    """
    if isinstance(given, int) and not isinstance(given, bool):
        if not 1 <= given <= n_rounds:
            raise BrokenRelease(f"users: a user stays for 1 to {n_rounds} rounds, got {given}")
        return [t // given for t in range(n_rounds)]
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, list | tuple) or any(isinstance(user, list | dict | set) for user in listed):
        raise BrokenRelease("users: must be one number or name for each round, or how many consecutive rounds a user has")
    records_of(listed, n_rounds)
    return list(listed)


def base_tables(n_rounds: int, n_arms: int, span: Interval, seed: int, data: Any = None) -> list[tuple[str, FloatArray]]:
    """Tables in which users are replaced, with words for them: the given one, or drawn ends of the range and all low.

    Raises:
      NoTables: the given table has another shape.
    """
    if data is None:
        drawn = random_table(n_rounds, n_arms, span, seed).rewards
        return [("all other rewards drawn", drawn), (f"all other rewards {span.low:g}", np.full(drawn.shape, span.low))]
    table = tables_of(data, data, span)[0].rewards
    if table.shape != (n_rounds, n_arms):
        raise NoTables(f"data: must have {n_rounds} rounds and {n_arms} arms, got {table.shape}")
    return [("all other rewards as given", table)]


def replaced_users(
    against: Callable[[Tables], Prepared],
    bases: Sequence[tuple[str, FloatArray]],
    users: Sequence[Hashable],
    span: Interval,
    seed: int,
    *,
    goes_outside: bool,
) -> Neighborhood:
    """All rewards of each user replaced; of many users those with most rounds, and some that a seed draws.

    Args:
      against: two tables -> what is run on them.
      bases: tables, with words.
      users: whose each round is.
      span: range of rewards.
      seed: of the users that are drawn.
      goes_outside: whether the rewards of the user with most rounds also go far outside of the range.
    """
    owned = records_of(users, len(users))
    chosen = chosen_users(owned, seed)
    found = []
    for user in chosen:
        for words, base in bases:
            for change, sides in _changes(span, base.shape[1], goes_outside=goes_outside and user == chosen[0]):
                shown = f"user {user!r}, {len(owned[user])} rounds: {change}; {words}"
                found.append(replace(against(_replaced(base, owned[user], sides)), words=shown))
    which = f"each of {len(owned)} users" if len(chosen) == len(owned) else f"{len(chosen)} of {len(owned)} users"
    return Neighborhood(tuple(found), f"all rewards of {which} replaced")


Sides = tuple[FloatArray, FloatArray]


def _changes(span: Interval, n_arms: int, *, goes_outside: bool) -> list[tuple[str, Sides]]:
    """(n_arms,) rewards of the user's rounds on the data set and on its neighbor, with words."""
    low, high, far = span.low, span.high, span.high + BEYOND * span.width
    all_low, is_first = np.full(n_arms, low), np.arange(n_arms) == 0
    apart = np.where(is_first, low, high), np.where(is_first, high, low)
    changes = [
        (f"every reward {low:g} becomes {high:g}", (all_low, np.full(n_arms, high))),
        (f"rewards of arm 0 go from {low:g} to {high:g}, all others from {high:g} to {low:g}", apart),
        (f"every reward {low:g} becomes {far:g}", (all_low, np.full(n_arms, far))),
    ]
    return changes if goes_outside else changes[:2]


def _replaced(base: FloatArray, rounds: list[int], sides: Sides) -> Tables:
    """The table with these rewards of the arms in some rounds, on either side."""
    both = np.concatenate([base, sides])
    wide = Interval(float(both.min()), float(both.max()))
    tables = []
    for rewards in sides:
        table = base.copy()
        table[rounds] = rewards
        tables.append(RewardTable(table, wide))
    return tables[0], tables[1]
