"""Releases with too little noise, or with noise that shows more than its scale says; and honest ones with a name."""

from __future__ import annotations

import numpy as np
from exhibits import bit, broken, broken_as, honest, honest_as, noisy
from numpy.random import default_rng


@broken_as("pure(epsilon=1)", loss=2.0)
def two_answers_at_the_price_of_one(data, seed):
    return (bit(data) + default_rng(seed).laplace(size=2)).tolist()


@broken_as("pure(epsilon=1)", loss=1.3)
def a_scale_too_small(data, seed):
    return bit(data) + float(default_rng(seed).laplace(0, 1 / 1.3))


@broken(lambda output: abs(output) > 60, rarest=0.01)
def wider_noise_on_one_side(data, seed):
    return float(default_rng(seed).laplace(0, 20 if bit(data) else 1))


@broken(lambda output: output > 1.5, rarest=0.2)
def noise_with_an_end(data, seed):
    return bit(data) + float(np.clip(default_rng(seed).laplace(), -1.5, 1.5))


@broken_as("pure(epsilon=1)", loss=2.0)
def categories_at_twice_the_price(data, seed):
    """The exponential mechanism for epsilon 2 and scores that change by 1, two of them in opposite ways."""
    odds = np.exp(2 * np.array([bit(data), 1 - bit(data)]))
    return "ab"[int(default_rng(seed).random() < odds[1] / odds.sum())]


@broken_as("pure(epsilon=1)", loss=1.25)
def response_too_truthful(data, seed):
    return bit(data) ^ int(default_rng(seed).random() > 1 / (1 + np.exp(-1.25)))


@broken_as("gdp(mu=1)", loss=1.3)
def deviation_too_small(data, seed):
    return bit(data) + float(default_rng(seed).normal(0, 1 / 1.3))


@broken(lambda output: output == 1.0, rarest=0.004, claim="approx(epsilon=1, delta=0.0001)")
def exact_more_often_than_delta(data, seed):
    rng = default_rng(seed)
    return float(bit(data)) if rng.random() < 0.004 else noisy(data, rng)


@broken(lambda output: output == 1.0, rarest=0.02, claim="zcdp(rho=0.5)")
def exact_now_and_then(data, seed):
    rng = default_rng(seed)
    return float(bit(data)) if rng.random() < 0.02 else bit(data) + float(rng.normal())


@broken(lambda output: output > 0.5)
def one_noise_for_all_time(data, seed):
    return bit(data) + 0.1 * float(default_rng(7).laplace())


@broken(lambda output: abs(output[0] / output[1] - 2) < 1e-9)
def exact_quotient(data, seed):
    scale = float(np.exp(default_rng(seed).normal(0, 3)))
    return [(1 + bit(data)) * scale, scale]


@broken(lambda output: output[0]["name"] == "b")
def order_of_rows(data, seed):
    rng = default_rng(seed)
    rows = [{"name": "a", "value": float(rng.laplace())}, {"name": "b", "value": noisy(data, rng)}]
    return rows[:: -1 if bit(data) else 1]


@honest_as("gdp(mu=1)")
def gaussian(data, seed):
    return bit(data) + float(default_rng(seed).normal())


@honest_as("zcdp(rho=0.5)")
def gaussian_twice_divided(data, seed):
    return (bit(data) + default_rng(seed).normal(0, np.sqrt(2), 2)).tolist()


@honest_as("approx(epsilon=1, delta=0.001)")
def exact_as_often_as_delta(data, seed):
    rng = default_rng(seed)
    return float(bit(data)) if rng.random() < 0.001 else noisy(data, rng)


@honest
def exponential_mechanism(data, seed):
    odds = np.exp(np.array([bit(data), 1 - bit(data), 0.5]) / 2)
    return "abc"[int(default_rng(seed).choice(3, p=odds / odds.sum()))]


@honest
def randomized_response(data, seed):
    return bool(bit(data) ^ int(default_rng(seed).random() > 1 / (1 + np.exp(-1))))


@honest
def clipped_after_noise(data, seed):
    return max(0.0, noisy(data, default_rng(seed)))
