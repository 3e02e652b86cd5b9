"""Neighbors of one data set, and the search for the one that tells most.

Records are removed or added, users are removed, or all rewards of a user of a bandit are replaced. Each neighbor gets a few
runs of its own, which are used for nothing else; the audit proper runs on the one that these runs tell from the data set
best. So the bound is valid whichever is chosen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bandana.algorithms.environments.tables import RewardTable, random_table
from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds import methods
from bandana.flows.annexes.anything.functions.drawn import BEYOND
from bandana.flows.annexes.anything.functions.plays import Shape
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject, Outputs
from bandana.flows.annexes.anything.outputs.encoding import Encoder, joined
from bandana.flows.annexes.anything.outputs.scores import SLOW, learn
from bandana.flows.annexes.anything.pairs.subject import NoTables, Subject, Tables, tables_of
from bandana.privacy_core import Interval

MOST = 32
"""Records, or users, that are tried."""
_LEAST, _MOST_RUNS = 200, 2000
_SHARE = 1 / 3


@dataclass(frozen=True)
class Neighborhood:
    """Neighbors to try.

    Attributes:
      subjects: what is run on each.
      words: what they are, for the coverage.
    """

    subjects: tuple[Subject, ...]
    words: str


def n_records(data: object) -> int:
    """Number of records of a data set: rows of an array, entries of a list, or the length of all columns of a dictionary.

    Raises:
      BrokenSubject: it is none of these, or has no records.
    """
    if isinstance(data, dict) and data:
        lengths = {len(column) if isinstance(column, list | tuple | np.ndarray) else -1 for column in data.values()}
        if len(lengths) == 1 and min(lengths) > 0:
            return lengths.pop()
    elif (isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.ndim)) and len(data):
        return len(data)
    raise BrokenSubject(
        "nobody can say what its records are: give an array with one row a record, a list of records, or a dictionary of "
        "columns, or name both data sets with pair=(A, B)"
    )


def taken(data: Any, records: Sequence[int]) -> object:
    """The data set of these records, in this order; its kind stays."""
    if isinstance(data, dict):
        return {name: taken(column, records) for name, column in data.items()}
    if isinstance(data, np.ndarray):
        return data[np.asarray(records, dtype=np.int64)]
    return type(data)(data[record] for record in records)


def one_more_or_less(against: Callable[[object], Subject], data: object, seed: int) -> Neighborhood:
    """Each record removed, and a copy of it added; of many records the extreme ones and some that a seed draws.

    Args:
      against: a neighbor -> what is run on the data set and on it.
      data: the data set.
      seed: of the records that are drawn.
    """
    n = n_records(data)
    chosen = _chosen(data, n, seed)
    tried = []
    for record in chosen:
        rest = [other for other in range(n) if other != record]
        tried.append(replace(against(taken(data, rest)), words=f"record {record} removed"))
        tried.append(replace(against(taken(data, [*range(n), record])), words=f"a copy of record {record} added"))
    return Neighborhood(tuple(tried), f"{_some(len(chosen), n, 'records')} removed, and a copy of it added")


def without_users(against: Callable[[object], Subject], data: object, users: Sequence[Hashable], seed: int) -> Neighborhood:
    """All records of each user removed; of many users those with most records, and some that a seed draws.

    Args:
      against: a neighbor -> what is run on the data set and on it.
      data: the data set.
      users: whose each record is.
      seed: of the users that are drawn.

    Raises:
      BrokenSubject: not one user a record, or one user alone.
    """
    owned = _records_of(users, n_records(data))
    if len(owned) < 2:
        raise BrokenSubject("users: all records are one user's: without them there is no data set")
    chosen = _chosen_users(owned, seed)
    tried = [
        replace(
            against(taken(data, [record for record, owner in enumerate(users) if owner != user])),
            words=f"user {user!r} removed, {len(owned[user])} records",
        )
        for user in chosen
    ]
    return Neighborhood(tuple(tried), f"all records of {_some(len(chosen), len(owned), 'users')} removed")


def _some(n_chosen: int, n: int, what: str) -> str:
    return f"each of {n} {what}" if n_chosen == n else f"{n_chosen} of {n} {what}"


def _records_of(users: Sequence[Hashable], n: int) -> dict[Hashable, list[int]]:
    """User -> records, in the order of their first ones; BrokenSubject if there is not one user a record."""
    if len(users) != n:
        raise BrokenSubject(f"users: one for each of {n} records must be given, got {len(users)}")
    owned: dict[Hashable, list[int]] = {}
    for record, user in enumerate(users):
        owned.setdefault(user, []).append(record)
    return owned


def _chosen_users(owned: dict[Hashable, list[int]], seed: int) -> list[Hashable]:
    """At most `MOST` users: half of them those with most records, half drawn."""
    users = sorted(owned, key=lambda user: -len(owned[user]))
    if len(users) <= MOST:
        return users
    rest = users[MOST // 2 :]
    drawn = np.random.default_rng([seed, 12]).choice(len(rest), MOST - MOST // 2, replace=False)
    return [*users[: MOST // 2], *(rest[place] for place in sorted(drawn.tolist()))]


def _chosen(data: object, n: int, seed: int) -> list[int]:
    """At most `MOST` records: the first, the last, those with the extreme numbers, and some that are drawn."""
    if n <= MOST:
        return list(range(n))
    kept = dict.fromkeys([0, n - 1])
    for column in _columns(data, n)[: MOST // 4]:
        kept |= dict.fromkeys([int(np.argmin(column)), int(np.argmax(column))])
    drawn = np.random.default_rng([seed, 12]).permutation(n).tolist()
    return list(dict.fromkeys([*kept, *drawn]))[:MOST]


def _columns(data: object, n: int) -> list[FloatArray]:
    """The columns of numbers; none where there are no numbers."""
    try:
        table = np.array(list(data.values()) if isinstance(data, dict) else data, dtype=float)
    except (TypeError, ValueError):
        return []
    table = table if isinstance(data, dict) else table.reshape(n, -1).T
    return [column for column in table if np.isfinite(column).all()]


def users_of(given: object, n_rounds: int) -> list[Hashable]:
    """Whose each round is.

    Args:
      given: one number or name for each round, or a whole number k: users stay for k consecutive rounds.
      n_rounds: rounds.

    Raises:
      BrokenSubject: neither of these.
    """
    if isinstance(given, int) and not isinstance(given, bool):
        if not 1 <= given <= n_rounds:
            raise BrokenSubject(f"users: a user stays for 1 to {n_rounds} rounds, got {given}")
        return [t // given for t in range(n_rounds)]
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(listed, list | tuple) or any(isinstance(user, list | dict | set) for user in listed):
        raise BrokenSubject("users: must be one number or name for each round, or how many consecutive rounds a user has")
    _records_of(listed, n_rounds)
    return list(listed)


def base_tables(shape: Shape, span: Interval, seed: int, data: object = None) -> list[tuple[str, FloatArray]]:
    """Tables in which users are replaced, with words for them: the given one, or drawn ends of the range and all low.

    Raises:
      NoTables: the given table has another shape.
    """
    if data is None:
        drawn = random_table(*shape, span, seed).rewards
        return [("all other rewards drawn", drawn), (f"all other rewards {span.low:g}", np.full(drawn.shape, span.low))]
    table = tables_of(data, data, span)[0].rewards
    if table.shape != shape:
        raise NoTables(f"data: must have {shape[0]} rounds and {shape[1]} arms, got {table.shape}")
    return [("all other rewards as given", table)]


def replaced_users(
    against: Callable[[Tables], Subject],
    bases: Sequence[tuple[str, FloatArray]],
    users: Sequence[Hashable],
    span: Interval,
    seed: int,
    *,
    goes_outside: bool,
) -> Neighborhood:
    """All rewards of each user replaced; of many users those with most rounds, and some that a seed draws.

    A data set has infinitely many such neighbors: rewards go from one end of the range to the other or, once, far outside of
    it; and those of one arm go up while those of all others go down, since a change of all arms alike may change no action.

    Args:
      against: two tables -> what is run on them.
      bases: tables, with words.
      users: whose each round is.
      span: range of rewards.
      seed: of the users that are drawn.
      goes_outside: whether the rewards of the user with most rounds also go far outside of the range.
    """
    owned = _records_of(users, len(users))
    chosen = _chosen_users(owned, seed)
    tried = []
    for user in chosen:
        for words, base in bases:
            for change, sides in _changes(span, base.shape[1], goes_outside=goes_outside and user == chosen[0]):
                shown = f"user {user!r}, {len(owned[user])} rounds: {change}; {words}"
                tried.append(replace(against(_replaced(base, owned[user], sides)), words=shown))
    return Neighborhood(tuple(tried), f"all rewards of {_some(len(chosen), len(owned), 'users')} replaced")


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


def most_telling(tried: Neighborhood, n_runs: int, seed: int, seconds: float) -> tuple[Subject, str]:
    """The neighbor that a few runs tell best from the data set, and what was tried, in words.

    Args:
      tried: neighbors.
      n_runs: of the audit proper; all neighbors together get about as many.
      seed: root of the seeds of these runs.
      seconds: of the audit; runs take a third of it here, at most.
    """
    children = np.random.SeedSequence(seed, spawn_key=(12,)).spawn(len(tried.subjects) + 1)
    n = int(np.clip(n_runs // len(tried.subjects), _LEAST, _MOST_RUNS))
    worth: list[tuple[float, float]] = []
    shared: dict[tuple[int, int], Outputs] = {}
    spent = 0.0
    for one, child in zip(tried.subjects, children, strict=False):
        if worth and spent > _SHARE * seconds:
            break
        begun, generator = time.monotonic(), np.random.default_rng(child)
        key = (id(one.caller), id(one.data))
        if key not in shared:
            shared = {key: one.caller.runs(one.data, generator.integers(0, 2**32, n).tolist())}
        outputs = one.caller.runs(one.neighbor, generator.integers(0, 2**32, n).tolist())
        spent += time.monotonic() - begun
        worth.append(_worth(shared[key], outputs, seed))
    best = max(range(len(worth)), key=lambda place: (*worth[place], -place))
    cut = "" if len(worth) == len(tried.subjects) else f", of which the time sufficed for {len(worth)}"
    chosen = tried.subjects[best]
    shown = f"{len(tried.subjects)} neighbors{cut}, {n} runs each; the most telling one, {chosen.words}, in full"
    return chosen, f"{tried.words}: {shown}"


def _worth(data: Outputs, neighbor: Outputs, seed: int) -> tuple[float, float]:
    """Bound on mu that held-out runs promise, and the difference of mean ranks in standard deviations."""
    n, half = len(data), len(data) // 2
    both = joined([data, neighbor])
    encoder = Encoder.learn(both[:half], both[n : n + half])
    tables = [encoder.table(side) for side in (both[:n], both[n:])]
    best = (0.0, 0.0)
    for scorer in learn(tables[0][:half], tables[1][:half], seed, without=SLOW).values():
        held = [scorer(table[half:]) for table in tables]
        rank = np.argsort(np.argsort(np.concatenate(held), kind="stable"), kind="stable")
        gap = float(rank[len(held[0]) :].mean() - rank[: len(held[0])].mean()) / len(rank) * np.sqrt(6 * len(held[0]))
        best = max(best, (round(methods.bound("mu-threshold", held[0], held[1], 0.05), 9), round(gap, 9)))
    return best
