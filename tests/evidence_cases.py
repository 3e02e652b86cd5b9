"""Evidence of an honest and a broken bandit, and what changes it: shared by tests that read it and those that verify it."""

import json

import numpy as np
from own_cases import UNIT, example

from bandana.algorithms.environments.tables import random_table
from bandana.audits.claims import parse
from bandana.audits.evidence import seal
from bandana.audits.outcome import Effort, Setup
from bandana.audits.own.white_box import examine
from bandana.audits.trial import Trial

EFFORT = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=20, seed=1)
TABLE = random_table(16, 2, UNIT, 0)
SUBJECT = {"kind": "algorithm", "name": "bandit", "source sha256": "0"}


def about(*probes):
    return Setup("coins", probes, 1, "seeded", "0" * 64)


def outcome_of(name, **more):
    claim = parse("gdp(mu=1, relation=reward)")
    return examine(Trial(example(name).bandit, claim, TABLE, (0, 2)), EFFORT, SUBJECT, about(0, 2), **more)


def forge(path, change):
    """Changes description and arrays, and computes the hash anew: a careful forger."""
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    description = json.loads(bytes(arrays.pop("description")))
    change(description, arrays)
    path.write_bytes(seal(description, arrays))


def change_field(*keys, value):
    def change(description, arrays):
        node = description
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = value(node[keys[-1]]) if callable(value) else value

    return change


def change_scores(name, change_of):
    def change(description, arrays):
        arrays[name] = change_of(arrays[name])

    return change
