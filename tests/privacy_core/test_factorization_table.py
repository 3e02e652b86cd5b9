"""The table of buffers: whole, near the optimum between its rows too, and the same numbers on every processor."""

import numpy as np
import pytest

from bandana.privacy_core.accounting import factorization
from bandana.privacy_core.accounting.factorization import (
    DIGEST,
    MOST_BUFFERS,
    TABLE,
    BufferedFactorization,
    digest,
    optimal_buffers,
)
from benchmarks.factorizations import LARGEST_POWER, excess, log_loss, loss_of


@pytest.fixture
def rows():
    """[(n_steps, gaps, weights)] as the file has them."""
    lines = [line.split(",") for line in TABLE.read_text().splitlines()[1:]]
    return [(int(n), int(b), *(tuple(map(float, part.split())) for part in parts)) for n, b, *parts in lines]


def test_the_table_is_whole(rows):
    sizes = [(n_steps, n_buffers) for n_steps, n_buffers, _, _ in rows]
    assert sizes == [(2**power, b) for b in range(1, MOST_BUFFERS + 1) for power in range(1, LARGEST_POWER + 1)]
    for _, n_buffers, gaps, weights in rows:
        assert len(gaps) == len(weights) == n_buffers
        assert all(1 > gap > 0 for gap in gaps)
        assert (np.diff(gaps) <= 0).all()
        assert min(weights) > 0


def test_its_rows_are_what_is_used(rows):
    for n_steps, n_buffers, gaps, weights in rows:
        assert optimal_buffers(n_steps, n_buffers) == (tuple(1 - gap for gap in gaps), weights)


def test_the_same_numbers_everywhere():
    """To the last bit: written down once, and compared on every processor that runs this."""
    assert optimal_buffers(100_000, 4) == FOUR_BUFFERS
    assert optimal_buffers(50, 2) == TWO_BUFFERS
    assert optimal_buffers(1, 3) == optimal_buffers(2, 3)
    assert optimal_buffers(2**41 + 1, 3) == optimal_buffers(2**40, 3)


FOUR_BUFFERS = ((0.831851, 0.99157051, 0.999612338, 0.9999867179), (0.331772, 0.0885818, 0.0192381, 0.00523589))
TWO_BUFFERS = ((0.698345, 0.9808869), (0.297657, 0.185769))


@pytest.mark.parametrize("n_buffers", range(1, MOST_BUFFERS + 1))
@pytest.mark.parametrize("n_steps", [23, 45, 1448, 92_682, 11_863_283])
def test_between_two_rows_they_are_nearly_the_best(n_steps, n_buffers):
    """Half-way: a slope g of the loss, whose curvature is about 0.3, leaves g^2 / 0.6, here 3e-5; no buffer is wasted."""
    theta, omega = (np.array(part) for part in optimal_buffers(n_steps, n_buffers))
    x = np.log(np.concatenate([-np.log(theta), omega]))
    step = 1e-4 * np.eye(len(x))
    slope = (log_loss(x + step, n_steps) - log_loss(x - step, n_steps)) / 2e-4
    assert np.abs(slope).max() < 4e-3
    if n_buffers > 1:
        assert loss_of(n_steps, n_buffers) < loss_of(n_steps, n_buffers - 1) + 1e-4


@pytest.mark.parametrize(("n_steps", "n_buffers"), [(45, 1), (1448, 4), (92_682, 2)])
def test_a_search_for_just_this_length_gains_less_than_one_in_ten_thousand(n_steps, n_buffers):
    assert 0 <= excess(n_steps, n_buffers) < 1e-4


@pytest.mark.parametrize("n_buffers", [1, 3, 5])
def test_the_closed_form_is_that_of_the_matrices(n_buffers):
    """At 40 steps: the largest column norm of C times the norm of the last row of A C^-1, no column divided."""
    n_steps = 40
    theta, omega = (np.array(part) for part in optimal_buffers(n_steps, n_buffers))
    coefficients = np.concatenate([[1.0], theta ** np.arange(n_steps - 1)[:, None] @ omega])
    encoder = np.array([[coefficients[i - j] if i >= j else 0.0 for j in range(n_steps)] for i in range(n_steps)])
    decoder = np.tril(np.ones((n_steps, n_steps))) @ np.linalg.inv(encoder)
    known = np.linalg.norm(encoder[:, 0]) ** 2 * np.linalg.norm(decoder[-1]) ** 2
    assert loss_of(n_steps, n_buffers) == pytest.approx(np.log(known), abs=1e-10)
    assert BufferedFactorization(n_steps, tuple(theta), tuple(omega)).column_norms[0] == pytest.approx(
        np.linalg.norm(coefficients), rel=1e-12
    )


def test_a_changed_table_is_refused_and_its_digest_stands_in_the_code(monkeypatch, tmp_path):
    """Results are stored under a key of the code: a table that could change without it would leave old ones in place."""
    assert digest(TABLE.read_text()) == DIGEST
    other = tmp_path / "factorization.csv"
    other.write_text(TABLE.read_text().replace("0.5\n", "0.6\n"))
    monkeypatch.setattr(factorization, "TABLE", other)
    factorization._table.cache_clear()
    try:
        with pytest.raises(RuntimeError, match=r"factorization.csv was changed.*reinstall the package"):
            factorization._table()
    finally:
        factorization._table.cache_clear()
