r"""Luyo, Garcelon, Lazaric, Pirotta, Differentially Private Exploration in RL with Linear Representation.

UCRL-VTR (Algorithm 1), UCRL-VTR+ (Algorithm 3), batched LSVI-UCB (Algorithm 2), and their pure-DP variants. A record is a
user's whole episode of H steps; a neighbor replaces it. Every step adds a pair (X X^T, y X); releases are functions of
the transcript and of the user's own data, so they compose adaptively: mu^2 adds up over steps and tree nodes.

In Algorithms 1 and 3 the last step's value V_{H+1} is 0, so H - 1 steps carry data. The printed bounds \|X\|, y <= H hold
for every step; V_{h+1} <= H - h is known too, and clipping to it is the further gain `steps clipped to H - h`. The paper
states its results for epsilon, delta in (0, 1). Its chain advanced o advanced o classical is correct, and that is what
costs: `bandana calibrate` shows what each print is worth.
"""

from __future__ import annotations

import math

Pair = tuple[float, float]


def depth(n_leaves: int) -> int:
    """K_0 and B_0: ceil(log2 n + 1), levels of a tree over n leaves; one above `Tree.n_nodes` unless n is a power of 2."""
    return math.ceil(math.log2(n_leaves) + 1)


def vtr_joint_printed_sd(epsilon: float, delta: float, episodes: int, episode_length: int) -> float:
    r"""sigma_B of Corollary 5: (32 H^2 / epsilon) sqrt(2 H K_0 log(8H/delta) log(4/delta) log(16 H K_0/delta)).

    The classical Gaussian mechanism with sensitivity 2 H^2, inside advanced composition over K_0 nodes, inside advanced
    composition over H steps, inside two halves. Exact sensitivities are sqrt 2 H^2 (matrix) and 2 H^2 (vector). A step
    costs 4 H^4 / sigma_B^2 a node (X' = -X and y = y' = H), and there are floor(log2 K) + 1 nodes and H - 1 steps. The
    main text says "all entries N(0, sigma_B^2)", Appendix C.2 (Z' + Z'^T)/sqrt 2; with equal variances mu^2 is 4.5 where
    it is 4.

    Args:
      epsilon: of the claim.
      delta: of the claim.
      episodes: K.
      episode_length: H.
    """
    nodes, length = depth(episodes), episode_length
    logs = math.log(8 * length / delta) * math.log(4 / delta) * math.log(16 * length * nodes / delta)
    return 32 * length**2 / epsilon * math.sqrt(2 * length * nodes * logs)


def vtr_local_printed_sd(epsilon: float, delta: float, episode_length: int) -> float:
    """sigma_B of Corollary 6: (4 H^3 / epsilon) sqrt(2 log(4H/delta)): simple composition over 2 H messages.

    Appendix C.4 and Remark 5 say that advanced composition is not available locally. It is: a user's H messages are one
    randomizer, so mu^2 adds up over them and sqrt H would do instead of H. "N(0, sigma^2 1_{d x d})" leaves the shape open:
    a whole square of independent entries, equal variances, and (Z + Z^T)/2 all cost 4.5 H^4 / sigma^2 a step, the GOE 4.

    Args:
      epsilon: of the claim.
      delta: of the claim.
      episode_length: H.
    """
    return 4 * episode_length**3 / epsilon * math.sqrt(2 * math.log(4 * episode_length / delta))


def vtr_plus_joint_printed_sds(epsilon: float, delta: float, episodes: int, episode_length: int, dimension: int) -> Pair:
    """sigma_B1 and sigma_B2 of Corollary 10: (64 d / epsilon) L and (64 H^4 / epsilon) L.

    L = sqrt(2 H K_0 log(16H/delta) log(8/delta) log(32 H K_0/delta)): Corollary 5's chain, over four sums instead of two.
    The floor sigma^2 >= H^2 / d bounds the weighted pair by d, the second moment by H^4 (its proof prints H^2 once).
    The weights are functions of the user's own data and of released parameters, so the bound holds for every neighbor. The
    algorithm box uses D^2 twice and drops the square on V.

    Args: those of `vtr_joint_printed_sd`, and
      dimension: d.
    """
    nodes, length = depth(episodes), episode_length
    logs = math.log(16 * length / delta) * math.log(8 / delta) * math.log(32 * length * nodes / delta)
    common = 64 / epsilon * math.sqrt(2 * length * nodes * logs)
    return dimension * common, length**4 * common


def vtr_plus_local_printed_sds(epsilon: float, delta: float, episode_length: int, dimension: int) -> Pair:
    """sigma_B1 and sigma_B2 of Corollary 11: (8 d H / epsilon) sqrt(2 log(8H/delta)) and the same with H^4 for d.

    The matrices have equal variances, as in Corollary 6. The proof misses the factor 3 in Upsilon_{2,high}, which is no
    matter of privacy.

    Args: as in `vtr_plus_joint_printed_sds`.
    """
    common = 8 * episode_length / epsilon * math.sqrt(2 * math.log(8 * episode_length / delta))
    return dimension * common, episode_length**4 * common


def lsvi_batches(epsilon: float, episodes: int, episode_length: int, dimension: int) -> int:
    """B of Appendix E.1: ceil((K epsilon)^(2/5) / (d^(3/5) H^(1/5))).

    Args: as in `vtr_plus_joint_printed_sds`.
    """
    size: float = (episodes * epsilon) ** 0.4 / (dimension**0.6 * episode_length**0.2)
    return math.ceil(size)


def lsvi_pure_batches(epsilon: float, episodes: int, episode_length: int, dimension: int) -> int:
    """B of Appendix E.3: ceil((K epsilon)^(1/3) / (d^(2/3) H^(1/3))), which its regret bound forces.

    Args: as in `vtr_plus_joint_printed_sds`.
    """
    size: float = (episodes * epsilon) ** (1 / 3) / (dimension ** (2 / 3) * episode_length ** (1 / 3))
    return math.ceil(size)


def lsvi_updates(episodes: int, batches: int) -> int:
    """Number of times Algorithm 2 releases new estimates: after i ceil(K / B) episodes, i = 1, ..., B - 1, up to K.

    Args:
      episodes: K.
      batches: B.
    """
    return min(batches - 1, episodes // math.ceil(episodes / batches))


def lsvi_printed_sds(epsilon: float, delta: float, episode_length: int, batches: int) -> Pair:
    """sigma_Lambda and sigma_u of Appendix E.1: (128 / epsilon) sqrt(B H B_0) l^2 and (128 H / epsilon) sqrt(H B) l^2.

    l = log(32 H B_0 B / delta), B_0 = ceil(log2 B + 1). sigma_Lambda pays for B partial sums on top of the B_0 nodes that
    they are made of: the factor sqrt B has no reason. "L1-sensitivity 2" of phi phi^T is neither its L2 sensitivity, sqrt
    2, nor its L1 one, which grows with d: false and harmless under Gaussian noise. The sensitivity of u, 2 (H + 1), is
    exact, but only 2 at the last step.

    Args:
      epsilon: of the claim.
      delta: of the claim.
      episode_length: H.
      batches: B.
    """
    levels, length = depth(batches), episode_length
    square = math.log(32 * length * levels * batches / delta) ** 2
    common = 128 / epsilon * math.sqrt(length * batches) * square
    return common * math.sqrt(levels), common * length


def lsvi_pure_printed_scales(epsilon: float, episode_length: int, batches: int) -> Pair:
    """Printed noise scales of Appendix E.3, with the constants of E.2's proof and its L2 sensitivities.

    Half of epsilon / H for each statistic of a step; the matrix takes B partial sums of B_0 nodes, "L1-sensitivity 2",
    the vector B releases, sensitivity 2 (H + 1) <= 4 H: 4 H B B_0 / epsilon and 8 H^2 B / epsilon. The L1 sensitivities
    are larger by up to sqrt(d (d + 3)/2) / 2 and sqrt d, factors that O hides. What is wasted, B partial sums instead of
    n nodes and 4 H instead of 2 (H + 1), covers that up to d = 16: with many updates the claim fails from about there on.

    Args:
      epsilon: of the claim.
      episode_length: H.
      batches: B.
    """
    share = 4 * episode_length * batches / epsilon
    return share * depth(batches), share * 2 * episode_length
