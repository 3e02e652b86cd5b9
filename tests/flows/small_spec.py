"""A small, complete spec."""

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
