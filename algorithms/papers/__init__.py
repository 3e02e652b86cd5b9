"""The papers' printed formulas for noise in one table, by name and reading, beside the noise that their claims need.

>>> from bandana.algorithms.papers import find
>>> found = find("gp-ucb-joint").compare(epsilon=1.0, delta=1e-5, horizon=1024)
>>> round(found.rows[0].printed), round(found.rows[0].tight, 1), round(found.rows[0].factor, 1)
(367, 23.6, 15.5)
>>> found.is_true, round(found.true_epsilon, 2)
(True, 0.05)
>>> find("gp-ucb-joint").compare("lemma-12", epsilon=0.01, delta=1e-5, horizon=1024).is_true
False
"""

from __future__ import annotations

from bandana.algorithms.papers import azize_basu, dubey, luyo_calibrations, pavlovic
from bandana.algorithms.papers.printed import Calibration, Choice, Comparison, Parameter, Row

CALIBRATIONS: dict[str, Calibration] = {
    calibration.name: calibration
    for calibration in (
        azize_basu.ADAR_UCB,
        azize_basu.ADAR_GOPE,
        azize_basu.ADAR_OFUL,
        pavlovic.CAPRI_JOINT,
        pavlovic.CAPRI_LOCAL,
        dubey.GP_UCB_JOINT,
        dubey.GP_UCB_LOCAL,
        luyo_calibrations.UCRL_VTR_JOINT,
        luyo_calibrations.UCRL_VTR_LOCAL,
        luyo_calibrations.UCRL_VTR_PLUS_JOINT,
        luyo_calibrations.UCRL_VTR_PLUS_LOCAL,
        luyo_calibrations.LSVI_UCB_JOINT,
        luyo_calibrations.UCRL_VTR_JOINT_PURE,
        luyo_calibrations.UCRL_VTR_LOCAL_PURE,
        luyo_calibrations.LSVI_UCB_JOINT_PURE,
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
