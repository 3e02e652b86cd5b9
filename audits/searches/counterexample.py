"""One run that breaks a privacy argument, and the table that shows a person where.

A counterexample holds the data, the record that changes, and every release of the replicate in which the argument fails:
what it reads, how far its exact value moved, and how far it may. `lines` prints that, `describe` is the same as plain JSON.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from bandana.audits.searches.cases import Case, Covariates, Path
from bandana.audits.searches.widened import WIDER

DECISION, SPAN, SENSITIVITY, SEQUENCE = "decision", "span", "sensitivity", "sequence"
NOT_A_NUMBER, NO_NOISE, BOOK, STATE = "not a number", "no noise", "book", "released state"
"""Kinds of violations: `Counterexample.kind`."""

_WIDTH = 110
_MOST_LINES, _ENDS, _MOST_MARKED = 20, 3, 6
_MOST_ROWS = 200


@dataclass(frozen=True)
class Move:
    """One release of the offending replicate, on both data sets.

    Attributes:
      release: its index in the replicate's run, from 0.
      rounds: how many rounds were played when it was made.
      mechanism: name of the class.
      norm: in which the change is measured.
      start: first record that is charged.
      stop: one past the last of them.
      carried: first record of the sequence that it continues, which it reads without a charge; None where there is none.
      reads_record: whether it declares to read the record that changes.
      moved: how far the exact value moved.
      allowed: the sensitivity, or 0 where it does not read the record.
      cost: what one record pays for it, in words.
      is_offending: whether it is at fault, alone or together with the others that are marked.
    """

    release: int
    rounds: int
    mechanism: str
    norm: str
    start: int
    stop: int
    carried: int | None
    reads_record: bool
    moved: float
    allowed: float
    cost: str
    is_offending: bool

    @property
    def times(self) -> float:
        """Ratio of the distance that it moved to the allowed one; infinite where nothing is allowed."""
        if self.allowed:
            return self.moved / self.allowed
        return math.inf if self.moved else 0.0

    @property
    def span(self) -> str:
        """The records that it reads, in words."""
        charged = f"[{self.start}, {self.stop})"
        return charged if self.carried in (None, self.start) else f"{charged}+[{self.carried}, {self.start})"


@dataclass(frozen=True)
class Difference:
    """The first place where two runs part that saw the same released values.

    Attributes:
      round: which one, or which episode, from 0.
      arm: played on D there; None where a run had ended.
      neighbor_arm: played on D'.
      summary: in words.
    """

    round: int
    arm: int | None
    neighbor_arm: int | None
    summary: str


@dataclass(frozen=True)
class Total:
    """Total of the marked releases.

    Attributes:
      record: the record that pays; None where no charge is at fault.
      amount: the sum, in the unit of `allowed`; documents call it `found`.
      allowed: the limit.
      summary: in words.
    """

    record: int | None
    amount: float
    allowed: float
    summary: str

    def describe(self) -> dict[str, object]:
        """The same as plain JSON."""
        numbers = {"found": _finite(self.amount), "allowed": _finite(self.allowed)}
        return {"record": self.record, **numbers, "summary": self.summary}


@dataclass(frozen=True)
class Counterexample:
    """A run that breaks the privacy argument.

    Attributes:
      case: the shrunk input.
      release: index of the first offending release in its replicate's run; -1 where none is at fault by itself.
      reason: what went wrong, in words with the numbers.
      kind: which part of the argument fails.
      replicate: the replicate that shows it, one of `n_replicates` with noise from `case.seed`.
      n_replicates: how many were run.
      rows: every release of that replicate, in order.
      arms: on D, round by round; in episodes step by step.
      neighbor_arms: the same on D'.
      states: in episodes, of each one on D.
      neighbor_states: the same on D'.
      difference: where the runs part, of a `DECISION`.
      total: of a `SEQUENCE` or the `BOOK`.
    """

    case: Case
    release: int
    reason: str
    kind: str
    replicate: int = 0
    n_replicates: int = 1
    rows: tuple[Move, ...] = ()
    arms: tuple[int, ...] = ()
    neighbor_arms: tuple[int, ...] = ()
    states: tuple[tuple[int, ...], ...] = ()
    neighbor_states: tuple[tuple[int, ...], ...] = ()
    difference: Difference | None = None
    total: Total | None = None

    def __str__(self) -> str:
        case = self.case
        return f"{len(case.rewards)} {case.unit}s; record {case.record} changes from {self._changes(' to ')}: {self.reason}"

    def _changes(self, between: str) -> str:
        """Describes the record on D, and on D'."""
        case = self.case
        if case.episode is None:
            return between.join(_bracketed(row) for row in (case.rewards[case.record], case.replacement))
        return between.join(f"({self._lived(case.record, on_neighbor)})" for on_neighbor in (False, True))

    @property
    def _widened(self) -> str:
        return "" if self.case.wide < 0 else f", release {self.case.wide} drawn with {WIDER:g} times its noise"

    def path(self, record: int, on_neighbor: bool) -> Path:
        """Returns the states and actions of one user's episode in this run."""
        states, arms = (self.neighbor_states, self.neighbor_arms) if on_neighbor else (self.states, self.arms)
        n = self.case.n_steps
        return Path(states[record], arms[record * n : (record + 1) * n])

    def _lived(self, record: int, on_neighbor: bool) -> str:
        path = self.path(record, on_neighbor)
        earned = self.case.earned(record, path, on_neighbor)
        return f"states {_values(path.states)}, actions {_values(path.actions)}, rewards {_values(earned)}"

    @property
    def _place(self) -> int:
        """The round where something shows, beside that of the changed record."""
        if self.difference is not None:
            return self.difference.round
        return self.case.record

    def lines(self) -> list[str]:
        """The counterexample as text: the data, every release, and what they amount to; at most 110 columns wide.

        Long tables are cut in the middle, at three dots; the changed record and offending releases stay.
        """
        case = self.case
        lines = [
            f"record {case.record} of {len(case.rewards)} {case.unit}s changes from {self._changes(' on D to ')} on D' "
            f"(noise seed {case.seed}, replicate {self.replicate} of {self.n_replicates}{self._widened})",
            self.reason,
        ]
        if case.covariates is not None and case.episode is None:
            mine, theirs = case.covariates[case.record], case.replaced_covariates
            change = "" if theirs is None else f" and become {_covariates(theirs)} on D'"
            name = "contexts" if isinstance(mine[0], tuple) else "covariates"
            lines.insert(1, f"its {name} are {_covariates(mine)}{change}")
        lines = [line for text in lines for line in textwrap.wrap(text, _WIDTH)]
        lines += ["", *self._data_lines()]
        if self.rows:
            lines += ["", *self._release_lines()]
        for part in (self.difference, self.total):
            if part is not None:
                lines += ["", *textwrap.wrap(part.summary, _WIDTH)]
        return [line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..." for line in lines]

    def _data_lines(self) -> list[str]:
        case, parts = self.case, self.kind == DECISION
        if case.episode is not None:
            return self._episode_lines()
        head = ["", "round", "arm", *(["arm on D'"] if parts else []), "rewards on D", "rewards on D'"]
        table = []
        for place, row in enumerate(case.rewards):
            arms = [_arm(self.arms, place), *([_arm(self.neighbor_arms, place)] if parts else [])]
            is_changed = place == case.record
            after = _values(case.replacement) if is_changed else "same"
            table.append([">" if is_changed else "", str(place), *arms, _values(row), after])
        return _aligned(head, table, {case.record, self._place}, left=2)

    def _episode_lines(self) -> list[str]:
        case, table = self.case, []
        for place in range(len(case.rewards)):
            path = self.path(place, False)
            mine, theirs = (self._lived(place, on_neighbor) for on_neighbor in (False, True))
            cells = [_values(path.states), _values(path.actions), _values(case.earned(place, path, False))]
            table.append([">" if place == case.record else "", str(place), *cells, "same" if mine == theirs else theirs])
        head = ["", "episode", "states", "actions", "rewards", "on D'"]
        return _aligned(head, table, {case.record, self._place}, left=4)

    def _release_lines(self) -> list[str]:
        is_priced = self.kind in (BOOK, NO_NOISE)
        head = ["", "release", f"{self.case.unit}s", "mechanism", "records", f"reads record {self.case.record}"]
        head += ["cost"] if is_priced else ["moved by", "allowed", "times"]
        table = []
        for row in self.rows:
            cells = [
                ">" if row.is_offending else "", str(row.release), str(row.rounds), row.mechanism[:20], row.span,
                "yes" if row.reads_record else "no",
            ]  # fmt: skip
            numbers = (row.moved, row.allowed, row.times)
            table.append([*cells, *([row.cost] if is_priced else [_number(value) for value in numbers])])
        marked = {place for place, row in enumerate(self.rows) if row.is_offending}
        return _aligned(head, table, marked, left=3 if is_priced else 0, words=(3, 4, 5))

    def describe(self) -> dict[str, object]:
        """The same as plain JSON: strings, lists, finite numbers or None.

        Returns:
          summary and lines, for people; kind, reason, release (None for the whole book), replicate; case, with the rewards
          as runs of equal rows, from which the counterexample can be made again; data, the arms round by round; releases,
          with `n_releases` of them in all where a long run is cut to those that matter; difference; total.
        """
        case = self.case
        shown = _kept(len(self.rows), {i for i, r in enumerate(self.rows) if r.is_offending or r.reads_record}, _MOST_ROWS)
        rounds = _kept(len(case.rewards), {case.record, self._place}, _MOST_ROWS)
        return {
            "summary": str(self),
            "lines": self.lines(),
            "kind": self.kind,
            "reason": self.reason,
            "release": None if self.release < 0 else self.release,
            "replicate": self.replicate,
            "n_replicates": self.n_replicates,
            "case": {
                "n_rounds": len(case.rewards),
                "record": case.record,
                "before": list(case.rewards[case.record]),
                "after": list(case.replacement),
                "seed": case.seed,
                "wide": None if case.wide < 0 else case.wide,
                "rewards": _runs(case.rewards),
                "episode": None if case.episode is None else list(case.episode),
                "covariates": None if case.covariates is None else as_lists(case.covariates),
                "replaced_covariates": None if case.replaced_covariates is None else as_lists(case.replaced_covariates),
                "others": list(case.others),
            },
            "data": [self._row(place) for place in rounds],
            "n_releases": len(self.rows),
            "releases": [_plain(self.rows[place]) for place in shown],
            "difference": None if self.difference is None else dict(vars(self.difference)),
            "total": self.total and self.total.describe(),
        }

    def _row(self, place: int) -> dict[str, object]:
        """One record as plain JSON: in episodes the rewards are those along the path."""
        case = self.case
        if case.episode is None:
            return {
                "round": place,
                "arm": _at(self.arms, place),
                "neighbor_arm": _at(self.neighbor_arms, place),
                **dict.fromkeys(("states", "actions", "neighbor_states", "neighbor_actions")),
                "rewards": list(case.rewards[place]),
                "neighbor_rewards": list(case.replacement if place in (case.record, *case.others) else case.rewards[place]),
            }
        mine, theirs = (self.path(place, on_neighbor) for on_neighbor in (False, True))
        return {
            "round": place,
            "arm": None,
            "neighbor_arm": None,
            "states": list(mine.states),
            "actions": list(mine.actions),
            "rewards": list(case.earned(place, mine, False)),
            "neighbor_states": list(theirs.states),
            "neighbor_actions": list(theirs.actions),
            "neighbor_rewards": list(case.earned(place, theirs, True)),
        }


def _plain(row: Move) -> dict[str, object]:
    numbers = {"moved": row.moved, "allowed": row.allowed, "times": row.times}
    return {**vars(row), **{name: _finite(value) for name, value in numbers.items()}}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _runs(rewards: Sequence[tuple[float, ...]]) -> list[dict[str, object]]:
    runs, start = [], 0
    for row, same in groupby(rewards):
        stop = start + len(list(same))
        runs.append({"start": start, "stop": stop, "rewards": list(row)})
        start = stop
    return runs


def as_lists(values: Covariates) -> list[object]:
    """Nested tuples as nested lists."""
    return [as_lists(value) if isinstance(value, tuple) else value for value in values]


def _number(value: float) -> str:
    return f"{value:.6g}"


def _bracketed(values: Iterable[float]) -> str:
    return f"[{', '.join(_cut_middle([_number(value) for value in values]))}]"


def _covariates(values: Covariates) -> str:
    """One vector of a record, or the vectors of its actions."""
    if not isinstance(values[0], tuple):
        return _bracketed(values)
    if all(vector == values[0] for vector in values):
        return f"all {_bracketed(values[0])}"
    return ", ".join(_cut_middle([_bracketed(vector) for vector in values]))


def _values(values: Iterable[float]) -> str:
    return " ".join(_cut_middle([_number(value) for value in values]))


def _cut_middle(words: list[str]) -> list[str]:
    most = 3 if sum(map(len, words)) > 32 else 8
    return words if len(words) <= most else [*words[: most - 2], "...", words[-1]]


def _at(arms: tuple[int, ...], place: int) -> int | None:
    return arms[place] if place < len(arms) and arms[place] >= 0 else None


def _arm(arms: tuple[int, ...], place: int) -> str:
    arm = _at(arms, place)
    return "-" if arm is None else str(arm)


def _kept(n: int, marked: set[int], most: int) -> list[int]:
    """Selects the rows that are shown of n: all, or both ends and what is marked, of many the first and the last."""
    if n <= most:
        return list(range(n))
    ends = min(_ENDS, most // 4)
    kept = sorted(marked)
    half = (most - 2 * ends) // 2
    if len(kept) > 2 * half:
        kept = kept[:half] + kept[-half:]
    return sorted({*range(ends), *kept, *range(n - ends, n)})


def _aligned(head: list[str], table: list[list[str]], marked: set[int], left: int, words: tuple[int, ...] = ()) -> list[str]:
    """Lines with aligned columns: the last `left` and those in `words` to the left, the others to the right."""
    most = _MOST_LINES if len(marked) <= _MOST_MARKED else _MOST_LINES + _MOST_MARKED
    shown = _kept(len(table), marked, most)
    widths = [max(len(head[c]), *(len(table[place][c]) for place in shown)) for c in range(len(head))]

    def line(cells: list[str]) -> str:
        texts = [
            cell.ljust(width) if c in words or c >= len(head) - left else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(texts).rstrip()

    lines, before = [line(head)], -1
    for place in shown:
        if place > before + 1:
            lines.append(f"   ... {place - before - 1} more")
        lines.append(line(table[place]))
        before = place
    return lines
