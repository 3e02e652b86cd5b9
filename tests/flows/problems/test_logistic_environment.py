"""The environment of yes-or-no answers in specs: what algorithms are told, whose bounds hold, and mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bandana.algorithms.logistic import LogisticProblem
from bandana.algorithms.lower_bounds.contextual import logistic_bound, minimax_bound
from bandana.algorithms.lower_bounds.lower_bound import Privacy
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval

SPEC = """
name: answers
seed: 3
environment: {{kind: logistic, actions: 4, dimension: 3{more}}}
horizon: 200
replications: 2
algorithms:
  - algorithm: logistic-ucb
    model: joint
    privacy: {{epsilon: 1, delta: 1.0e-5}}
  - algorithm: linucb
    model: none
audit: {{rounds: 16, replays: 1000}}
"""


def spec_of(more=""):
    return parse_spec(SPEC.format(more=more), "spec.yaml", Path())


def test_algorithms_are_told_the_largest_log_odds():
    (environment,) = environments_of(spec_of(", logit_bound: 2.5"))
    assert environment.problem(200) == LogisticProblem(4, Interval(0.0, 1.0), 200, dimension=3, logit_bound=2.5)
    one, other = (environment.stream(np.random.SeedSequence(n)).theta for n in (1, 2))
    assert np.array_equal(one, other)
    assert np.linalg.norm(one) == pytest.approx(2.5)
    given = environments_of(spec_of(", theta: [1, 0, -1]"))[0].stream(np.random.SeedSequence(1))
    assert given.theta.tolist() == [1, 0, -1]
    table = environment.audit_table()
    assert (table.n_users, table.n_actions, table.context_dimension) == (16, 4, 3)
    shown = environment.describe()
    assert "1 / (1 + exp(-<theta, vector>)), |theta| at most 2.5" in shown["description"]
    assert "All users of a replication" in environments_of(spec_of(", contexts: fixed"))[0].describe()["description"]


def test_bounds_are_those_of_algorithms_that_know_the_means_and_the_lower_one_is_everybodys():
    grid = np.array([1, 200])
    logistic, linear = cells_of(spec_of())
    assert (logistic.entry.name, linear.entry.name) == ("logistic-ucb", "linucb")
    bound, least = logistic.regret_bound(grid), logistic.lower_bound(grid)
    assert (least.values <= bound.values).all()
    assert least.values[-1] > 0
    assert "logistic means" in least.text
    assert linear.regret_bound(grid) is None
    others = linear.lower_bound(grid)
    assert "logistic means" in others.text
    assert (others.values > 0).any()
    assert (others.values <= least.values).all(), "without privacy less is lost"
    assert linear.environment.facts() == logistic.environment.facts(), "they meet the same users"


def test_the_lower_bound_is_the_linear_one_at_the_same_gaps():
    """d = 4 and tanh(S / 4) = 1/2: the largest gap is that of the linear class."""
    grid, private = np.array([10, 1000, 10**5]), Privacy(mu=0.5)
    bound = 4 * np.arctanh(0.5)
    assert logistic_bound(grid, 4, bound, 2.0, private).values == pytest.approx(
        minimax_bound(grid, 4, Interval(-1.0, 1.0), private).values
    )
    assert (logistic_bound(grid, 4, 0.01, 2.0, private).values < logistic_bound(grid, 4, 1.0, 2.0, private).values).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", theta: [1, 0]", "theta must have 3 entries"),
        (", theta: [3, 3, 0]", "theta must have norm at most 4, the logit_bound, got 4.24264"),
        (", logit_bound: 0", "logit_bound"),
        (", contexts: stale", "contexts"),
    ],
)
def test_mistakes(more, message):
    with pytest.raises(SpecError, match=message):
        spec_of(more)
