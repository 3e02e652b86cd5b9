"""Finite Markov decision processes without structure: small ones that stand for how such problems look."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.environments.mdp_instances import Instance, tabular
from bandana.privacy_core.checks import at_least, probability

_STAY, _AHEAD, _BACK = 0.6, 0.35, 0.05


def river_swim(n_states: int = 5, horizon: int = 10, small_reward: float = 0.005) -> Instance:
    """A swimmer in a river: it is easy to drift back to a small reward, and takes many strokes to reach the large one.

    Action 0 moves one state back for certain; the first state pays `small_reward` for it. Action 1 moves ahead with
    probability 0.35, stays with 0.6, and drifts back with 0.05; in the first state it moves ahead with 0.6, in the last one
    it stays with 0.6 and pays 1. Users begin in the first state. Without directed exploration the large reward is never
    seen. Where the small one is worth next to nothing, always swimming is almost best, and no state has to be known.

    Args:
      n_states: S, at least 2.
      horizon: H, at least 1.
      small_reward: strictly between 0 and 1.

    Source: Strehl and Littman (2008), in the form of Osband, Russo and Van Roy (2013), (More) efficient reinforcement
    learning via posterior sampling.
    """
    last = at_least("n_states", n_states, 2) - 1
    after, pays = np.zeros((n_states, 2, n_states)), np.zeros((n_states, 2))
    for state in range(n_states):
        after[state, 0, max(state - 1, 0)] = 1.0
        if state in (0, last):
            after[state, 1, state] = 1 - _STAY if state == 0 else _STAY
            after[state, 1, 1 if state == 0 else last - 1] = _STAY if state == 0 else 1 - _STAY
        else:
            after[state, 1, state - 1 : state + 2] = _BACK, _STAY, _AHEAD
    pays[0, 0], pays[last, 1] = probability("small_reward", small_reward), 1.0
    length = at_least("horizon", horizon, 1)
    names = tuple(f"{state} strokes" for state in range(n_states))
    return tabular(
        np.broadcast_to(after, (length, *after.shape)), np.broadcast_to(pays, (length, *pays.shape)), None, names,
        ("drift", "swim"),
    )  # fmt: skip


_PRICE, _COST, _HOLDING = 1.0, 0.4, 0.1
_QUIET, _BUSY = (0.5, 0.3, 0.15, 0.05), (0.1, 0.2, 0.3, 0.4)


def inventory(capacity: int = 4, horizon: int = 5) -> Instance:
    """A small shop restocks one article every day of a week; how many customers come on which day is to be learned.

    States are the stock, actions order 0, 1 or 2 pieces, which arrive at once as far as there is room. Demand is 0 to 3
    pieces, of a law that moves evenly from a quiet first day to a busy last one; what is not sold stays. A day's profit
    is 1 a piece sold, less 0.4 a piece ordered and 0.1 a piece left, moved evenly into [0, 1]. A shop's week is the
    record: its sales are a business secret of the owner who takes part. All numbers are made up.

    Args:
      capacity: largest stock, at least 1.
      horizon: days H, at least 1.
    """
    most, length = at_least("capacity", capacity, 1), at_least("horizon", horizon, 1)
    n_orders, demands = 3, np.arange(len(_QUIET))
    after, profit = np.zeros((length, most + 1, n_orders, most + 1)), np.zeros((length, most + 1, n_orders))
    for day, share in enumerate(np.linspace(0.0, 1.0, length)):
        law = (1 - share) * np.array(_QUIET) + share * np.array(_BUSY)
        for stock in range(most + 1):
            for order in range(n_orders):
                level = min(stock + order, most)
                left = np.maximum(level - demands, 0)
                np.add.at(after[day, stock, order], left, law)
                profit[day, stock, order] = law @ (_PRICE * (level - left) - _HOLDING * left) - _COST * (level - stock)
    low, high = -_COST * (n_orders - 1) - _HOLDING * most, _PRICE * float(demands[-1])
    names = tuple(f"{stock} in stock" for stock in range(most + 1))
    return tabular(after, (profit - low) / (high - low), None, names, ("order 0", "order 1", "order 2"))
