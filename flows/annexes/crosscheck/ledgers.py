"""The ledgers that libraries are asked about: named ones with known values, and live runs of the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.entry import Entry
from bandana.audits.seeds import derive
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.flows.annexes.crosscheck.accountants import Events
from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    PureDP,
    RenyiDP,
    Tree,
)


@dataclass(frozen=True)
class Case:
    """A ledger to ask about.

    Attributes:
      name: readable.
      events: on its worst record.
      known: delta -> epsilon to more than 16 digits, where it is known.
    """

    name: str
    events: Events
    known: Mapping[float, float] = field(default_factory=dict)


def named_cases() -> tuple[Case, ...]:
    """Fixed ledgers of every kind, with reference values computed to 22 digits where the composition is known exactly."""
    mixture: dict[Event, int] = {
        GaussianEvent(2.0): 1,
        GaussianEvent(5.0): 1,
        GaussianEvent(10.0): 1,
        LaplaceEvent(2.0): 1,
        LaplaceEvent(5.0): 1,
    }
    return (
        _case("Gaussian 1", {GaussianEvent(1.0): 1}, {1e-5: 4.377178095681224627650}),
        _case("Gaussian 5 x 100", {GaussianEvent(5.0): 100}, {1e-5: 9.997256146434300396544}),
        _case("Gaussian 50 x 1000", {GaussianEvent(50.0): 1000}, {1e-5: 2.594383380527607039848}),
        _case("Gaussians 2, 5, 10", {GaussianEvent(x): 1 for x in (2.0, 5.0, 10.0)}),
        _case("tree, 1024 leaves, 5", Tree(1024).events(5.0, GaussianEvent), {1e-5: 2.737785446847325560653}),
        _case("Laplace 1 x 10", {LaplaceEvent(1.0): 10}, {1e-5: 9.989962311150627798291}),
        _case("Laplace 10 x 100", {LaplaceEvent(10.0): 100}, {1e-5: 4.220347325080359582010}),
        _case("Laplace 100 x 1000", {LaplaceEvent(100.0): 1000}, {1e-5: 1.195703041372325525491}),
        _case(
            "3 Gaussians, 2 Laplace", mixture,
            {1e-2: 1.467114125726188369479, 1e-5: 2.740210810438096952460, 1e-8: 3.557601605576621236769},
        ),
        _case("discrete Gaussian 1", {ConcentratedEvent(0.5): 1}, {1e-5: 4.728386984943313899971}),
    )  # fmt: skip


def _case(name: str, events: Mapping[Event, int], known: Mapping[float, float] | None = None) -> Case:
    return Case(name, tuple(sorted(events.items(), key=repr)), known or {})


LEVELS: dict[str, tuple[Guarantee, ...]] = {
    "renyi": (RenyiDP(2.0, 0.1), RenyiDP(2.0, 1.0), RenyiDP(8.0, 0.3)),
    "pure": (PureDP(0.1), PureDP(1.0), PureDP(3.0)),
    "approximate": (ApproxDP(0.1, 1e-6), ApproxDP(1.0, 1e-5), ApproxDP(4.0, 1e-3)),
    "zcdp": (ZCDP(0.01), ZCDP(0.5), ZCDP(4.0)),
}
"""Kind of guarantee -> levels at which the catalog's ledgers are compared."""
_N_ACTIONS, _N_USERS, _N_REPS = 3, 64, 16


class CatalogCases(NamedTuple):
    """Cases that the catalog gives, and what it leaves out."""

    cases: tuple[Case, ...]
    """The ledgers' worst records."""
    not_private: tuple[str, ...]
    """Entries that are not private."""
    refused: tuple[str, ...]
    """Entries with calibration and level that they refuse to be built for, and why."""


def catalog_cases(entries: Sequence[Entry] = CATALOG) -> CatalogCases:
    """The ledgers of live runs of catalog entries: each private one in all its calibrations, at three privacy levels."""
    cases, not_private, refused = [], [], []
    for entry in entries:
        name = entry.label
        if entry.promise is None:
            not_private.append(name)
            continue
        assert entry.guarantee is not None
        problem, table = bed_of(entry, _N_USERS, 0, _N_ACTIONS)
        for calibration in entry.calibrations:
            for level in LEVELS[entry.guarantee]:
                title = f"{name} {calibration} {level}"
                try:
                    algorithm = entry.build(bed_settings(entry, problem, calibration, level))
                except ValueError as error:
                    refused.append(f"{title}: {error}")
                    continue
                cases.append(Case(title, derive(algorithm, table, seed=1, n_reps=_N_REPS)))
    return CatalogCases(tuple(cases), tuple(not_private), tuple(refused))
