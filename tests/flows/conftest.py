"""A small, complete spec, and a factory that changes one thing in it."""

import pytest
import yaml

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
  - name: ucb
  - name: adar-ucb
    calibrations: [tight]
    privacy:
      alpha: 2
      epsilon: [1]
audit:
  rounds: 16
  replays: 8000
  examples: 40
"""


@pytest.fixture
def small_text():
    return SMALL


@pytest.fixture
def write_spec(tmp_path):
    """Writes the small spec with some fields replaced (dotted names), and returns its path."""

    def write(**changes):
        tree = yaml.safe_load(SMALL)
        for dotted, value in changes.items():
            *path, last = dotted.split("__")
            node = tree
            for part in path:
                node = node[int(part) if part.isdigit() else part]
            if value is None:
                del node[last]
            else:
                node[last] = value
        target = tmp_path / "spec.yaml"
        target.write_text(yaml.safe_dump(tree, sort_keys=False))
        return target

    return write
