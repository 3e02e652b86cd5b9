"""Readings of printed noise beyond what is built, and their worth where a ledger adds up more than one record pays.

No builder imports this: a reading changes no result. A reading is stated as its difference from a run that was played:
factors on the noise, factors on the privacy loss at the same noise, or the bound on rewards that the run needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from bandana.algorithms.papers import dubey, pavlovic
from bandana.privacy_core.noise.matrices import EQUAL, GOE, JointGaussian
from bandana.privacy_core.noise.mechanisms import Laplace, Mechanism
from bandana.privacy_core.noise.sensitivities import (
    matrix_l1_bound,
    pair_l1_bound,
    pair_l1_witness,
    pair_mu_squared,
    square_entry_mu_squared,
)
from bandana.privacy_core.noise.stacked import StackedLaplace

Values = Mapping[str, Any]
"""Parameters by name, as `bandana calibrate` lists them."""


def _one(values: Values) -> float:
    return 1.0


class Reading(NamedTuple):
    """One meaning of a print, as its difference from the run that is played."""

    meaning: str
    noise: Callable[[Values], float | Mapping[str, float]] = _one
    """Factor on the printed noise, or one for each attribute of the algorithm that holds a mechanism."""
    loss: Callable[[Values], float] = _one
    """Factor on mu, or on a pure epsilon, at the same noise; infinite where nothing bounds it."""
    reward_bound: Callable[[Values], float] | None = None
    """The bound on rewards that the run needs; None: as declared."""


def _tail_bound(values: Values) -> float:
    """Y of eq. (43); what is declared where rewards have no tail."""
    if not values["noise_scale"]:
        return float(values["reward_bound"])
    return dubey.joint_reward_bound(values["delta"], values["horizon"], values["norm_bound"], values["noise_scale"])


def _tail_noise(reading: str, values: Values) -> float:
    """The deviation for means in [-B, B] and a tail, over that for rewards in [-Y, Y]: they differ in S' of Lemma 12."""
    if not values["noise_scale"]:
        return 1.0
    level = values["epsilon"], values["delta"], values["horizon"]
    printed = dubey.joint_printed_sd(*level, values["norm_bound"], values["noise_scale"], reading)
    return printed / dubey.joint_printed_sd(*level, _tail_bound(values), 0.0, reading)


def _kept(values: Values) -> float:
    """The factor for rewards that are not clipped, or for y^2, where the tree holds it too."""
    if not values["is_clipped"]:
        return math.inf
    if not values.get("has_square", False):
        return 1.0
    bound = _tail_bound(values)
    return math.sqrt(square_entry_mu_squared(bound) / pair_mu_squared(1, bound, 1, 1))


def _lemma_5_bound(reading: str, values: Values) -> float:
    sizes = values["delta"], int(values["n_features"]), values["norm_bound"], values["noise_scale"]
    return dubey.local_reward_bound(reading, *sizes)


_JOINT_GP = {
    "consistent": "sigma^2 = 16 n S^2 ln(10/delta)^2 / epsilon^2: what the proof's budgets ask for",
    "lemma-2": "sigma = 16 n S ln(10/delta)^2 / epsilon^2: Lemma 2 as printed",
    "sketch": "sigma^2 = 16 n S ln(10/delta)^2 / epsilon^2: the proof sketch of Lemma 2",
    "lemma-12": "sigma = 16 n S' ln(4/delta)^2 epsilon^2: Lemma 12 as printed",
    "lemma-12-proof": "sigma^2 = 16 n S^2 ln(10/delta)^2: the end of Lemma 12's proof",
}
_LOCAL_GP = {
    "declared": Reading("rewards are clipped to the declared range, as built", loss=_kept),
    "statement": Reading(
        "the reward bound is the statement's, Y^2 = B^2 + 2 ln(8 m / delta)", _one, _kept,
        partial(_lemma_5_bound, "statement"),
    ),
    "proof": Reading(
        "the reward bound is the proof's, Y = B + rho sqrt(2 ln(8 m / delta)); the noise is the statement's", _one, _kept,
        partial(_lemma_5_bound, "proof"),
    ),
}  # fmt: skip


def _capri(reading: str, values: Values) -> float:
    """The deviation over that of the run, which is made for the largest norm of a record's projected feature."""
    largest, bound = values["s_max"], values["s_max"] if values["sigma_max"] is None else values["sigma_max"]
    if bound < largest:
        raise ValueError(f"sigma_max must be at least s_max = {largest!r}, got {bound!r}")
    level = values["epsilon"], values["delta"], values["horizon"], 1.0
    return pavlovic.printed_sd(*level, bound, reading) / pavlovic.printed_sd(*level, largest, "natural")


_CAPRI = {
    name: Reading(meaning, partial(_capri, name))
    for name, meaning in {
        "natural": "log is the natural logarithm, sigma_max is eq. (6)",
        "base-10": "log is the decimal logarithm",
        "unrooted": "sigma_max as in Lemma 6.6, without the square root of eq. (6)",
    }.items()
}


def _main_text(values: Values) -> float:
    """The pairs of all steps are bounded by H twice: one factor for all."""
    equal, goe = (JointGaussian(1.0, 1.0, 1.0, diagonal_ratio=law).sensitivity for law in (EQUAL, GOE))
    return equal / goe


def _right_l1(values: Values) -> Mapping[str, float]:
    return {"matrices": matrix_l1_bound(values["dimension"]) / 2, "vectors": math.sqrt(values["dimension"])}


_L2 = "the L2 sensitivities of the Gaussian proof are kept"
_L1 = "the L1 sensitivities that Laplace noise needs are put in"
_PURE = {"l1-constants": Reading(_L1), "l2-constants": Reading(_L2)}

READINGS: Mapping[tuple[str, str, str], Mapping[str, Reading]] = {
    ("gp-ucb", "joint", "approximate"): {
        name: Reading(meaning, partial(_tail_noise, name), _kept, _tail_bound) for name, meaning in _JOINT_GP.items()
    },
    ("gp-ucb", "local", "approximate"): _LOCAL_GP,
    ("capri", "joint", "approximate"): _CAPRI,
    ("capri", "local", "approximate"): _CAPRI,
    ("ucrl-vtr", "joint", "approximate"): {
        "appendix": Reading("node noise (Z + Z^T)/sqrt 2, as Appendix C.2"),
        "main-text": Reading("node noise with all entries N(0, sigma_B^2), as the main text", loss=_main_text),
    },
    ("ucrl-vtr", "joint", "pure"): _PURE,
    ("ucrl-vtr", "local", "pure"): _PURE,
    ("ucrl-vtr-plus", "joint", "pure"): _PURE,
    ("ucrl-vtr-plus", "local", "pure"): _PURE,
    ("lsvi-ucb", "joint", "pure"): {"l2-constants": Reading(_L2), "l1-constants": Reading(_L1, _right_l1)},
}
"""(algorithm, trust model, guarantee) -> name -> reading of its printed noise; the first is what is built by default."""

EXTRAS: Mapping[tuple[str, str, str], Mapping[str, float | bool | None]] = {
    ("gp-ucb", "joint", "approximate"): {"noise_scale": 0.0, "is_clipped": True, "has_square": False},
    ("gp-ucb", "local", "approximate"): {"noise_scale": 1.0, "is_clipped": True},
    ("capri", "joint", "approximate"): {"s_max": 1.0, "sigma_max": None},
    ("capri", "local", "approximate"): {"s_max": 1.0, "sigma_max": None},
}
"""Parameters of readings alone, with their defaults."""


def separate_statistics(
    matrices: Mechanism, vectors: tuple[Mechanism, ...], matrix_touches: int, vector_touches: int, dimension: int
) -> tuple[float, float]:
    r"""The loss that is proved, and one that two episodes attain, of matrices and vectors that are released apart.

    A ledger adds up the worst case of each release. One record enters all: with t = |phi.phi'|, the matrix of a step moves
    most at t = 0, its vector at t = 1. So each step costs the maximum over t of both together (`pair_mu_squared`,
    `pair_l1_bound`), and the steps add up, each with its own worst t, as every step's features are the user's own.

    Args:
      matrices: of all H steps, phi phi^T with |phi| <= 1; Gaussian noise is the GOE's.
      vectors: (H,) of y_h phi, |y_h| bounded by the sensitivity.
      matrix_touches: releases of the matrices that hold a record.
      vector_touches: releases of each vector that hold it.
      dimension: d.

    Returns:
      Two values of mu, equal as the supremum is exact; of epsilon for Laplace noise.
    """
    if not isinstance(matrices, Laplace):
        matrix = matrices.scale / math.sqrt(matrix_touches)
        squares = [pair_mu_squared(1, v.sensitivity / 2, matrix, v.scale / math.sqrt(vector_touches)) for v in vectors]
        return (math.sqrt(math.fsum(squares)),) * 2
    bounds = [v.sensitivity / (2 * math.sqrt(dimension)) for v in vectors]
    weights = [(matrix_touches / matrices.scale, vector_touches * y / v.scale) for y, v in zip(bounds, vectors, strict=True)]
    proved, attained = (
        math.fsum(change(dimension, a, b) for a, b in weights) for change in (pair_l1_bound, pair_l1_witness)
    )
    return proved, attained


def attained_share(mechanism: Mechanism) -> float:
    """Share of the mechanism's sensitivity two records are known to attain: 1 but for stacked pairs in the L1 norm."""
    if not isinstance(mechanism, StackedLaplace):
        return 1.0
    blocks = zip(mechanism.norm_bounds, mechanism.value_bounds, mechanism.shares, strict=True)
    attained = [pair_l1_witness(mechanism.dimension, r * r, r * y / mechanism.vector_ratio) / s for r, y, s in blocks]
    return math.fsum(attained) / mechanism.sensitivity
