"""The work that a spec means: its environments, its cells, and what a benchmark plays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pydantic import BaseModel, ConfigDict, PrivateAttr

from bandana.algorithms.claim import per_record
from bandana.algorithms.entry import Entry, Settings
from bandana.flows.own.algorithms import OwnAlgorithmSpec
from bandana.flows.own.data import pinned
from bandana.flows.plan.cell_checks import check_features, check_files, check_own
from bandana.flows.plan.cells import Block, Cell
from bandana.flows.plan.references import references_of
from bandana.flows.plan.roles import Role
from bandana.flows.problems.environment import Environment, EnvironmentFields
from bandana.flows.problems.facts import problem_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.algorithms import AlgorithmSpec
from bandana.flows.spec.every import EverySpec
from bandana.flows.spec.spec import Spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Guarantee, Participation

_FEW_ROUNDS = 1_000_000


class Plan(BaseModel):
    """The work that a spec means, derived once in a command and handed on: environments, cells, and what a benchmark plays.

    The spec is its only field: a plan passes through Prefect's flows as it is, and their pages show the spec.
    """

    model_config = ConfigDict(frozen=True)
    spec: Spec
    _environments: tuple[Environment[EnvironmentFields], ...] = PrivateAttr(())
    _cells: tuple[Cell, ...] = PrivateAttr(())
    _played: tuple[Cell, ...] = PrivateAttr(())

    @classmethod
    def of(cls, spec: Spec, root: Path | None = None) -> Plan:
        """Derives the plan of a spec, and checks its data; no data folder is made.

        Args:
          spec: the experiment.
          root: the data folder, if any: files are bound to their content where that needs no new secret; see `bound`.

        Raises:
          SpecError: two cells are the same, the data do not fit, or an algorithm finds no features for a kernel.
        """
        plan = cls(spec=spec if root is None else pinned(spec, root, makes_secret=False))
        plan._environments = tuple(environments_of(plan.spec))
        plan._cells = tuple(_listed(plan.spec, plan.environments))
        private = [cell for cell in plan.cells if plan.spec.twins and cell.is_private and not _is_booked(cell)]
        twins = [replace(cell, role=Role.TWIN) for cell in private]
        references = [
            Cell(plan.spec, environment, entry, settings, role=Role.REFERENCE)
            for environment in plan.environments
            if plan.spec.references and environment.item.book is None  # a reference row plays without noise
            for entry, settings in references_of(environment.references, problem_of(environment))
        ]
        plan._played = (*plan.cells, *twins, *references)
        check_files(plan.played)
        return plan

    def bound(self, root: Path) -> Plan:
        """The plan with every file bound to its content: derived anew only where that made the data folder's secret."""
        spec = pinned(self.spec, root)
        return self if spec is self.spec else Plan.of(spec)

    @property
    def environments(self) -> tuple[Environment[EnvironmentFields], ...]:
        """Every environment, in the order of the file."""
        return self._environments

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that the spec lists, in the order of the file."""
        return self._cells

    @property
    def played(self) -> tuple[Cell, ...]:
        """Every cell of a benchmark: those that the spec lists, each private one again without noise, and reference rows."""
        return self._played

    @property
    def private(self) -> list[Cell]:
        """The cells that an audit examines."""
        return [cell for cell in self.cells if cell.is_private]

    @property
    def titles(self) -> dict[str, str]:
        """Each cell's name -> its title."""
        return {cell.name: cell.title for cell in self.played}

    def blocks(self) -> list[Block]:
        """All blocks of a benchmark."""
        return [block for cell in self.played for block in cell.blocks()]


def cells_of(spec: Spec) -> list[Cell]:
    """The cells that a spec lists, for whoever needs nothing else of its plan."""
    return list(Plan.of(spec).cells)


def _listed(spec: Spec, environments: Sequence[Environment[EnvironmentFields]]) -> list[Cell]:
    """The cells that a spec lists; environments and what algorithms see of them are checked."""
    cells = []
    value_of = spec.tuned_values() if spec.tuning is not None else None
    listed = [item.algorithm for item in spec.algorithms if isinstance(item, AlgorithmSpec)]
    for environment in environments:
        environment.check()
        for place, item in enumerate(spec.algorithms):
            # Those that do not fit were refused with the spec.
            for entry in item.entries_on(environment, listed) if isinstance(item, EverySpec) else item.entries():
                seen = environment.seen_by(entry)
                if seen is not environment:
                    seen.check()
                problem = problem_of(seen)
                users = _users_of(place, item, entry, seen)
                promised = [
                    _to_users(entry, entry.settings(problem, calibration, level, **parameters), users)
                    for parameters in item.parameter_grid(entry)
                    for calibration in item.calibrations_of(entry)
                    for level in item.levels(entry)
                ]
                if problem.kernel is not None and not isinstance(item, OwnAlgorithmSpec):
                    check_features(place, seen, entry, [settings for settings, _ in promised])
                varied = item.varied_parameters()
                tuned = partial(_with_tuned, value_of)
                own = [
                    tuned(Cell(spec, seen, entry, settings, varied, replays=item.replays, promised=level, place=place))
                    for settings, level in promised
                ]
                cells += own
                if isinstance(item, OwnAlgorithmSpec):
                    check_own(item, own)
    for cell in cells:
        if _is_booked(cell) and not cell.is_private:
            raise SpecError(
                f"algorithms: {cell.name} plays without noise, which exceeds every budget; {cell.environment.label} has a "
                "budget book: leave the algorithm out, or give it a privacy level"
            )
    names = [cell.name for cell in cells]
    if twice := [name for name in names if names.count(name) > 1]:
        raise SpecError(f"algorithms: {twice[0]!r} is listed more than once")
    return cells


def _users_of(place: int, item: object, entry: Entry, environment: Environment[EnvironmentFields]) -> Participation | None:
    """Records that may be one user's, where the promise is to all of them; None where it is to one record."""
    is_every = isinstance(item, EverySpec)
    declared = item if is_every else getattr(item, "privacy", None)
    if getattr(declared, "level", "record") == "record" or not entry.is_private:
        return None
    where = f"algorithms.{place}.level" if is_every else f"algorithms.{place}.privacy.level"
    users: Participation | None = environment.item.users
    if users is None:
        raise SpecError(
            f"{where}: a promise to users needs to know how many records one has; give {environment.label} the field "
            "visits_per_user, or write level: record"
        )
    if environment.item.book is not None:
        raise SpecError(
            f"{where}: the budget book of {environment.label} counts what each record pays; write level: record, or leave "
            "the book out"
        )
    return users


def _to_users(entry: Entry, settings: Settings, users: Participation | None) -> tuple[Settings, Guarantee | None]:
    """The settings at what must be promised to one record, and what is promised to users; None where it is to a record."""
    if users is None or settings.privacy is None:
        return settings, None
    to_one = per_record(settings.privacy, users, entry.times_for(settings, users))
    return replace(settings, privacy=to_one), settings.privacy


def _with_tuned(value_of: Callable[[str], float] | None, cell: Cell) -> Cell:
    """The cell with the value that was chosen for it, if the spec tunes a parameter that it takes."""
    tuning = cell.spec.tuning
    if value_of is None or tuning is None or tuning.parameter not in cell.entry.parameters:
        return cell
    return replace(cell, settings=cell.settings.with_parameters(**{tuning.parameter: value_of(cell.name)}))


def _is_booked(cell: Cell) -> bool:
    """True if every run of the cell is charged, so that nothing may be played without noise."""
    return cell.environment.item.book is not None


def is_small(cells: Sequence[Cell]) -> bool:
    """True if they are played sooner than processes for them start."""
    return sum(cell.spec.replications * cell.spec.horizon for cell in cells) <= _FEW_ROUNDS
