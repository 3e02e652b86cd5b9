"""Finitely many arms: made up, of a trial, or of a user's file."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.data_sets import most_records
from bandana.algorithms.environments.logged import ARM_NAMES, people_table, resampled_arms, thornton_hiv
from bandana.algorithms.environments.tables import RewardTable, random_table
from bandana.algorithms.protocol import FloatArray, Stream
from bandana.flows.own import data as own_data
from bandana.flows.own.budgets import BookSpec
from bandana.flows.problems.data_files import DataFile, DataFileSpec
from bandana.flows.problems.environment import PSEUDO, Classes, Environment, EnvironmentFields, Purpose
from bandana.flows.texts.header import read_header
from bandana.flows.texts.mistakes import SpecError, shortened
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import number


class ArmsSpec(EnvironmentFields):
    """Arms with a number each: the mean of its rewards, or what it follows from."""

    means: list[float] = Field(min_length=2, description="Mean reward of each arm.")

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means)


class BernoulliSpec(ArmsSpec):
    """Arms that answer 1 with a given probability."""

    kind: Literal["bernoulli"]
    means: list[Annotated[float, Field(ge=0, le=1)]] = Field(min_length=2, description="Success probability of each arm.")


class _Bernoulli(Environment[BernoulliSpec]):
    is_bernoulli = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"arm {a}" for a in range(len(self.item.means)))

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.item.means)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return BernoulliArms(self.item.means, self.setting.horizon, seed)

    def audit_table(self) -> RewardTable:
        generator = np.random.Generator(np.random.SFC64(self._seed(Purpose.AUDIT_TABLE)))
        drawn = generator.random((self.setting.rounds, self.n_actions)) < self.means
        return RewardTable(drawn.astype(float), self.reward_range)

    def about(self) -> tuple[str, str, str]:
        return "bernoulli", "Arms that answer 1 with a fixed probability, else 0.", PSEUDO


class ThorntonSpec(EnvironmentFields):
    """A randomized trial of cash incentives for learning one's HIV result; see `bandana.algorithms.environments.logged`."""

    whose_data: ClassVar[str] = "public"
    kind: Literal["thornton_hiv"]


class _Thornton(Environment[ThorntonSpec]):
    is_bernoulli = True
    limited_by = "the smallest arm of thornton_hiv"
    names = ARM_NAMES

    @property
    def n_people(self) -> int:
        return sum(len(group) for group in thornton_hiv())

    @property
    def means(self) -> FloatArray:
        return np.array([group.mean() for group in thornton_hiv()])

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return resampled_arms(self.setting.horizon, seed)

    def audit_table(self) -> RewardTable:
        return people_table(self._seed(Purpose.AUDIT_TABLE), self.setting.rounds)

    @property
    def most_users(self) -> dict[str, int]:
        return {"audit.rounds": min(len(group) for group in thornton_hiv())}

    def about(self) -> tuple[str, str, str]:
        return (
            "thornton_hiv",
            f"A randomized trial in rural Malawi (Thornton 2008, data of the package causaldata): {self.n_people:,} people "
            "were offered a random cash incentive to come and learn the result of their HIV test. The five arms are "
            "amounts, the reward is 1 if the person came.",
            "Regret: each pull of an arm draws one of its people uniformly with replacement, so the mean reward of "
            "an arm is unbiased for its empirical mean and any horizon can be played; rounds are simulated, "
            "and several draw one person. Audit: the people themselves, without replacement, one person a cell of the "
            "table, so that replacing a record is replacing a person.",
        )


class TableSpec(DataFileSpec):
    """A CSV file: a header of action names, then one user a row, one potential reward an action.

    The file is private: of what it holds, only what `public` names is ever logged, tracked or reported.
    """

    kind: Literal["table"]
    path: Path = Field(description="Path of the CSV file, relative to the spec.")
    rows: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)] | None = Field(
        None, description="First row and the one after the last, counted from 0; all rows if left out."
    )
    data: BookSpec | None = Field(None, description="Budget book in which every run over these rows is charged.")
    user: str | None = Field(None, description="Column that says whose each row is; it is no action, and is never shown.")
    beyond_visits: Literal["refuse", "drop"] = Field(
        "refuse", description="What happens to rows of a user beyond visits_per_user, or nearer than visits_apart."
    )

    @property
    def book(self) -> BookSpec | None:
        """The budget book."""
        return self.data

    def within(self, folder: Path) -> Self:
        """The same, with the book looked up in the spec's folder."""
        return self if self.data is None else self.model_copy(update={"data": self.data.within(folder)})

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.rows is not None and not self.rows[0] < self.rows[1]:
            raise ValueError(f"rows must be [first, one after the last], got {self.rows}")
        if self.user is not None and self.visits_per_user is None:
            raise ValueError(
                "user: names whose each row is; give visits_per_user too, the most rows of one user: it is public, and the "
                "file's own number is not"
            )
        if self.beyond_visits == "drop" and self.user is None:
            raise ValueError("beyond_visits: drop needs the column that says whose each row is: give the field user")
        if self.beyond_visits == "drop" and self.data is not None:
            raise ValueError("beyond_visits: a budget book counts the rows of the file, so that none may be dropped: refuse")
        if self.data is not None and "values" in self.public:
            raise ValueError("data.book: the rows are public, and nothing is spent on them; leave out `data` or `public`")
        return self


class _Table(DataFile[TableSpec]):
    limited_by = "the table"

    @cached_property
    def _read(self) -> tuple[RewardTable, str]:
        """Table that is played, and the digest of the bytes that it was read from."""
        content, digest = own_data.content_of(self.item)
        return _parsed(self.item.model_dump_json(), content), digest

    @property
    def table(self) -> RewardTable:
        """The rows that are played."""
        return self._read[0]

    @property
    def first_row(self) -> int:  # type: ignore[override]
        """Number in the file of the first row that is played."""
        return 0 if self.item.rows is None else self.item.rows[0]

    @property
    def plays_private_rows(self) -> bool:  # type: ignore[override]
        return not self.shows("values")

    def noise_facts(self) -> dict[str, object]:
        """No key and no result shows a seed of noise, so a hash of private rows tells nobody of them."""
        return {"rows": sha256(own_data.content_of(self.item)[0]).hexdigest()} if self.plays_private_rows else {}

    def facts(self) -> dict[str, object]:
        """Facts that keys know; the book changes no number, and is left out."""
        facts = super().facts()
        del facts["data"]
        if self.item.rows is None:  # as before tables could be split
            del facts["rows"]
        if self.item.user is None:  # as before rows could be a user's
            del facts["user"], facts["beyond_visits"]
        return facts

    @property
    def digest(self) -> str:
        return self._read[1]

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.table.rewards[: self.setting.horizon].mean(axis=0))

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return self.table

    def audit_table(self) -> RewardTable:
        """Private rows are not replayed: scores of thousands of replays tell more of them than the claim covers.

        A claim holds for all data, so that rewards drawn at the ends of the declared range test it as well.
        """
        rounds = self.setting.rounds
        if not self.shows("values"):
            return random_table(rounds, self.n_actions, self.reward_range, self.setting.seed)
        return RewardTable(self.table.rewards[:rounds], self.reward_range, self.names)

    @property
    def most_users(self) -> dict[str, int]:
        n = self.table.n_users
        return {"horizon": n, **({"audit.rounds": n} if self.shows("values") else {})}

    def about(self) -> tuple[str, str, str]:
        text = "A table of potential rewards, one user a row."
        if self.item.user is not None:
            does = "were dropped" if self.item.beyond_visits == "drop" else "would be refused"
            text = f"A table of potential rewards, with {self.item.users}; further rows of a user {does}."
        estimator = "Regret is against the best single arm in hindsight, on the mean rewards of the rows played."
        if not self.shows("values"):
            text += " The file is private: its rows are not shown, and audits replay rewards drawn at random."
        if not self.shows("regret"):
            estimator = "Regret is withheld: the spec does not declare it public, and no privacy claim covers it."
        return self.item.path.name, text, estimator


@lru_cache(maxsize=2)
def _parsed(item: str, content: bytes) -> RewardTable:
    """The rows of a table by its JSON; environments of one spec are made many times, and millions of rows take seconds."""
    return parse_table(TableSpec.model_validate_json(item), content)


def parse_table(table: TableSpec, content: bytes) -> RewardTable:
    """The rows of a CSV's bytes that are played.

    Raises:
      SpecError: missing, malformed, without a header, not numeric, NaN, or outside the declared range; the message names
        the line and the action, and the value only where the spec declares the values public.
    """
    where, span = table.path, Interval(table.low, table.high)
    n_lines, most = content.count(b"\n") + (not content.endswith(b"\n")), most_records(span)
    if n_lines - 1 > most > 0 and table.rows is None and table.beyond_visits == "refuse":  # before minutes of work
        raise SpecError(
            f"environment.rows: {where} has {n_lines - 1:,} rows, and sums of rewards in {span} are exact for at most "
            f"{most:,}: play a part, such as rows: [0, {most}]"
        )
    try:
        content.decode("utf-8")
        # Spreadsheets mark UTF-8 with a sign that would else be a part of the first name.
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
        names, rewards = _rewards(table, csv.reader(text, strict=True))
    except UnicodeDecodeError as error:
        raise SpecError(f"environment.path: {where} is not UTF-8 (byte {error.start}): save it as CSV in UTF-8") from None
    except csv.Error as error:
        raise SpecError(f"environment.path: {where} cannot be read: {error}") from error
    first, stop = table.rows or (0, len(rewards))
    if stop > len(rewards):
        raise SpecError(f"environment.rows: {where} has {len(rewards)} rows, got {table.rows}")
    try:
        return RewardTable(rewards[first:stop], span, names)
    except ValueError as error:
        raise SpecError(f"environment.path: {where}: {error}") from error


def _rewards(table: TableSpec, rows: Iterator[list[str]]) -> tuple[tuple[str, ...], FloatArray]:
    """The names of the actions, and the (n_users, n_actions) rewards of the users who are played."""
    where, values, read = table.path, array("d"), lru_cache(number)
    names, owner = _taken_out(table, read_header(next(rows, ()), where, "values" in table.public))
    visits, line, width, low, high = _Visits(table), 1, len(names) + (owner is not None), table.low, table.high
    for line, row in enumerate(rows, start=2):
        if len(row) != width:
            what = "actions" if owner is None else "columns"
            raise SpecError(f"{where}:{line}: {len(row)} values where the header names {width} {what}")
        if owner is not None and not visits.takes(row.pop(owner).strip(), line):
            continue
        try:
            numbers = [read(text) for text in row]
            is_inside = low <= min(numbers) and max(numbers) <= high
        except ValueError:
            is_inside = False
        if not is_inside:
            raise _outside(table, names, row, line)
        values.extend(numbers)
    if line == 1:
        raise SpecError(f"environment.path: {where} has a header and no rows: one row a user")
    return names, np.frombuffer(values).reshape(-1, len(names))


def _outside(table: TableSpec, names: Sequence[str], row: Sequence[str], line: int) -> SpecError:
    """Error that says what is wrong with the first reward of a row that is no number in the declared range."""

    def is_inside(text: str) -> bool:
        try:
            return table.low <= number(text) <= table.high
        except ValueError:
            return False

    name, text = next((name, text) for name, text in zip(names, row, strict=True) if not is_inside(text))
    shown = f" is {shortened(repr(text))}; it" if "values" in table.public else ""
    span = f"[{table.low:g}, {table.high:g}]"
    return SpecError(
        f"{table.path}:{line}: the reward of action {name!r}{shown} must be a number in the declared range {span}"
    )


def _taken_out(table: TableSpec, names: tuple[str, ...]) -> tuple[tuple[str, ...], int | None]:
    """The names of the actions, and which column says whose each row is."""
    if table.user is None:
        return names, None
    if table.user not in names:
        raise SpecError(
            f"environment.user: {table.path} has no column {table.user!r}: name the one that says whose a row is"
        )
    place = names.index(table.user)
    actions = names[:place] + names[place + 1 :]
    if len(actions) < 2:
        raise SpecError(f"environment.path: {table.path} needs at least 2 actions beside the column {table.user!r}")
    return actions, place


class _Visits:
    """Whose the rows are that were taken so far: contribution bounding."""

    def __init__(self, table: TableSpec) -> None:
        self._table, self._n_taken = table, 0
        self._last: dict[str, tuple[int, int]] = {}

    def takes(self, owner: str, line: int) -> bool:
        """True if a row is played; one that the declaration does not allow is dropped, or refused by its line alone."""
        table = self._table
        assert table.users is not None
        if not owner:
            raise SpecError(f"{table.path}:{line}: the column {table.user!r} is empty: say whose each row is")
        count, last = self._last.get(owner, (0, -table.users.separation))
        is_beyond = count >= table.users.most
        if is_beyond or self._n_taken - last < table.users.separation:
            if table.beyond_visits == "drop":
                return False
            wrong = f"a user has more than {count} rows" if is_beyond else "a user comes again too soon"
            raise SpecError(
                f"{table.path}:{line}: {wrong}; declared are {table.users}: declare more, or write beyond_visits: drop"
            )
        self._last[owner] = count + 1, self._n_taken
        self._n_taken += 1
        return True


CLASSES: Classes = {BernoulliSpec: _Bernoulli, ThorntonSpec: _Thornton, TableSpec: _Table}
