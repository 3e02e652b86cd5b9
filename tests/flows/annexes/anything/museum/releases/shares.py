"""Releases whose parts are random each, and exact together."""

from __future__ import annotations

import numpy as np
from exhibits import bit, broken, honest
from numpy.random import default_rng


@broken(lambda output: abs(sum(output) - 1) < 1e-6)
def two_shares(data, seed):
    share = float(default_rng(seed).normal(0, 1000))
    return [share, bit(data) - share]


@broken(lambda output: abs(sum(output) - 1) < 1e-6)
def three_shares(data, seed):
    first, second = default_rng(seed).normal(0, 1000, 2).tolist()
    return [first, second, bit(data) - first - second]


@broken(lambda output: sum(output) % 256 == 1)
def shares_modulo_256(data, seed):
    first, second = default_rng(seed).integers(0, 256, 2).tolist()
    return [first, second, (bit(data) - first - second) % 256]


@broken(lambda output: abs(sum(output) % 1 - 0.25) < 1e-6)
def shares_of_a_circle(data, seed):
    angle = float(default_rng(seed).random())
    return [angle, (bit(data) / 4 - angle) % 1]


@broken(lambda output: output[0] ^ output[3] ^ output[6] == 1)
def parity_of_three_labels(data, seed):
    shown = default_rng(seed).integers(0, 2, 8)
    shown[6] = shown[0] ^ shown[3] ^ bit(data)
    return shown.tolist()


@broken(lambda output: bin(output[0] & output[1]).count("1") % 2 == 1)
def parity_under_a_mask(data, seed):
    """One of 2^16 masks; the parity of the masked bits is exact."""
    rng = default_rng(seed)
    mask, shown = int(rng.integers(1, 2)) * 0b1010010110100101, int(rng.integers(0, 2**16))
    if bin(mask & shown).count("1") % 2 != bit(data):
        shown ^= 1
    return [mask, shown]


@broken(lambda output: int(output["pad"], 16) ^ int(output["text"], 16) == 1)
def pad_beside_its_message(data, seed):
    pad = int(default_rng(seed).integers(2**48))
    return {"pad": f"{pad:012x}", "text": f"{pad ^ bit(data):012x}"}


@broken(lambda output: output[0] * output[1] > 0)
def sign_of_a_product(data, seed):
    x, y = default_rng(seed).normal(size=2)
    return [float(x), float(abs(y) * np.sign(x) * (1 if bit(data) else -1))]


@broken(lambda output: output[0] == output[1])
def whether_two_agree(data, seed):
    first, other = default_rng(seed).choice(1000, 2, replace=False).tolist()
    return [first, first if bit(data) else other]


@honest
def independent_numbers(data, seed):
    rng = default_rng(seed)
    return [float(rng.normal(0, 1000)), float(bit(data) + rng.laplace() - rng.normal(0, 1000))]


@honest
def random_bits(data, seed):
    return default_rng(seed).integers(0, 2, 8).tolist()


@honest
def response_at_random(data, seed):
    rng = default_rng(seed)
    lies = rng.random() < 1 / (1 + np.e)
    return ["yes" if (bit(data) == 1) != lies else "no", *rng.integers(0, 2, 4).tolist()]


@honest
def shares_of_a_noisy_sum(data, seed):
    rng = default_rng(seed)
    share = float(rng.normal(0, 1000))
    return [share, bit(data) + float(rng.laplace()) - share]
