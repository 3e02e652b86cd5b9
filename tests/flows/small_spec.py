"""Small, complete specs: on arms, on arms with features, and on users who bring their actions; private people too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SMALL = """\
name: small
title: A small experiment
seed: 7
environment:
  kind: bernoulli
  means: [0.8, 0.4]
horizon: 500
replications: 6
block_size: 4
algorithms:
  - algorithm: ucb
  - algorithm: adar-ucb
    calibrations: [tight]
    privacy:
      alpha: 2
      epsilon: [1]
audit:
  rounds: 16
  replays: 2000
  examples: 10
"""

SMALL_LINEAR = """\
name: lines
seed: 7
environment:
  kind: linear
  features: [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]
  theta: [0.5, 0.5]
horizon: 500
replications: 4
algorithms:
  - algorithm: gope
    failure: 0.1
  - algorithm: adar-gope
    calibrations: [tight]
    privacy:
      alpha: 2
      epsilon: [1]
  - algorithm: adar-gope
    privacy: {epsilon: 1}
audit:
  rounds: 32
  replays: 2000
  examples: 10
"""

SMALL_SPHERE = """\
name: spheres
seed: 7
environment:
  - kind: sphere
    actions: 4
    dimension: 3
    theta: [0.5, 0.5, 0.1]
horizon: 500
replications: 4
algorithms:
  - algorithm: linucb
    ridge: 1
  - algorithm: linucb
    model: joint
    calibrations: [tight]
    privacy:
      delta: 1.0e-5
      epsilon: [4.377]
audit:
  rounds: 12
  replays: 3000
  examples: 10
"""


def private_people(folder: Path) -> dict[str, Any]:
    """A spec on a table of private people, which is written into the folder."""
    (folder / "t.csv").write_text("letter,call\n" + "".join(f"{i % 2},{(i // 2) % 2}\n" for i in range(40)))
    return {
        "name": "mine", "seed": 1, "environment": {"kind": "table", "path": str(folder / "t.csv"), "low": 0, "high": 1},
        "horizon": 40, "replications": 2, "algorithms": [{"algorithm": "ucb"}], "audit": {"rounds": 8},
    }  # fmt: skip
