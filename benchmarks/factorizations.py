r"""Finds the buffers of buffered linear Toeplitz matrices: the table of `bandana.privacy_core.accounting.factorization`.

    python -m benchmarks.factorizations           compares the table with a fresh search and prints the largest loss
    python -m benchmarks.factorizations --write   writes the table (about ten minutes of processor time)

An optimizer must not run where noise is drawn: where it stops depends on the last bits of its arithmetic, which differ
between processors, and so would the noise. So it runs here, once, to far more digits than the table keeps.

What is minimized is the logarithm of (largest column norm)^2 x (largest error)^2 before the columns are normalized, where
both have a closed form. With gaps p_i = 1 - theta_i and weights omega_i:

  column norm^2  1 + sum_ij omega_i omega_j (1 - (theta_i theta_j)^(n-1)) / (1 - theta_i theta_j).
  error^2        sum_{k < n} b_k^2, b_k = 1/c(1) + sum_j g_j/m_j (1 - m_j)^k, c(1) = 1 + sum_i omega_i/p_i. The m_j, one
                 between each two gaps and one beyond the last, solve sum_i omega_i/(m - p_i) = 1, and
                 g_j = 1 / sum_i omega_i/(m_j - p_i)^2.

All of it is computed from the gaps and never from theta, which may be within 1e-12 of 1.

Source: Dvijotham, McMahan, Pillutla, Steinke, Thakurta (2024), "Efficient and near-optimal noise generation for streaming
differential privacy".
"""

from __future__ import annotations

import argparse
import math
from functools import partial

import numpy as np
from scipy.optimize import minimize

from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core.accounting.factorization import MOST_BUFFERS, TABLE, digest, optimal_buffers

LARGEST_POWER = 40
"""The grid is n = 2, 4, ... 2^40."""
_MIDDLE = 5
"""From 2^5 steps on the search goes upwards, below downwards: short streams have many best solutions, long ones have one."""
_STEP = 3e-4
_DIGITS = 6
_HEAD = "n_steps,n_buffers,gaps,weights"


def _geometric(rest: FloatArray, n: int) -> FloatArray:
    """1 + q + ... + q^(n-1) at q = 1 - rest, rest in [0, 2)."""
    q = 1 - rest
    with np.errstate(all="ignore"):
        closed = np.where(q > 0, -np.expm1(n * np.log1p(-np.minimum(rest, 1.0))), 1 - np.power(q, n)) / rest
    return np.where(rest < 1e-290, float(n), closed)


def log_loss(x: FloatArray, n_steps: int) -> FloatArray:
    """What is minimized.

    Args:
      x: (n_points, 2 n_buffers) logarithms of the rates -log(theta), then of the weights.
      n_steps: at least 2.

    Returns:
      (n_points,); 50 where the noise of some buffer grows from step to step.
    """
    n = x.shape[1] // 2
    rates = np.exp(np.clip(x[:, :n], -45, 3))
    order = np.argsort(rates, axis=1)
    rates = np.take_along_axis(rates, order, axis=1)
    omega = np.take_along_axis(np.exp(np.clip(x[:, n:], -60, 4)), order, axis=1)
    gaps = -np.expm1(-rates)
    pairs = rates[:, :, None] + rates[:, None, :]
    shares = np.expm1(-(n_steps - 1) * pairs) / np.expm1(-pairs)
    column = 1 + np.einsum("mi,mj,mij->m", omega, omega, shares)
    above, distance = _roots(gaps, omega)
    weights = 1 / (omega[:, None, :] / distance**2).sum(axis=2)
    roots = gaps + above
    shares = np.concatenate([1 / (1 + (omega / gaps).sum(axis=1, keepdims=True)), weights / roots], axis=1)
    rest = np.concatenate([np.zeros((len(x), 1)), roots], axis=1)
    rest = rest[:, :, None] + rest[:, None, :] - rest[:, :, None] * rest[:, None, :]
    error = np.einsum("mi,mj,mij->m", shares, shares, _geometric(rest, n_steps))
    with np.errstate(all="ignore"):
        return np.where((roots >= 2).any(axis=1), 50.0, np.log(column * error))


def _roots(gaps: FloatArray, omega: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n_points, n) m_j - p_j, and (n_points, n, n) m_j - p_i: bisection on the logarithm, so that each keeps its digits."""
    n = gaps.shape[1]
    apart = gaps[:, None, :] - gaps[:, :, None]
    room = np.concatenate([np.diff(gaps, axis=1), omega.sum(axis=1, keepdims=True)], axis=1)
    low, high, itself = np.full_like(room, -80.0), np.zeros_like(room), np.eye(n, dtype=bool)
    for _ in range(70):
        middle = (low + high) / 2
        above = room * np.exp(middle)
        distance = np.where(itself, above[:, :, None], above[:, :, None] - apart)
        with np.errstate(all="ignore"):
            is_low = (omega[:, None, :] / distance).sum(axis=2) > 1
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return above, distance


def _with_gradient(n_steps: int, x: FloatArray) -> tuple[float, FloatArray]:
    """The loss and its gradient: differences of fourth order, good to about 1e-11."""
    step = _STEP * np.eye(len(x))
    loss = log_loss(np.concatenate([x[None], x + step, x - step, x + 2 * step, x - 2 * step]), n_steps)
    one, back, two, back_two = loss[1:].reshape(4, -1)
    return float(loss[0]), (8 * (one - back) - (two - back_two)) / (12 * _STEP)


def exponentials(n_steps: int, n_buffers: int) -> FloatArray:
    """A sum of exponentials close to the square root, whose coefficients 1/sqrt(pi k) are an integral of e^(-k s) over s."""
    ratio = max(n_steps, 4) ** (1 / n_buffers)
    rates = ratio ** (-np.arange(n_buffers) - 0.5)
    omega = np.sqrt(rates) * math.log(ratio) / math.pi * np.exp(-rates)
    return np.concatenate([np.log(rates), np.log(omega)])


def search(n_steps: int, start: FloatArray) -> tuple[FloatArray, float]:
    """(x, loss) of the minimum near `start`, (2 n_buffers,); quasi-Newton steps until they gain less than 1e-12."""
    best, least = start, float(log_loss(start[None], n_steps)[0])
    for _ in range(8):
        options = {"gtol": 1e-10, "maxiter": 3000}
        minimum = minimize(partial(_with_gradient, n_steps), best, jac=True, method="BFGS", options=options)  # type: ignore[call-overload]
        gain = least - minimum.fun
        best, least = min(((best, least), (minimum.x, float(minimum.fun))), key=lambda one: one[1])
        if gain < 1e-12:
            break
    order = np.argsort(-best[: len(best) // 2])
    return best.reshape(2, -1)[:, order].ravel(), least


def solve(n_buffers: int) -> dict[int, tuple[FloatArray, float]]:
    """{power: (x, loss)} over the whole grid, each search begun at its neighbor's solution and, above, at exponentials."""
    found = {_MIDDLE: search(2**_MIDDLE, exponentials(2**_MIDDLE, n_buffers))}
    for power in range(_MIDDLE - 1, 0, -1):
        found[power] = search(2**power, found[power + 1][0])
    for power in range(_MIDDLE + 1, LARGEST_POWER + 1):
        starts = (found[power - 1][0], exponentials(2**power, n_buffers))
        found[power] = min((search(2**power, start) for start in starts), key=lambda one: one[1])
    return found


def loss_of(n_steps: int, n_buffers: int) -> float:
    """The loss of the table's buffers."""
    theta, omega = (np.array(part) for part in optimal_buffers(n_steps, n_buffers))
    return float(log_loss(np.concatenate([np.log(-np.log1p(-(1 - theta))), np.log(omega)])[None], n_steps)[0])


def excess(n_steps: int, n_buffers: int) -> float:
    """By which factor, less 1, the table's loss exceeds that of a search for just this length."""
    theta, omega = (np.array(part) for part in optimal_buffers(n_steps, n_buffers))
    start = np.concatenate([np.log(-np.log1p(-(1 - theta))), np.log(omega)])
    best = min(search(n_steps, begun)[1] for begun in (start, exponentials(n_steps, n_buffers)))
    return math.expm1(loss_of(n_steps, n_buffers) - best)


def _row(power: int, n_buffers: int, x: FloatArray) -> str:
    gaps, omega = -np.expm1(-np.exp(x[:n_buffers])), np.exp(x[n_buffers:])
    parts = (" ".join(f"{value:.{_DIGITS}g}" for value in part) for part in (gaps, omega))
    return ",".join((str(2**power), str(n_buffers), *parts))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.factorizations", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="replace the table by a fresh search")
    if parser.parse_args().write:
        rows = [_HEAD]
        for n_buffers in range(1, MOST_BUFFERS + 1):
            rows += [_row(power, n_buffers, x) for power, (x, _) in sorted(solve(n_buffers).items())]
            print(n_buffers, "buffers done", flush=True)
        text = "\n".join(rows) + "\n"
        TABLE.write_text(text)
        print(f"{len(rows) - 1} rows; bandana.privacy_core.accounting.factorization.DIGEST must be {digest(text)}")
        return
    grid = [round(2 ** (power / 2)) for power in range(2, 57, 3)]
    for n_buffers in range(1, MOST_BUFFERS + 1):
        worst = max((excess(n_steps, n_buffers), n_steps) for n_steps in grid)
        print(f"{n_buffers} buffers: at most {worst[0]:.1e} above the best found, at {worst[1]:,} steps")


if __name__ == "__main__":
    main()
