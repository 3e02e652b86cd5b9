"""Neighbors of one data set: without one record, with one more, or without all records of one user; and which tells most.

Each neighbor gets a few runs of its own, which are used for nothing else; the audit proper runs on the one that these runs
tell from the data set best. So the bound is valid whichever is chosen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds import methods
from bandana.audits.external.releases.bandits import Prepared
from bandana.audits.external.releases.calls import BrokenRelease
from bandana.audits.external.releases.encoding import Encoder, Outputs, joined
from bandana.audits.external.releases.scores import learn

MOST = 32
"""Records, or users, that are tried."""
_LEAST, _MOST_RUNS = 200, 2000
_SHARE = 1 / 3


@dataclass(frozen=True)
class Neighborhood:
    """Neighbors to try.

    Attributes:
      prepared: what is run on each.
      words: what they are, for the coverage.
    """

    prepared: tuple[Prepared, ...]
    words: str


# --- data sets without some records --------------------------------------------------------------------------------


def n_records(data: Any) -> int:
    """How many records a data set has: rows of an array, entries of a list, or the length of all columns of a dictionary.

    Raises:
      BrokenRelease: it is none of these, or has no records.
    """
    if isinstance(data, dict) and data:
        lengths = {len(column) if isinstance(column, list | tuple | np.ndarray) else -1 for column in data.values()}
        if len(lengths) == 1 and min(lengths) > 0:
            return lengths.pop()
    elif (isinstance(data, list | tuple) or (isinstance(data, np.ndarray) and data.ndim)) and len(data):
        return len(data)
    raise BrokenRelease(
        "nobody can say what its records are: give an array with one row a record, a list of records, or a dictionary of "
        "columns, or name both data sets with pair=(A, B)"
    )


def taken(data: Any, records: Sequence[int]) -> Any:
    """The data set of these records, in this order; its kind stays."""
    if isinstance(data, dict):
        return {name: taken(column, records) for name, column in data.items()}
    if isinstance(data, np.ndarray):
        return data[np.asarray(records, dtype=np.int64)]
    return type(data)(data[record] for record in records)


def one_more_or_less(caller_of: Callable[[Any], Prepared], data: Any, seed: int) -> Neighborhood:
    """Each record removed, and a copy of it added; of many records the extreme ones and some that a seed draws.

    Args:
      caller_of: a neighbor -> what is run on the data set and on it.
      data: the data set.
      seed: of the records that are drawn.
    """
    n = n_records(data)
    chosen = _chosen(data, n, seed)
    found = []
    for record in chosen:
        rest = [other for other in range(n) if other != record]
        found.append(replace(caller_of(taken(data, rest)), words=f"record {record} removed"))
        found.append(replace(caller_of(taken(data, [*range(n), record])), words=f"a copy of record {record} added"))
    which = f"each of {n} records" if len(chosen) == n else f"{len(chosen)} of {n} records"
    return Neighborhood(tuple(found), f"{which} removed, and a copy of it added")


def without_users(caller_of: Callable[[Any], Prepared], data: Any, users: Sequence[Hashable], seed: int) -> Neighborhood:
    """All records of each user removed; of many users those with most records, and some that a seed draws.

    Args:
      caller_of: a neighbor -> what is run on the data set and on it.
      data: the data set.
      users: whose each record is.
      seed: of the users that are drawn.

    Raises:
      BrokenRelease: not one user a record, or one user alone.
    """
    owned = records_of(users, n_records(data))
    if len(owned) < 2:
        raise BrokenRelease("users: all records are one user's: without them there is no data set")
    chosen = chosen_users(owned, seed)
    found = [
        replace(
            caller_of(taken(data, [record for record, owner in enumerate(users) if owner != user])),
            words=f"user {user!r} removed, {len(owned[user])} records",
        )
        for user in chosen
    ]
    which = f"each of {len(owned)} users" if len(chosen) == len(owned) else f"{len(chosen)} of {len(owned)} users"
    return Neighborhood(tuple(found), f"all records of {which} removed")


def records_of(users: Sequence[Hashable], n: int) -> dict[Hashable, list[int]]:
    """User -> records, in the order of their first ones.

    Raises:
      BrokenRelease: not one user a record.
    """
    if len(users) != n:
        raise BrokenRelease(f"users: one for each of {n} records must be given, got {len(users)}")
    owned: dict[Hashable, list[int]] = {}
    for record, user in enumerate(users):
        owned.setdefault(user, []).append(record)
    return owned


def chosen_users(owned: dict[Hashable, list[int]], seed: int) -> list[Hashable]:
    """At most `MOST` users: half of them those with most records, half drawn."""
    users = sorted(owned, key=lambda user: -len(owned[user]))
    if len(users) <= MOST:
        return users
    rest = users[MOST // 2 :]
    drawn = np.random.default_rng([seed, 12]).choice(len(rest), MOST - MOST // 2, replace=False)
    return [*users[: MOST // 2], *(rest[place] for place in sorted(drawn.tolist()))]


def _chosen(data: Any, n: int, seed: int) -> list[int]:
    """At most `MOST` records: the first, the last, those with the extreme numbers, and some that are drawn."""
    if n <= MOST:
        return list(range(n))
    kept = dict.fromkeys([0, n - 1])
    for column in _columns(data, n)[: MOST // 4]:
        kept |= dict.fromkeys([int(np.argmin(column)), int(np.argmax(column))])
    drawn = np.random.default_rng([seed, 12]).permutation(n).tolist()
    return list(dict.fromkeys([*kept, *drawn]))[:MOST]


def _columns(data: Any, n: int) -> list[FloatArray]:
    """The columns of numbers; none where there are no numbers."""
    try:
        table = np.array(list(data.values()) if isinstance(data, dict) else data, dtype=float)
    except (TypeError, ValueError):
        return []
    table = table if isinstance(data, dict) else table.reshape(n, -1).T
    return [column for column in table if np.isfinite(column).all()]


# --- the most telling one ------------------------------------------------------------------------------------------


def most_telling(tried: Neighborhood, n_runs: int, seed: int, seconds: float) -> tuple[Prepared, str]:
    """The neighbor that a few runs tell best from the data set, and what was tried, in words.

    Args:
      tried: neighbors.
      n_runs: of the audit proper; all neighbors together get about as many.
      seed: root of the seeds of these runs.
      seconds: of the audit; runs take a third of it here, at most.
    """
    children = np.random.SeedSequence(seed, spawn_key=(12,)).spawn(len(tried.prepared) + 1)
    n = int(np.clip(n_runs // len(tried.prepared), _LEAST, _MOST_RUNS))
    worth: list[tuple[float, float]] = []
    shared: dict[tuple[int, int], Outputs] = {}
    spent = 0.0
    for one, child in zip(tried.prepared, children, strict=False):
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
    cut = "" if len(worth) == len(tried.prepared) else f", of which the time sufficed for {len(worth)}"
    found = tried.prepared[best]
    words = (
        f"{tried.words}: {len(tried.prepared)} neighbors{cut}, {n} runs each; the most telling one, {found.words}, in full"
    )
    return found, words


def _worth(data: Outputs, neighbor: Outputs, seed: int) -> tuple[float, float]:
    """What held-out runs promise as a bound on mu, and by how many standard deviations mean ranks differ."""
    n, half = len(data), len(data) // 2
    both = joined([data, neighbor])
    sides = both[:n], both[n:]
    encoder = Encoder.learn(joined([side[:half] for side in sides]))
    tables = [encoder.table(side if encoder.columns is None else list(side)) for side in sides]
    best = (0.0, 0.0)
    for scorer in learn(tables[0][:half], tables[1][:half], seed, is_quick=True).values():
        held = [scorer(table[half:]) for table in tables]
        rank = np.argsort(np.argsort(np.concatenate(held), kind="stable"), kind="stable")
        gap = float(rank[len(held[0]) :].mean() - rank[: len(held[0])].mean()) / len(rank) * np.sqrt(6 * len(held[0]))
        best = max(best, (round(methods.bound("mu-threshold", held[0], held[1], 0.05), 9), round(gap, 9)))
    return best
