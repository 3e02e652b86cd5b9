"""The papers' printed formulas for noise in one table, by name and reading, beside the noise that their claims need.

>>> from bandana.privacy_core.calibrations import find
>>> found = find("gp-ucb-joint").compare(epsilon=1.0, delta=1e-5, horizon=1024)
>>> round(found.rows[0].printed), round(found.rows[0].tight, 1), round(found.rows[0].factor, 1)
(367, 23.6, 15.5)
>>> found.is_true, round(found.true_epsilon, 2)
(True, 0.05)
>>> find("gp-ucb-joint").compare("lemma-12", epsilon=0.01, delta=1e-5, horizon=1024).is_true
False
"""

from __future__ import annotations

from bandana.privacy_core.calibrations import capri, kernel, linear_rl, renyi_bandits
from bandana.privacy_core.calibrations.calibration import Calibration, Choice, Comparison, Parameter, Row

CALIBRATIONS: dict[str, Calibration] = {
    calibration.name: calibration
    for calibration in (
        renyi_bandits.ADAR_UCB,
        renyi_bandits.ADAR_GOPE,
        renyi_bandits.ADAR_OFUL,
        capri.CAPRI_JOINT,
        capri.CAPRI_LOCAL,
        kernel.GP_UCB_JOINT,
        kernel.GP_UCB_LOCAL,
        linear_rl.UCRL_VTR_JOINT,
        linear_rl.UCRL_VTR_LOCAL,
        linear_rl.UCRL_VTR_PLUS_JOINT,
        linear_rl.UCRL_VTR_PLUS_LOCAL,
        linear_rl.LSVI_UCB_JOINT,
        linear_rl.UCRL_VTR_JOINT_PURE,
        linear_rl.UCRL_VTR_LOCAL_PURE,
        linear_rl.LSVI_UCB_JOINT_PURE,
    )
}
"""Name -> printed formula."""

__all__ = ["CALIBRATIONS", "Calibration", "Choice", "Comparison", "Parameter", "Row", "find"]


def find(name: str) -> Calibration:
    """The calibration of that name.

    Raises:
      ValueError: there is none; the message lists the names that there are.
    """
    if name not in CALIBRATIONS:
        raise ValueError(f"unknown calibration {name!r}; known are: {', '.join(CALIBRATIONS)}")
    return CALIBRATIONS[name]
