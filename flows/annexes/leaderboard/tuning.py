"""Exploration of every entry: one value for each family, and one that is tuned, by one rule on instances that no page shows.

Widths that theorems need explore for longer than any horizon of the benchmark. So each entry plays twice: with the value of
its family, as somebody gets it who tunes nothing, and with a value that is tuned for it at each level. Both come from the
same trials. The grid, see `scaled.FACTORS`, and the effort are the same for all, and trials play on development instances:
other means, tables and seeds than those of the problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from bandana.algorithms.protocol import FloatArray
from bandana.audits.reporting.intervals import mean_interval
from bandana.flows.annexes.leaderboard.benchmark_folder import Benchmark, Problem
from bandana.flows.annexes.leaderboard.scaled import FACTORS, knob_of, only_cells
from bandana.flows.cells.play import benchmark_block, is_played
from bandana.flows.folder.store import Store, write_whole
from bandana.flows.keys.content import content_key
from bandana.flows.plan.cells import Block, Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.problems.environment import UNIFORM
from bandana.flows.results.summaries import summarize_cell
from bandana.flows.spec.aims import Aim
from bandana.flows.spec.spec import Spec
from bandana.flows.spec.tuned import RULE, Tried, Tuned, choose, seed_of_tuning, text_of
from bandana.flows.suites.steps import Workers
from bandana.flows.texts.fields import Strict
from bandana.flows.texts.json_text import JsonObject, read_model
from bandana.flows.texts.mistakes import SpecError

INSTANCES, CHOSEN, DEFAULTS = "development.json", "tuned", "defaults.json"
"""In a benchmark's folder: environments of trials by problem, folder of what was chosen, and the value of each family."""
RUNGS = ((len(FACTORS), 1), (2, 3))
"""Successive halving: how many values of a cell play on, and with how many times the first replications."""
_SHARE, _LEAST, _MOST = 10, 4, 20
"""The first replications of a trial: a tenth of the problem's, within these limits."""
_SHORTER, _LEAST_ROUNDS = 4, 1000
"""Trials have a quarter of the problem's rounds, but at least so many where there are so many."""
PARAMETER = "exploration"
FAMILY_RULE = (
    "of each family the factor with the least regret, divided by that of uniform play, on average over development "
    "instances, levels and trust models; of equal ones the largest"
)


class FamilyValue(Strict):
    """Value of a family, and what was tried."""

    chosen: float = Field(description="Factor on the widths that theorems ask for.")
    regret: dict[str, float] = Field(description="Factor -> average regret, divided by that of uniform play.")
    cells: int = Field(description="Private cells that it is an average of.")


class Defaults(Strict):
    """Values of all families that have a factor on their widths."""

    rule: str
    families: dict[str, FamilyValue]


class Trials:
    """Trials of a problem's cells on its development instance.

    Args:
      problem: of a benchmark.
      folder: of the benchmark.
    """

    def __init__(self, problem: Problem, folder: Path) -> None:
        self.problem, self._place = problem, folder / CHOSEN / f"{problem.name}.json"
        spec = problem.whole
        self.first = min(max(spec.replications // _SHARE, _LEAST), _MOST)
        given = _instances(folder).get(problem.name)
        changes: dict[str, Any] = {
            "name": f"{spec.name}-development", "seed": seed_of_tuning(spec.seed), "replications": self.first,
            "block_size": self.first, "references": False, "twins": False,
            "horizon": min(spec.horizon, max(spec.horizon // _SHORTER, _LEAST_ROUNDS)),
        }  # fmt: skip
        spec = spec.model_copy(update=changes)
        if given is not None:
            tree = spec.model_dump(mode="json") | {"environment": [given]}
            spec = spec.model_copy(update={"environment": Spec.model_validate(tree).environment})
        self.spec = spec

    @cached_property
    def cells(self) -> list[Cell]:
        """Cells of the problem that have something to tune, on the development instance."""
        return [cell for cell in Plan.of(self.spec).cells if cell.place is not None and knob_of(cell.entry) is not None]

    @cached_property
    def question(self) -> str:
        """Hash of what choices depend on, besides the cells and their code."""
        environment = self.spec.environment[0].model_dump(mode="json")
        facts = {"environment": environment, "horizon": self.spec.horizon, "factors": FACTORS, "rungs": RUNGS}
        return content_key({**facts, "first": self.first, "seed": self.spec.seed})

    @cached_property
    def known(self) -> Tuned | None:
        """Choices that were made for the same question; None: there are none."""
        try:
            tuned = read_model(Tuned, self._place.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SpecError(f"{self._place}: cannot be read: {error}") from error
        return tuned if tuned.question == self.question else None

    def plan(self, names: Mapping[str, float], times: int) -> Plan:
        """The plan of cells at factors, with so many times the first replications."""
        spec = self.spec.model_copy(update={"replications": self.first * times})
        return Plan.of(only_cells(spec, self.cells, names))

    def uniform(self, store: Store) -> float:
        """Final regret of uniform play on the development instance, which is computed and not played."""
        played = Plan.of(self.spec.model_copy(update={"references": True})).played
        return float(summarize_cell(next(cell for cell in played if cell.entry.name == UNIFORM), store)["finals"].mean())

    def write(self, chosen: Mapping[str, float], tried: Mapping[str, list[Tried]]) -> None:
        """Writes choices, with those that were made before for the same question."""
        rule = f"{RULE}; values are factors on each entry's own default; by successive halving"
        before = self.known
        done = Tuned(
            parameter=PARAMETER, rule=rule, seed=self.spec.seed, question=self.question,
            chosen={**(before.chosen if before else {}), **chosen}, tried={**(before.tried if before else {}), **tried},
        )  # fmt: skip
        self._place.parent.mkdir(exist_ok=True)
        write_whole(self._place, text_of(done).encode())


def tuned_plan(problem: Problem, folder: Path) -> Plan | None:
    """The plan of the cells for which an exploration was chosen, each at it; None where nothing was.

    Where a choice is that of the family, blocks are those that are played already. Choices are those of the whole form.

    Raises:
      SpecError: the file of choices is damaged.
    """
    if problem.aim is not Aim.REGRET or (known := Trials(problem, folder).known) is None:
        return None
    spec = problem.spec.model_copy(update={"name": f"{problem.spec.name}-tuned", "references": False})
    there = {cell.name for cell in problem.plan.cells}
    factors = {name: factor for name, factor in known.chosen.items() if name in there}
    return Plan.of(only_cells(spec, problem.plan.cells, factors)) if factors else None


def tune(benchmark: Benchmark, store: Store, workers: Workers) -> None:
    """Tunes every cell of a benchmark that has no choice yet, and writes the choices into the benchmark's folder.

    Tests for the best arm are left out: a test of fixed confidence with narrower widths would err more often than it says.

    Args:
      benchmark: the whole form.
      store: where trials are kept, so that a stopped search goes on.
      workers: who plays them.
    """
    trials = [Trials(problem, benchmark.folder) for problem in benchmark.problems if problem.aim is Aim.REGRET]
    alive = {
        (trial, cell.name): list(FACTORS)
        for trial in trials
        for cell in trial.cells
        if trial.known is None or cell.name not in trial.known.chosen
    }
    tried: dict[tuple[Trials, str], dict[float, Tried]] = {key: {} for key in alive}
    for most, times in RUNGS:
        for key, tries in tried.items():
            alive[key] = sorted(alive[key], key=partial(_place, tries))[:most]
        plans = {trial: _plans(trial, alive, times) for trial in trials}
        play((plan for own in plans.values() for plan in own.values()), store, workers)
        for trial, by_factor in plans.items():
            for factor, plan in by_factor.items():
                for cell in plan.cells:
                    ends = mean_interval(summarize_cell(cell, store)["finals"])
                    mean, low, high = (float(end) for end in ends)
                    tried[trial, cell.name][factor] = Tried(value=factor, mean=mean, low=low, high=high)
    for trial in trials:
        mine = {name: tries for (whose, name), tries in tried.items() if whose is trial}
        chosen = {name: choose([tries[factor] for factor in alive[trial, name]]) for name, tries in mine.items()}
        if mine:
            trial.write(chosen, {name: [*tries.values()] for name, tries in mine.items()})


def _place(tries: Mapping[float, Tried], factor: float) -> tuple[float, float]:
    """Order of values after a rung: the least mean first, of equal ones the largest; before the first rung the largest."""
    return (tries[factor].mean or 0.0) if tries else 0.0, -factor


def _plans(trial: Trials, alive: Mapping[tuple[Trials, str], Sequence[float]], times: int) -> dict[float, Plan]:
    """Factor -> plan of the cells that still try it."""
    own = {name: factors for (whose, name), factors in alive.items() if whose is trial}
    at = {factor: {name: factor for name, factors in own.items() if factor in factors} for factor in FACTORS}
    return {factor: trial.plan(names, times) for factor, names in at.items() if names}


def play(plans: Iterable[Plan], store: Store, workers: Workers) -> None:
    """Plays the missing blocks of many plans side by side."""
    blocks = [block for plan in plans for cell in plan.cells for block in cell.blocks()]
    missing = [(block, block.key) for block in blocks if not is_played(block, store)]
    for _ in workers.completed(partial(_play_one, store), missing):
        pass


def _play_one(store: Store, item: tuple[Block, str]) -> None:
    benchmark_block(item[0], store)


def defaults(benchmark: Benchmark, store: Store, workers: Workers) -> Defaults:
    """The value of each family, from the first rung of the trials of its private cells.

    Args:
      benchmark: the whole form.
      store: where trials are kept; what is missing is played.
      workers: who plays.
    """
    shares: dict[str, list[FloatArray]] = {}
    for problem in benchmark.problems:
        if problem.aim is not Aim.REGRET:
            continue
        trial = Trials(problem, benchmark.folder)
        cells = [cell for cell in trial.cells if knob_of(cell.entry) == "beta_scale" and cell.is_private]
        if not cells:
            continue
        plans = [trial.plan({cell.name: factor for cell in cells}, 1) for factor in FACTORS]
        play(plans, store, workers)
        regrets = [[summarize_cell(cell, store)["finals"].mean() for cell in plan.cells] for plan in plans]
        by_cell = np.array(regrets).T / trial.uniform(store)
        for cell, own in zip(plans[0].cells, by_cell, strict=True):
            shares.setdefault(cell.entry.family, []).append(own)
    return Defaults(rule=FAMILY_RULE, families={family: family_value(shares[family]) for family in sorted(shares)})


def family_value(shares: Sequence[FloatArray]) -> FamilyValue:
    """The value of a family.

    Args:
      shares: of each cell (n_factors,) its regret with each of `FACTORS`, divided by that of uniform play.
    """
    means = np.mean(shares, axis=0)
    regret = {f"{factor:g}": float(f"{mean:.4g}") for factor, mean in zip(FACTORS, means, strict=True)}
    return FamilyValue(chosen=FACTORS[int(np.argmin(means))], regret=regret, cells=len(shares))


def _instances(folder: Path) -> dict[str, JsonObject]:
    """Problem -> environment of its trials, where another seed would not change that of the problem."""
    place = folder / INSTANCES
    try:
        return read_model(_Instances, b'{"problems": ' + place.read_bytes() + b"}").problems
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SpecError(f"{place}: cannot be read: {error}") from error


class _Instances(Strict):
    problems: dict[str, JsonObject]
