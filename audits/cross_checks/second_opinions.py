"""Asks other people's accountants, dp-accounting and opacus, what they think of our ledgers, and says whether they agree.

A ledger enters as the events on its worst record. Each opinion is an interval in which our epsilon must lie:

  exact      the library computes the same number: within 1e-9 of it, relative;
  upper      the library bounds from above: ours is at most that, plus 1e-9;
  lower      the library bounds from below (an optimistic estimate): ours is at least that, less 1e-9;
  interval   the library gives both bounds.

`lower` and `upper` together are a sandwich, optimistic <= ours <= pessimistic, and it holds also where ours is itself only
an upper bound. The libraries are handed noise / sensitivity and nothing else, as if for adding or removing one record: how
far a record can move a value under replacement is our ledger's business, and the library's replace-one accountants
contradict each other (`bandana.audits.cross_checks.library_defects`). Where a library cannot answer, or where its answer
could not contradict ours, the opinion is "not applicable", with the reason. The libraries are imported when they are asked:
opacus imports torch, which takes seconds.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.entry import Entry
from bandana.audits.cross_checks.library_defects import KNOWN_DEFECTS, Finding
from bandana.audits.seeds import derive
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.privacy_core import (
    ApproxDP,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    NonPrivateEvent,
    PrivacyCurve,
    PureDP,
    RenyiDP,
    Tree,
)
from bandana.privacy_core.checks import probability

Events = tuple[tuple[Event, int], ...]

SLACK = 1e-9
REFERENCE = "reference"
LIBRARIES = ("dp-accounting", "opacus")
_PLD_ERROR = 1.1e-5
_SMALLEST_DELTA, _SMALLEST_DELTA_COMPOSED = 1e-11, 1e-8
_GRID, _MOST_CELLS_ONE, _MOST_CELLS = 1e-4, 400_000, 5_000_000
_UNDERFLOW = 700.0
_PRV_ERROR = 0.01
_GDP_BRACKET = 500.0
_NOT_YET = "dp-accounting has it from version 0.6 on"
_PRV_REFUSALS = ("Floating point errors will dominate", "Discrete mean differs", "Cannot compute epsilon")


class Expected(StrEnum):
    """How a library's epsilon must stand to ours."""

    EXACT = "exact"
    UPPER = "upper"
    LOWER = "lower"
    INTERVAL = "interval"


@dataclass(frozen=True)
class Opinion:
    """What one library says of one ledger at one delta.

    Attributes:
      ledger: its name.
      delta: where the epsilons are stated.
      ours: our epsilon, in nats.
      library: distribution name, or `reference` for a value known to more than 16 digits.
      accountant: which of its accountants.
      expected: how the two must stand to each other.
      epsilon: what the library says, at least 0; its upper end for an interval; None if it does not apply or failed.
      lowest: the smallest value of ours that it allows; None as `epsilon`.
      highest: the largest; None as `epsilon`.
      holds: whether ours is allowed; None if the opinion does not apply.
      note: the reason if it does not apply or failed, else what is special about it.
    """

    ledger: str
    delta: float
    ours: float
    library: str
    accountant: str
    expected: Expected
    epsilon: float | None = None
    lowest: float | None = None
    highest: float | None = None
    holds: bool | None = None
    note: str = ""


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


@dataclass(frozen=True)
class CrossCheck:
    """All opinions on all ledgers, and the libraries' known defects measured with the installed versions.

    Attributes:
      deltas: where epsilons are stated.
      opinions: one a ledger, delta and accountant.
      not_private: catalog entries whose ledgers hold no noise to account.
      findings: one a known defect.
      versions: of the libraries that are installed.
    """

    deltas: tuple[float, ...]
    opinions: tuple[Opinion, ...]
    not_private: tuple[str, ...]
    findings: tuple[Finding, ...]
    versions: Mapping[str, str]

    @property
    def failed(self) -> tuple[Opinion, ...]:
        """Those that contradict us, or that could not be had for an unknown reason."""
        return tuple(opinion for opinion in self.opinions if opinion.holds is False)

    @property
    def unopposed(self) -> tuple[str, ...]:
        """Ledgers about which no library could say anything at any delta."""
        names = dict.fromkeys(opinion.ledger for opinion in self.opinions)
        asked = {o.ledger for o in self.opinions if o.holds is not None and o.library in LIBRARIES}
        return tuple(name for name in names if name not in asked)

    @property
    def is_sound(self) -> bool:
        """Nothing contradicts us."""
        return not self.failed


class _DoesNotApply(Exception):  # noqa: N818  (a reason, no error)
    """A library has no opinion; the message is the reason."""


_Ask = Callable[[Events, float], float | tuple[float, float]]


def crosscheck(deltas: Sequence[float], on_progress: Callable[[str], None] = lambda what: None) -> CrossCheck:
    """Asks the libraries about every catalog entry's ledgers and about the named ones, and measures the known defects.

    Args:
      deltas: at which epsilons are compared, each strictly between 0 and 1.
      on_progress: called with what comes next.

    Raises:
      ValueError: a delta is out of range.
    """
    distinct = tuple(dict.fromkeys(probability("delta", delta) for delta in deltas))
    on_progress("running the catalog")
    from_catalog, not_private = catalog_cases()
    opinions: list[Opinion] = []
    for case in (*from_catalog, *named_cases()):
        on_progress(case.name)
        opinions += second_opinions(case, distinct)
    on_progress("known defects")
    with quiet():
        findings = tuple(defect.measure() for defect in KNOWN_DEFECTS)
    return CrossCheck(distinct, tuple(opinions), not_private, findings, {name: version(name) for name in LIBRARIES})


def second_opinions(
    case: Case, deltas: Sequence[float], ours: Callable[[float], float] | None = None
) -> tuple[Opinion, ...]:
    """What every library says of one ledger.

    Args:
      case: the ledger.
      deltas: where to compare, each strictly between 0 and 1.
      ours: delta -> the epsilon to hold against the libraries; the accountant's own if None.

    Returns:
      One opinion a delta and accountant, those that do not apply included.

    Raises:
      ValueError: a delta is out of range, or the ledger holds no noise to account.
    """
    if not case.events or any(isinstance(event, NonPrivateEvent) for event, _ in case.events):
        raise ValueError(f"{case.name} holds no noise to account")
    epsilon = ours or PrivacyCurve.of(dict(case.events)).epsilon
    found = []
    with quiet():
        for delta in deltas:
            probability("delta", delta)
            value = epsilon(delta)
            found.append(_reference(case, delta, value))
            for library, accountant, expected, ask in _ACCOUNTANTS:
                blank = Opinion(case.name, delta, value, library, accountant, expected)
                found.append(_ask(blank, ask, case.events))
    return tuple(found)


def allows(ours: float, lowest: float, highest: float) -> bool:
    """Whether ours lies between the two, both ends moved outwards by 1e-9; never for a value that is no number."""
    return lowest - SLACK <= ours <= highest + SLACK


def _ask(blank: Opinion, ask: _Ask, events: Events) -> Opinion:
    try:
        answer = ask(events, blank.delta)
        low, high = (float(x) for x in (answer if isinstance(answer, tuple) else (answer, answer)))
        if math.isnan(low) or math.isnan(high):
            raise ArithmeticError("it answers nan")
        # A library may say less than 0 where the truth is 0: it is clamped here, and listed as a defect.
        low, high = max(0.0, low), max(0.0, high)
        if math.isinf(high):
            raise _DoesNotApply("it answers infinity, which contradicts nothing")
        if blank.expected is Expected.LOWER and low == 0.0:
            raise _DoesNotApply("its lower bound is 0, which contradicts nothing")
    except _DoesNotApply as reason:
        return replace(blank, note=str(reason))
    except Exception as error:  # whatever a library raises without a known reason is shown as a failed check, not hidden
        return replace(blank, holds=False, note=f"{type(error).__name__}: {error}")
    match blank.expected:
        case Expected.EXACT:
            # The libraries' root finding stops at 1e-12.
            lowest, highest = low * (1 - SLACK) - 1e-11, low * (1 + SLACK) + 1e-11
            holds = lowest <= blank.ours <= highest
            return replace(blank, epsilon=low, lowest=lowest, highest=highest, holds=holds)
        case Expected.UPPER:
            low = 0.0
        case Expected.LOWER:
            return replace(blank, epsilon=low, lowest=low, highest=math.inf, holds=allows(blank.ours, low, math.inf))
    return replace(blank, epsilon=high, lowest=low, highest=high, holds=allows(blank.ours, low, high))


def _reference(case: Case, delta: float, ours: float) -> Opinion:
    """The value that is known to more than 16 digits: ours must equal it, or be at most 1.1e-5 above where it is a bound."""
    is_exact = not any(isinstance(event, LaplaceEvent) for event, _ in case.events)
    blank = Opinion(case.name, delta, ours, REFERENCE, "high precision", Expected.EXACT if is_exact else Expected.INTERVAL)

    def look_up(events: Events, at: float) -> float | tuple[float, float]:
        if at not in case.known:
            raise _DoesNotApply("no reference value at this ledger and delta")
        known = case.known[at]
        return known if is_exact else (known, known + _PLD_ERROR)

    return replace(_ask(blank, look_up, case.events), epsilon=case.known.get(delta))


def _gaussian_noise(events: Events) -> list[tuple[float, int]]:
    """(noise multiplier, count) of a ledger of Gaussian events only."""
    found = [(event.noise_multiplier, count) for event, count in events if isinstance(event, GaussianEvent)]
    if len(found) < len(events):
        raise _DoesNotApply("it knows Gaussian noise only")
    return found


def _mu(events: Events) -> float:
    return math.sqrt(sum(count / multiplier**2 for multiplier, count in _gaussian_noise(events)))


def _pessimistic(events: Events, delta: float) -> float:
    """Connect-the-dots for Gaussian ledgers, privacy buckets for the rest.

    Of ledgers with Laplace noise our own value comes from this library's connect-the-dots, which may not vouch for itself.
    Buckets are never below it: connect-the-dots is the smallest pessimistic estimate on the grid (Doroshenko et al. 2022).
    """
    dots = all(isinstance(event, GaussianEvent) for event, _ in events)
    return _pld_epsilon(events, delta, True, dots)


def _optimistic(events: Events, delta: float) -> float:
    return _pld_epsilon(events, delta, False, False)


def _pld_epsilon(events: Events, delta: float, pessimistic: bool, dots: bool) -> float:
    if not all(isinstance(event, GaussianEvent | LaplaceEvent) for event, _ in events):
        raise _DoesNotApply("it knows Gaussian and Laplace noise only")
    composed = sum(count for _, count in events) > 1
    smallest = _SMALLEST_DELTA_COMPOSED if composed else _SMALLEST_DELTA
    if delta < smallest:
        of_many = " of a composition" if composed else ""
        raise _DoesNotApply(f"the PLD{of_many} is rounded too much below delta = {smallest:g}")
    epsilon = float(_compose(events, pessimistic, dots).get_epsilon_for_delta(delta))
    if _UNDERFLOW < epsilon < math.inf:
        raise _DoesNotApply(f"its e^-loss underflows above epsilon = {_UNDERFLOW:g}")
    return epsilon


@lru_cache(maxsize=8)
def _compose(events: Events, pessimistic: bool, dots: bool) -> Any:
    """The privacy loss distributions of all events, composed one by one: this also tests that our mu's add in squares."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    widths = [_width(event, 1) for event, _ in events]
    whole = sum(_width(event, count) for event, count in events)
    grid = max(_GRID, max(widths) / _MOST_CELLS_ONE, whole / _MOST_CELLS)
    options = {
        "pessimistic_estimate": pessimistic, "use_connect_dots": dots, "value_discretization_interval": grid
    }  # fmt: skip
    total = None
    for event, count in events:
        make = pld.from_gaussian_mechanism if isinstance(event, GaussianEvent) else pld.from_laplace_mechanism
        assert isinstance(event, GaussianEvent | LaplaceEvent)
        own = make(event.noise_multiplier, **options).self_compose(count)
        total = own if total is None else total.compose(own)
    return total


def _width(event: Event, count: int) -> float:
    """About how wide the privacy loss of `count` such events is, in nats; a wide one gets a coarser grid."""
    if isinstance(event, GaussianEvent):
        mu = math.sqrt(count) * event.mu
        return mu * mu + 20 * mu
    return 2 * count * event.epsilon if isinstance(event, LaplaceEvent) else 0.0


def _dp_accounting_rdp(events: Events, delta: float) -> float:
    from dp_accounting import dp_event, rdp

    accountant = rdp.RdpAccountant()
    for event, count in events:
        match event:
            case GaussianEvent(multiplier):
                accountant.compose(dp_event.GaussianDpEvent(multiplier), count)
            case LaplaceEvent(multiplier):
                accountant.compose(dp_event.LaplaceDpEvent(multiplier), count)
            case ConcentratedEvent(rho):
                if not hasattr(dp_event, "ZCDpEvent"):
                    raise _DoesNotApply(_NOT_YET)
                accountant.compose(dp_event.ZCDpEvent(rho), count)
            case _:
                raise _DoesNotApply(f"it does not know {type(event).__name__}")
    return float(accountant.get_epsilon(delta))


def _dp_accounting_analytic(events: Events, delta: float) -> float:
    import dp_accounting

    if not hasattr(dp_accounting, "get_epsilon_gaussian"):
        raise _DoesNotApply(_NOT_YET)
    return float(dp_accounting.get_epsilon_gaussian(1 / _mu(events), delta))


def _opacus_gdp(events: Events, delta: float) -> float:
    from opacus.accountants.analysis.gdp import eps_from_mu

    mu = _mu(events)
    try:
        return float(eps_from_mu(mu=mu, delta=delta))
    except ValueError as error:
        if "different signs" not in str(error):
            raise
        raise _DoesNotApply(f"it searches epsilon strictly between 0 and {_GDP_BRACKET:g} only") from error


def _opacus_history(events: Events) -> list[tuple[float, float, int]]:
    return [(multiplier, 1.0, count) for multiplier, count in _gaussian_noise(events)]


def _opacus_rdp(events: Events, delta: float) -> float:
    from opacus.accountants.rdp import RDPAccountant

    accountant = RDPAccountant()
    accountant.history = _opacus_history(events)
    return float(accountant.get_epsilon(delta))


def _opacus_prv(events: Events, delta: float) -> tuple[float, float]:
    """Both ends; `get_epsilon` returns the upper one. They hold the estimate less and plus `eps_error`."""
    from opacus.accountants.prv import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = _opacus_history(events)
    delta_error = delta / 1000
    if _prv_cells(events, delta_error) > _MOST_CELLS:
        raise _DoesNotApply(f"its grid would need more than {_MOST_CELLS:,} cells")
    try:
        discrete = accountant._get_dprv(eps_error=_PRV_ERROR, delta_error=delta_error)
        low, _, high = discrete.compute_epsilon(delta, delta_error, _PRV_ERROR)
    except (ValueError, RuntimeError) as error:
        if str(error).startswith(_PRV_REFUSALS):
            raise _DoesNotApply(f"it refuses: {str(error).partition('.')[0]}") from error
        raise
    return float(low), float(high)


def _prv_cells(events: Events, delta_error: float) -> float:
    """About how many cells the library's grid would have: its mesh, over twice its largest loss."""
    mu, releases = _mu(events), sum(count for _, count in events)
    mesh = _PRV_ERROR / math.sqrt(releases * math.log(12 / delta_error) / 2)
    return 2 * (mu * mu / 2 + mu * math.sqrt(2 * math.log(8 * releases / delta_error)) + 3) / mesh


_ACCOUNTANTS: tuple[tuple[str, str, Expected, _Ask], ...] = (
    ("dp-accounting", "PLD optimistic", Expected.LOWER, _optimistic),
    ("dp-accounting", "PLD pessimistic", Expected.UPPER, _pessimistic),
    ("dp-accounting", "RDP", Expected.UPPER, _dp_accounting_rdp),
    ("dp-accounting", "analytic Gaussian", Expected.EXACT, _dp_accounting_analytic),
    ("opacus", "GDP", Expected.EXACT, _opacus_gdp),
    ("opacus", "PRV", Expected.INTERVAL, _opacus_prv),
    ("opacus", "RDP", Expected.UPPER, _opacus_rdp),
)


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
}
"""Kind of guarantee -> levels at which the catalog's ledgers are compared."""
_N_ACTIONS, _N_USERS, _N_REPS = 3, 64, 16


def catalog_cases(entries: Sequence[Entry] = CATALOG) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The ledgers of live runs of catalog entries: each private one in all its calibrations, at three privacy levels.

    Args:
      entries: catalog lines.

    Returns:
      The ledgers' worst records, and the names of the entries that are not private.
    """
    cases, not_private = [], []
    for entry in entries:
        several = sum(other.name == entry.name for other in entries) > 1
        name = f"{entry.name} {entry.privacy_model}" if several else entry.name
        if entry.promise is None:
            not_private.append(name)
            continue
        assert entry.guarantee is not None
        problem, table = bed_of(entry, _N_USERS, 0, _N_ACTIONS)
        for calibration in entry.calibrations:
            for level in LEVELS[entry.guarantee]:
                algorithm = entry.build(bed_settings(entry, problem, calibration, level))
                events = derive(algorithm, table, seed=1, n_reps=_N_REPS)
                cases.append(Case(f"{name} {calibration} {level}", events))
    return tuple(cases), tuple(not_private)


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps the libraries' warnings and log lines off the terminal, and restores everything."""
    loggers = [logging.getLogger(name) for name in ("absl", "opacus", "torch", "root")]
    before = [logger.level for logger in loggers]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            for logger, level in zip(loggers, before, strict=True):
                logger.setLevel(level)
