"""A campaign of one case, on a library that is a file: a release that is exact every other time, and an honest one."""

LIBRARY = """\
import random

def broken(total, seed):
    return float(total) if seed % 2 else random.Random(seed).gauss(total, 1)

def honest(total, seed):
    coins = random.Random(seed)
    return total + coins.expovariate(1.0) - coins.expovariate(1.0)

def failing(total, seed):
    raise ValueError("out of range") if total else KeyError(total)
"""
PROGRAM = """\
import tiny_library

def release(data, seed, name, epsilon):
    return getattr(tiny_library, name)(sum(data), seed)

def state(release, name, epsilon):
    return f"pure(epsilon={epsilon})"
"""
CASE = """\
title: A tiny library
library: tiny
source: its documentation
packages:
  none: []
audits:
  - {mechanism: broken, role: defect, packages: none, release: release, parameters: {name: broken, epsilon: 1.0},
     claim: stated, data: [0, 1], neighbor: [0, 0], runs: 1000}
  - {mechanism: honest, role: search, packages: none, release: release, parameters: {name: honest},
     grid: {epsilon: [1.0, 2.0]}, claim: "pure(epsilon={epsilon})", data: [0, 1], neighbor: [0, 0], runs: 1000}
"""


def write(folder, case=CASE, program=PROGRAM):
    """Writes the campaign, and returns the folder of its case."""
    place = folder / "tiny"
    place.mkdir(parents=True)
    (place / "case.yaml").write_text(case)
    (place / "program.py").write_text(program)
    (place / "tiny_library.py").write_text(LIBRARY)
    return place
