r"""Dubey, No-Regret Algorithms for Private Gaussian Process Bandit Optimization: GP-UCB with features of a kernel.

A record is (decision set, reward); a neighbor replaces one. It adds Phi Phi^T and y Phi, \|Phi\| <= 1. What bounds |y| is a
tail bound, |y| <= Y with high probability over the rewards, which is not a bound on what a neighbor may hold: without
clipping, no epsilon holds (Lemma 8 averages over data that the definition of DP holds fixed).
"""

from __future__ import annotations

import math

from bandana.algorithms.papers.printed import (
    DELTA,
    EPSILON,
    UP,
    Calibration,
    Choice,
    Claim,
    Parameter,
    flag,
    gaussian_choice,
    whole,
)
from bandana.privacy_core.checks import non_negative, positive
from bandana.privacy_core.guarantees import ApproxDP, GaussianDP
from bandana.privacy_core.sensitivities import (
    INDEPENDENT,
    factorization_norm,
    pair_mu_squared,
    prefix_nodes,
    square_entry_mu_squared,
)
from bandana.privacy_core.structures import Tree

_SOURCE = "Dubey, No-Regret Algorithms for Private Gaussian Process Bandit Optimization"


def joint_reward_bound(delta: float, horizon: int, norm_bound: float, noise_scale: float) -> float:
    """Y of eq. (43): sqrt(B^2 + 2 rho^2 log(8 T / delta)); B itself where rewards are bounded (rho = 0)."""
    return math.sqrt(norm_bound**2 + 2 * noise_scale**2 * math.log(8 * horizon / delta))


def joint_printed_sd(
    epsilon: float, delta: float, horizon: int, norm_bound: float, noise_scale: float, reading: str
) -> float:
    """The deviation sigma of one tree node, in five readings; n = 1 + ceil(log2 T), S = 1 + Y^2 (eq. 43).

    `lemma-2`: sigma = 16 n S ln(10/delta)^2 / epsilon^2. This is a variance (with S for S^2), printed as a deviation.
    `sketch`: sigma^2 = 16 n S ln(10/delta)^2 / epsilon^2, the proof sketch of Lemma 2. S should be squared.
    `lemma-12`: sigma = 16 n S' ln(4/delta)^2 epsilon^2 with S' = 1 + B^2 + rho^2 ln(4 T/delta). Here epsilon multiplies.
    `lemma-12-proof`: sigma^2 = 16 n S^2 ln(10/delta)^2, the proof's last line. Here is no epsilon at all.
    `consistent`: sigma^2 = 16 n S^2 ln(10/delta)^2 / epsilon^2: what the proof's budget for a node, (epsilon / sqrt(8 n
    ln(2/delta)), delta/2), asks for at the sensitivity S.

    Args:
      epsilon: of the claim, the paper's alpha.
      delta: of the claim, the paper's beta.
      horizon: T.
      norm_bound: B.
      noise_scale: rho.
      reading: one of the above.
    """
    nodes = 1 + math.ceil(math.log2(horizon))
    size = 1 + joint_reward_bound(delta, horizon, norm_bound, noise_scale) ** 2
    log10 = math.log(10 / delta)
    if reading == "lemma-2":
        return 16 * nodes * size * log10**2 / epsilon**2
    if reading == "sketch":
        return 4 * math.sqrt(nodes * size) * log10 / epsilon
    if reading == "lemma-12":
        smaller = 1 + norm_bound**2 + noise_scale**2 * math.log(4 * horizon / delta)
        return 16 * nodes * smaller * math.log(4 / delta) ** 2 * epsilon**2
    if reading == "lemma-12-proof":
        return 4 * math.sqrt(nodes) * size * log10
    return 4 * math.sqrt(nodes) * size * log10 / epsilon


def _joint(
    reading: str, *, epsilon: float, delta: float, horizon: int,
    norm_bound: float, noise_scale: float, is_clipped: bool, has_square: bool,
) -> tuple[Claim, Choice, tuple[Choice, ...]]:  # fmt: skip
    """Algorithm 2 as the tree mechanism that it means: independent GOE noise of deviation sigma on every node.

    (Its words say less: noise at the leaves only, each parent the sum of its children, puts t noises into prefix t.)

    A user is in floor(log2(T - 1)) + 1 nodes, the last decision being made on T - 1 rounds. One node costs, with rewards
    clipped to Y, sigma mu = 1 + Y^2 for Y <= 1 and 2 Y above (`pair_mu_squared`). The tree also holds the sum of y^2, which
    nothing reads; for Y > 2.4 or so it costs extra (`square_entry_mu_squared`): at Y = 10 it is x 3.6.

    False as printed: `lemma-12` and `lemma-12-proof` for small epsilon; `sketch` for rho >= 4 or so at B = 1; all
    readings if rewards are not clipped.

    Tight: the same tree without y^2, sd = sqrt(nodes) max(...) / mu. Rewards in [0, Y]: subtract Y/2 first. And a
    square-root factorization instead of the tree.
    """
    bound = joint_reward_bound(delta, horizon, norm_bound, noise_scale)
    sd = joint_printed_sd(epsilon, delta, horizon, norm_bound, noise_scale, reading)
    nodes, summed = Tree(horizon - 1).n_nodes, math.sqrt(prefix_nodes(horizon - 1))
    per_node = square_entry_mu_squared(bound) if has_square else pair_mu_squared(1, bound, 1, 1)
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu

    def tree(name: str, value: float) -> Choice:
        size = math.sqrt(nodes * pair_mu_squared(1, value, 1, 1))
        tight = UP * size / mu
        return gaussian_choice(name, (tight, tight * summed), size / tight)

    norm = factorization_norm(horizon - 1)
    size = norm * math.sqrt(pair_mu_squared(1, bound, 1, 1))
    prefix = UP * size / mu
    return (
        ApproxDP(epsilon, delta),
        gaussian_choice("printed", (sd, sd * summed), math.sqrt(nodes * per_node) / sd if is_clipped else math.inf),
        (
            tree("the same tree, y^2 left out" if has_square else "the same tree", bound),
            tree("rewards in [0, Y], centered", bound / 2),
            gaussian_choice("factorized sum", (None, prefix), size / prefix),
        ),
    )


def local_printed_sds(epsilon: float, delta: float, dimension: int, norm_bound: float) -> tuple[float, float]:
    """The deviations sigma_X and sigma_u of Lemma 5, the statement; its undefined "delta" is read as the claim's own.

    sigma_X^2 = 8 ln(5 / (2 delta)) / epsilon^2 and sigma_u^2 = 8 (B^2 + 2 ln(8 m / delta)) ln(5 / delta) / epsilon^2.

    Args:
      epsilon: of the claim, the paper's alpha.
      delta: of the claim, the paper's beta.
      dimension: m, number of features.
      norm_bound: B.
    """
    square = norm_bound**2 + 2 * math.log(8 * dimension / delta)
    matrix = math.sqrt(8 * math.log(5 / (2 * delta))) / epsilon
    return matrix, math.sqrt(8 * square * math.log(5 / delta)) / epsilon


def _local(
    reading: str, *, epsilon: float, delta: float, dimension: int,
    norm_bound: float, noise_scale: float, is_clipped: bool,
) -> tuple[Claim, Choice, tuple[Choice, ...]]:  # fmt: skip
    """Lemma 5: each user sends Phi Phi^T + N and y Phi + n, N symmetric with equal variances.

    The proof takes the sensitivities 1 and Y; they are sqrt 2 and 2 Y, so neither half is (epsilon/2, delta/2)-DP as it
    says. Together (`pair_mu_squared`, INDEPENDENT) mu^2 is the maximum over t of 2 (1 - t^2) / sigma_X^2 + 2 Y^2 (1 + t)
    / sigma_u^2: at delta = 1e-5 and the statement's Y^2 = B^2 + 2 ln(8 m / delta), mu = 0.209 epsilon. The claim is true
    with little to spare at epsilon = 1 and false from epsilon = 7.9 on.

    The proof's own bound is Y = B + rho sqrt(2 log(8 m / delta)), whose square is not the statement's (reading `proof`,
    same noise): false from rho = 1.25 on at epsilon = 1. The statement has no rho, the proof prints sigma_u for sigma_u^2
    and alpha for the undefined delta. Not clipped, nothing holds.

    Tight: the printed law and proportion at the reading's Y; or, for rewards clipped to B, GOE noise of one deviation.
    """
    matrix, vector = local_printed_sds(epsilon, delta, dimension, norm_bound)
    tail = math.sqrt(2 * math.log(8 * dimension / delta))
    bound = norm_bound + noise_scale * tail if reading == "proof" else math.hypot(norm_bound, tail)
    exact = math.sqrt(pair_mu_squared(1, bound, matrix, vector, INDEPENDENT))
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu
    scale = UP * exact / mu
    same = math.sqrt(pair_mu_squared(1, bound, matrix * scale, vector * scale, INDEPENDENT))
    goe = math.sqrt(pair_mu_squared(1, norm_bound, 1, 1))
    clipped = UP * goe / mu
    return (
        ApproxDP(epsilon, delta),
        gaussian_choice("printed", (matrix, vector), exact if is_clipped else math.inf),
        (
            gaussian_choice("the same law and bound", (matrix * scale, vector * scale), same),
            gaussian_choice("rewards clipped to B, GOE", (clipped, clipped), goe / clipped),
        ),
    )


_CLIPPED = Parameter("is_clipped", "whether rewards are clipped to the bound Y; the paper does not", True, flag)

GP_UCB_JOINT = Calibration(
    name="gp-ucb-joint",
    promise="the other users' actions are (epsilon, delta)-DP, one decision set and reward replaced",
    source=_SOURCE,
    statement="Algorithm 2, Lemmas 2 and 12",
    readings={
        "consistent": "sigma^2 = 16 n S^2 ln(10/delta)^2 / epsilon^2: what the proof's budgets ask for",
        "lemma-2": "sigma = 16 n S ln(10/delta)^2 / epsilon^2: Lemma 2 as printed",
        "sketch": "sigma^2 = 16 n S ln(10/delta)^2 / epsilon^2: the proof sketch of Lemma 2",
        "lemma-12": "sigma = 16 n S' ln(4/delta)^2 epsilon^2: Lemma 12 as printed",
        "lemma-12-proof": "sigma^2 = 16 n S^2 ln(10/delta)^2: the end of Lemma 12's proof",
    },
    quantities=("a tree node, each entry", "the worst prefix, each entry"),
    parameters=(
        EPSILON,
        DELTA,
        Parameter("horizon", "T, rounds", 100_000, whole(2)),
        Parameter("norm_bound", "B, of the function; bounds the mean reward", 1.0, positive),
        Parameter("noise_scale", "rho, sub-Gaussian scale of the rewards; 0 if they lie in [-B, B]", 0.0, non_negative),
        _CLIPPED,
        Parameter("has_square", "whether the tree holds the sum of y^2 too, as printed", True, flag),
    ),
    evaluate=_joint,
)

GP_UCB_LOCAL = Calibration(
    name="gp-ucb-local",
    promise="each user's message is (epsilon, delta)-DP, decision set and reward replaced",
    source=_SOURCE,
    statement="Algorithm 3, Lemma 5",
    readings={
        "statement": "the reward bound is the statement's, Y^2 = B^2 + 2 ln(8 m / delta)",
        "proof": "the reward bound is the proof's, Y = B + rho sqrt(2 ln(8 m / delta)); the noise is the statement's",
    },
    quantities=("matrix Phi Phi^T, each entry", "vector y Phi, each coordinate"),
    parameters=(
        EPSILON,
        DELTA,
        Parameter("dimension", "m, number of features", 16, whole(2)),
        Parameter("norm_bound", "B, of the function; bounds the mean reward", 1.0, positive),
        Parameter("noise_scale", "rho, scale of the rewards' noise; the reading `proof` alone takes it", 1.0, non_negative),
        _CLIPPED,
    ),
    evaluate=_local,
)
