"""Calibrations of Luyo et al.: what the printed noise of `luyo` costs exactly, and the least noise that keeps each claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bandana.algorithms.papers.luyo import (
    Pair,
    depth,
    lsvi_batches,
    lsvi_printed_sds,
    lsvi_pure_batches,
    lsvi_pure_printed_scales,
    lsvi_updates,
    vtr_joint_printed_sd,
    vtr_local_printed_sd,
    vtr_plus_joint_printed_sds,
    vtr_plus_local_printed_sds,
)
from bandana.algorithms.papers.printed import (
    DELTA,
    EPISODE_LENGTH,
    EPISODES,
    EPSILON,
    UP,
    Calibration,
    Choice,
    Claim,
    Parameter,
    gaussian_choice,
    whole,
)
from bandana.privacy_core.guarantees import ApproxDP, GaussianDP, PureDP
from bandana.privacy_core.matrices import GOE
from bandana.privacy_core.sensitivities import (
    INDEPENDENT,
    factorization_norm,
    matrix_l1_bound,
    pair_l1_bound,
    pair_l1_witness,
    pair_mu_squared,
    prefix_nodes,
)
from bandana.privacy_core.structures import Tree

_SOURCE = (
    "Luyo, Garcelon, Lazaric and Pirotta, Differentially Private Exploration in Reinforcement Learning "
    "with Linear Representation"
)
_JOINT = "the other users' actions and the final policy are (epsilon, delta)-DP, one user's episode replaced"
_LOCAL = "each user's message is (epsilon, delta)-DP, the episode replaced"
_JOINT_PURE, _LOCAL_PURE = _JOINT.replace("(epsilon, delta)", "epsilon"), _LOCAL.replace("(epsilon, delta)", "epsilon")

_CLIPPED = "steps clipped to H - h"


def lsvi_mu_squared(updates: int, values: Sequence[float], matrix_sd: float, vector_sd: float) -> float:
    """mu^2 of Algorithm 2: each step's Lambda in a tree over batches, its u anew at every update.

    A user of the first batch is in floor(log2 R) + 1 nodes of Lambda and in all R releases of u, each with fresh noise and
    recomputed values. Matrix noise (Z + Z^T)/2. Per step h, with t = |phi.phi'|, the maximum over t of

        nodes 2 (1 - t^2) / sigma_Lambda^2 + R 2 m_h^2 (1 + t) / sigma_u^2,

    and the steps add up, each with its own worst t: every step's features are the user's own.

    Args:
      updates: R.
      values: m_h, the largest reward plus value of each step.
      matrix_sd: sigma_Lambda.
      vector_sd: sigma_u.
    """
    matrix, vector = matrix_sd / math.sqrt(Tree(updates).n_nodes), vector_sd / math.sqrt(updates)
    return sum(pair_mu_squared(1, value, matrix, vector, INDEPENDENT) for value in values)


def _bounds(episode_length: int) -> tuple[list[float], list[float]]:
    """Value bounds of the steps that carry data: the printed bound H, and the known one H - h."""
    active = range(1, episode_length)
    return [float(episode_length) for _ in active], [float(episode_length - h) for h in active]


def _scaled(name: str, noise: Pair, cost: Callable[[Pair], float], mu: float) -> tuple[Choice, float]:
    """Both noises scaled by one factor until their cost, mu^2 as a function of them, is the target's."""
    factor = UP * math.sqrt(cost(noise)) / mu
    scaled = noise[0] * factor, noise[1] * factor
    return gaussian_choice(name, scaled, math.sqrt(cost(scaled))), factor


def _vtr_cost(bounds: list[float], copies: float, law: float) -> Callable[[Pair], float]:
    return lambda sd: sum(copies * pair_mu_squared(c, c, sd[0], sd[1], law) for c in bounds)


def _vtr_joint(
    reading: str, *, epsilon: float, delta: float, episodes: int, episode_length: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Corollary 5: a tree over K users for each step and statistic, one deviation sigma_B.

    A step costs 4 H^4 / sigma_B^2 a node (GOE, X' = -X and y = y' = H: `pair_mu_squared`), and there are floor(log2 K) +
    1 nodes and H - 1 steps: mu = 2 H^2 sqrt((H - 1) n) / sigma_B. The main text says "all entries N(0, sigma_B^2)",
    Appendix C.2 (Z' + Z'^T)/sqrt 2; with equal variances (reading `main-text`) mu^2 is 4.5 where it is 4.

    Tight: the same with mu; steps clipped to H - h; and a square-root factorization instead of the tree.
    """
    law = GOE if reading == "appendix" else INDEPENDENT
    sd = vtr_joint_printed_sd(epsilon, delta, episodes, episode_length)
    nodes, summed = Tree(episodes).n_nodes, math.sqrt(prefix_nodes(episodes))
    plain, clipped = _bounds(episode_length)
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu

    def tree(name: str, bounds: list[float]) -> Choice:
        choice, factor = _scaled(name, (sd, sd), _vtr_cost(bounds, nodes, law), mu)
        return Choice(name, (sd * factor, sd * factor * summed), choice.exact)

    norm = factorization_norm(episodes)
    choice, factor = _scaled("factorized", (sd, sd), _vtr_cost(clipped, norm, law), mu)
    prefix = sd * factor * math.sqrt(norm)
    return (
        ApproxDP(epsilon, delta),
        gaussian_choice("printed", (sd, sd * summed), math.sqrt(_vtr_cost(plain, nodes, law)((sd, sd)))),
        (
            tree("the same tree", plain),
            tree(_CLIPPED, clipped),
            Choice(f"{_CLIPPED}, factorized sum", (None, prefix), choice.exact),
        ),
    )


def _vtr_local(
    reading: str, *, epsilon: float, delta: float, episode_length: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Corollary 6: each user adds noise to every step's pair.

    "N(0, sigma^2 1_{d x d})" leaves the shape open. A whole square of independent entries (to be symmetrized before use,
    which is post-processing), equal variances, and (Z + Z^T)/2 all cost 4.5 H^4 / sigma^2 a step, the GOE 4:
    mu = 0.375 epsilon sqrt((H - 1)/H) / sqrt(H log(4H/delta)).

    Tight: the same law with mu; steps clipped to H - h with GOE noise.
    """
    sd = vtr_local_printed_sd(epsilon, delta, episode_length)
    plain, clipped = _bounds(episode_length)
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu
    cost = _vtr_cost(plain, 1, INDEPENDENT)
    choices = (
        _scaled("the same law", (sd, sd), cost, mu)[0],
        _scaled(f"{_CLIPPED}, GOE", (sd, sd), _vtr_cost(clipped, 1, GOE), mu)[0],
    )
    return (
        ApproxDP(epsilon, delta),
        gaussian_choice("printed", (sd,), math.sqrt(cost((sd, sd)))),
        tuple(Choice(choice.name, choice.noise[:1], choice.exact) for choice in choices),
    )


def _plus_cost(bounds: list[float], length: int, dimension: int, copies: float, law: float) -> Callable[[Pair], float]:
    """mu^2 of a user of Algorithm 3: weighted pair bounded by (c/H) sqrt d, second moment by c^2, for each step's c."""

    def cost(sd: Pair) -> float:
        total = 0.0
        for c in bounds:
            weighted, square = c / length * math.sqrt(dimension), c * c
            total += pair_mu_squared(weighted, weighted, sd[0], sd[0], law)
            total += pair_mu_squared(square, square, sd[1], sd[1], law)
        return copies * total

    return cost


def _plus_joint(
    reading: str, *, epsilon: float, delta: float, episodes: int, episode_length: int, dimension: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Corollary 10: four trees a step, weighted by 1/sigma^2 <= d / H^2, and of the second moment.

    A step costs 4 d^2 / sigma_B1^2 + 4 H^8 / sigma_B2^2 a node (GOE); the weights are functions of the user's own data
    and of released parameters, so the bound holds for every neighbor. The algorithm box uses D^2 twice and drops the
    square on V.

    Tight: the same proportion with mu; steps clipped to H - h, where the weighted pair is bounded by ((H - h)/H) sqrt d.
    """
    noise = vtr_plus_joint_printed_sds(epsilon, delta, episodes, episode_length, dimension)
    nodes, summed = Tree(episodes).n_nodes, math.sqrt(prefix_nodes(episodes))
    plain, clipped = _bounds(episode_length)
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu
    norm = factorization_norm(episodes)

    def cost(bounds: list[float], copies: float) -> Callable[[Pair], float]:
        return _plus_cost(bounds, episode_length, dimension, copies, GOE)

    def choice(name: str, bounds: list[float], copies: float, growth: float, is_tree: bool) -> Choice:
        found, factor = _scaled(name, noise, cost(bounds, copies), mu)
        node, prefix = (sd * factor if is_tree else None for sd in noise), (sd * factor * growth for sd in noise)
        return Choice(name, (*node, *prefix), found.exact)

    return (
        ApproxDP(epsilon, delta),
        gaussian_choice(
            "printed", (*noise, *(sd * summed for sd in noise)), math.sqrt(cost(plain, nodes)(noise))
        ),
        (
            choice("the same trees", plain, nodes, summed, True),
            choice(_CLIPPED, clipped, nodes, summed, True),
            choice(f"{_CLIPPED}, factorized sums", clipped, norm, math.sqrt(norm), False),
        ),
    )  # fmt: skip


def _plus_local(
    reading: str, *, epsilon: float, delta: float, episode_length: int, dimension: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Corollary 11: as Corollary 10, every user for himself.

    The matrices are "d x d with each of its entries drawn from N(0, sigma^2)", so a step costs 4.5 d^2 / sigma_B1^2 + 4.5
    H^8 / sigma_B2^2 (see Corollary 6). Its proof misses the factor 3 in Upsilon_{2,high}, which is no matter of privacy.
    """
    noise = vtr_plus_local_printed_sds(epsilon, delta, episode_length, dimension)
    plain, clipped = _bounds(episode_length)
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu
    cost = _plus_cost(plain, episode_length, dimension, 1, INDEPENDENT)
    clipped_cost = _plus_cost(clipped, episode_length, dimension, 1, GOE)
    return (
        ApproxDP(epsilon, delta),
        gaussian_choice("printed", noise, math.sqrt(cost(noise))),
        (_scaled("the same law", noise, cost, mu)[0], _scaled(f"{_CLIPPED}, GOE", noise, clipped_cost, mu)[0]),
    )


def _lsvi_values(episode_length: int) -> tuple[list[float], list[float]]:
    """Largest reward plus value of each step: as printed H + 1, and 1 at the last; clipped, H - h + 1."""
    plain = [float(episode_length + 1)] * (episode_length - 1) + [1.0]
    return plain, [float(episode_length - h + 1) for h in range(1, episode_length + 1)]


def _check_updates(updates: int) -> int:
    if updates < 1:
        raise ValueError("episodes is too small: Algorithm 2 makes a single batch, and then releases nothing")
    return updates


def _lsvi(
    reading: str, *, epsilon: float, delta: float, episodes: int, episode_length: int, dimension: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Algorithm 2 at the parameters of Appendix E.1; see `lsvi_mu_squared`.

    "L1-sensitivity 2" of phi phi^T is neither its L2 sensitivity, sqrt 2, nor its L1 one, which grows with d: false and
    harmless under Gaussian noise. The sensitivity of u, 2 (H + 1), is exact, but only 2 at the last step.

    Tight: the printed proportion with mu; then values clipped to H - h + 1, and half of mu^2 for either statistic where
    each would be released alone, scaled by their exact joint cost.
    """
    batches = lsvi_batches(epsilon, episodes, episode_length, dimension)
    updates = _check_updates(lsvi_updates(episodes, batches))
    noise = lsvi_printed_sds(epsilon, delta, episode_length, batches)
    plain, clipped = _lsvi_values(episode_length)
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu
    halves = (
        math.sqrt(2 * episode_length * Tree(updates).n_nodes),
        2 * math.sqrt(updates * sum(value**2 for value in clipped)),
    )

    def cost(values: list[float]) -> Callable[[Pair], float]:
        return lambda sd: lsvi_mu_squared(updates, values, *sd)

    return (
        ApproxDP(epsilon, delta),
        gaussian_choice("printed", noise, math.sqrt(cost(plain)(noise))),
        (
            _scaled("the same proportion", noise, cost(plain), mu)[0],
            _scaled("values clipped, half the budget each", halves, cost(clipped), mu)[0],
        ),
    )


def _pure_vtr(
    reading: str, epsilon: float, episodes: int | None, episode_length: int, dimension: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Appendix C.4, joint (a tree over `episodes`) or local (None)."""
    levels, nodes = (1, 1) if episodes is None else (depth(episodes), Tree(episodes).n_nodes)
    weight = (2.0, 2.0) if reading == "l2-constants" else (matrix_l1_bound(dimension), 2 * math.sqrt(dimension))
    share = 2 * episode_length**3 * levels / epsilon
    scales = weight[0] * share, weight[1] * share
    plain, clipped = _bounds(episode_length)

    def loss(bound: Callable[..., float], bounds: list[float], noise: Pair) -> PureDP:
        return PureDP(nodes * sum(c * c * bound(dimension, 1 / noise[0], 1 / noise[1]) for c in bounds))

    def choice(name: str, bounds: list[float]) -> Choice:
        scale = UP * nodes * sum(c * c for c in bounds) * pair_l1_bound(dimension) / epsilon
        noise = scale, scale
        return Choice(name, noise, loss(pair_l1_bound, bounds, noise), loss(pair_l1_witness, bounds, noise))

    printed = Choice("printed", scales, loss(pair_l1_bound, plain, scales), loss(pair_l1_witness, plain, scales))
    return PureDP(epsilon), printed, (choice("right L1 sensitivity", plain), choice(_CLIPPED, clipped))


def _pure_vtr_joint(
    reading: str, *, epsilon: float, episodes: int, episode_length: int, dimension: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Appendix C.4 for Corollary 5: Laplace noise of scale 2 H K_0 (sensitivity) / epsilon, by simple composition.

    C.4 says to change the noise and the composition, and gives no sensitivity. With the 2 H^2 of Corollary 5, an L2 one
    (reading `l2-constants`), the claim is false: Laplace noise needs the L1 sensitivity, which for the upper triangle of
    X X^T is at most sqrt(d (d + 3)/2) H^2 and at least sqrt((d^2 + 2 d + 2)/2) H^2 (even d), for y X 2 sqrt(d) H^2. With
    these (reading `l1-constants`) it is true. The pair's joint L1 sensitivity is known between `pair_l1_witness` and
    `pair_l1_bound`, some percent apart; tight noise uses the upper one, so it is not less private than asked.
    """
    return _pure_vtr(reading, epsilon, episodes, episode_length, dimension)


def _pure_vtr_local(
    reading: str, *, epsilon: float, episode_length: int, dimension: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Appendix C.4 for Corollary 6: Laplace noise of scale 2 H (sensitivity) / epsilon on every step's pair.

    As `ucrl-vtr-joint-pure` with one release instead of K_0; the matrix noise is taken to be symmetric. A whole square of
    independent entries would cost more: its L1 change grows to sqrt 2 d H^2.
    """
    return _pure_vtr(reading, epsilon, None, episode_length, dimension)


def _pure_lsvi(
    reading: str, *, epsilon: float, episodes: int, episode_length: int, dimension: int
) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Appendix E.3: O(B H / epsilon) and O(H^2 B / epsilon), with the constants of E.2's proof and simple composition.

    See `lsvi_pure_printed_scales` (reading `l2-constants`). The L1 sensitivities are larger by up to sqrt(d (d + 3)/2) / 2
    and sqrt d, factors that O hides (reading `l1-constants`). What is wasted, B partial sums instead of n nodes and 4 H
    instead of 2 (H + 1), covers that up to d = 16: with many updates the claim fails from about there on.
    """
    batches = lsvi_pure_batches(epsilon, episodes, episode_length, dimension)
    updates = _check_updates(lsvi_updates(episodes, batches))
    nodes = Tree(updates).n_nodes
    plain, clipped = _lsvi_values(episode_length)
    is_l1 = reading == "l1-constants"
    matrix, vector = (matrix_l1_bound(dimension) / 2, math.sqrt(dimension)) if is_l1 else (1.0, 1.0)
    plainly = lsvi_pure_printed_scales(epsilon, episode_length, batches)
    scales = matrix * plainly[0], vector * plainly[1]

    def loss(bound: Callable[..., float], values: list[float], noise: Pair) -> PureDP:
        return PureDP(sum(bound(dimension, nodes / noise[0], updates * value / noise[1]) for value in values))

    def choice(name: str, values: list[float]) -> Choice:
        factor = UP * loss(pair_l1_bound, values, scales).epsilon / epsilon
        noise = scales[0] * factor, scales[1] * factor
        return Choice(name, noise, loss(pair_l1_bound, values, noise), loss(pair_l1_witness, values, noise))

    printed = Choice("printed", scales, loss(pair_l1_bound, plain, scales), loss(pair_l1_witness, plain, scales))
    tight = choice("right L1 sensitivity", plain), choice("values clipped to H - h + 1", clipped)
    return PureDP(epsilon), printed, tight


_DIMENSION = Parameter("dimension", "d, of the features", 4, whole(2))
_PURE_READINGS = {
    "l2-constants": "the L2 sensitivities of the Gaussian proof are kept",
    "l1-constants": "the L1 sensitivities that Laplace noise needs are put in",
}

UCRL_VTR_JOINT = Calibration(
    name="ucrl-vtr-joint",
    promise=_JOINT,
    source=_SOURCE,
    statement="Algorithm 1, Corollary 5",
    readings={
        "appendix": "node noise (Z + Z^T)/sqrt 2, as Appendix C.2",
        "main-text": "node noise with all entries N(0, sigma_B^2), as the main text",
    },
    quantities=("a tree node, matrix and vector", "the worst prefix, matrix and vector"),
    parameters=(EPSILON, DELTA, EPISODES, EPISODE_LENGTH),
    evaluate=_vtr_joint,
)

UCRL_VTR_LOCAL = Calibration(
    name="ucrl-vtr-local",
    promise=_LOCAL,
    source=_SOURCE,
    statement="Algorithm 1, Corollary 6",
    readings={"printed": "as printed"},
    quantities=("a step's message, matrix and vector",),
    parameters=(EPSILON, DELTA, EPISODE_LENGTH),
    evaluate=_vtr_local,
)

UCRL_VTR_PLUS_JOINT = Calibration(
    name="ucrl-vtr-plus-joint",
    promise=_JOINT,
    source=_SOURCE,
    statement="Algorithm 3, Corollary 10",
    readings={"printed": "as printed"},
    quantities=(
        "a tree node, weighted", "a tree node, second moment",
        "the worst prefix, weighted", "the worst prefix, second moment",
    ),
    parameters=(EPSILON, DELTA, EPISODES, EPISODE_LENGTH, _DIMENSION),
    evaluate=_plus_joint,
)  # fmt: skip

UCRL_VTR_PLUS_LOCAL = Calibration(
    name="ucrl-vtr-plus-local",
    promise=_LOCAL,
    source=_SOURCE,
    statement="Algorithm 3, Corollary 11",
    readings={"printed": "as printed"},
    quantities=("a step's message, weighted", "a step's message, second moment"),
    parameters=(EPSILON, DELTA, EPISODE_LENGTH, _DIMENSION),
    evaluate=_plus_local,
)

LSVI_UCB_JOINT = Calibration(
    name="lsvi-ucb-joint",
    promise=_JOINT,
    source=_SOURCE,
    statement="Algorithm 2, Appendix E.1, Theorem 8",
    readings={"printed": "as printed"},
    quantities=("a tree node of Lambda, each entry of Z", "a release of u, each coordinate"),
    parameters=(EPSILON, DELTA, EPISODES, EPISODE_LENGTH, _DIMENSION),
    evaluate=_lsvi,
)

UCRL_VTR_JOINT_PURE = Calibration(
    name="ucrl-vtr-joint-pure",
    promise=_JOINT_PURE,
    source=_SOURCE,
    statement="Algorithm 1, Remark 1, Appendix C.4 (Corollary 5)",
    readings=_PURE_READINGS,
    quantities=("a tree node, matrix", "a tree node, vector"),
    parameters=(EPSILON, EPISODES, EPISODE_LENGTH, _DIMENSION),
    evaluate=_pure_vtr_joint,
)

UCRL_VTR_LOCAL_PURE = Calibration(
    name="ucrl-vtr-local-pure",
    promise=_LOCAL_PURE,
    source=_SOURCE,
    statement="Algorithm 1, Remark 1, Appendix C.4 (Corollary 6)",
    readings=_PURE_READINGS,
    quantities=("a step's message, matrix", "a step's message, vector"),
    parameters=(EPSILON, EPISODE_LENGTH, _DIMENSION),
    evaluate=_pure_vtr_local,
)

LSVI_UCB_JOINT_PURE = Calibration(
    name="lsvi-ucb-joint-pure",
    promise=_JOINT_PURE,
    source=_SOURCE,
    statement="Algorithm 2, Remark 2, Appendix E.3",
    readings=_PURE_READINGS,
    quantities=("a tree node of Lambda", "a release of u"),
    parameters=(EPSILON, EPISODES, EPISODE_LENGTH, _DIMENSION),
    evaluate=_pure_lsvi,
)
