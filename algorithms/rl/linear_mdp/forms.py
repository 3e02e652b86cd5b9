"""Batched LSVI-UCB as it is built: without noise, jointly private, purely so; as printed, and with exact noise.

What `printed` and `tight` share, and where they part:

  Noise: printed constants are 1e3 to 1e5 times what the exact accountant asks for at the same claim. `tight` splits the
    budget between matrices and vectors so that the bonus of a direction that was seen K / d times is smallest, and the
    vectors' part among steps so that the sum of their deviations is smallest: sigma_h in proportion to the sensitivity to
    the power 2/3 (Gaussian) or 1/2 (Laplace).
  Sums: `printed` has a tree over batches, `tight` a factorized sum (Gaussian) or the tree (Laplace).
  Values: `printed` moves all of them into [0, H], `tight` those of step h into [0, H - h + 1], which is all they can be.
  Centers: `tight` subtracts the middle of the interval in which the targets lie, (H - h + 1) / 2, and adds it again in Q.
    A constant is linear in the features of a linear MDP, as <phi, sum_s mu_h(s)> = 1, so nothing is lost, and the
    sensitivity of u is halved: H - h + 1 in place of 2 (H - h + 1).
  Matrix and vector prices are added up as those of separate releases; `papers.readings.separate_statistics` has the joint
    supremum, which is somewhat smaller: no user is worst for both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from scipy.optimize import minimize_scalar

from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.papers.luyo import depth, lsvi_batches, lsvi_printed_sds, lsvi_pure_batches, lsvi_pure_printed_scales
from bandana.algorithms.regression.norms import goe_norm, laplace_matrix_norm, laplace_norm, normal_norm
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI
from bandana.algorithms.rl.linear_mdp.batches import Schedule, determinant, geometric, static
from bandana.privacy_core import (
    ApproxDP,
    Event,
    Exact,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    Mechanism,
    Mixture,
    PhaseSum,
    PhaseTotal,
    PrivateSum,
    PureDP,
    TreeSum,
    calibrate,
)
from bandana.privacy_core.checks import at_least, failure_of, positive, probability
from bandana.privacy_core.sensitivities import matrix_l1_bound

SCHEMES = ("static", "geometric", "determinant")
"""When the policy is updated."""
GOE_WEIGHT = math.sqrt(0.5)
"""Weight of diagonal entries: noise of deviation s on D_ij and D_ii / sqrt 2 is the GOE's, and moves by |D|_F / sqrt 2."""
_UP = 1 + 1e-12


class Noise(NamedTuple):
    """What releases the statistics, and bounds on what it adds."""

    matrices: PrivateSum
    vectors: tuple[Mechanism, ...]
    diagonal_weight: float
    matrix_norms: tuple[float, ...]
    vector_norms: tuple[float, ...]


# --- builders --------------------------------------------------------------------------------------------------------


def lsvi_ucb(
    model: LinearModel,
    horizon: int,
    *,
    batches: str | None = None,
    n_batches: int | None = None,
    switch: float = 1.0,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> BatchedLSVI:
    """The non-private twin: the same algorithm on exact statistics.

    Args:
      model: features and H.
      horizon: K, episodes.
      batches: the scheme, one of `SCHEMES` (`bandana.algorithms.rl.linear_mdp.batches`); None: geometric, and static for
        `printed`.
      n_batches: one more than there are, or may be, updates; None: the scheme's own number. For static batches that is B of
        Appendix E.1 (epsilon of the claim, and 1 here).
      switch: C, of the determinant scheme.
      ridge: lambda over d; the paper has lambda = d.
      failure: of the width; None: 1 / horizon.
      beta_scale: factor on the width.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    own = lsvi_batches(1.0, at_least("horizon", horizon, 1), model.horizon, model.dimension)
    schedule = _schedule(horizon, batches or "geometric", n_batches, own, switch)
    length = model.horizon
    noise = Noise(
        PhaseTotal(PhaseSum(Exact())), (Exact(),) * length, GOE_WEIGHT, (0.0,) * (len(schedule.looks) + 1), (0.0,) * length
    )
    return _clipped(model, horizon, schedule, noise, ridge, failure, beta_scale)


def lsvi_ucb_joint(
    model: LinearModel,
    horizon: int,
    epsilon: float,
    delta: float,
    calibration: str,
    *,
    batches: str | None = None,
    n_batches: int | None = None,
    switch: float = 1.0,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> BatchedLSVI:
    """LSVI-UCB under (epsilon, delta)-joint DP.

    Args: as of `lsvi_ucb`, and
      epsilon: of the claim.
      delta: of the claim.
      calibration:
        `printed`: Appendix E.1. Static batches; node noise (Z + Z^T)/2, sigma_Lambda and sigma_u as printed; beta = 24 H
          sqrt(d (lambda + c_K)) log chi with chi of Lemma 20; shift c_K + Upsilon, where Upsilon has B_0 where sqrt B_0
          would do. c_K is defined nowhere: eq. (20) needs c_K >= d Upsilon, and the stated rate no more, so c_K = d
          Upsilon. At any K up to 1e9 and more its bonus exceeds H: the policy explores and never uses what it learned.
        `tight`: see the module; any of the three schemes.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, fails = ApproxDP(epsilon, delta), failure_of(failure, horizon)
    own = lsvi_batches(epsilon, horizon, model.horizon, model.dimension)
    schedule = _private_schedule(calibration, horizon, batches, n_batches, own, switch)
    if calibration == "tight":
        noise = _gaussian_noise(promise, model, horizon, schedule, ridge, fails)
        return _clipped(model, horizon, schedule, noise, ridge, failure, beta_scale)
    length, d, n_batches = model.horizon, model.dimension, n_batches or own
    matrix_sd, vector_sd = lsvi_printed_sds(epsilon, delta, length, n_batches)
    bounds = (2.0 * (length + 1),) * (length - 1) + (2.0,)
    log = math.log(6 * horizon * length / fails)
    norm = matrix_sd * depth(n_batches) * (4 * math.sqrt(d) + 2 * log)
    node = Gaussian(math.sqrt(length), matrix_sd / math.sqrt(2 * length) * _UP)
    noise = Noise(
        TreeSum(node, schedule.most_updates),
        tuple(Gaussian(bound, vector_sd / bound * _UP) for bound in bounds),
        GOE_WEIGHT,
        (0.0, *(norm,) * len(schedule.looks)),
        (vector_sd * (math.sqrt(d) + 2 * math.sqrt(log)),) * length,
    )
    return _as_printed(model, horizon, schedule, noise, ridge, fails, beta_scale)


def lsvi_ucb_pure_joint(
    model: LinearModel,
    horizon: int,
    epsilon: float,
    calibration: str,
    *,
    batches: str | None = None,
    n_batches: int | None = None,
    switch: float = 1.0,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> BatchedLSVI:
    """LSVI-UCB under epsilon-joint DP, by Laplace noise on the upper triangles and on the vectors.

    Args: as of `lsvi_ucb`, and
      epsilon: of the claim.
      calibration:
        `printed`: Appendix E.3, which gives orders; with the constants of E.2's proof and its L2 sensitivities, as
          `lsvi_pure_printed_scales` derives them. The L1 sensitivities that Laplace noise needs are larger by up to
          sqrt(d (d + 3)/2) / 2 and sqrt d. What is wasted elsewhere covers that up to about d = 16; beyond, with many
          updates, the claim is false and the ledger, which knows the right sensitivities, shows more than the claim.
        `tight`: see the module, with the right L1 sensitivities: sqrt(d (d + 3)/2) a step for a matrix
          (`matrix_l1_bound`), sqrt d (H - h + 1) for a vector.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    promise, fails = PureDP(epsilon), failure_of(failure, horizon)
    own = lsvi_pure_batches(epsilon, horizon, model.horizon, model.dimension)
    schedule = _private_schedule(calibration, horizon, batches, n_batches, own, switch)
    if calibration == "tight":
        noise = _laplace_noise(promise, model, horizon, schedule, ridge, fails)
        return _clipped(model, horizon, schedule, noise, ridge, failure, beta_scale)
    length, d, n_batches = model.horizon, model.dimension, n_batches or own
    matrix_scale, vector_scale = lsvi_pure_printed_scales(epsilon, length, n_batches)
    bounds = (2 * math.sqrt(d) * (length + 1),) * (length - 1) + (2 * math.sqrt(d),)
    log = math.log(6 * horizon * length * d / fails)
    norm = matrix_scale * depth(n_batches) * (2 * d + 2 * math.sqrt(d * log) + log)
    whole = length * matrix_l1_bound(d)
    noise = Noise(
        TreeSum(Laplace(whole, matrix_scale / whole * _UP), schedule.most_updates),
        tuple(Laplace(bound, vector_scale / bound * _UP) for bound in bounds),
        1.0,
        (0.0, *(norm,) * len(schedule.looks)),
        (vector_scale * math.sqrt(d) * log,) * length,
    )
    return _as_printed(model, horizon, schedule, noise, ridge, fails, beta_scale)


def _clipped(
    model: LinearModel,
    horizon: int,
    schedule: Schedule,
    noise: Noise,
    ridge: float,
    failure: float | None,
    beta_scale: float,
) -> BatchedLSVI:
    """The algorithm with values in [0, H - h + 1], centered targets and the proved width."""
    caps = _targets(model)
    return BatchedLSVI(
        model, horizon, schedule, *noise, caps, tuple(cap / 2 for cap in caps), positive("ridge", ridge) * model.dimension,
        1.0, failure_of(failure, horizon), beta_scale=beta_scale,
    )  # fmt: skip


def _as_printed(
    model: LinearModel,
    horizon: int,
    schedule: Schedule,
    noise: Noise,
    ridge: float,
    failure: float,
    beta_scale: float,
) -> BatchedLSVI:
    """The algorithm with values in [0, H], c_K = d Upsilon, and beta of Appendix E.1."""
    length, d = model.horizon, model.dimension
    least = positive("ridge", ridge) * d + d * noise.matrix_norms[1]
    longest = max(1.0, 2 * length * math.sqrt(d * horizon / least) + noise.vector_norms[0] / least)
    chi = 24**2 * 18 * horizon**2 * d * longest * length / failure
    beta = 24 * length * math.sqrt(d * least) * math.log(chi)
    return BatchedLSVI(
        model, horizon, schedule, *noise, (float(length),) * length, (0.0,) * length, ridge * d, float(d), failure,
        width=beta, beta_scale=beta_scale,
    )  # fmt: skip


def _targets(model: LinearModel) -> tuple[float, ...]:
    """H - h + 1: the largest value from each step on, which is the largest target too."""
    return tuple(float(model.horizon - h) for h in range(model.horizon))


# --- schedules -------------------------------------------------------------------------------------------------------


def _schedule(horizon: int, batches: str, n_batches: int | None, own: int, switch: float) -> Schedule:
    if n_batches is not None:
        at_least("n_batches", n_batches, 1)
    match batches:
        case "static":
            return static(horizon, own if n_batches is None else n_batches)
        case "geometric":
            return geometric(horizon, n_batches)
        case "determinant":
            return determinant(horizon, n_batches, switch)
    raise ValueError(f"batches must be one of {', '.join(SCHEMES)}, got {batches!r}")


def _private_schedule(
    calibration: str, horizon: int, batches: str | None, n_batches: int | None, own: int, switch: float
) -> Schedule:
    if calibration not in ("printed", "tight"):
        raise ValueError(f"calibration must be 'printed' or 'tight', got {calibration!r}")
    if calibration == "printed" and batches not in (None, "static"):
        raise ValueError(f"printed is made for static batches: batches must be static or left out, got {batches!r}")
    return _schedule(horizon, batches or ("static" if calibration == "printed" else "geometric"), n_batches, own, switch)


# --- tight noise -----------------------------------------------------------------------------------------------------


def _gaussian_noise(
    promise: ApproxDP, model: LinearModel, horizon: int, schedule: Schedule, ridge: float, failure: float
) -> Noise:
    """A factorized sum of matrices and fresh noise on each vector, at exactly the promise."""
    mu = GaussianDP.from_epsilon_delta(promise.epsilon, promise.delta).mu
    parts = [bound ** (2 / 3) for bound in _targets(model)]

    def at(share: float, scale: float = 1 / mu) -> Noise:
        """The noise with this share of mu^2 for the matrices, and all multipliers times `scale`."""
        node, vectors = _gaussian_multipliers(share, parts, schedule.most_updates)
        matrices = FactorizedSum(Gaussian(math.sqrt(model.horizon), node * scale), len(schedule.looks))
        mechanisms = tuple(Gaussian(y, m * scale) for y, m in zip(_targets(model), vectors, strict=True))
        matrix_failure, vector_failure = _failures(model, schedule, failure)
        norm = goe_norm(model.dimension, matrix_failure)
        norms = (0.0, *(norm * matrices.noise_deviation(t) for t in range(1, len(schedule.looks) + 1)))
        length = normal_norm(model.dimension, vector_failure)
        return Noise(matrices, mechanisms, GOE_WEIGHT, norms, tuple(m.scale * length for m in mechanisms))

    share = _best_share(lambda x: _size(model, horizon, schedule, at(x), ridge, failure))
    node, vectors = _gaussian_multipliers(share, parts, schedule.most_updates)
    events = Counter[Event]([GaussianEvent(node)])
    for multiplier in vectors:
        events[GaussianEvent(multiplier)] += schedule.most_updates
    return at(share, calibrate(promise, Mixture(events)))


def _gaussian_multipliers(share: float, parts: list[float], updates: int) -> tuple[float, tuple[float, ...]]:
    """Noise multipliers of the matrices and of each step's vector, so that all together are 1-GDP."""
    total = sum(parts)
    vectors = tuple(math.sqrt(updates * total / ((1 - share) * part)) for part in parts)
    return 1 / math.sqrt(share), vectors


def _laplace_noise(
    promise: PureDP, model: LinearModel, horizon: int, schedule: Schedule, ridge: float, failure: float
) -> Noise:
    """A tree of triangles and fresh noise on each vector, at exactly the promise."""
    d, looks, updates = model.dimension, len(schedule.looks), schedule.most_updates
    whole, bounds = model.horizon * matrix_l1_bound(d), [math.sqrt(d) * y for y in _targets(model)]
    nodes = looks.bit_length()
    total = sum(math.sqrt(bound) for bound in bounds)

    def multipliers(share: float) -> tuple[float, tuple[float, ...]]:
        return nodes / share, tuple(updates * total / ((1 - share) * math.sqrt(bound)) for bound in bounds)

    def at(share: float, scale: float = 1 / promise.epsilon) -> Noise:
        node, vectors = multipliers(share)
        tree = TreeSum(Laplace(whole, node * scale), looks)
        mechanisms = tuple(Laplace(bound, m * scale) for bound, m in zip(bounds, vectors, strict=True))
        matrix_failure, vector_failure = _failures(model, schedule, failure)
        by_nodes = {n: laplace_matrix_norm(d, n, matrix_failure) * tree.mechanism.scale for n in range(1, nodes + 1)}
        norms = (0.0, *(by_nodes[t.bit_count()] for t in range(1, looks + 1)))
        length = laplace_norm(d, vector_failure)
        return Noise(tree, mechanisms, 1.0, norms, tuple(m.scale * length for m in mechanisms))

    share = _best_share(lambda x: _size(model, horizon, schedule, at(x), ridge, failure))
    node, vectors = multipliers(share)
    events = Counter[Event]({LaplaceEvent(node): nodes})
    for multiplier in vectors:
        events[LaplaceEvent(multiplier)] += updates
    return at(share, calibrate(promise, Mixture(events)))


def _failures(model: LinearModel, schedule: Schedule, failure: float) -> tuple[float, float]:
    """A third of the failure each, for every step's matrix at every look and for every vector that is released."""
    third = probability("failure", failure) / (3 * model.horizon)
    return third / len(schedule.looks), third / schedule.most_updates


def _size(model: LinearModel, horizon: int, schedule: Schedule, noise: Noise, ridge: float, failure: float) -> float:
    """The sum of the steps' widths at the last look: what the bonuses are in proportion to once K is large."""
    built = _clipped(model, horizon, schedule, noise, ridge, failure, 1.0)
    return float(built.widths(len(schedule.looks)).sum())


def _best_share(cost: Callable[[float], float]) -> float:
    found = minimize_scalar(cost, bounds=(1e-3, 1 - 1e-3), method="bounded", options={"xatol": 1e-4})
    return float(found.x)
