"""Power and time of learned scores, ours beside scikit-learn's: `python -m benchmarks.learners [--seeds N]`.

Each learner is taught on a part of the runs of a mechanism and its neighbor, and the bound is taken from the others, as
audits do. A table shows the median bound over seeds, the quartiles of the difference on the same runs, and the seconds that
fitting and scoring take on one thread. `docs/decisions.md` says what was decided by it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.audits.bounds.methods import bound
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.replays.classifiers import FINE, Matrix, Scorer, learn_logistic, learn_stumps
from bandana.audits.replays.classifiers import features as stretches
from bandana.audits.replays.replay import replay
from bandana.privacy_core import Interval
from benchmarks.raw_outputs import low_order_bits

TAUGHT, BOUNDED = 8192, 16_384
LEVEL, DELTA = 0.05, 1e-5
Rows = Callable[[bool, int, int], Matrix]
"""(is it the neighbor, number of runs, seed) -> (runs, columns)."""


def _random(seed: int, is_neighbor: bool) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64([seed, int(is_neighbor)]))


def _actions_of_adar_ucb(is_neighbor: bool, n: int, seed: int) -> Matrix:
    unit = Interval(0.0, 1.0)
    rewards = np.random.Generator(np.random.SFC64(4)).integers(0, 2, (256, 2)).astype(float)
    pair = canary_pairs(RewardTable(rewards, unit), (2,))[0]
    runs = replay(adar_ucb(2, 2.0, 1.0, 3.1, unit, "printed"), pair, is_neighbor, n,
                  np.random.SeedSequence([seed, int(is_neighbor)]), workers=1)  # fmt: skip
    return runs.actions


def _echo(is_neighbor: bool, n: int, seed: int, n_rounds: int = 64) -> Matrix:
    """Actions of a coin; from the second round on, four of them repeat record 1 and lie with the odds of epsilon 1."""
    random = _random(seed, is_neighbor)
    actions = random.integers(0, 2, (n, n_rounds))
    for later in (5, 9, 20, 40):
        lies = random.random(n) < 1 / (1 + np.exp(0.25))
        actions[:, later] = np.where(lies, not is_neighbor, is_neighbor)
    return stretches(actions, 1, 2)


def _gaussian(is_neighbor: bool, n: int, seed: int) -> Matrix:
    return _random(seed, is_neighbor).normal(0.35 * is_neighbor, 1.0, (n, 8))


def _spread(is_neighbor: bool, n: int, seed: int) -> Matrix:
    return _random(seed, is_neighbor).normal(0.0, 1.0 + 0.3 * is_neighbor, (n, 4))


def _laplace(is_neighbor: bool, n: int, seed: int, parts: int = 4) -> Matrix:
    return _random(seed, is_neighbor).laplace(is_neighbor / parts, 1.0, (n, parts))


def _bits(is_neighbor: bool, n: int, seed: int) -> Matrix:
    """Outputs of a textbook Laplace sampler, with the columns of their lowest bits."""
    outputs = np.round(_random(seed, is_neighbor).laplace(0.0, 1.0, n), 12) + float(is_neighbor) / 3
    return np.column_stack([outputs, low_order_bits(outputs, (0.0, 1 / 3))])


class Case(NamedTuple):
    """One mechanism: its name, its runs, and the method of its bound."""

    name: str
    rows: Rows
    method: str
    parameters: dict[str, Any]


_COINS = {"delta": DELTA, "seed": 0, "is_learned": True}
CASES = (
    Case("actions of AdaR-UCB", _actions_of_adar_ucb, "epsilon-coins", _COINS),
    Case("actions that repeat a reward", _echo, "epsilon-coins", _COINS),
    Case("8 Gaussian numbers, moved", _gaussian, "epsilon-coins", _COINS),
    Case("4 Gaussian numbers, widened", _spread, "epsilon-coins", _COINS),
    Case("4 Laplace numbers, moved", _laplace, "pure-event", {"seed": 0}),
    Case("lowest bits of Laplace noise", _bits, "pure-event", {"seed": 0}),
)


def _of_sklearn(model: Any, x: Matrix, side: np.ndarray) -> Scorer:
    model.fit(x, side)
    return lambda rows: np.asarray(model.decision_function(rows), dtype=float)


def _their_logistic(x: Matrix, side: np.ndarray, solver: str) -> Scorer:
    return _of_sklearn(make_pipeline(StandardScaler(), LogisticRegression(solver=solver)), x, side)


def _their_stumps(x: Matrix, side: np.ndarray, leaves: int = 2, rounds: int = 40, rate: float = 0.5) -> Scorer:
    model = HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=leaves, learning_rate=rate, min_samples_leaf=1, l2_regularization=1.0,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    return _of_sklearn(model, x, side)


LEARNERS: dict[str, tuple[tuple[str, Callable[[Matrix, np.ndarray], Scorer]], ...]] = {
    "logistic regression": (
        ("ours", learn_logistic),
        ("newton-cholesky", partial(_their_logistic, solver="newton-cholesky")),
        ("lbfgs", partial(_their_logistic, solver="lbfgs")),
    ),
    "boosted stumps": (
        ("ours", partial(learn_stumps, quantiles=FINE)),
        ("two leaves", _their_stumps),
        ("16 leaves", partial(_their_stumps, leaves=16, rate=0.1)),
    ),
}


def _lower(case: Case, learn: Callable[[Matrix, np.ndarray], Scorer], sides: list[Matrix]) -> tuple[float, float]:
    """The bound, and the seconds of fitting and scoring."""
    start = time.perf_counter()
    x = np.concatenate([side[:TAUGHT] for side in sides])
    scorer = learn(x, np.repeat([0.0, 1.0], TAUGHT))
    data, neighbor = (scorer(side[TAUGHT:]) for side in sides)
    seconds = time.perf_counter() - start
    return bound(case.method, data, neighbor, LEVEL, **case.parameters), seconds


def main() -> None:
    """Prints a row for each mechanism, kind of learner and implementation; differences are to ours, on the same runs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learners", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="independent repetitions")
    n_seeds = parser.parse_args().seeds
    print("mechanism | learner | implementation | median bound | difference: quartiles | seconds")
    for case in CASES:
        measured: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for seed in range(n_seeds):
            sides = [case.rows(is_neighbor, TAUGHT + BOUNDED, seed) for is_neighbor in (False, True)]
            with threadpool_limits(1):
                for kind, implementations in LEARNERS.items():
                    for name, learn in implementations:
                        measured.setdefault((kind, name), []).append(_lower(case, learn, sides))
        for (kind, name), found in measured.items():
            bounds, seconds = np.array(found).T
            difference = bounds - np.array(measured[kind, "ours"])[:, 0]
            low, high = np.quantile(difference, [0.25, 0.75])
            print(f"{case.name} | {kind} | {name} | {np.median(bounds):.3f} | {low:+.3f} {np.median(difference):+.3f} "
                  f"{high:+.3f} | {np.median(seconds):.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
