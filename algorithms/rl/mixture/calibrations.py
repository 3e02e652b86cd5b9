"""Parts of the calibrations of UCRL-VTR and UCRL-VTR+, and the printed noise."""

from __future__ import annotations

from collections.abc import Mapping

from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.papers.luyo import (
    depth,
    vtr_joint_printed_sd,
    vtr_local_printed_sd,
    vtr_plus_joint_printed_sds,
    vtr_plus_local_printed_sds,
)
from bandana.privacy_core import ApproxDP, PureDP
from bandana.privacy_core.noise.sensitivities import matrix_l1_bound

READINGS = ("l2-constants", "l1-constants")
"""Readings of the printed Laplace noise: with the sensitivities of the Gaussian proof, or with those that it needs."""
Promise = ApproxDP | PureDP
Parts = Mapping[str, str]
"""Part of a calibration -> its option."""


def calibrations(is_plus: bool, is_joint: bool, is_pure: bool) -> dict[str, dict[str, str]]:
    """Calibration -> part -> option, of one form; each part's options are those that stand here.

    - `noise`: `printed` has the budget that the printed noise spends, mu or epsilon, and its shape; `tight` the claim's.
    - `sum` of joint approximate forms: `tree`, or `factorized`. Laplace noise takes a tree, local messages no sum.
    - `width`: `printed`, the paper's bounds on the noise, shifts and widths; `exact`, those that are proved of this noise.
    - `values`: `printed`, in [0, H] and not centered; `centered`, between what must and what can still be earned.
    - `split` of UCRL-VTR+: the weighted regressions get half of the price, mu^2 or epsilon (`even`), or four fifths.
    - `weights` of UCRL-VTR+: samples are divided by a bound on their `variance`, or by one on the `proxy` by which they are
      sub-Gaussian, see `UCRLVTRPlus`.
    """
    has_sum = is_joint and not is_pure
    printed = {"noise": "printed", "sum": "tree", "width": "printed", "values": "printed"}
    printed |= {"split": "even", "weights": "variance"}
    tight = {"noise": "tight", "sum": "factorized", "width": "exact", "values": "centered"}
    tight |= {"split": "weighted", "weights": "proxy"}
    by_name = {"printed": printed, "tree": tight | {"sum": "tree"}, "tight": tight}
    left_out = (() if has_sum else ("sum",)) + (() if is_plus else ("split", "weights"))
    return {
        name: {part: option for part, option in parts.items() if part not in left_out}
        for name, parts in by_name.items()
        if has_sum or name != "tree"
    }


def printed_sd(promise: ApproxDP, is_joint: bool, is_plus: bool, horizon: int, model: MixtureModel) -> float:
    """The printed deviation on a step's pair; of UCRL-VTR+ on the weighted one."""
    level, length = (promise.epsilon, promise.delta), model.horizon
    if is_plus:
        if is_joint:
            return vtr_plus_joint_printed_sds(*level, horizon, length, model.dimension)[0]
        return vtr_plus_local_printed_sds(*level, length, model.dimension)[0]
    return vtr_joint_printed_sd(*level, horizon, length) if is_joint else vtr_local_printed_sd(*level, length)


def printed_laplace_scale(
    promise: PureDP, is_joint: bool, is_plus: bool, horizon: int, model: MixtureModel, reading: str
) -> tuple[float, float]:
    """The printed Laplace scale on the matrix of a step, of UCRL-VTR+ of a weighted one, and the vector's over it.

    (sensitivity) / epsilon for each of 2 H statistics, 4 H of UCRL-VTR+, and of K_0 nodes where privacy is joint.

    Raises:
      ValueError: there is no such reading.
    """
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {', '.join(READINGS)}, got {reading!r}")
    d, length = model.dimension, model.horizon
    l1 = matrix_l1_bound(d), 2 * d**0.5
    matrix, vector = (2.0, 2.0) if reading == "l2-constants" else l1
    square = float(d) if is_plus else float(length) ** 2
    epsilon = (promise.epsilon / depth(horizon) if is_joint else promise.epsilon) / ((4 if is_plus else 2) * length)
    return matrix * square / epsilon, vector / matrix
