"""The words that algorithms, environments and the loop share.

Every array has a leading replicate axis. Exact statistics live in a *sensitive* state, all that decisions are made from
in a *released* one; a value moves from the first to the second only through `ledger.release`. `act` and `hold` cannot
see the sensitive state, so that "post-processing" is a signature and not a comment.

States are handed over: `absorb` may reuse the memory of the states that it is given, so a caller that wants to keep one
copies it first.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bandana.privacy_core import Interval, Ledger

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

S = TypeVar("S", bound=NamedTuple)
R = TypeVar("R", bound=NamedTuple)


class Record(NamedTuple):
    """Answers of one user, or of a run of consecutive users who were given the same action.

    In a bandit a user is one round (horizon 1). Where the loop jumps over a phase, `n_records` users are absorbed at
    once and `rewards` holds their sum; each replicate has its own clock. A count of 0 marks a replicate that is done.
    """

    user: IntArray
    """(n_reps,) index of the first record; the record is the unit of privacy."""
    n_records: IntArray
    """(n_reps,) how many consecutive records."""
    contexts: FloatArray | None
    """In a contextual bandit (n_reps, n_actions, d), what the user was offered; None where there are none."""
    actions: IntArray
    """(n_reps, horizon)"""
    rewards: FloatArray
    """(n_reps, horizon), summed over the records."""
    states: IntArray | None = None
    """In episodes (n_reps, horizon + 1), the state at each step, and the one that the last step leads to."""
    coins: FloatArray | None = None
    """(n_reps, horizon, n_coins) in [0, 1), what the decisions were randomized with; None where nothing was."""


class Algorithm(Protocol):
    """A frozen dataclass of public parameters: no state, no generator.

    One that decides from contexts says their dimension as `context_dimension`, one that plays episodes their length and the
    number of states as `episode_length` and `n_states`; the loop holds the stream to it. One that randomizes says how many
    coins a decision takes as `n_coins`, and its `act` takes them as a fourth argument (`bandana.algorithms.coins`).
    """

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        ...

    @property
    def reward_range(self) -> Interval:
        """Every reward is clipped to it before it is absorbed."""
        ...

    def init(self, n_reps: int) -> tuple[Any, Any]:
        """The sensitive and the released state before the first record."""
        ...

    def act(self, released: Any, context: Any, step: int) -> IntArray:
        """(n_reps,) actions, decided from released values, public ones and coins only.

        Args:
          released: the released state.
          context: (n_reps, n_actions, d) what the users are offered; in episodes (n_reps,) their states; None where there is
            neither.
          step: of the episode, from 0; always 0 in a bandit.

        With `n_coins` a fourth argument follows, `coins`: (n_reps, n_coins) numbers in [0, 1).
        """
        ...

    def hold(self, released: Any, actions: IntArray) -> IntArray:
        """(n_reps,) for how many records, at least 1, `act` will keep answering `actions`.

        The loop does not ask where users have contexts or episodes, or where coins decide.
        """
        ...

    def absorb(self, sensitive: Any, released: Any, record: Record, ledger: Ledger) -> tuple[Any, Any]:
        """The sensitive and the released state after the record."""
        ...


class DecidesEachRecord:
    """A base of algorithms that decide anew at each record."""

    def hold(self, released: Any, actions: IntArray) -> IntArray:
        """(n_reps,) records until the next decision: one."""
        return np.ones(len(actions), dtype=np.int64)


class Stream(Protocol):
    """Who answers: an environment (draws) or a table (what each user would answer)."""

    n_users: int
    n_actions: int
    reward_range: Interval

    def clipped(self, reward_range: Interval) -> Self:
        """The same stream with every single reward moved into the range."""
        ...

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) sum of the rewards of users user, ..., user + n_records - 1 to the given actions."""
        ...


@runtime_checkable
class ContextualStream(Stream, Protocol):
    """A stream that shows each user's actions as vectors, before one of them is chosen.

    The loop asks for the contexts of each user once, just before it asks for the answer: an environment draws them then.
    """

    context_dimension: int

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) features of the actions that user[r] may choose, norm at most 1; not to be written to."""
        ...


@runtime_checkable
class EpisodicStream(Protocol):
    """A stream whose users each live through an episode: in some state an action is taken, which leads to the next state.

    The loop asks for each user once, step after step: an environment draws the answers then. A user is replaced as a whole.
    """

    n_users: int
    n_actions: int
    n_states: int
    episode_length: int
    reward_range: Interval

    def clipped(self, reward_range: Interval) -> Self:
        """The same stream with every single reward moved into the range."""
        ...

    def first(self, user: IntArray) -> IntArray:
        """(n_reps,) states that the users begin in."""
        ...

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """(n_reps,) the next states and (n_reps,) the rewards of the users who take these actions in these states."""
        ...


class Observer(Protocol):
    """Sees each record that the loop passes on; it cannot change the run."""

    def observe(self, record: Record) -> None:
        """Called once a record, before it is absorbed."""
        ...


BoolArray = NDArray[np.bool_]
