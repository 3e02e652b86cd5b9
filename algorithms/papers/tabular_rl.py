r"""Constants of private value iteration on counts: Vietri and others (2020), Garcelon and others (2021).

A record is a user's whole episode of H steps; a neighbor replaces it. Three families of counters are released: visits
n(h, s, a), transitions m(h, s, a, s') and sums of rewards r(h, s, a). Vietri and others give epsilon / (3 H) to each
counter, as an episode enters H counters of each family. A *replaced* episode leaves H counters and enters H others: each
family moves by 2 H in L1, all three by 6 H, and their noise keeps 2 epsilon. It is right for neighbors that add or
remove an episode. Qiao and Wang (2023) count in the same way, for both trust models. Garcelon and others have 6 H, which
is right.

The texts were not at hand for a last check: the factor of the noise is derived above, and the constants of PUCB's bonus
(`pucb_error`, `pucb_log`) are as remembered and shape its bonus alone. So the calibration is called `as-known`; no promise
of privacy depends on it.
"""

from __future__ import annotations

import math


def pucb_multiplier(epsilon: float, episodes: int) -> float:
    """Noise multiplier of a node of PUCB's binary trees: as many nodes hold an episode as K has binary digits.

    Args:
      epsilon: of the claim.
      episodes: K.
    """
    return episodes.bit_length() / epsilon


def pucb_error(epsilon: float, episodes: int, length: int, n_states: int, n_actions: int, failure: float) -> float:
    """E of PUCB, what bounds every counter's error: (6 / epsilon) H log((2 S A H + S^2 A H) / failure) log(K)^(5/2).

    With 3 in place of 6 for half the noise, which is the paper's.

    Args:
      epsilon: of the claim.
      episodes: K, the paper's T.
      length: H.
      n_states: S.
      n_actions: A.
      failure: the paper's beta.
    """
    counters = (2 + n_states) * n_states * n_actions * length
    return 6 / epsilon * length * math.log(counters / failure) * math.pow(math.log(max(episodes, 2)), 2.5)


def pucb_log(episodes: int, failure: float) -> float:
    """The logarithm in PUCB's bonus, log(K / failure).

    Args:
      episodes: K.
      failure: the paper's beta.
    """
    return math.log(episodes / failure)


def message_multiplier(epsilon: float) -> float:
    """Noise multiplier of a message of LDP-OBI: Laplace noise of scale 6 H / epsilon on each entry.

    Args:
      epsilon: of the claim.
    """
    return 1 / epsilon
