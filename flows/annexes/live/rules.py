r"""Rules by which answers that come late, twice or never enter an algorithm, and why they keep its claim.

A **record** is what one person gives: the context, the action that was shown, and the reward. Persons are numbered in the
order in which they were asked for. The algorithm is a pure state machine that reads one record after another; between `ask`
and `tell` any number of others may be asked for. Four rules say what it reads, and when:

1. **Frontier.** Ask n first lets all records up to a frontier enter: those of asks k <= n - `wait` whose time of asking is
   at least `deadline` seconds ago. Times are read under the store's lock and never fall, so the frontier only grows. It is a
   function of the times and the number of asks. It is not one of answers.
2. **Order.** Where persons bring contexts, records enter in the order of asks. Arms wait in one queue an arm: the algorithm
   names an arm, everybody is shown it, and the oldest record of that arm within the frontier enters; then the algorithm
   names the next one. So it reads, at each of its own rounds, a record of the arm that it chose in this round, as its
   analysis demands, however late answers are (Joulani, Gyorgy and Szepesvari 2013, QPM-D).
3. **Value.** A record enters with the first reward that was told, moved into the declared range, or with the fixed value
   `missing`. A second reward is refused, and so is one that comes after its record has entered.
4. **Once.** The record that entered is marked in the transaction that stores the new state, and its context and reward are
   erased there. It never enters again.

**Why the claim holds.** Let pi(j) be the person whose record enters j-th. By rules 1 and 2, pi(j) follows from the times of
asks, from actions, and from the arms that the algorithm named. By induction over releases: given equal released values, all
of these are equal on two data sets that differ in what person k gives. So the algorithm reads two streams that differ in one
place, the j with pi(j) = k, and there in one record, of which it reads one reward (rules 3 and 4). That is the neighboring
relation that its claim is about, and the ledger charges each release to the places that it reads. Others see, besides,
actions: functions of released values, of the asker's own context and of coins: post-processing. Hence all that is shown and
all that is stored in public satisfies the claim, **also against whoever knows when and whether person k answered**, since
value, time and absence of an answer are all part of what is replaced. A batch ends after a number of *asks that entered*,
never after a number of answers: a count of answers would depend on whether k answered.

`enters: arrival` weakens rule 1: a record also enters if its reward is there. Then pi depends on the times of answers. The
claim holds for the values of rewards, if nobody's time of answering depends on the value; times count as public.

The times of asks may depend on what was shown to others. They must not depend on the reward of person k by another way, such
as k calling a friend: no algorithm whose number of users is public is protected from that.

**Noise is drawn once.** A release is stored in the transaction that stores the state after it. Before the commit nobody has
seen its noise, as `ask` returns, logs and counts after the commit; if the process dies, the store still has the state
before the release, and another process draws anew. The discarded draw is independent of everything that anybody sees, as
long as the moment of the crash is. After the commit the state has moved on, and no code path releases these records again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.coins import coins_of
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray, Record
from bandana.privacy_core import Ledger

Toss = Callable[[int], FloatArray]
"""Number of coins -> (1, n_coins) in [0, 1)."""


class Decision(NamedTuple):
    """Action of one person, or arm that the algorithm named."""

    action: int
    coins: FloatArray
    """(1, n_coins) what it was randomized with."""


class Progress(NamedTuple):
    """Where a policy stands; all but `sensitive` follows from released values."""

    sensitive: Any
    released: Any
    named: Decision | None
    """Arm that everybody is shown; None where persons bring contexts."""
    since: int = 0
    """Number of records that it had read before it first named this arm in a row."""
    n_entered: int = 0
    """Number of records that the algorithm has read."""


class Entering(NamedTuple):
    """A record on its way into the algorithm."""

    number: int
    """Number of the ask."""
    context: FloatArray | None
    """(1, n_actions, d)"""
    decision: Decision
    reward: float


def begin(algorithm: Algorithm, *, is_contextual: bool, toss: Toss) -> Progress:
    """The state before the first person."""
    sensitive, released = algorithm.init(1)
    named = None if is_contextual else decide(algorithm, released, None, toss)
    return Progress(sensitive, released, named)


def decide(algorithm: Algorithm, released: object, context: FloatArray | None, toss: Toss) -> Decision:
    """The algorithm's choice from released values, the asker's own context and fresh coins."""
    n_coins = coins_of(algorithm)
    coins = toss(n_coins)
    act: Callable[..., IntArray] = algorithm.act
    return Decision(int(act(released, context, 0, *((coins,) if n_coins else ()))[0]), coins)


def enter(algorithm: Algorithm, progress: Progress, entering: Entering, ledger: Ledger, toss: Toss) -> Progress:
    """Lets one record enter, and asks for the next arm; takes over the memory of the states.

    Args:
      algorithm: the state machine.
      progress: before.
      entering: the record; of arms it must be of the one that the algorithm named.
      ledger: where it releases.
      toss: of coins.
    """
    decision = entering.decision if progress.named is None else progress.named
    record = Record(
        np.array([progress.n_entered]), np.ones(1, dtype=np.int64), entering.context, np.array([[decision.action]]),
        np.array([[entering.reward]]), coins=decision.coins[:, None] if decision.coins.size else None,
    )  # fmt: skip
    sensitive, released = algorithm.absorb(progress.sensitive, progress.released, record, ledger)
    n_entered = progress.n_entered + 1
    if progress.named is None:
        return Progress(sensitive, released, None, 0, n_entered)
    named = decide(algorithm, released, None, toss)
    return Progress(sensitive, released, named, progress.since if named.action == decision.action else n_entered, n_entered)
