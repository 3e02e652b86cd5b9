"""Every family of the catalog on one of its problems at mu = 1: what the slopes of `benchmarks.rates` are measured on.

Every claim is the weakest of its kind within 1-GDP, so that laws of noise can be compared. Widths are scaled down by
`beta_scale` (and CAPRI's errors by `error_scale`), one value a family: those that are proved explore for longer than these
horizons, and a policy that only explores has a slope of 1, which says nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import Spec, parse_spec

MU = 1.0
STEPS = 5
"""Horizons of a family: over two decades, half a decade apart."""


class Family(NamedTuple):
    """Entries of a family with the problem that they play on.

    Attributes:
      name: of the family.
      environment: the problem, as a spec has it.
      entries: labels of the catalog.
      first: the shortest horizon; the longest is a hundred times as long.
      replications: of each entry at each horizon.
      parameters: the same for all entries that take them.
    """

    name: str
    environment: Mapping[str, Any]
    entries: tuple[str, ...]
    first: int
    replications: int = 20
    parameters: Mapping[str, float] = {}

    @property
    def horizons(self) -> list[int]:
        """Two decades of numbers of rounds, or of episodes."""
        return [round(self.first * 10 ** (step / 2)) for step in range(STEPS)]


_HEXAGON = [[round(math.cos(k * math.pi / 3), 12), round(math.sin(k * math.pi / 3), 12)] for k in range(6)]
_ARMS = {"kind": "bernoulli", "means": [0.7, 0.5, 0.5, 0.5, 0.5]}
_POOL = {"kind": "rkhs", "contexts": 3, "actions": 3, "lengthscale": 0.4, "functions": "each"}
FAMILIES = (
    Family("finite arms, pure", _ARMS, ("adap-ucb", "adap-klucb", "dp-se", "dp-klucb", "dp-imed"), 10_000, 50),
    Family("finite arms, Gaussian", _ARMS, ("adar-ucb", "dp-klucb renyi", "dp-imed renyi"), 10_000, 50),
    Family("linear arms", {"kind": "linear", "features": _HEXAGON, "theta": [1.0, 0.0]}, ("adar-gope", "adar-gope pure"),
           100_000, 50),
    Family("contextual, public contexts", {"kind": "sphere", "actions": 5, "dimension": 3}, ("adar-oful",), 100,
           parameters={"beta_scale": 0.1}),
    Family("contextual, joint and local", {"kind": "sphere", "actions": 5, "dimension": 3},
           ("linucb joint", "linucb local", "greedy-ridge local"), 100, parameters={"beta_scale": 0.1}),
    Family("kernel, joint and local", _POOL, ("gp-ucb joint", "gp-ucb local"), 100, 10,
           {"beta_scale": 0.1, "n_features": 16}),
    Family("CAPRI", _POOL, ("capri joint", "capri local"), 1_000, 5, {"error_scale": 0.1}),
    Family("tabular", {"kind": "modes", "states": 3, "actions": 2, "dimension": 2, "steps": 2},
           ("ucb-vi joint", "ucb-vi local"), 300, 10, {"beta_scale": 0.02}),
    Family("linear process", {"kind": "modes", "states": 3, "actions": 2, "dimension": 2, "steps": 2}, ("lsvi-ucb joint",),
           300, 10, {"beta_scale": 0.03}),
    Family("linear mixture", {"kind": "patients"}, ("ucrl-vtr joint", "ucrl-vtr local"), 300, 5, {"beta_scale": 0.003}),
)  # fmt: skip


def spec_at_mu(
    environment: Mapping[str, Any],
    horizon: int,
    replications: int,
    seed: int = 1,
    entries: Sequence[str] | None = None,
    **more: Any,
) -> Spec:
    """A spec that plays private entries of the catalog at mu = 1, and nothing else.

    Args:
      environment: the problem, as a spec has it.
      horizon: rounds or episodes.
      replications: of each entry.
      seed: of all that is drawn.
      entries: their labels; None: all that play on the problem.
      **more: fields of the item that stands for these entries, such as `model`, `calibrations` and `parameters`.
    """
    item = {"all": "private", "mu": MU, "calibrations": "tight", **({} if entries is None else {"only": [*entries]}), **more}
    fields = {
        "name": "at-mu", "seed": seed, "environment": dict(environment), "horizon": horizon, "replications": replications,
        "block_size": replications, "twins": False, "references": False, "algorithms": [item],
    }  # fmt: skip
    return parse_spec(json.dumps(fields), "at-mu", Path())


def spec_of(family: Family, horizon: int) -> Spec:
    """The family's entries at one horizon."""
    return spec_at_mu(
        family.environment, horizon, family.replications, entries=family.entries, parameters=dict(family.parameters)
    )


def cells(family: Family, horizon: int) -> list[Cell]:
    """The family's cells at one horizon, one an entry, in their order."""
    by_label = {cell.entry.label: cell for cell in cells_of(spec_of(family, horizon))}
    return [by_label[label] for label in family.entries]


def slope_of_log(horizons: Sequence[int]) -> float:
    """Least-squares slope of log log T on log T: what a fit finds where regret grows as log T does."""
    x = np.log(np.asarray(horizons, dtype=float))
    return float(np.polyfit(x, np.log(x), 1)[0])
