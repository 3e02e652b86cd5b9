"""Logs of finished live policies, and `kind: live-log`, which replays one in a benchmark under the policy's budget book.

A log holds, for each record that has entered, the action that was shown and the reward with which it entered. It is laid out
as a table of potential rewards: column a holds the records of arm a in the order of asks, and the table ends with the arm
that has the fewest. So each record is one cell, and is read at most once in a run.

**Why a run's claim holds for those who answered.** Let one person's answer be replaced. Given the same releases of the live
policy, the actions of the log are the same (`rules`), and with them the shape of the table and the cell of each record. The
tables differ in one cell at most, one reward of one round, which is what a run's claim is about. Hence the live policy and
all runs on its log compose adaptively, and the book charges each run beside the policy's own claim, to everybody.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from bandana.algorithms.environments.drawn import action_names
from bandana.algorithms.environments.tables import RewardTable
from bandana.flows.folder.settings import data_root
from bandana.flows.own import data as own_data
from bandana.flows.problems.environment import Classes
from bandana.flows.problems.finite_arms import TableSpec, _Table
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval

FORMAT = "bandana/live-log/1"
"""Format of a log, as `Policy.write_log` writes it."""


class LiveLogSpec(TableSpec):
    """A log that `write_log` of a live policy wrote; it is replayed under the policy's budget book.

    The log is private: of what it holds, only what `public` names is ever logged, tracked or reported.
    """

    kind: Literal["live-log"]  # type: ignore[assignment]
    path: Path = Field(description="Path of the log, relative to the spec.")

    @model_validator(mode="after")
    def _is_of_a_book(self) -> Self:
        if self.data is None:
            raise ValueError("data: name the policy's book, such as data: {book: feedback-2026}: every run is charged to it")
        if self.user is not None or self.visits_apart > 1:
            raise ValueError("user: a log does not say whose a record is; leave out user and visits_apart")
        return self


class _LiveLog(_Table):
    limited_by = "the arm of the log with the fewest records"
    is_live = True
    """Its records are those of a live policy, which a book charges without rows."""

    @cached_property
    def _log(self) -> dict[str, Any]:
        return parsed(self.item.path, own_data.content_of(self.item)[0])

    @cached_property
    def _read(self) -> tuple[RewardTable, str]:
        return table_of(self.item, self._log), own_data.content_of(self.item)[1]

    def check(self) -> None:
        from bandana.flows.cells.charging import book_keeper  # which knows specs, and so this kind

        super().check()
        assert self.item.data is not None
        root = data_root() if self.item.pin is None else self.item.pin.secret.parent
        book_keeper().charge_stream(self.item.data.place(root), None, None, {"key": self._log["identity"]})

    def about(self) -> tuple[str, str, str]:
        text = "Rewards of a finished live policy, a column an arm, in the order of asks; its book charges every run. "
        name, of_table, estimator = super().about()
        return name, text + of_table.partition(". ")[2], estimator


def parsed(path: Path, content: bytes) -> dict[str, Any]:
    """The fields of a log.

    Raises:
      SpecError: it is no log, or it is damaged; the message shows nothing of its rewards.
    """
    try:
        log = json.loads(content)
        assert log["format"] == FORMAT
        actions, rewards = np.array(log["actions"], dtype=np.int64), np.array(log["rewards"], dtype=float)
        assert actions.shape == rewards.shape == (len(actions),)
        low, high = log["reward_range"]
        assert not len(actions) or (actions.min() >= 0 and actions.max() < log["n_actions"])
        assert ((low <= rewards) & (rewards <= high)).all()
        return {**log, "actions": actions, "rewards": rewards, "identity": str(log["identity"])}
    except (ValueError, KeyError, TypeError, AssertionError):
        raise SpecError(f"environment.path: {path} is no log of a live policy ({FORMAT}); write it again") from None


def table_of(item: TableSpec, log: dict[str, Any]) -> RewardTable:
    """The records of each arm side by side, as many as the arm with the fewest has.

    Args:
      item: names the declared range and the rows.
      log: as `parsed` returns it.

    Raises:
      SpecError: an arm has no record, the range is another one, or there are fewer rows.
    """
    if [item.low, item.high] != log["reward_range"]:
        raise SpecError(f"environment.low and high: rewards of {item.path} lie in {log['reward_range']}: declare that range")
    arms = [log["rewards"][log["actions"] == arm] for arm in range(log["n_actions"])]
    n_rows = min(map(len, arms))
    first, stop = item.rows or (0, n_rows)
    if not n_rows or stop > n_rows:
        raise SpecError(f"environment.rows: {item.path} has {n_rows} records of its rarest arm, got {item.rows or 'all'}")
    rewards = np.stack([arm[first:stop] for arm in arms], axis=1)
    return RewardTable(rewards, Interval(item.low, item.high), action_names(len(arms), "arm"))


CLASSES: Classes = {LiveLogSpec: _LiveLog}
