"""What is compared with what, how it is seen that both did the same, and what no program can do without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bandana.privacy_core import GaussianDP
from benchmarks.peers import problems as p

_FAR = 4.0
"""Standard errors between two mean regrets of the same law: more with probability 6e-5."""


class Row(NamedTuple):
    """One library's form of some work.

    Attributes:
      library: and what of it.
      task: its name in `theirs.TASKS`.
      replications: how many of it a run plays.
      check: `same`, every action; `pulls`, those of each arm; `law`, the mean regret; `epsilon`, within `tolerance`;
        `bound`, below the truth; `other`, another rule for the same problem: only shown.
      tolerance: of `epsilon`, how far theirs may lie above ours; of `pulls`, how many may differ in a replication.
    """

    library: str
    task: str
    replications: int
    check: str
    tolerance: float = 0.0


class Work(NamedTuple):
    """One piece of work in ours, and the same in libraries.

    Attributes:
      name: what is done.
      task: in `ours.TASKS`.
      replications: how many of it a run plays.
      unit: of which the time is stated.
      limit: random numbers and bytes that each unit needs, in words.
      uniforms: random numbers of a unit.
      n_bytes: that a unit reads and writes.
      rows: of the libraries.
      exact: task and replications of ours whose values are compared one by one, and theirs.
    """

    name: str
    task: str
    replications: int
    unit: str
    limit: str
    uniforms: float
    n_bytes: float
    rows: tuple[Row, ...]


_K = len(p.MEANS)
_D = p.N_ARMS * p.DIMENSION
WORKS = (
    Work(
        "UCB1", "ours-ucb", 4000, "round", f"1 number, {24 * _K} B", 1, 24 * _K,
        (Row("river UCB", "river-ucb", 20, "law"), Row("SMPyBandits UCB", "smpybandits-ucb", 20, "law"),
         Row("MABWiser UCB1", "mabwiser-ucb", 6, "law")),
    ),
    Work(
        "UCB1, one replication", "ours-ucb", 1, "round", f"1 number, {24 * _K} B", 1, 24 * _K,
        (Row("river UCB", "river-ucb", 1, "law"),),
    ),
    Work(
        "UCB1 on given rewards", "ours-tape", 40, "round", f"{24 * _K + 8} B", 0, 24 * _K + 8,
        (Row("river UCB", "river-tape", 20, "pulls", 5), Row("SMPyBandits UCB", "smpybandits-tape", 20, "pulls", 5),
         Row("MABWiser UCB1", "mabwiser-tape", 6, "pulls", 5)),
    ),
    Work(
        "Thompson sampling", "ours-thompson", 2000, "round",
        f"{_K + 1} numbers, {40 * _K} B", _K + 1, 40 * _K,
        (Row("river, Beta", "river-thompson", 10, "other"), Row("SMPyBandits, Beta", "smpybandits-thompson", 10, "other"),
         Row("MABWiser, Beta", "mabwiser-thompson", 3, "other")),
    ),
    Work(
        "LinUCB, each arm its own", "ours-linear", 40, "user", f"{(2 * _D + p.N_ARMS) * _D * 8} B", 0,
        (2 * _D + p.N_ARMS) * _D * 8,
        (Row("MABWiser LinUCB", "mabwiser-linear", 2, "same"),
         Row("contextualbandits LinUCB", "contextualbandits-linear", 2, "law"),
         Row("river LinUCBDisjoint", "river-linear", 2, "other"),
         Row("vowpalwabbit SquareCB", "vowpalwabbit-linear", 2, "other")),
    ),
    Work(
        "UCB-VI, planned each episode", "ours-tabular", 200, "episode",
        f"{p.LENGTH} numbers, {8 * p.LENGTH * p.N_STATES**2 * p.N_ACTIONS} B", p.LENGTH,
        8 * p.LENGTH * p.N_STATES**2 * p.N_ACTIONS,
        (Row("rlberry-scool UCBVI", "rlberry-tabular", 2, "other"),),
    ),
    Work(
        f"{p.RELEASES} Gaussian releases, {len(p.DELTAS)} δ", "ours-gaussian", 20, "curve",
        "", 0, 0,
        (Row("dp_accounting PLD", "dp-accounting-pld", 1, "epsilon", 1e-3),
         Row("dp_accounting RDP", "dp-accounting-rdp", 20, "epsilon", 0.5),
         Row("opacus PRV", "opacus-prv", 1, "epsilon", 0.03),
         Row("opacus RDP", "opacus-rdp", 20, "epsilon", 0.5)),
    ),
    Work(
        f"{p.MIXED} Laplace, {p.MIXED} Gaussian", "ours-mixed", 2, "curve", "", 0, 0,
        (Row("dp_accounting PLD", "dp-accounting-mixed", 2, "epsilon", 1e-3),),
    ),
    Work(
        f"audit, {p.AUDITED:,} samples a side", "ours-coins", 3, "bound",
        f"{16 * p.AUDITED / 1e6:.1f} MB", 0, 32 * p.AUDITED,
        (Row("jax_privacy, split", "jax-split", 3, "bound"),
         Row("jax_privacy, all thresholds", "jax-bonferroni", 3, "bound")),
    ),
    Work(
        "audit of µ", "ours-mu", 3, "bound", f"{16 * p.AUDITED / 1e6:.1f} MB", 0,
        32 * p.AUDITED, (Row("jax_privacy, GDP", "jax-gdp", 3, "bound"),),
    ),
)  # fmt: skip


def regrets_of(task: str, values: Sequence[Any], seed: int) -> list[float]:
    """The values as final regrets: of actions by their means, of the others as they are."""
    if not task.endswith("-linear"):
        return [float(value) for value in values]
    measured = []
    for replication, actions in enumerate(values):
        means = p.contexts(1000 * seed + replication).means
        measured.append(float((means.max(axis=1) - means[np.arange(len(means)), actions]).sum()))
    return measured


def agreement(row: Row, ours: Sequence[Any], theirs: Sequence[Any]) -> tuple[bool, str]:
    """Whether both sides did the same, and in which words.

    Args:
      row: whose check it is.
      ours: values of all runs; those of the replications that both played where they are compared one by one.
      theirs: likewise.
    """
    if row.check == "same":
        n_equal = sum(one == other for one, other in zip(ours, theirs, strict=True))
        return n_equal == len(theirs), f"{n_equal} of {len(theirs)} equal"
    if row.check == "pulls":
        moved = np.abs(np.asarray(theirs) - np.asarray(ours)).sum(axis=1) / 2
        words = f"{int((moved == 0).sum())} of {len(moved)} equal" + (
            f", else {moved.max():.0f} apart" if moved.any() else ""
        )
        return bool(moved.max() <= row.tolerance), words
    if row.check == "epsilon":
        apart = np.asarray(theirs) - np.asarray(ours)
        is_met = bool(apart.min() > -1e-3 and apart.max() <= row.tolerance)
        return is_met, f"ε {apart.max():+.2g} of {row.tolerance:g}"
    mean, other = float(np.mean(ours)), float(np.mean(theirs))
    if row.check == "bound":
        truth = GaussianDP(1.0).epsilon(p.DELTA)
        return max(mean, other) <= truth, f"{mean:.2f} / {other:.2f}, truth {truth:.2f}"
    error = float(np.hypot(np.std(ours) / len(ours) ** 0.5, np.std(theirs) / len(theirs) ** 0.5))
    words = f"{mean:.3g} / {other:.3g}"
    if row.check == "other":
        return True, f"other: {words}"
    return abs(mean - other) <= _FAR * error, f"{words} ± {_FAR * error:.2g}"
