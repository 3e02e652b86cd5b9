"""Checks of cells before any work starts: they can be built, keep the protocol, and have files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bandana.algorithms.entry import Entry, Settings
from bandana.algorithms.problem import LINEAR_MDP, MIXTURE, Problem
from bandana.audits.claims import ClaimError
from bandana.audits.own import conformance
from bandana.audits.own.conformance import ProtocolError
from bandana.flows.own.algorithms import OwnAlgorithmSpec
from bandana.flows.own.code import OwnCodeError, OwnObject, is_factory
from bandana.flows.own.trial import try_out
from bandana.flows.problems.environment import Environment, EnvironmentFields
from bandana.flows.texts.mistakes import SpecError

if TYPE_CHECKING:
    from bandana.flows.plan.cells import Cell

_FEW_POINTS, _FEW_NUMBERS, _FEW_EPISODES = 1024, 200_000, 10**7
_CHECKED: set[tuple[str, str]] = set()
"""Keys of the cells of users' algorithms that were found to keep the protocol."""


def check_cells(cells: Sequence[Cell]) -> None:
    """Builds every algorithm, and states every claim, before any work: some parameters leave no room for either.

    What takes seconds to build, on thousands of points or of arms in many dimensions, is built where it is played.

    Raises:
      SpecError: one cannot be built, or nothing can be said of its noise.
    """
    for cell in cells:
        try:
            if cell.is_private:
                cell.claim().epsilon_at(cell.spec.audit.delta)
            if not cell.entry.stated and not cell.is_expected and is_built_at_once(cell.settings.problem):
                cell.algorithm()
        except SpecError:
            raise
        except (ValueError, ArithmeticError, LookupError, TypeError, MemoryError) as error:
            words = " ".join(str(error).split()) or type(error).__name__
            raise SpecError(f"{cell.spec.line_of_algorithm(cell.place)}{cell.name}: cannot be played: {words}") from error


def check_files(cells: Sequence[Cell]) -> None:
    """Two cells whose files would have one name, such as those of `a b.csv` and `a-b.csv`, are refused."""
    by_slug: dict[str, str] = {}
    for cell in cells:
        other = by_slug.setdefault(cell.slug.casefold(), cell.name)  # some file systems know no case
        if other != cell.name:
            raise SpecError(
                f"environment: the files of {other!r} and {cell.name!r} would have one name; give the environments labels "
                "that differ in more than blanks, '=', '-' and upper case"
            )


def check_features(place: int, seen: Environment[EnvironmentFields], entry: Entry, listed: Sequence[Settings]) -> None:
    """Checks that the algorithm can be built: whether there are features depends on the kernel and on the parameters.

    Calibrations and privacy levels do not matter: one of each choice of parameters is built.
    """
    if not is_built_at_once(listed[0].problem):
        return
    first = {tuple(settings.parameters.items()): settings for settings in reversed(listed)}
    for settings in first.values():
        try:
            entry.build(settings)
        except ValueError as error:
            raise SpecError(f"algorithms.{place}: {entry.label} on {seen.label}: {error}") from error


def is_built_at_once(problem: Problem) -> bool:
    """True if an algorithm for it is built in a fraction of a second."""
    if problem.pool is not None:
        return problem.pool.n_contexts * problem.pool.n_actions <= _FEW_POINTS
    if problem.kind in (MIXTURE, LINEAR_MDP) and (problem.horizon or 0) > _FEW_EPISODES:
        return False
    return problem.n_actions * (problem.dimension or 1) ** 2 <= _FEW_NUMBERS


def check_own(item: OwnAlgorithmSpec, cells: Sequence[Cell]) -> None:
    """Each cell of a user's algorithm is watched once in a process, and again when its file was edited."""
    for cell in cells:
        key = (cell.spec.name, cell.key)
        if key not in _CHECKED:
            _check_protocol(item, cell)
            _CHECKED.add(key)


def _check_protocol(item: OwnAlgorithmSpec, cell: Cell) -> None:
    """Watches what a user's file makes for a cell play what audits replay."""
    from bandana.audits.own import white_box

    environment, seed = cell.environment, cell.spec.seed
    table, field = environment.audit_table(), "file"

    def watch() -> None:
        with item.code.blamed(ClaimError, ProtocolError):
            _check_size(item.code, cell)
            algorithm = cell.entry.build(environment.in_audit(cell.entry, cell.settings))
            conformance.check(algorithm, table, seed)
            if cell.is_private:
                white_box.check_scope(algorithm, table, cell.claim(), seed)

    try:
        try_out(watch, f"{item.code.label}, while it was checked,")
    except ClaimError as error:
        field, words = "claim", str(error)
    except (OwnCodeError, ProtocolError) as error:
        words = str(error)
    else:
        return
    raise SpecError(f"{item.where}algorithms: {field} of {cell.name} on {environment.label}: {words}")


def _check_size(code: OwnObject, cell: Cell) -> None:
    algorithm, wanted = cell.algorithm(), cell.environment.n_actions
    conformance.check_members(algorithm)
    if algorithm.n_actions != wanted:
        named = "let it use n_actions" if is_factory(code.load()) else "name its class, which is given n_actions"
        raise ProtocolError(f"it has {algorithm.n_actions} actions, the environment {wanted}: {named}")
