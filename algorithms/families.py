"""What the lines of several families share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bandana.algorithms.bandits.contextual.oful import LinUCB
from bandana.algorithms.entry import Bound, Claim, RegretBound, Settings, claim_of
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import ApproxDP, PureDP, Relation, RenyiDP

AZIZE_BASU = "Azize and Basu, Renyi Differentially Private Bandits"
_ROOM = 16
"""Later releases are longer, and faults show where something is decided from one: several must fit."""
_LEAST_ROOM = 4
_MOST_HALVINGS = 40


def renyi_of(settings: Settings) -> RenyiDP:
    """The privacy level of an algorithm under Renyi DP."""
    assert isinstance(settings.privacy, RenyiDP)
    return settings.privacy


def pure_of(settings: Settings) -> PureDP:
    """The privacy level of an algorithm under pure DP."""
    assert isinstance(settings.privacy, PureDP)
    return settings.privacy


def approx_of(settings: Settings) -> ApproxDP:
    """The privacy level of an algorithm under approximate DP."""
    assert isinstance(settings.privacy, ApproxDP)
    return settings.privacy


def calibration_of(settings: Settings) -> str:
    """The calibration of a private algorithm."""
    assert settings.calibration is not None
    return settings.calibration


def reward_claim(settings: Settings, theorem: str, source: str) -> Claim:
    """All actions, replace one reward, central model."""
    assert settings.privacy is not None
    stated = replace(settings.privacy, relation=Relation.REPLACE_REWARD)
    return claim_of(stated, "all actions", theorem, source, "one reward (one round)")


def fitting(settings: Settings, name: str, first_rounds: Callable[[Settings], int]) -> Settings:
    """The parameter halved until the first release comes within a sixteenth of the rounds, or as early as it can.

    Args:
      settings: at the audit's horizon.
      name: of the parameter, which shortens what comes before a release as it falls.
      first_rounds: rounds before the first release.

    Raises:
      ValueError: the first release takes more than a quarter of the rounds at any value.
    """
    rounds = settings.problem.known_horizon
    earliest, needed = settings, first_rounds(settings)
    for _ in range(_MOST_HALVINGS):
        if _ROOM * needed <= rounds:
            return earliest
        settings = settings.with_parameters(**{name: settings.parameters[name] / 2})
        if (shorter := first_rounds(settings)) < needed:
            earliest, needed = settings, shorter
    if _LEAST_ROOM * needed <= rounds:
        return earliest
    raise ValueError(
        f"{rounds} rounds are too few for an audit of it: the first release takes {needed}, ask for {_LEAST_ROOM * needed}"
    )


def changing_regularizers(build: Callable[[Settings], LinUCB], source: str) -> Bound:
    """The bound of LinUCB or of GP-UCB, its constants those of the algorithm that is built."""

    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        algorithm = build(settings)
        if algorithm.beta_scale < 1:
            return None
        _, least, largest = algorithm.shift(int(grid[-1]))
        floor, n = algorithm.regularizers
        told = f"d = {algorithm.n_features}, n = {n}, a' = {'a_t' if floor is None else format(floor, '.3g')}, "
        told += f"R = {algorithm.reward_scale:g}, B = {algorithm.parameter_bound:g}"
        if (e := algorithm.inaccuracy) > 0:
            told = f"means that are linear but for e = {e:.2g} add 2 e t, and e min(sqrt t, t / sqrt a_t) to W; {told}"
        return RegretBound(
            algorithm.regret_bound(grid),
            f"{source}, with constants: D + max(D, 2 s W) sqrt(t d log(1 + t / (a d)) / log 2), W = R sqrt(2 log(2 n / "
            f"failure) + d log((t / d + b_t) / a')) + B sqrt(b_t) + g_t / sqrt(a_t) at its largest, and at most D t, D the "
            f"range's width, for any contexts and |theta| <= B; {told}, s = {algorithm.beta_scale:g}, a_t = {least:.3g} and "
            f"b_t = {largest:.3g} at the end; exceeded with probability at most {algorithm.failure:.3g}",
        )

    return bound
