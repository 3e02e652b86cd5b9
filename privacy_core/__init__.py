"""Differential privacy for sequential learning: mechanisms, the ledger, and exact accounting."""

from privacy_core.accounting import Mixture, account, calibrate
from privacy_core.clipping import Interval
from privacy_core.events import Event, GaussianEvent, LaplaceEvent, NonPrivateEvent
from privacy_core.guarantees import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    NoPrivacy,
    PureDP,
    Relation,
    RenyiDP,
    TrustModel,
)
from privacy_core.ledger import BudgetExceeded, Ledger, LiveLedger, Release, ScriptedLedger, Span
from privacy_core.mechanisms import Exact, Gaussian, Laplace, Mechanism
from privacy_core.noise import NoiseSource, ReproducibleNoise
from privacy_core.sums import OpenPhase, PhaseSum

__all__ = [
    "ZCDP", "ApproxDP", "BudgetExceeded", "Event", "Exact", "Gaussian", "GaussianDP", "GaussianEvent", "Guarantee",
    "Interval", "Laplace", "LaplaceEvent", "Ledger", "LiveLedger", "Mechanism", "Mixture", "NoPrivacy", "NoiseSource",
    "NonPrivateEvent", "OpenPhase", "PhaseSum", "PureDP", "Relation", "Release", "RenyiDP", "ReproducibleNoise",
    "ScriptedLedger", "Span", "TrustModel", "account", "calibrate",
]  # fmt: skip
