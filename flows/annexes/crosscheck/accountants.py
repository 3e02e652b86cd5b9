"""The accountants of dp-accounting and opacus: what each says of the events on a ledger's worst record."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache, partial
from typing import Any

from bandana.flows.annexes.crosscheck.opacus_private import prv_interval
from bandana.privacy_core import ConcentratedEvent, Event, GaussianEvent, LaplaceEvent, PureEvent, ResponseEvent

Events = tuple[tuple[Event, int], ...]
_SMALLEST_DELTA, _SMALLEST_DELTA_COMPOSED = 1e-11, 1e-8
_GRID, _MOST_CELLS_ONE, _MOST_CELLS = 1e-4, 400_000, 5_000_000
_UNDERFLOW = 700.0
_PRV_ERROR = 0.01
_GDP_BRACKET = 500.0
_NOT_YET = "dp-accounting has it from version 0.6 on"
_PRV_REFUSALS = ("Floating point errors will dominate", "Discrete mean differs", "Cannot compute epsilon")


class Expected(StrEnum):
    """Relation that a library's epsilon must have to ours."""

    EXACT = "exact"
    UPPER = "upper"
    LOWER = "lower"
    INTERVAL = "interval"


class DoesNotApply(Exception):  # noqa: N818  (a reason, no error)
    """A library has no opinion; the message is the reason."""


Ask = Callable[[Events, float], float | tuple[float, float]]


def _gaussian_noise(events: Events) -> list[tuple[float, int]]:
    """(noise multiplier, count) of a ledger of Gaussian events only."""
    noise = [(event.noise_multiplier, count) for event, count in events if isinstance(event, GaussianEvent)]
    if len(noise) < len(events):
        raise DoesNotApply("it knows Gaussian noise only")
    return noise


def _mu(events: Events) -> float:
    return math.sqrt(sum(count / multiplier**2 for multiplier, count in _gaussian_noise(events)))


def _pessimistic(events: Events, delta: float) -> float:
    """Connect-the-dots for Gaussian ledgers, privacy buckets for the rest.

    Of ledgers with Laplace noise our own value comes from this library's connect-the-dots, which may not vouch for itself.
    Buckets are never below it: connect-the-dots is the smallest pessimistic estimate on the grid (Doroshenko et al. 2022).
    """
    dots = all(isinstance(event, GaussianEvent) for event, _ in events)
    return _pld_epsilon(events, delta, True, dots)


def _pld_epsilon(events: Events, delta: float, pessimistic: bool, dots: bool) -> float:
    if not all(isinstance(event, GaussianEvent | LaplaceEvent | ResponseEvent | PureEvent) for event, _ in events):
        raise DoesNotApply("it knows Gaussian and Laplace noise and randomized responses only")
    composed = sum(count for _, count in events) > 1
    smallest = _SMALLEST_DELTA_COMPOSED if composed else _SMALLEST_DELTA
    if delta < smallest:
        of_many = " of a composition" if composed else ""
        raise DoesNotApply(f"the PLD{of_many} is rounded too much below delta = {smallest:g}")
    epsilon = float(_compose(events, pessimistic, dots).get_epsilon_for_delta(delta))
    if _UNDERFLOW < epsilon < math.inf:
        raise DoesNotApply(f"its e^-loss underflows above epsilon = {_UNDERFLOW:g}")
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
        if isinstance(event, ResponseEvent | PureEvent):
            response = event if isinstance(event, ResponseEvent) else ResponseEvent(event.epsilon)
            n, rounding = response.n_options, {name: options[name] for name in options if name != "use_connect_dots"}
            own = pld.from_randomized_response(n * response.other, n, **rounding).self_compose(count)
        else:
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
    return 2 * count * event.epsilon if isinstance(event, LaplaceEvent | ResponseEvent | PureEvent) else 0.0


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
                    raise DoesNotApply(_NOT_YET)
                accountant.compose(dp_event.ZCDpEvent(rho), count)
            case _:
                raise DoesNotApply(f"it does not know {type(event).__name__}")
    return float(accountant.get_epsilon(delta))


def _dp_accounting_analytic(events: Events, delta: float) -> float:
    import dp_accounting

    if not hasattr(dp_accounting, "get_epsilon_gaussian"):
        raise DoesNotApply(_NOT_YET)
    return float(dp_accounting.get_epsilon_gaussian(1 / _mu(events), delta))


def _opacus_gdp(events: Events, delta: float) -> float:
    from opacus.accountants.analysis.gdp import eps_from_mu

    mu = _mu(events)
    try:
        return float(eps_from_mu(mu=mu, delta=delta))
    except ValueError as error:
        if "different signs" not in str(error):
            raise
        raise DoesNotApply(f"it searches epsilon strictly between 0 and {_GDP_BRACKET:g} only") from error


def _opacus_history(events: Events) -> list[tuple[float, float, int]]:
    return [(multiplier, 1.0, count) for multiplier, count in _gaussian_noise(events)]


def _opacus_rdp(events: Events, delta: float) -> float:
    from opacus.accountants.rdp import RDPAccountant

    accountant = RDPAccountant()
    accountant.history = _opacus_history(events)
    return float(accountant.get_epsilon(delta))


def _opacus_prv(events: Events, delta: float) -> tuple[float, float]:
    """Both ends; they hold the estimate less and plus `eps_error`."""
    history = _opacus_history(events)
    delta_error = delta / 1000
    if _prv_cells(events, delta_error) > _MOST_CELLS:
        raise DoesNotApply(f"its grid would need more than {_MOST_CELLS:,} cells")
    try:
        return prv_interval(history, delta, _PRV_ERROR, delta_error)
    except (ValueError, RuntimeError) as error:
        if str(error).startswith(_PRV_REFUSALS):
            raise DoesNotApply(f"it refuses: {str(error).partition('.')[0]}") from error
        raise


def _prv_cells(events: Events, delta_error: float) -> float:
    """About how many cells the library's grid would have: its mesh, over twice its largest loss."""
    mu, releases = _mu(events), sum(count for _, count in events)
    mesh = _PRV_ERROR / math.sqrt(releases * math.log(12 / delta_error) / 2)
    return 2 * (mu * mu / 2 + mu * math.sqrt(2 * math.log(8 * releases / delta_error)) + 3) / mesh


ACCOUNTANTS: tuple[tuple[str, str, Expected, Ask], ...] = (
    ("dp-accounting", "PLD optimistic", Expected.LOWER, partial(_pld_epsilon, pessimistic=False, dots=False)),
    ("dp-accounting", "PLD pessimistic", Expected.UPPER, _pessimistic),
    ("dp-accounting", "RDP", Expected.UPPER, _dp_accounting_rdp),
    ("dp-accounting", "analytic Gaussian", Expected.EXACT, _dp_accounting_analytic),
    ("opacus", "GDP", Expected.EXACT, _opacus_gdp),
    ("opacus", "PRV", Expected.INTERVAL, _opacus_prv),
    ("opacus", "RDP", Expected.UPPER, _opacus_rdp),
)
