"""Differential privacy for sequential learning: mechanisms, the ledger, and exact accounting."""

from bandana.privacy_core.accounting.accountant import account, calibrate, classical
from bandana.privacy_core.accounting.curve import PrivacyCurve
from bandana.privacy_core.accounting.events import (
    BoundedEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NearlyGaussianEvent,
    NonPrivateEvent,
    PureEvent,
    ResponseEvent,
)
from bandana.privacy_core.accounting.guarantees import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    Guarantee,
    NoPrivacy,
    NoSuchConversion,
    PureDP,
    Relation,
    RenyiDP,
    TrustModel,
)
from bandana.privacy_core.accounting.participation import Participation
from bandana.privacy_core.accounting.structures import Factorized, Mixture, Releases, Structure, Tree
from bandana.privacy_core.accounting.user_structures import ByUsers
from bandana.privacy_core.clipping import Ball, Interval
from bandana.privacy_core.doubling import DoublingSum
from bandana.privacy_core.factorized import FactorizedSum
from bandana.privacy_core.ledger import BudgetExceeded, Carried, Ledger, LiveLedger, Release, Span
from bandana.privacy_core.noise.matrices import EQUAL, GOE, JointGaussian, SymmetricGaussian
from bandana.privacy_core.noise.mechanisms import (
    DiscreteGaussian,
    Exact,
    Gaussian,
    Laplace,
    Mechanism,
    is_selection,
    without_noise,
)
from bandana.privacy_core.noise.selections import (
    AboveThreshold,
    Exponential,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    Selection,
)
from bandana.privacy_core.noise.shuffled import ShuffledBits
from bandana.privacy_core.noise.sources import ContinuousNoise, NoiseSource, NoNoise, ReproducibleNoise, SecureNoise
from bandana.privacy_core.noise.stacked import StackedGaussian, StackedLaplace, stacked_pairs
from bandana.privacy_core.scripted import ScriptedLedger
from bandana.privacy_core.sums import LocalSum, OpenPhase, PhaseSum, PhaseTotal, PrivateSum
from bandana.privacy_core.tree import TreeSum

__all__ = [
    "EQUAL", "GOE", "ZCDP", "AboveThreshold", "ApproxDP", "Ball", "BoundedEvent", "BoundedRangeEvent", "BudgetExceeded",
    "ByUsers", "Carried", "ConcentratedEvent", "ContinuousNoise", "DiscreteGaussian", "DoublingSum", "Event", "Exact",
    "Exponential", "Factorized", "FactorizedSum", "Gaussian", "GaussianDP", "GaussianEvent", "Guarantee", "Interval",
    "JointGaussian", "Laplace", "LaplaceEvent", "Ledger", "LiveLedger", "LocalSum", "Mechanism", "Mixture",
    "NearlyGaussianEvent", "NoNoise", "NoPrivacy", "NoSuchConversion", "NoiseSource", "NoisyMax", "NonPrivateEvent",
    "OpenPhase", "Participation", "PermuteAndFlip", "PhaseSum", "PhaseTotal", "PrivacyCurve", "PrivateSum", "PureDP",
    "PureEvent", "RandomizedResponse", "Relation", "Release", "Releases", "RenyiDP", "ReproducibleNoise", "ResponseEvent",
    "ScriptedLedger", "SecureNoise", "Selection", "ShuffledBits", "Span", "StackedGaussian", "StackedLaplace", "Structure",
    "SymmetricGaussian", "Tree", "TreeSum", "TrustModel", "account", "calibrate", "classical", "is_selection",
    "stacked_pairs", "without_noise",
]  # fmt: skip
