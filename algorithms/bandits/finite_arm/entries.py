"""Catalog lines of bandits with finitely many arms."""

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
from bandana.algorithms.bandits.finite_arm.tree_ucb import TreeUCB, dp_ucb
from bandana.algorithms.entry import (
    AZIZE_BASU,
    Bound,
    Claim,
    Entry,
    RegretBound,
    Settings,
    concentrated_of,
    first_user,
    fitting,
    pure_of,
    renyi_of,
    reward_claim,
)
from bandana.algorithms.parameters import FAILURE, Parameter, declared
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.privacy_core import RenyiDP

_ADAP = "Azize and Basu (2022), When Privacy Meets Partial Information"
_SAJED_SHEFFET = "Sajed and Sheffet (2019), An optimal private stochastic-MAB algorithm"
_MISHRA_THAKURTA = "Mishra and Thakurta (2015), (Nearly) optimal differentially private stochastic multi-arm bandits"
_EVEN_DAR = "Even-Dar, Mannor and Mansour (2002), PAC bounds for multi-armed bandit and Markov decision processes"
_ADAC = "Azize and Basu (2024), Concentrated Differential Privacy for Bandits"
_PURE = "epsilon-DP of all actions, replace one reward"
_BETA = declared(Parameter("beta", "Exploration of the index: its width grows with the root of beta log t.", 3.1))
_TREE_BETA = declared(Parameter("beta", "Exploration of the index: its width grows with the root of beta log t.", 4.0))
_EPOCHS = declared(FAILURE, Parameter("length_scale", "Factor on the length of epochs; the theorem requires 1.", 1.0))


def _ucb(settings: Settings, doubling: bool = False) -> EpisodicUCB:
    problem = settings.problem
    return ucb(problem.n_actions, settings.parameters["beta"], problem.reward_range, doubling)


def _adar_ucb(settings: Settings) -> Algorithm:
    problem, privacy = settings.problem, renyi_of(settings)
    return adar_ucb(
        problem.n_actions, privacy.alpha, privacy.epsilon, settings.parameters["beta"], problem.reward_range, settings.parts
    )


def _adac_ucb(settings: Settings) -> EpisodicUCB:
    problem, rho = settings.problem, concentrated_of(settings).rho
    return adac_ucb(problem.n_actions, rho, settings.parameters["beta"], problem.reward_range, settings.parts)


def _adap_ucb(settings: Settings) -> EpisodicUCB:
    problem, beta = settings.problem, settings.parameters["beta"]
    return adap_ucb(problem.n_actions, pure_of(settings).epsilon, beta, problem.reward_range, settings.parts)


def _adap_klucb(settings: Settings) -> EpisodicUCB:
    problem = settings.problem
    beta, parts = settings.parameters["beta"], settings.parts
    return adap_klucb(problem.n_actions, pure_of(settings).epsilon, beta, problem.reward_range, parts)


def _dp_ucb(settings: Settings) -> TreeUCB:
    problem, beta = settings.problem, settings.parameters["beta"]
    return dp_ucb(problem.n_actions, pure_of(settings).epsilon, beta, problem.reward_range, problem.known_horizon)


def _se(settings: Settings) -> SuccessiveElimination:
    problem, given = settings.problem, settings.parameters
    return successive_elimination(problem.n_actions, given["failure"], problem.reward_range, given["length_scale"])


def _dp_se(settings: Settings) -> SuccessiveElimination:
    problem, given = settings.problem, settings.parameters
    epsilon = pure_of(settings).epsilon
    return dp_se(problem.n_actions, epsilon, given["failure"], problem.reward_range, given["length_scale"])


def _short_epochs(build: Callable[[Settings], SuccessiveElimination]) -> Callable[[Settings], Settings]:
    """Settings with epochs of which several fit into the rounds of an audit."""

    def first(chosen: Settings) -> int:
        _, released = build(chosen).init(1)
        return int(released.left[0]) * chosen.problem.n_actions

    return lambda settings: fitting(settings.with_parameters(failure=0.1), "length_scale", first)


def _claim(theorem: str, source: str) -> Callable[[Settings], Claim]:
    return lambda settings: reward_claim(settings, theorem, source)


_CAPPED = "gaps in units of the range's width; never above the largest gap times t"


def _theorem_5(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    """The smaller of Theorem 5, where means may be known, and Corollary 6, which holds for all."""
    privacy, beta, problem = renyi_of(settings), settings.parameters["beta"], settings.problem
    if beta <= 3:
        return None
    level = f"beta = {beta:g}, alpha = {privacy.alpha:g}, epsilon = {privacy.epsilon:g}"
    of_all = corollary_6_bound(grid, problem.n_actions, privacy.alpha, privacy.epsilon, beta, problem.reward_range)
    corollary = (
        "Corollary 6 with the constants that it leaves open: sqrt(32 beta (K - 1) t log t) + (K - 1) (8 sqrt(beta (alpha / "
        f"epsilon) log t) + 2 beta / (beta - 3)), K = {problem.n_actions}"
    )
    if means is None:
        return RegretBound(
            of_all, f"{AZIZE_BASU}, expected regret, whatever the means are, {corollary}, {level}; at most the width times t"
        )
    return RegretBound(
        np.minimum(theorem_5_bound(grid, means, privacy.alpha, privacy.epsilon, beta, problem.reward_range), of_all),
        f"{AZIZE_BASU}, Theorem 5, expected regret: sum over arms of 8 beta log(t) / gap + 8 sqrt(beta (alpha / epsilon)"
        f" log t) + 2 beta / (beta - 3), {level}; {_CAPPED}; where it is smaller, {corollary}",
    )


def _theorem_5_at_rho(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    """Theorem 5 of AdaR-UCB, of which only alpha / epsilon = 1 / rho matters."""
    rho = concentrated_of(settings).rho
    found = _theorem_5(replace(settings, privacy=RenyiDP(2.0, 2 * rho)), means, grid)
    if found is None:
        return None
    return found._replace(text=f"AdaC-UCB is AdaR-UCB at alpha / epsilon = 1 / rho, rho = {rho:g}: {found.text}")


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
        noise = f", epsilon = {pure_of(settings).epsilon:g}" if settings.privacy is not None else ""
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
            f"{algorithm.length_scale:g}; {_WORST_FIRST}; exceeded with probability at most {algorithm.failure:.3g}",
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


def _first_pull_and_first_index(n_actions: int) -> tuple[int, ...]:
    """Also the first round whose arm was chosen by an index: an episode of one round, always released."""
    return (0, n_actions)


_episodic_ucb = partial(_ucb, doubling=True)
_twin = partial(Entry, family="bandits/finite_arm", privacy_model="none", guarantee=None, calibrations=())
_pure = partial(Entry, family="bandits/finite_arm", privacy_model="central", guarantee="pure", claim=_PURE)
_on_gaussian_sums = partial(
    Entry,
    family="bandits/finite_arm",
    privacy_model="central",
    calibrations=("printed", "tight"),
    parameters=_BETA,
    parts=PARTS,
    probes=_first_pull_and_first_index,
)
_in_episodes_without_noise = partial(
    _twin,
    claim="none: the non-private twin, in the same episodes",
    source=f"{_ADAP}, Algorithm 1 without noise",
    build=_episodic_ucb,
    parameters=_BETA,
    bound=_in_episodes(_episodic_ucb, f"{_ADAP}, Theorem 7 without noise"),
    seed_name="ucb-episodic",
)

ENTRIES = (
    _twin(
        name="ucb",
        claim="none: the non-private twin",
        source="Auer, Cesa-Bianchi and Fischer (2002), Finite-time analysis of the multiarmed bandit problem, UCB1",
        build=_ucb,
        parameters=_BETA,
        bound=_theorem_1,
    ),
    _in_episodes_without_noise(name="adar-ucb"),
    _on_gaussian_sums(
        name="adar-ucb",
        guarantee="renyi",
        claim="(alpha, epsilon)-RDP of all actions, replace one reward; as GDP, mu = sqrt(2 epsilon / alpha)",
        source=f"{AZIZE_BASU}, Algorithm 2 and Theorem 4",
        build=_adar_ucb,
        promise=_claim("Theorem 4", AZIZE_BASU),
        bound=_theorem_5,
    ),
    _in_episodes_without_noise(name="adac-ucb"),
    _on_gaussian_sums(
        name="adac-ucb",
        guarantee="zcdp",
        claim="rho-zCDP of all actions, replace one reward; as GDP, mu = sqrt(2 rho)",
        source=f"{_ADAC}, AdaC-UCB",
        build=_adac_ucb,
        promise=_claim("the privacy theorem of AdaC-UCB", _ADAC),
        bound=_theorem_5_at_rho,
    ),
    _in_episodes_without_noise(name="adap-ucb"),
    _pure(
        name="adap-ucb",
        calibrations=("printed", "tight"),
        source=f"{_ADAP}, Algorithm 1 and Theorem 6",
        build=_adap_ucb,
        parameters=_BETA,
        parts=PURE_PARTS,
        promise=_claim("Theorem 6", _ADAP),
        probes=_first_pull_and_first_index,
        bound=_in_episodes(_adap_ucb, f"{_ADAP}, the proof of Theorem 7"),
    ),
    _pure(
        name="adap-klucb",
        calibrations=("printed", "tight"),
        source=f"{_ADAP}, Algorithm 1 and Theorem 6",
        build=_adap_klucb,
        parameters=_BETA,
        parts=KL_PARTS,
        promise=_claim("Theorem 6", _ADAP),
        probes=_first_pull_and_first_index,
        bound=_in_episodes(_adap_klucb, f"{_ADAP}, the proof of Theorem 7, by Pinsker's inequality"),
    ),
    _twin(
        name="dp-se",
        claim="none: the non-private twin",
        source=f"{_EVEN_DAR}, in epochs",
        build=_se,
        parameters=_EPOCHS,
        in_audit=_short_epochs(_se),
        bound=_in_epochs(_se, _EVEN_DAR),
        seed_name="se",
    ),
    _pure(
        name="dp-se",
        calibrations=("printed",),
        source=f"{_SAJED_SHEFFET}, Algorithm 2",
        build=_dp_se,
        parameters=_EPOCHS,
        promise=_claim("privacy theorem of Algorithm 2", _SAJED_SHEFFET),
        probes=first_user,
        in_audit=_short_epochs(_dp_se),
        bound=_in_epochs(_dp_se, _SAJED_SHEFFET),
    ),
    _pure(
        name="dp-ucb",
        calibrations=("tight",),
        source=f"{_MISHRA_THAKURTA}, Algorithm 1, with an exact width",
        build=_dp_ucb,
        parameters=_TREE_BETA,
        promise=_claim("privacy theorem of Algorithm 1", _MISHRA_THAKURTA),
        probes=first_user,
        bound=_in_a_tree,
    ),
)
