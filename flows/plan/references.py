"""Reference rows: what a benchmark's numbers are held against before one algorithm is compared with another.

Uniform play and the best constant action need no play: their expected regret is computed. The greedy row is the non-private
algorithm of the kind of problem without its exploration: where it does well, a benchmark does not test exploration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from bandana.algorithms import catalog
from bandana.algorithms.entry import Entry, Settings
from bandana.algorithms.parameters import Value
from bandana.algorithms.problem import CONTEXTUAL, FINITE, KERNEL, LINEAR, LINEAR_MDP, MIXTURE, POOLED, Problem
from bandana.algorithms.protocol import Algorithm
from bandana.flows.problems.environment import CONSTANT, UNIFORM

GREEDY = "greedy"
FAMILY = "references"
_EXPLORERS = {
    FINITE: ("adap-ucb", "beta"),
    LINEAR: ("adap-ucb", "beta"),
    CONTEXTUAL: ("linucb", "beta_scale"),
    KERNEL: ("gp-ucb", "beta_scale"),
    POOLED: ("gp-ucb-pool", "beta_scale"),
    MIXTURE: ("ucrl-vtr", "beta_scale"),
    LINEAR_MDP: ("lsvi-ucb", "beta_scale"),
}
"""Kind of problem -> the algorithm whose non-private form is greedy without its exploration, and the parameter of that."""
_NO_EXPLORATION = 1e-9
"""In place of 0, which parameters do not take."""
_LOOKS = 2000
"""Number of times greedy play looks at what it learned, at most, where an algorithm need not do so in every round."""
_KINDS = tuple(_EXPLORERS)
_CLAIMS = {
    UNIFORM: "none: every action with the same probability, whatever was learned",
    CONSTANT: "none: the one action that does best if it is always played",
}


def references_of(names: tuple[str, ...], problem: Problem) -> list[tuple[Entry, Settings]]:
    """Entry and settings of each reference row: of named policies, whose regret is computed, and of greedy play."""
    expected = [
        Entry(name, FAMILY, "none", None, (), _CLAIMS[name], "expected regret, computed", _is_not_played, plays_on=_KINDS)
        for name in names
    ]
    pairs, greedy = [(entry, Settings(problem, {})) for entry in expected], greedy_on(problem)
    return pairs if greedy is None else [*pairs, greedy]


def greedy_on(problem: Problem) -> tuple[Entry, Settings] | None:
    """The greedy row of a problem; None where its algorithm cannot be built, or would learn from who does not answer."""
    if getattr(problem, "dropout", 0):
        return None
    name, parameter = _EXPLORERS[problem.kind]
    twin = catalog.find(name, "none")
    settings = twin.settings(problem)
    try:
        twin.build(settings)
    except ValueError:
        return None
    claim = f"none: {name} without noise and without exploration, which plays what looks best"
    chosen: dict[str, float] = {parameter: _NO_EXPLORATION}
    if "every" in twin.parameters:
        chosen["every"] = max(1, problem.known_horizon // _LOOKS)
    parameters = tuple(settings.with_parameters(**chosen).parameters.items())
    entry = replace(
        twin, name=GREEDY, label=GREEDY, seed_name=GREEDY, family=FAMILY, parameters={}, claim=claim, bound=None,
        build=partial(_without_exploration, twin.build, parameters),
    )  # fmt: skip
    return entry, Settings(problem, {})


def _without_exploration(
    build: Callable[[Settings], Algorithm], parameters: tuple[tuple[str, Value], ...], settings: Settings
) -> Algorithm:
    return build(settings.with_parameters(**dict(parameters)))


def _is_not_played(settings: Settings) -> Algorithm:
    raise ValueError("the expected regret of this policy is computed; it is not played")
