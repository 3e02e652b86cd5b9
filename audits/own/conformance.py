"""Checks that a user-supplied algorithm implements the protocol and uses no randomness of its own.

An audit replays an algorithm a hundred thousand times as independent replicates of one batch. That is worth something only
if a replicate depends on its own noise and on nothing else: so before an audit the algorithm is watched for a few rounds,
twice with the same noise, in a batch and alone, phase by phase and round by round.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.coins import Coins, coins_of
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray, Record
from bandana.algorithms.run import run
from bandana.audits.searches.states import unread
from bandana.privacy_core import Carried, Interval, Ledger, Mechanism, ReproducibleNoise, Span

MEMBERS = {
    "n_actions": "number of actions, an attribute",
    "reward_range": "an Interval that every reward is clipped to, an attribute",
    "init": "init(n_reps) -> sensitive, released",
    "act": "act(released, context, step) -> (n_reps,) actions",
    "hold": "hold(released, actions) -> (n_reps,) rounds that act keeps its answer; not needed by one that declares "
    "context_dimension, episode_length or n_coins",
    "absorb": "absorb(sensitive, released, record, ledger) -> sensitive, released",
}
MECHANISM_MEMBERS = (
    "relation", "norm", "sensitivity", "scale", "deviation", "event", "whiten", "color", "draw", "change",
    "log_density_ratio",
)  # fmt: skip
_GENERATORS = {
    "default_rng", "Generator", "RandomState", "SFC64", "PCG64", "PCG64DXSM", "Philox", "MT19937", "SeedSequence",
    "ReproducibleNoise", "SecureNoise",
}  # fmt: skip
_SOURCES = ("random", "secrets", "numpy.random", "scipy.stats")
_KINDS = ("context_dimension", "episode_length", "n_states")
"""Attributes that name the kind of problem; without any it plays arms."""
_N_REPS = 4


class ProtocolError(ValueError):
    """An algorithm that breaks the protocol; the message says which part, and how."""


class Draw(NamedTuple):
    """A place in a source text that reaches for randomness."""

    line: int
    what: str


def draws(source: str) -> list[Draw]:
    """Where a module reaches for randomness of its own: NumPy's, Python's, the system's, or a noise source.

    What stands under `if __name__ == "__main__":` is left out: an audit does not run it.

    Raises:
      SyntaxError: the text is no Python.
    """
    tree = ast.parse(source)
    guard = re.compile("__name__.*__main__|__main__.*__name__")
    tree.body = [each for each in tree.body if not (isinstance(each, ast.If) and guard.search(ast.unparse(each.test)))]
    places = {Draw(node.lineno, what) for node in ast.walk(tree) if (what := _drawn(node))}  # type: ignore[attr-defined]
    return sorted(places)


def _drawn(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name):
            shown = ast.unparse(node)
            return shown if name in _GENERATORS or shown in {"np.random", "numpy.random", "os.urandom"} else ""
        case ast.Name(id=name):
            return name if name in _GENERATORS else ""
        case ast.Import(names=names):
            return next((f"import {alias.name}" for alias in names if alias.name in _SOURCES), "")
        case ast.ImportFrom(module=module, names=names):
            imported = {alias.name for alias in names}
            drawn = module in _SOURCES or imported & {*_GENERATORS, "random", "urandom"}
            return f"from {module} import {', '.join(sorted(imported))}" if drawn else ""
    return ""


def missing_members(algorithm: object) -> list[str]:
    """Lists the members that the protocol asks for and the object lacks, with their forms."""
    members = dict(MEMBERS)
    if getattr(algorithm, "n_coins", 0):
        members["act"] = "act(released, context, step, coins) -> (n_reps,) actions"
    if any(getattr(algorithm, name, None) for name in ("n_coins", *_KINDS)):
        del members["hold"]  # decisions by coins, or from contexts or states, are not held
    lacks = []
    for name, form in members.items():
        member = getattr(algorithm, name, None)
        if member is None or (form.startswith(name) and not callable(member)):
            lacks.append(f"{name}: {form}")
    return lacks


def check_members(algorithm: Algorithm) -> None:
    """Looks at what can be looked at without playing.

    Raises:
      ProtocolError: a member is missing, or an attribute is of another kind.
    """
    if lacks := missing_members(algorithm):
        raise ProtocolError("it is no algorithm; missing are\n  " + "\n  ".join(lacks))
    n_actions = algorithm.n_actions
    if isinstance(n_actions, bool) or not isinstance(n_actions, int | np.integer) or n_actions < 2:
        raise ProtocolError(f"n_actions must be a whole number of at least 2, got {n_actions!r}")
    try:
        coins_of(algorithm)
    except ValueError as error:
        raise ProtocolError(str(error)) from error
    given = {name: value for name in _KINDS if (value := getattr(algorithm, name, None)) is not None}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ProtocolError(f"{name} must be a whole number of at least 1, got {value!r}")
    if given and set(given) not in ({"context_dimension"}, {"episode_length", "n_states"}):
        raise ProtocolError(
            "one that reads contexts declares context_dimension, one that plays episodes both episode_length and n_states; "
            f"it declares {' and '.join(given)}"
        )
    if not isinstance(algorithm.reward_range, Interval):
        raise ProtocolError(f"reward_range must be a bandana.privacy_core.Interval, got {algorithm.reward_range!r}")


def check(algorithm: Algorithm, table: Table, seed: int) -> None:
    """Watches the algorithm play a table.

    Args:
      algorithm: anything.
      table: what it plays, in its range and with its number of actions.
      seed: of the noise.

    Raises:
      ProtocolError: a member is missing or answers wrongly, two runs with the same noise differ, a replicate depends on the
        others, or `hold` promises what `act` does not keep.
    """
    check_members(algorithm)
    n_actions = algorithm.n_actions
    if table.n_actions != n_actions:
        raise ProtocolError(f"n_actions is {n_actions}, but it plays a table of {table.n_actions} arms")
    seeds = np.random.SeedSequence(seed).generate_state(_N_REPS).tolist()
    first, second = (_watch(algorithm, table, seeds) for _ in range(2))
    if not first.equals(second):
        raise ProtocolError(
            "two runs with the same noise from the ledger differ: it draws its own randomness, or keeps something from "
            "one run to the next; take noise from ledger.release"
        )
    for rep, own in enumerate(seeds):
        alone = _watch(algorithm, table, [own])
        if not np.array_equal(alone.actions[0], first.actions[rep]):
            raise ProtocolError(
                f"replicate {rep} of a batch of {_N_REPS} plays other actions than alone with the same noise: "
                "replicates must not depend on each other; check the axes, and scalars in place of arrays"
            )
        slowly = _watch(algorithm, table, [own], jump=False)
        if not np.array_equal(alone.actions, slowly.actions):
            later = int(np.argmax((alone.actions != slowly.actions)[0].any(axis=1)))
            raise ProtocolError(
                f"played round by round it takes other actions than in the phases that hold announces (first in round "
                f"{later}): hold promises that act keeps its answer"
            )


@dataclass
class _Seen:
    """Record of a watched run: actions round by round, and every output."""

    actions: IntArray
    outputs: list[FloatArray]

    def equals(self, other: _Seen) -> bool:
        return (
            np.array_equal(self.actions, other.actions)
            and len(self.outputs) == len(other.outputs)
            and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(self.outputs, other.outputs, strict=True))
        )


@dataclass
class _OwnNoise:
    """A ledger in which each replicate has noise of its own seed, however replicates are batched."""

    seeds: list[int]
    outputs: list[FloatArray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.n_reps = len(self.seeds)
        self._noise = [ReproducibleNoise(np.random.SeedSequence(seed)) for seed in self.seeds]

    def release(
        self, mechanism: Mechanism, value: FloatArray, *, records: Span, reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:  # fmt: skip
        if lacks := [name for name in MECHANISM_MEMBERS if not hasattr(mechanism, name)]:
            raise ProtocolError(
                f"{type(mechanism).__name__} is no mechanism; it lacks {', '.join(lacks)}: release through one of "
                "privacy_core, or see bandana.privacy_core.Mechanism"
            )
        ids = np.arange(self.n_reps) if reps is None else reps
        if np.shape(value)[:1] != (len(ids),):
            raise ProtocolError(
                f"a release to {len(ids)} replicates needs a value with as many rows, got shape {np.shape(value)}"
            )
        rows = [mechanism.draw(self._noise[rep], value[i : i + 1]) for i, rep in enumerate(ids)]
        self.outputs.append(np.concatenate(rows) if rows else value.copy())
        return self.outputs[-1].copy()


class _Checked:
    """The algorithm, each of whose answers is looked at; and what it played."""

    def __init__(self, algorithm: Algorithm, n_reps: int, horizon: int) -> None:
        self.honest = algorithm
        self.n_actions, self.reward_range = algorithm.n_actions, algorithm.reward_range
        self.episode_length: int | None = getattr(algorithm, "episode_length", None)
        self.n_states: int | None = getattr(algorithm, "n_states", None)
        self.context_dimension: int | None = getattr(algorithm, "context_dimension", None)
        self.n_coins = coins_of(algorithm)
        self._n_reps = n_reps
        self.played = np.full((n_reps, horizon, self.episode_length or 1), -1, dtype=np.int64)

    def init(self, n_reps: int) -> tuple[object, object]:
        return self._pair("init", self.honest.init(n_reps))

    def act(self, released: object, context: FloatArray | None, step: int, *coins: FloatArray) -> IntArray:
        actions = self._whole("act", self.honest.act(released, context, step, *coins))
        if ((actions < 0) | (actions >= self.n_actions)).any():
            raise ProtocolError(f"act must answer actions in [0, {self.n_actions}), got {actions.tolist()}")
        return actions

    def hold(self, released: object, actions: IntArray) -> IntArray:
        lengths = self._whole("hold", self.honest.hold(released, actions))
        if (lengths < 1).any():
            raise ProtocolError(f"hold must answer at least 1 round, got {lengths.tolist()}")
        return lengths

    def absorb(self, sensitive: object, released: object, record: Record, ledger: Ledger) -> tuple[object, object]:
        for rep, (start, count) in enumerate(zip(record.user, record.n_records, strict=True)):
            self.played[rep, start : start + count] = record.actions[rep]
        return self._pair("absorb", self.honest.absorb(sensitive, released, record, ledger))

    def _whole(self, name: str, answer: ArrayLike) -> IntArray:
        shape, kind = np.shape(answer), getattr(answer, "dtype", None)
        if shape != (self._n_reps,) or kind is None or not np.issubdtype(kind, np.integer):
            got = f"shape {shape}" + ("" if kind is None else f" of {kind}")
            raise ProtocolError(f"{name} must answer an array of whole numbers of shape ({self._n_reps},), got {got}")
        return np.asarray(answer)

    @staticmethod
    def _pair(name: str, answer: object) -> tuple[object, object]:
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ProtocolError(f"{name} must return the sensitive and the released state, got {type(answer).__name__}")
        if field := unread(answer[1]):
            raise ProtocolError(
                f"{name} returns a released state that no audit can compare ({field}): keep numbers, text, arrays, and "
                "dataclasses, lists and dictionaries of these"
            )
        return answer


def _watch(algorithm: Algorithm, table: Table, seeds: list[int], jump: bool = True) -> _Seen:
    checked = _Checked(algorithm, len(seeds), table.n_users)
    ledger = _OwnNoise(seeds)
    coins = Coins([np.random.SeedSequence(seed) for seed in seeds], len(seeds))
    run(checked, table, ledger, jump=jump, coins=coins)
    return _Seen(checked.played, ledger.outputs)
