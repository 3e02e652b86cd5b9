"""What every bound says about scores that stay the same, which `tests/data/pinned_bounds.json` keeps.

    python -m tests.pinned_bounds      # writes the file anew: first say in CHANGELOG.md which bounds changed, and why

Choices that only decide how sharp a bound is are seen by no test of its guarantee. But reviewers read the bound, and from
evidence of an earlier version the same numbers are recomputed.
"""

import json
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from bandana.audits.bounds import (
    coin_flips,
    divergence_bounds,
    error_rates,
    evalues,
    means,
    one_run,
    one_run_methods,
    samples,
    tradeoff_bounds,
)
from bandana.audits.bounds.methods import METHODS, bound
from bandana.audits.bounds.power import share_caught, smallest_factor_caught
from bandana.privacy_core import GaussianDP, PureDP

PLACE = Path(__file__).parent / "data" / "pinned_bounds.json"
PARAMETERS = {
    "epsilon-coins": {"delta": 0.01},
    "epsilon-e-process": {"delta": 0.01},
    "epsilon-threshold": {"delta": 0.01},
    "hockey-stick": {"epsilon": 0.4},
    "renyi": {"alpha": 3.0},
}


def _spread(n, turn):
    """(n,) the middles of n equal parts of (0, 1) in an order that looks like chance, and is the same everywhere."""
    return ((np.arange(n) * turn % n) + 0.5) / n


def _laplace(u, center):
    return center - np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5))


def pairs():
    """Name -> (data, neighbor), rounded so that no last digit decides."""
    n = 1501
    first, second = _spread(n, 389), _spread(n, 677)
    made = {
        "gaussian": (1.2 * ndtri(first) - 0.72, 1.2 * ndtri(second) + 0.72),
        "laplace": tuple(np.clip(2 * _laplace(u, center) - 1, -1, 1) for u, center in ((first, 0.0), (second, 1.0))),
        "hardly different": (0.05 * ndtri(first) - 0.00125, 0.05 * ndtri(second) + 0.00125),
        "two answers": (np.where(first < 0.75, -1.1, 1.1), np.where(second < 0.25, -1.1, 1.1)),
        "rarely betrayed": (
            np.where(first < 0.02, -9.0, 0.4 * ndtri(second)),
            np.where(second > 0.97, 9.0, 0.4 * ndtri(first)),
        ),
    }
    return {name: tuple(np.round(side, 6) for side in sides) for name, sides in made.items()}


def said():
    """Name -> numbers."""
    pins = {}
    for kind, (data, neighbor) in pairs().items():
        for name, method in METHODS.items():
            for learned in ({"is_learned": False}, {"is_learned": True}) if "is_learned" in method.parameters else ({},):
                given = PARAMETERS.get(name, {}) | learned
                pins[f"{name}, {kind}, {given}"] = [bound(name, data, neighbor, level, **given) for level in (0.05, 1e-3)]
        half = data[: len(data) // 3]
        band = tradeoff_bounds.tradeoff_band(half, neighbor, 0.05)
        pins[f"band, unequal sides, {kind}"] = [float(side[len(side) // 3]) for side in band]
        choose, rest = samples.split(half, neighbor, 0.3)
        pins[f"parts, {kind}"] = [len(side) for part in (choose, rest) for side in part]
        gain, loss = np.clip(neighbor, 0, 2), np.clip(-data, 0, 1)
        moments = means.Moments(0.4, 0.9)
        for function in (means.betting_lower, means.contrast_lower):
            pins[f"{function.__name__}, {kind}"] = [function(gain, loss, 2.0, 1.0, moments, 0.05)]
        pins[f"berry_esseen_lower, {kind}"] = [
            means.berry_esseen_lower(gain, loss, 2.0, 1.0, level) for level in (0.05, 0.3)
        ]
        is_in = _spread(len(data), 521) < 0.5
        scores = np.where(is_in, neighbor, data)
        for name, given in (
            ("one-run-mu", {"n_guesses": 500}),
            ("one-run-epsilon", {"n_guesses": 500, "delta": 1e-5}),
            ("one-run-sequential", {"delta": 1e-5, "around": 1.0}),
            ("one-run-sequential-mu", {"around": 1.0}),
        ):
            pins[f"{name}, {kind}"] = [one_run_methods.bound(name, scores, is_in, 0.05, **given)]
        for delta in (None, 0.0, 0.02):
            pins[f"threshold, {kind}, {delta}"] = [error_rates.choose_threshold(half, neighbor, 0.05, delta)]
        for delta in (0.0, 0.02):
            planned = coin_flips.design(np.concatenate([data, neighbor]), delta, 0.05, 3000)
            pins[f"design, {kind}, {delta}"] = [planned.start, planned.reach, planned.predicted, planned.tilt]
        pins[f"unless they are learned, by name, {kind}"] = [
            bound(name, data, neighbor, 0.05, **PARAMETERS.get(name, {}))
            for name, method in METHODS.items() if "is_learned" in method.parameters
        ]  # fmt: skip
        process = evalues.EProcess(evalues.RenyiClaims(3.0, np.arange(1, 60) * 0.05))
        for start, stop in samples.block_cuts(len(data)):
            wealth = process.update(data[start:stop], neighbor[start:stop])
        pins[f"bets on Renyi claims, {kind}"] = [process.lower(0.05), *wealth[[0, 5, 20]].tolist()]
        pins[f"unless they are learned, {kind}"] = [
            divergence_bounds.renyi_lower(data, neighbor, 3.0, 0.05), divergence_bounds.rho_lower(data, neighbor, 0.05),
            coin_flips.epsilon_lower(data, neighbor, 0.01, 0.05), evalues.epsilon_lower(data, neighbor, 0.01, 0.05),
            evalues.mu_lower(data, neighbor, 0.05), evalues.mu_lower(data, neighbor, 0.05, is_learned=True),
        ]  # fmt: skip
    for counts in ((1000, 400, 300), (1000, 1000, 620), (200, 200, 200)):
        pins[f"one run, {counts}"] = [one_run.mu_lower(*counts, 0.05), one_run.epsilon_lower(*counts, 1e-4, 0.05)]
    for claim in (*map(GaussianDP, (0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)), PureDP(1.0), PureDP(4.0)):
        pins[f"guesses, {claim}"] = [one_run_methods.n_guesses_for(n, claim, 0.05) for n in (1, 300, 2000)]
    for name, claimed in (("mu-curve", 1.0), ("epsilon-coins", 1.0), ("rho", 0.5)):
        given = {"delta": 0.0} if name == "epsilon-coins" else {}
        smallest = smallest_factor_caught(name, given, 0.05, claimed, 400, n_trials=20)
        factors = [1.0, smallest / 1.2, smallest, 1.3 * smallest]
        pins[f"power of {name}"] = [smallest, *share_caught(name, given, 0.05, claimed, 400, smallest, factors)]
    return pins


def main():
    """Writes what is said now."""
    PLACE.write_text(json.dumps(said(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
