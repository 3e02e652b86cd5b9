"""Logged rounds of a user's file: contexts, the action that was taken, its propensity, and its reward."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from bandana.algorithms.coins import Coins, coins_of
from bandana.algorithms.environments.off_policy import DR, IPS, SNIPS, Log, effective, estimates, weights_of
from bandana.algorithms.environments.simulated_log import RewardModel, SimulatedArms, SimulatedUsers, features_of
from bandana.algorithms.environments.tables import RewardTable, random_table, sphere_table
from bandana.algorithms.observers import ContextualRegretCurve, RegretCurve
from bandana.algorithms.problem import CONTEXTUAL, FINITE, Problem
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.flows.own import data as own_data
from bandana.flows.problems.data_files import DataFile, DataFileSpec
from bandana.flows.problems.environment import UNIFORM, Classes, Purpose
from bandana.flows.texts.fields import distinct
from bandana.flows.texts.mistakes import SpecError

if TYPE_CHECKING:
    import pandas as pd

_FEWEST = 20
POLICY = "policy"
"""Name of an array of a block: how many replicates would take each action in each round that is held out."""


class LoggedSpec(DataFileSpec):
    """A CSV or Parquet file of logged rounds: algorithms learn in a simulation, and are judged by the log.

    The file is private: of what it holds, only what `public` names is ever logged, tracked or reported. The simulation is
    fitted to it without noise: no claim covers the people in the file, neither what is played in it nor what is estimated.
    """

    kind: Literal["logged"]
    path: Path = Field(description="Path of the CSV or Parquet file, relative to the spec; one round a row.")
    actions: Annotated[list[str], Field(min_length=2), AfterValidator(distinct)] = Field(
        description="All actions, as the file names them; reports show these names."
    )
    contexts: Annotated[list[str], AfterValidator(distinct)] = Field(
        [], description="Columns of the context, numbers; none: actions are arms."
    )
    context_range: Annotated[list[float], Field(min_length=2, max_length=2)] = Field(
        [0.0, 1.0], description="Declared range of all context columns."
    )
    action: str = Field("action", description="Column of the action that was taken.")
    propensity: str = Field("propensity", description="Column of the probability with which it was taken.")
    reward: str = Field("reward", description="Column of its reward.")

    @property
    def problem_kind(self) -> str:  # type: ignore[override]
        """Arms, or users who bring features."""
        return CONTEXTUAL if self.contexts else FINITE

    @property
    def n_arms(self) -> int | None:
        """Number of arms."""
        return None if self.contexts else len(self.actions)

    @model_validator(mode="after")
    def _has_a_range(self) -> LoggedSpec:
        if not self.context_range[0] < self.context_range[1]:
            raise ValueError(f"context_range must be [low, high] with low below high, got {self.context_range}")
        return self


class _Logged(DataFile[LoggedSpec]):
    """Half of the rounds, drawn once, fit a simulation; the other half estimates what each final policy is worth."""

    item: LoggedSpec

    @cached_property
    def _read(self) -> tuple[Log, str]:
        content, digest = own_data.content_of(self.item)
        return parse_log(self.item, content), digest

    @property
    def digest(self) -> str:
        return self._read[1]

    @cached_property
    def _halves(self) -> tuple[Log, Log]:
        log = self._read[0]
        order = np.random.Generator(np.random.SFC64(self._seed(Purpose.ROWS))).permutation(len(log))
        return log.rows(order[: len(log) // 2]), log.rows(order[len(log) // 2 :])

    @cached_property
    def _model(self) -> RewardModel:
        return RewardModel(self._halves[0], self.reward_range)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.item.actions)

    @property
    def has_contexts(self) -> bool:
        """True if rounds have contexts."""
        return bool(self.item.contexts)

    @property
    def means(self) -> FloatArray:
        """(n_actions,) of the simulation, without contexts."""
        return np.empty(0) if self.has_contexts else self._model.predict(np.zeros((1, 0)))[0]

    def problem(self, horizon: int) -> Problem:
        """With contexts, d is the number of actions times one more than the number of columns."""
        d = self.n_actions * (len(self.item.contexts) + 1) if self.has_contexts else None
        return Problem(self.n_actions, self.reward_range, horizon, dimension=d)

    def stream(self, seed: np.random.SeedSequence) -> SimulatedArms | SimulatedUsers:
        """Rewards by the model, of users drawn from the first half with replacement."""
        if not self.has_contexts:
            return SimulatedArms(self.means, self.names, self.reward_range, self.setting.horizon, seed)
        contexts = self._halves[0].contexts
        shown = features_of(contexts, self.n_actions), self._model.predict(contexts)
        return SimulatedUsers(*shown, self.names, self.reward_range, self.setting.horizon, seed)

    def regret(self, stream: Any, grid: IntArray, n_reps: int) -> RegretCurve | ContextualRegretCurve:
        """In the simulation."""
        return ContextualRegretCurve(stream, grid, n_reps) if self.has_contexts else RegretCurve(self.means, grid, n_reps)

    def reference_gaps(self, stream: object, n_reps: int) -> dict[str, FloatArray]:
        """Exact, over the users of the simulation."""
        means = self._model.predict(self._halves[0].contexts) if self.has_contexts else self.means[None]
        return {UNIFORM: np.full(n_reps, float((means.max(axis=1) - means.mean(axis=1)).mean()))}

    def reference_policy(self, name: str, n_reps: int) -> dict[str, FloatArray]:
        """Uniform play."""
        return {POLICY: np.full((len(self._halves[1]), self.n_actions), n_reps / self.n_actions)}

    def final_policy(
        self, algorithm: Algorithm, released: object, labels: IntArray | None, coins: Coins
    ) -> dict[str, FloatArray]:
        """(n, n_actions) how many replicates would take each action in each round that is held out, learning no more."""
        held, n_reps = self._halves[1], coins.n_reps
        reps, n_coins = np.arange(n_reps), coins_of(algorithm)
        choices = np.zeros((len(held), self.n_actions))
        features = features_of(held.contexts, self.n_actions) if self.has_contexts else None
        for row in range(len(held)):
            if features is None and row and not n_coins:
                choices[row] = choices[0]
                continue
            offered = None if features is None else np.tile(features[row], (n_reps, 1, 1))
            if offered is not None and labels is not None:
                offered = np.take_along_axis(offered, labels[:, :, None], axis=1)
            if offered is not None:
                offered.setflags(write=False)
            tossed = (coins.draw(np.full(n_reps, self.setting.horizon + row), 0, n_coins),) if n_coins else ()
            actions = algorithm.act(released, offered, 0, *tossed)
            taken = actions if labels is None else labels[reps, actions]
            choices[row] = np.bincount(taken, minlength=self.n_actions)
        return {POLICY: choices}

    def policy_values(self, blocks: Sequence[FloatArray]) -> dict[str, object]:
        """Values of the final policies, (n, n_actions) a block, on the rounds that are held out, over all replications."""
        if not blocks:
            return {}
        held, counts = self._halves[1], np.sum(blocks, axis=0)
        policy = counts / counts.sum(axis=1, keepdims=True)
        values = estimates(held, policy, self._model.predict(held.contexts))
        weights = weights_of(held, policy)
        return {
            **{name: values[name]._asdict() for name in (IPS, SNIPS, DR) if name in values},
            "rounds": len(held),
            "effective": effective(weights),
            "largest_weight": float(weights.max()),
        }

    def check(self) -> None:
        self._read  # noqa: B018  (it refuses what does not fit)
        super().check()

    def audit_table(self) -> RewardTable:
        """Rounds drawn at random: a claim holds for all data, and scores of replays would tell of these."""
        rounds, n_actions = self.setting.rounds, self.n_actions
        if not self.has_contexts:
            return random_table(rounds, n_actions, self.reward_range, self.setting.seed)
        d = self.problem(rounds).dimension
        assert d is not None
        return sphere_table(rounds, n_actions, d, self.reward_range, self._seed(Purpose.AUDIT_TABLE))

    def about(self) -> tuple[str, str, str]:
        what = f"contexts of {len(self.item.contexts)} numbers" if self.has_contexts else "no contexts"
        text = (
            f"Logged rounds with {what}. Algorithms learn in a simulation: rewards by a model that is fitted to one half of "
            "the rounds. What their final policies are worth is estimated on the other half by inverse propensity scores, "
            "their self-normalized form, and doubly robust, if propensities are true, positive wherever a policy acts, and "
            "nothing unseen drives both action and reward. The simulation is fitted without noise: no claim covers the "
            "people in the log, neither in decisions nor in numbers. Audits replay rounds drawn at random."
        )
        regret = "Regret is in the simulation, against its best action for each user: it is as wrong as the model is."
        if not self.shows("regret"):
            regret = "Regret and values are withheld: the spec does not declare them public."
        return self.item.path.name, text, regret


def parse_log(item: LoggedSpec, content: bytes) -> Log:
    """The rounds that a file's bytes hold; contexts are scaled to [0, 1].

    Raises:
      SpecError: it cannot be read, a column is missing, or a value does not fit; the message names column and row only.
    """
    import pandas as pd

    where = f"environment.path: {item.path}"
    columns = [*item.contexts, item.action, item.propensity, item.reward]
    try:
        if item.path.suffix in (".parquet", ".pq"):
            frame = pd.read_parquet(io.BytesIO(content))
        else:
            _check_csv(content, columns, where)
            # An action is known by its name as it is written: 01 is not 1, and NA not missing.
            frame = pd.read_csv(io.BytesIO(content), dtype={item.action: str}, keep_default_na=False)
    except SpecError:
        raise
    except Exception as error:  # pandas and its engines raise errors of many kinds
        raise SpecError(f"{where} cannot be read as CSV or Parquet ({type(error).__name__})") from None
    if missing := [name for name in columns if name not in frame.columns]:
        raise SpecError(f"{where} has no column {missing[0]!r}; it needs {', '.join(columns)}")
    if len(frame) < _FEWEST:
        raise SpecError(f"{where} has {len(frame)} rounds; estimates need at least {_FEWEST}")
    low, high = item.context_range
    contexts = [(_column(frame, name, where, low, high) - low) / (high - low) for name in item.contexts]
    place = {name: i for i, name in enumerate(item.actions)}
    actions = frame[item.action].astype(str).map(place)
    _refuse(actions.isna().to_numpy(), item.action, where, f"one of {', '.join(item.actions)}")
    propensities = _column(frame, item.propensity, where, 0.0, 1.0)
    _refuse(propensities <= 0, item.propensity, where, "above 0: an action that was taken had a chance")
    rewards = _column(frame, item.reward, where, item.low, item.high)
    shown = np.stack(contexts, axis=1) if contexts else np.zeros((len(frame), 0))
    return Log(shown, actions.to_numpy(dtype=np.int64), propensities, rewards, len(item.actions))


def _check_csv(content: bytes, columns: Sequence[str], where: str) -> None:
    """Refuses what a reader of CSV files would guess at: rows of another length, columns of one name, text after quotes."""
    rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    names = next(rows, [])
    if twice := [name for name in columns if names.count(name) > 1]:
        raise SpecError(f"{where}: {names.count(twice[0])} columns are named {twice[0]!r}: rename all but one")
    for number, row in enumerate(filter(None, rows), start=1):
        if len(row) != len(names):
            raise SpecError(f"{where}: row {number} has {len(row)} values where the header names {len(names)} columns")


def _column(frame: pd.DataFrame, name: str, where: str, low: float, high: float) -> FloatArray:
    import pandas as pd

    given = frame[name]
    if pd.api.types.is_bool_dtype(given):
        raise SpecError(f"{where}: column {name!r} must hold numbers, such as 1 and 0, and not true and false")
    values = pd.to_numeric(given, errors="coerce").to_numpy(dtype=float)
    _refuse(~((values >= low) & (values <= high)), name, where, f"a number in [{low:g}, {high:g}]")
    return np.asarray(values)


def _refuse(is_wrong: np.ndarray, column: str, where: str, wanted: str) -> None:
    if is_wrong.any():
        raise SpecError(f"{where}: row {int(np.argmax(is_wrong)) + 1}: column {column!r} must be {wanted}")


CLASSES: Classes = {LoggedSpec: _Logged}
