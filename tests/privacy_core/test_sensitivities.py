"""What one replaced record can do at worst to sums, by brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bandana.privacy_core import Tree
from bandana.privacy_core.noise import sensitivities
from bandana.privacy_core.noise.matrices import GOE
from bandana.privacy_core.noise.sensitivities import INDEPENDENT, pair_mu_squared


def agrees(found, text):
    """Whether a number rounds to the text, in as many significant digits as the text has."""
    mantissa = text.lower().partition("e")[0].replace(".", "").lstrip("0")
    digits = len(mantissa)
    return f"{found:.{digits - 1}e}" == f"{float(text):.{digits - 1}e}"


def entry_weights(law, d, s):
    """Precision of each entry of the upper triangle, or of the whole square, by the law's own definition."""
    upper = np.triu(np.ones((d, d)))
    off = np.triu(np.ones((d, d)), 1)
    return {
        "goe": np.eye(d) / (2 * s**2) + off / s**2,
        "equal": upper / s**2,
        "half": np.eye(d) / s**2 + off / (s**2 / 2),
        "square": np.ones((d, d)) / s**2,
    }[law]


@pytest.mark.parametrize(
    ("law", "kind"), [("goe", GOE), ("equal", INDEPENDENT), ("half", INDEPENDENT), ("square", INDEPENDENT)]
)
@pytest.mark.parametrize(("norm", "value", "s", "w"), [(1, 1, 1, 1), (1, 0.4, 1, 1), (1, 2.5, 1, 1), (1.7, 0.8, 0.6, 1.9)])
def test_the_worst_pair(law, kind, norm, value, s, w):
    rng = np.random.default_rng(5)
    weights = entry_weights(law, 2, s)

    def cost(x, other, y, z):
        change = x[:, :, None] * x[:, None, :] - other[:, :, None] * other[:, None, :]
        shift = y[:, None] * x - z[:, None] * other
        return (weights * change**2).sum(axis=(1, 2)) + (shift**2).sum(axis=1) / w**2

    bound = pair_mu_squared(norm, value, s, w, kind)
    turn, apart = (a.ravel() for a in np.meshgrid(np.linspace(0, math.pi, 181), np.linspace(0, math.pi, 721)))
    x = norm * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    other = norm * np.stack([np.cos(turn + apart), np.sin(turn + apart)], axis=1)
    y = np.full(len(x), value)
    attained = cost(x, other, y, y).max()
    assert attained == pytest.approx(bound, rel=2e-4)
    assert attained <= bound * (1 + 1e-12)
    inside = rng.uniform(-norm, norm, size=(2, 100_000, 2))
    inside /= np.maximum(1, np.linalg.norm(inside, axis=2, keepdims=True) / norm)
    rewards = rng.uniform(-value, value, size=(2, 100_000))
    assert cost(*inside, *rewards).max() <= bound * (1 + 1e-12)


@pytest.mark.parametrize("value", [0.3, 0.9, 1.0])
def test_the_joint_cost_in_closed_form(value):
    assert pair_mu_squared(1, value, 1, 1, GOE) == pytest.approx((1 + value**2) ** 2)
    assert pair_mu_squared(1, 3 * value + 1, 1, 1, GOE) == pytest.approx(4 * (3 * value + 1) ** 2)
    assert pair_mu_squared(1, value, 1, 1, INDEPENDENT) == pytest.approx(2 + 2 * value**2 + value**4 / 2)
    assert pair_mu_squared(3, 3, 2, 2, GOE) == pytest.approx(4 * 3**4 / 4)
    assert pair_mu_squared(3, 3, 2, 2, INDEPENDENT) == pytest.approx(4.5 * 3**4 / 4)


@pytest.mark.parametrize("value", [0.5, 1.0, 1.9, 2.0, 2.3, 2.4, 3.0, 5.0, 10.0])
def test_the_square_entry(value):
    c, y = np.meshgrid(np.linspace(-1, 1, 2001), np.linspace(0, value, 4001))
    cost = ((1 + value**2) ** 2 + (1 + y**2) ** 2) / 2 - (c + value * y) ** 2
    found = sensitivities.square_entry_mu_squared(value)
    assert found == pytest.approx(cost.max(), rel=1e-6)
    assert found >= cost.max() * (1 - 1e-9)
    assert found >= pair_mu_squared(1, value, 1, 1, GOE) * (1 - 1e-12)


def test_the_cost_of_the_square_entry():
    for value, times in ((1.0, "1.00"), (2.3, "1.00"), (3.0, "1.19"), (5.0, "1.84"), (10.0, "3.57")):
        cost = math.sqrt(sensitivities.square_entry_mu_squared(value) / pair_mu_squared(1, value, 1, 1, GOE))
        assert f"{cost:.2f}" == times


@pytest.mark.parametrize(("dimension", "known"), [(2, "2.236"), (3, "2.872"), (4, "3.606")])
def test_the_l1_sensitivity_of_a_matrix_by_enumeration(dimension, known):
    """The sup over D = e e^T - f f^T of a weighted L1 norm is the largest spread of eigenvalues over all sign patterns."""
    places = [(i, j) for i in range(dimension) for j in range(i, dimension)]
    best = 0.0
    for signs in itertools.product((1.0, -1.0), repeat=len(places)):
        pattern = np.zeros((dimension, dimension))
        for (i, j), sign in zip(places, signs, strict=True):
            pattern[i, j] = pattern[j, i] = sign if i == j else sign / 2
        eigenvalues = np.linalg.eigvalsh(pattern)
        best = max(best, float(eigenvalues[-1] - eigenvalues[0]))
    assert agrees(best, known)
    assert sensitivities.pair_l1_witness(dimension, 1.0, 1e-9) == pytest.approx(best, rel=1e-5)
    assert best <= sensitivities.matrix_l1_bound(dimension) * (1 + 1e-12) <= 1.05 * best


def test_the_l1_sensitivity_of_a_matrix_grows_with_its_dimension():
    assert agrees(sensitivities.pair_l1_witness(6, 1.0, 1e-9), "5.0")
    assert agrees(sensitivities.pair_l1_witness(8, 1.0, 1e-9), "6.4")
    for d in (2, 10, 100):
        expected = math.sqrt((d**2 + 2 * d + 2) / 2)
        assert sensitivities.pair_l1_witness(d, 1.0, 1e-9) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dimension", [2, 3, 5, 8])
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (1.0, 0.2), (0.1, 1.0)])
def test_the_l1_sensitivity_of_a_pair(dimension, a, b):
    """The records that the witness describes attain it; nothing that a search finds passes the bound."""

    def change(x, other, y=1.0, z=1.0):
        matrix = np.abs(np.triu(np.outer(x, x) - np.outer(other, other))).sum()
        return a * matrix + b * np.abs(y * x - z * other).sum()

    witness, bound = sensitivities.pair_l1_witness(dimension, a, b), sensitivities.pair_l1_bound(dimension, a, b)
    k, best = dimension // 2, 0.0
    for angle, theta in itertools.product(np.linspace(0.3, 1.3, 41), np.linspace(0, math.pi / 4, 41)):
        p = np.repeat([math.cos(angle) / math.sqrt(k), math.sin(angle) / math.sqrt(dimension - k)], [k, dimension - k])
        q = np.repeat([math.sin(angle) / math.sqrt(k), -math.cos(angle) / math.sqrt(dimension - k)], [k, dimension - k])
        best = max(best, change(math.cos(theta) * p + math.sin(theta) * q, -math.cos(theta) * p + math.sin(theta) * q))
    assert best == pytest.approx(witness, rel=3e-3)
    assert best <= witness * (1 + 1e-6)
    rng = np.random.default_rng(dimension)
    for _ in range(300):
        x, other = rng.normal(size=(2, dimension))
        x, other = x / max(1, np.linalg.norm(x)), other / max(1, np.linalg.norm(other))
        assert change(x, other, *rng.uniform(-1, 1, size=2)) <= bound * (1 + 1e-12)
    assert witness <= bound <= 1.08 * witness


def test_tree_counts():
    for last in range(1, 200):
        touched = [0] * last
        seen = set()
        for prefix in range(1, last + 1):
            start, nodes = 0, []
            for power in reversed(range(prefix.bit_length())):
                if prefix >> power & 1:
                    nodes.append((start, start + 2**power))
                    start += 2**power
            seen.update(nodes)
        for low, high in seen:
            for record in range(low, high):
                touched[record] += 1
        assert max(touched) == touched[0] == Tree(last).n_nodes
    assert [Tree(n).n_nodes for n in (1023, 1024, 99_999)] == [10, 11, 17]
