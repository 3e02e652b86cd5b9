"""The known defects of dp-accounting and opacus, each with a reproduction that measures whether it is still there.

They are the reason why our accountant asks these libraries only where they are right, and why `second_opinions` leaves some
of their answers out. `seen_in` names the versions in which each was measured, no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import version

from bandana.privacy_core import GaussianDP


class Kind(StrEnum):
    """Kind of defect in a library's epsilon: too low is unsafe, too high wastes noise, fails is no answer at all."""

    TOO_LOW = "too low"
    TOO_HIGH = "too high"
    FAILS = "fails"


class Status(StrEnum):
    """State of a known defect in the installed version."""

    PRESENT = "present"
    FIXED = "fixed in this version"
    UNKNOWN = "could not be measured"


@dataclass(frozen=True)
class Finding:
    """One known defect, measured now.

    Attributes: as in `Defect`, and
      version: the installed one.
      seen_in: versions in which the defect was measured before.
      value: the library's epsilon; None if it raised.
      status: present, fixed or could not be measured.
      note: what the library raised.
    """

    library: str
    version: str
    seen_in: str
    kind: Kind
    what: str
    value: float | None
    right: float
    status: Status
    note: str = ""


@dataclass(frozen=True)
class Defect:
    """One known defect of an installed library, and whether it is still there.

    Attributes:
      library: distribution name.
      seen_in: versions in which it was measured.
      kind: what is wrong.
      what: in words, with the inputs.
      right: the right epsilon.
      reproduce: asks the library now.
      raises: the exception that the library is known to end with, for the kind `fails`.
    """

    library: str
    seen_in: str
    kind: Kind
    what: str
    right: float
    reproduce: Callable[[], float]
    raises: type[Exception] | None = None

    def measure(self) -> Finding:
        """Tests if the installed version still has it: an epsilon off by more than 0.1 %, or below the right one at all."""
        value, note = None, ""
        try:
            value = float(self.reproduce())
            status = Status.PRESENT if self._is_wrong(value) else Status.FIXED
            note = "" if math.isfinite(value) else f"answers {value}"
        except Exception as error:  # a changed interface must not hide the other defects
            note = f"{type(error).__name__}: {error}"
            status = Status.PRESENT if self.raises and isinstance(error, self.raises) else Status.UNKNOWN
        return Finding(
            self.library, version(self.library), self.seen_in, self.kind, self.what, value, self.right, status, note
        )

    def _is_wrong(self, value: float) -> bool:
        match self.kind:
            case Kind.TOO_LOW:
                return value < self.right - 1e-9
            case Kind.TOO_HIGH:
                return value > self.right * 1.001
        return not math.isfinite(value)


def _dp_accounting_rdp(delta: float, event: str, *parameters: float, relation: str = "ADD_OR_REMOVE_ONE") -> float:
    import dp_accounting
    from dp_accounting import rdp

    accountant = rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation[relation])
    return float(accountant.compose(getattr(dp_accounting, event)(*parameters)).get_epsilon(delta))


def _advanced_composition(epsilon: float, count: int) -> float:
    from dp_accounting.pld import accountant, common

    composed = accountant.advanced_composition(common.DifferentialPrivacyParameters(epsilon, 0.0), count, 1e-5)
    return math.nan if composed is None else float(composed)


_GRIDS = 20
"""An FFT composes with roundings of either sign, as large as the smallest probabilities; which grid's answer they push below
the truth depends on the processor. About half of these grids are, so that all of them are above on one machine in 2^20."""


def _numerical_pld(delta: float) -> float:
    """The lowest answer over grids, each of which the library calls pessimistic."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    answers = []
    for part in range(_GRIDS):
        once = pld.from_gaussian_mechanism(35.0, value_discretization_interval=1e-4 * (1 + part / _GRIDS))
        answers.append(float(once.self_compose(4900).get_epsilon_for_delta(delta)))
    return min(answers)


def _infinite_pld() -> float:
    from dp_accounting import GaussianDpEvent
    from dp_accounting.pld import PLDAccountant

    return float(PLDAccountant().compose(GaussianDpEvent(1.0)).get_epsilon(1e-16))


def _underflowing_pld() -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld

    return float(
        pld.from_gaussian_mechanism(
            1 / 37, pessimistic_estimate=False, use_connect_dots=False, value_discretization_interval=0.01
        ).get_epsilon_for_delta(1e-5)
    )


def _opacus(mechanism: str, noise_multiplier: float, delta: float) -> float:
    from opacus.accountants import create_accountant

    accountant = create_accountant(mechanism)
    accountant.step(noise_multiplier=noise_multiplier, sample_rate=1.0)
    return float(accountant.get_epsilon(delta))


def _opacus_zero() -> float:
    from opacus.accountants.analysis.gdp import eps_from_mu

    return float(eps_from_mu(mu=0.02, delta=1e-2))


def _repeated_response() -> float:
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    return float(accountant.compose(dp_accounting.RandomizedResponseDpEvent(0.5, 2), 100).get_epsilon(1e-5))


_dp_accounting_defect = partial(Defect, "dp-accounting", "0.5.0, 0.6.0")
_opacus_defect = partial(Defect, "opacus", "1.5.4, 1.6.0")

# The right values of Gaussians are the analytic ones, those of `advanced_composition` are Theorem 3.3 of Kairouz, Oh and
# Viswanath (2015) in multiple precision; the tests hold both against the reference file.
KNOWN_DEFECTS: tuple[Defect, ...] = (
    _dp_accounting_defect(Kind.TOO_LOW,
        "REPLACE_ONE: ignored by the RDP accountant, doubled by the PLD accountant; here RDP, sigma 1, delta 1e-5",
        9.997256146434300, lambda: _dp_accounting_rdp(1e-5, "GaussianDpEvent", 1.0, relation="REPLACE_ONE"),
    ),
    Defect("dp-accounting", "0.6.0", Kind.TOO_LOW,
        "the PLD accountant counts a repeated randomized response once; here 100 of 2 options, p 3/4, delta 1e-5",
        90.781538508301018124, _repeated_response,
    ),
    _dp_accounting_defect(Kind.TOO_LOW,
        "a PLD composed numerically is not pessimistic at very small delta; here the lowest of 20 grids, 4900 Gaussians, "
        "sigma 35, delta 1e-11",
        GaussianDP(2.0).epsilon(1e-11), lambda: _numerical_pld(1e-11),
    ),
    _dp_accounting_defect(Kind.FAILS,
        "the PLD accountant answers infinity at delta below its tail truncation; here one Gaussian, sigma 1, delta 1e-16",
        GaussianDP(1.0).epsilon(1e-16), _infinite_pld,
    ),
    _dp_accounting_defect(Kind.TOO_HIGH,
        "e^-loss underflows: above epsilon 700 even an optimistic PLD is about 1 too high; here sigma 1/37, delta 1e-5",
        GaussianDP(37.0).epsilon(1e-5), _underflowing_pld,
    ),
    _dp_accounting_defect(Kind.TOO_HIGH,
        "advanced_composition returns epsilon (k - 2i) only, the next one up; here epsilon 0.1, k 100, delta 1e-5",
        4.306791372516506787, lambda: _advanced_composition(0.1, 100),
    ),
    _dp_accounting_defect(
        Kind.FAILS, "advanced_composition overflows at large k; here epsilon 0.1, k 1000, delta 1e-5",
        17.787128449700920, lambda: _advanced_composition(0.1, 1000), OverflowError,
    ),
    _dp_accounting_defect(Kind.TOO_HIGH,
        "the tree event is composed by RDP, and by no other accountant; here 1024 leaves, sigma 5, delta 1e-5",
        2.737785446847325561,
        lambda: _dp_accounting_rdp(1e-5, "SingleEpochTreeAggregationDpEvent", 5.0, 1024, relation="REPLACE_SPECIAL"),
    ),
    _dp_accounting_defect(
        Kind.TOO_HIGH, "RDP orders end at 1024; here one Gaussian, sigma 1000, delta 1e-8",
        GaussianDP(0.001).epsilon(1e-8), lambda: _dp_accounting_rdp(1e-8, "GaussianDpEvent", 1000.0),
    ),
    _opacus_defect(Kind.TOO_HIGH,
        "GaussianAccountant uses the limit theorem of subsampling also at sampling rate 1; here sigma 1, delta 1e-5",
        4.377178095681224628, lambda: _opacus("gdp", 1.0, 1e-5),
    ),
    _opacus_defect(
        Kind.TOO_HIGH, "PRVAccountant adds its eps_error of 0.01 to what it computed; here sigma 1, delta 1e-5",
        4.377178095681224628, lambda: _opacus("prv", 1.0, 1e-5),
    ),
    _opacus_defect(
        Kind.TOO_HIGH, "RDP orders end at 63; here sigma 50, delta 1e-8",
        GaussianDP(0.02).epsilon(1e-8), lambda: _opacus("rdp", 50.0, 1e-8),
    ),
    _opacus_defect(
        Kind.TOO_LOW, "RDPAccountant answers a negative epsilon where the right one is 0; here sigma 100, delta 1e-2",
        0.0, lambda: _opacus("rdp", 100.0, 1e-2),
    ),
    _opacus_defect(
        Kind.FAILS, "eps_from_mu finds no root where the right epsilon is 0; here mu 0.02, delta 1e-2",
        0.0, _opacus_zero, ValueError,
    ),
)  # fmt: skip
