"""Differential privacy for sequential learning: mechanisms, the ledger, and exact accounting."""

from bandana.privacy_core.accounting import account, calibrate, classical
from bandana.privacy_core.clipping import Ball, Interval
from bandana.privacy_core.curve import PrivacyCurve
from bandana.privacy_core.doubling import DoublingSum
from bandana.privacy_core.events import (
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
from bandana.privacy_core.factorized import FactorizedSum
from bandana.privacy_core.guarantees import (
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
from bandana.privacy_core.ledger import BudgetExceeded, Carried, Ledger, LiveLedger, Release, Span
from bandana.privacy_core.matrices import EQUAL, GOE, JointGaussian, SymmetricGaussian
from bandana.privacy_core.mechanisms import (
    DiscreteGaussian,
    Exact,
    Gaussian,
    Laplace,
    Mechanism,
    is_selection,
    without_noise,
)
from bandana.privacy_core.noise import ContinuousNoise, NoiseSource, NoNoise, ReproducibleNoise, SecureNoise
from bandana.privacy_core.participation import Participation
from bandana.privacy_core.scripted import ScriptedLedger
from bandana.privacy_core.selections import (
    AboveThreshold,
    Exponential,
    NoisyMax,
    PermuteAndFlip,
    RandomizedResponse,
    Selection,
)
from bandana.privacy_core.shuffled import ShuffledBits
from bandana.privacy_core.stacked import StackedGaussian, StackedLaplace, stacked_pairs
from bandana.privacy_core.structures import Factorized, Mixture, Releases, Structure, Tree
from bandana.privacy_core.sums import LocalSum, OpenPhase, PhaseSum, PhaseTotal, PrivateSum
from bandana.privacy_core.tree import TreeSum
from bandana.privacy_core.user_structures import ByUsers

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
