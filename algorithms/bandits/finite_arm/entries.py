"""Catalog entries for bandits with finitely many arms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from bandana.algorithms.bandits.finite_arm.episodic_ucb import (
    KL_PARTS,
    PARTS,
    PURE_PARTS,
    EpisodicUCB,
    adac_ucb,
    adap_klucb,
    adap_ucb,
    adar_ucb,
    ucb,
)
from bandana.algorithms.bandits.finite_arm.regret_bounds import (
    corollary_6_bound,
    elimination_bound,
    episodic_bound,
    theorem_5_bound,
    tree_bound,
    ucb_bound,
)
from bandana.algorithms.bandits.finite_arm.successive_elimination import SuccessiveElimination, dp_se, successive_elimination
from bandana.algorithms.bandits.finite_arm.tree_ucb import dp_ucb
from bandana.algorithms.entry import (
    AS_KNOWN,
    AZIZE_BASU,
    Bound,
    Form,
    RegretBound,
    Settings,
    built_by,
    first_user_and_first_choice,
    fitting,
    of_rewards,
)
from bandana.algorithms.parameters import FAILURE, Parameter, declared
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import RenyiDP

_ADAP = "Azize and Basu (2022), When Privacy Meets Partial Information"
_SAJED_SHEFFET = "Sajed and Sheffet (2019), An optimal private stochastic-MAB algorithm"
_MISHRA_THAKURTA = "Mishra and Thakurta (2015), (Nearly) optimal differentially private stochastic multi-arm bandits"
_EVEN_DAR = "Even-Dar, Mannor and Mansour (2002), PAC bounds for multi-armed bandit and Markov decision processes"
_ADAC = "Azize and Basu (2024), Concentrated Differential Privacy for Bandits"
_BETA = declared(Parameter("beta", "Exploration of the index: its width grows with the root of beta log t.", 3.1))
_TREE_BETA = declared(Parameter("beta", "Exploration of the index: its width grows with the root of beta log t.", 4.0))
_EPOCHS = declared(FAILURE, Parameter("length_scale", "Factor on the length of epochs; the theorem requires 1.", 1.0))


def _in_doubling_episodes(_settings: Settings) -> bool:
    """Arms are played in episodes that double, as the private forms play them."""
    return True


_ucb = built_by(ucb)
_episodic_ucb = built_by(ucb, doubling=_in_doubling_episodes)
_adap_ucb = built_by(adap_ucb)
_adap_klucb = built_by(adap_klucb)
_dp_ucb = built_by(dp_ucb)
_se = built_by(successive_elimination)
_dp_se = built_by(dp_se)


def _short_epochs(build: Callable[[Settings], SuccessiveElimination]) -> Callable[[Settings], Settings]:
    """Settings with epochs of which several fit into the rounds of an audit."""

    def first(chosen: Settings) -> int:
        _, released = build(chosen).init(1)
        return int(released.left[0]) * chosen.problem.n_actions

    return lambda settings: fitting(settings.with_parameters(failure=0.1), "length_scale", first)


_CAPPED = "gaps in units of the range's width; never above the largest gap times t"


def _theorem_5(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    """The smaller of Theorem 5, where means may be known, and Corollary 6, which holds for all."""
    alpha, epsilon = settings.level().values()
    beta, problem = settings.parameters["beta"], settings.problem
    if beta <= 3:
        return None
    level = f"beta = {beta:g}, alpha = {alpha:g}, epsilon = {epsilon:g}"
    of_all = corollary_6_bound(grid, problem.n_actions, alpha, epsilon, beta, problem.reward_range)
    corollary = (
        "Corollary 6 with the constants that it leaves open: sqrt(32 beta (K - 1) t log t) + (K - 1) (8 sqrt(beta (alpha / "
        f"epsilon) log t) + 2 beta / (beta - 3)), K = {problem.n_actions}"
    )
    if means is None:
        return RegretBound(
            of_all, f"{AZIZE_BASU}, expected regret, whatever the means are, {corollary}, {level}; at most the width times t"
        )
    return RegretBound(
        np.minimum(theorem_5_bound(grid, means, alpha, epsilon, beta, problem.reward_range), of_all),
        f"{AZIZE_BASU}, Theorem 5, expected regret: sum over arms of 8 beta log(t) / gap + 8 sqrt(beta (alpha / epsilon)"
        f" log t) + 2 beta / (beta - 3), {level}; {_CAPPED}; where it is smaller, {corollary}",
    )


def _theorem_5_at_rho(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    """Theorem 5 of AdaR-UCB, of which only alpha / epsilon = 1 / rho matters."""
    rho = settings.level()["rho"]
    bound = _theorem_5(replace(settings, privacy=RenyiDP(2.0, 2 * rho)), means, grid)
    if bound is None:
        return None
    return bound._replace(text=f"AdaC-UCB is AdaR-UCB at alpha / epsilon = 1 / rho, rho = {rho:g}: {bound.text}")


def _theorem_1(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    beta = settings.parameters["beta"]
    if means is None or beta <= 2:
        return None
    return RegretBound(
        ucb_bound(grid, means, beta, settings.problem.reward_range),
        f"Auer, Cesa-Bianchi and Fischer (2002), Theorem 1, its proof with beta in place of 4, expected regret: sum over "
        f"arms of 2 beta log(t) / gap + gap (1 + 2 (beta - 1) / (beta - 2)), beta = {beta:g}; {_CAPPED}",
    )


_WORST_FIRST = "the regret of as many pulls, the worst arms first; gaps D in units of the range's width"


def _in_episodes(build: Callable[[Settings], EpisodicUCB], theorem: str) -> Bound:
    """The bound of an index in doubling episodes, its constants those of the algorithm that is built."""

    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        if means is None:
            return None
        algorithm = build(settings)
        noise = f", epsilon = {settings.level()['epsilon']:g}" if settings.privacy is not None else ""
        return RegretBound(
            episodic_bound(algorithm, grid, means),
            f"{theorem}, with exact widths, expected regret: 2^k pulls of an arm, k the last release with 2 w_k(t) >= D, "
            f"w_k the index's width after release k, and sum_k 2^k c ((2^k + K)^-beta + sum_j (2^j + 2^k + K - 1)^-beta), "
            f"beta = {algorithm.beta:g}, c = {algorithm.index.misses:g}, K = {algorithm.n_actions}{noise}; {_WORST_FIRST}",
        )

    return bound


def _in_epochs(build: Callable[[Settings], SuccessiveElimination], source: str) -> Bound:
    """The bound of successive elimination."""

    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        if means is None:
            return None
        algorithm = build(settings)
        return RegretBound(
            elimination_bound(algorithm, grid, means),
            f"{source}, its regret's proof with the real lengths: R_e(K) pulls of an arm in each epoch e up to the first "
            f"with 4 (h_e + c_e) < D, K = {algorithm.n_actions}, noise = {algorithm.noise:.3g}, length_scale = "
            f"{algorithm.length_scale:g}; {_WORST_FIRST}. Exceeded with probability at most {algorithm.failure:.3g}",
        )

    return bound


def _in_a_tree(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    algorithm = _dp_ucb(settings)
    if means is None or algorithm.beta <= 2:
        return None
    return RegretBound(
        tree_bound(algorithm, grid, means),
        "Auer, Cesa-Bianchi and Fischer (2002), Theorem 1, its proof with the noise of the tree, expected regret: n + 1 + "
        "2 (K^(2 - beta) / (beta - 2) + K^(1 - beta) / (beta - 1)) pulls of an arm, sqrt(2 beta log(t) / n) + 2 b q / n = "
        f"D, q the quantile of a prefix's noise at beta log t, beta = {algorithm.beta:g}, b = "
        f"{algorithm.sums.mechanism.scale / algorithm.reward_range.width:.3g}, K = {algorithm.n_actions}; {_WORST_FIRST}",
    )


_entry = partial(Form.entry, family="bandits/finite_arm", parameters=_BETA)
_in_episodes_without_noise = partial(
    _entry,
    Form(f"{_ADAP}, Algorithm 1 without noise", claim="none: the non-private twin, in the same episodes"),
    build=_episodic_ucb,
    bound=_in_episodes(_episodic_ucb, f"{_ADAP}, Theorem 7 without noise"),
    seed_name="ucb-episodic",
)
_on_sums = partial(_entry, probes=first_user_and_first_choice)
_BOTH = ("printed", "tight")
_ADAP_PURE = of_rewards(f"{_ADAP}, Algorithm 1 and Theorem 6", "pure", "Theorem 6", _ADAP, _BOTH)

ENTRIES = (
    _entry(
        Form("Auer, Cesa-Bianchi and Fischer (2002), Finite-time analysis of the multiarmed bandit problem, UCB1"),
        name="ucb", build=_ucb, bound=_theorem_1,
    ),
    _in_episodes_without_noise(name="adar-ucb"),
    _on_sums(
        of_rewards(f"{AZIZE_BASU}, Algorithm 2 and Theorem 4", "renyi", "Theorem 4", AZIZE_BASU, _BOTH),
        name="adar-ucb", build=built_by(adar_ucb), parts=PARTS, bound=_theorem_5,
    ),
    _in_episodes_without_noise(name="adac-ucb"),
    _on_sums(
        of_rewards(f"{_ADAC}, AdaC-UCB", "zcdp", "the privacy theorem of AdaC-UCB", _ADAC, (AS_KNOWN, "tight")),
        name="adac-ucb", build=built_by(adac_ucb), parts={AS_KNOWN: PARTS["printed"], "tight": PARTS["tight"]},
        bound=_theorem_5_at_rho,
    ),
    _in_episodes_without_noise(name="adap-ucb"),
    _on_sums(
        _ADAP_PURE, name="adap-ucb", build=_adap_ucb, parts=PURE_PARTS,
        bound=_in_episodes(_adap_ucb, f"{_ADAP}, the proof of Theorem 7"),
    ),
    _on_sums(
        _ADAP_PURE, name="adap-klucb", build=_adap_klucb, parts=KL_PARTS,
        bound=_in_episodes(_adap_klucb, f"{_ADAP}, the proof of Theorem 7, by Pinsker's inequality"),
    ),
    _entry(
        Form(f"{_EVEN_DAR}, in epochs"), name="dp-se", build=_se, parameters=_EPOCHS, in_audit=_short_epochs(_se),
        bound=_in_epochs(_se, _EVEN_DAR), seed_name="se",
    ),
    _entry(
        of_rewards(
            f"{_SAJED_SHEFFET}, Algorithm 2", "pure", "privacy theorem of Algorithm 2", _SAJED_SHEFFET, ("printed",)
        ),
        name="dp-se", build=_dp_se, parameters=_EPOCHS, in_audit=_short_epochs(_dp_se),
        bound=_in_epochs(_dp_se, _SAJED_SHEFFET),
    ),
    _entry(
        of_rewards(
            f"{_MISHRA_THAKURTA}, Algorithm 1, with an exact width", "pure", "privacy theorem of Algorithm 1",
            _MISHRA_THAKURTA,
        ),
        name="dp-ucb", build=_dp_ucb, parameters=_TREE_BETA, bound=_in_a_tree,
    ),
)  # fmt: skip
