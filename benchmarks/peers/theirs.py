"""What public libraries play and account; their own interpreter runs this file, and nothing of ours is there.

    ENVIRONMENT/bin/python benchmarks/peers/theirs.py < requests

Every function plays `replications` copies and returns units of work and what is compared: regrets, pulls or epsilons.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import problems as p
import public_tools
from answering import Task, answer_all

warnings.filterwarnings("ignore")
Policy = tuple[Callable[[], int], Callable[[int, float], None]]
"""Chooses an arm; learns its reward."""


# --- finitely many arms: one policy a replication ---------------------------------------------------------------------


def _river(name: str, seed: int) -> Policy:
    bandit = import_module("river.bandit")
    if name == "ucb":
        policy: Any = bandit.UCB(delta=1, seed=seed)
    else:
        policy = bandit.ThompsonSampling(reward_obj=import_module("river.proba").Beta(), seed=seed)
    arms = list(range(len(p.MEANS)))
    return lambda: policy.pull(arms), policy.update


def _mabwiser(name: str, seed: int) -> Policy:
    """Its UCB1 needs one pull of each arm before it can decide."""
    mab = import_module("mabwiser.mab")
    rule = mab.LearningPolicy.UCB1(alpha=1) if name == "ucb" else mab.LearningPolicy.ThompsonSampling()
    policy = mab.MAB(list(range(len(p.MEANS))), rule, seed=seed)
    first: list[float] = []

    def choose() -> int:
        return len(first) if len(first) < len(p.MEANS) else int(policy.predict())

    def learn(arm: int, reward: float) -> None:
        if len(first) == len(p.MEANS):
            policy.partial_fit([arm], [reward])
            return
        first.append(reward)
        if len(first) == len(p.MEANS):
            policy.fit(list(range(len(first))), first)

    return choose, learn


def _smpybandits(name: str, seed: int) -> Policy:
    """SciPy gave `btdtri` the name `betaincinv`: the package is imported with both."""
    special: Any = import_module("scipy.special")
    special.btdtri = special.betaincinv
    np.random.seed(seed % 2**32)  # noqa: NPY002  (the library draws from it)
    random.seed(seed)
    policies = import_module("SMPyBandits.Policies")
    policy = (policies.UCB if name == "ucb" else policies.Thompson)(len(p.MEANS))
    policy.startGame()
    return policy.choice, policy.getReward


def _arms(policy_of: Callable[[str, int], Policy], name: str) -> Task:
    """Pseudo-regret of Bernoulli arms."""

    def play(replications: int, seed: int) -> tuple[int, list[float]]:
        regrets = []
        for replication in range(replications):
            uniforms = np.random.default_rng([seed, replication]).random(p.ROUNDS).tolist()
            choose, learn = policy_of(name, 1000 * seed + replication)
            means, best, regret = p.MEANS.tolist(), float(p.MEANS.max()), 0.0
            for uniform in uniforms:
                arm = choose()
                learn(arm, float(uniform < means[arm]))
                regret += best - means[arm]
            regrets.append(regret)
        return replications * p.ROUNDS, regrets

    return play


def _tape(policy_of: Callable[[str, int], Policy]) -> Task:
    """Pulls of each arm by UCB1 on rewards that both sides are given."""

    def play(replications: int, seed: int) -> tuple[int, list[list[int]]]:
        measured = []
        for replication in range(replications):
            rewards, counts = p.pulls(1000 * seed + replication), [0] * len(p.MEANS)
            choose, learn = policy_of("ucb", replication)
            for _ in range(p.ROUNDS):
                arm = int(choose())
                learn(arm, float(rewards[arm, counts[arm]]))
                counts[arm] += 1
            measured.append(counts)
        return replications * p.ROUNDS, measured

    return play


# --- linear arms: one model an arm ------------------------------------------------------------------------------------


def _linear(policy_of: Callable[[], tuple[Any, Any]]) -> Task:
    """Actions of all users, one after the other."""

    def play(replications: int, seed: int) -> tuple[int, list[list[int]]]:
        measured = []
        for replication in range(replications):
            users = p.contexts(1000 * seed + replication)
            choose, learn = policy_of()
            actions = []
            for vector, rewards in zip(users.vectors, users.rewards, strict=True):
                action = int(choose(vector))
                learn(vector, action, rewards[action])
                actions.append(action)
            measured.append(actions)
        return replications * p.USERS, measured

    return play


def _mabwiser_linear() -> tuple[Any, Any]:
    mab = import_module("mabwiser.mab")
    policy = mab.MAB(list(range(p.N_ARMS)), mab.LearningPolicy.LinUCB(alpha=p.WIDTH, l2_lambda=p.RIDGE))
    began: list[bool] = []

    def choose(vector: Any) -> int:
        return int(policy.predict(vector[None])) if began else 0

    def learn(vector: Any, action: int, reward: float) -> None:
        (policy.partial_fit if began else policy.fit)([action], [reward], vector[None])
        began.append(True)

    return choose, learn


def _contextualbandits() -> tuple[Any, Any]:
    online = import_module("contextualbandits.online")
    policy = online.LinUCB(
        p.N_ARMS, alpha=p.WIDTH, lambda_=p.RIDGE, fit_intercept=False, use_float=False, ucb_from_empty=True, random_state=1
    )
    began: list[bool] = []

    def choose(vector: Any) -> int:
        return int(np.ravel(policy.predict(vector[None]))[0]) if began else 0

    def learn(vector: Any, action: int, reward: float) -> None:
        policy.partial_fit(vector[None], np.array([action]), np.array([reward]))
        began.append(True)

    return choose, learn


def _river_linear() -> tuple[Any, Any]:
    policy = import_module("river.bandit").LinUCBDisjoint(alpha=1.0, beta=1.0, seed=1)
    arms = list(range(p.N_ARMS))

    def as_features(vector: Any) -> dict[int, float]:
        return dict(enumerate(vector.tolist()))

    return (
        lambda vector: policy.pull(arms, context=as_features(vector)),
        lambda vector, action, reward: policy.update(action, as_features(vector), reward),
    )


def _vowpalwabbit() -> tuple[Any, Any]:
    """SquareCB on its own regression by gradient steps."""
    workspace = import_module("vowpalwabbit").Workspace(
        "--cb_explore_adf --squarecb --gamma_scale 10 --random_seed 1 --quiet -q ca --ignore_linear c --noconstant"
    )
    draws = random.Random(1)
    shown: list[Any] = []

    def lines(vector: Any) -> list[str]:
        shared = "shared |c " + " ".join(f"{i}:{value:.6f}" for i, value in enumerate(vector))
        return [shared, *(f"|a a{action}" for action in range(p.N_ARMS))]

    def choose(vector: Any) -> int:
        law = workspace.predict(lines(vector))
        shown[:] = [law]
        return draws.choices(range(p.N_ARMS), law)[0]

    def learn(vector: Any, action: int, reward: float) -> None:
        example = lines(vector)
        example[1 + action] = f"0:{-reward}:{shown[0][action]:.6f} |a a{action}"
        workspace.learn(example)

    return choose, learn


# --- episodes ---------------------------------------------------------------------------------------------------------


def _environment(transitions: Any, rewards: Any, seed: int) -> Any:
    """The process of `problems` as a Gymnasium environment of rlberry's."""
    spaces = import_module("rlberry.spaces")
    model: Any = import_module("rlberry.envs.interface").Model
    cumulative = np.cumsum(transitions, axis=3)

    class Process(model):  # type: ignore[misc]
        name = "process"

        def __init__(self) -> None:
            model.__init__(self)
            self.observation_space = spaces.Discrete(p.N_STATES)
            self.action_space = spaces.Discrete(p.N_ACTIONS)
            self.reward_range = (0.0, 1.0)
            self.generator = np.random.default_rng(seed)
            self.paid = 0.0

        def reset(self, seed: Any = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            self.at = self.step_number = 0
            return 0, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            row = self.step_number, self.at, action
            self.at = int(np.searchsorted(cumulative[row], self.generator.random(), side="right").clip(0, p.N_STATES - 1))
            self.step_number += 1
            self.paid += float(rewards[row])
            return self.at, float(rewards[row]), False, False, {}

    return Process()


def rlberry(replications: int, seed: int) -> tuple[int, list[float]]:
    """Mean reward of the last fifth of the episodes, of UCB-VI that plans after every episode."""
    agent_of = import_module("rlberry_scool.agents.ucbvi").UCBVIAgent
    transitions, rewards = p.process()
    measured = []
    for replication in range(replications):
        environment = _environment(transitions, rewards, 1000 * seed + replication)
        agent = agent_of(environment, horizon=p.LENGTH, stage_dependent=True, bonus_scale_factor=0.1)
        agent.fit(p.EPISODES - p.EPISODES // 5)
        agent.env.paid = 0.0  # the agent plays a copy
        agent.fit(p.EPISODES // 5)
        measured.append(agent.env.paid / (p.EPISODES // 5))
    return replications * p.EPISODES, measured


# --- accounting -------------------------------------------------------------------------------------------------------


def _dp_accounting(kind: str, mixed: bool) -> Task:
    def account(replications: int, seed: int) -> tuple[int, list[float]]:
        library: Any = import_module("dp_accounting")
        measured: list[float] = []
        for _ in range(replications):
            accountant: Any
            if kind == "pld":
                accountant = import_module("dp_accounting.pld").PLDAccountant(value_discretization_interval=1e-4)
            else:
                accountant = import_module("dp_accounting.rdp").RdpAccountant()
            if mixed:
                accountant.compose(library.LaplaceDpEvent(p.LAPLACE), p.MIXED)
                accountant.compose(library.GaussianDpEvent(p.GAUSSIAN), p.MIXED)
            else:
                accountant.compose(library.GaussianDpEvent(p.MULTIPLIER), p.RELEASES)
            measured = [float(accountant.get_epsilon(delta)) for delta in p.DELTAS]
        return replications, measured

    return account


def _opacus(kind: str) -> Task:
    def account(replications: int, seed: int) -> tuple[int, list[float]]:
        measured: list[float] = []
        for _ in range(replications):
            accountant = import_module("opacus.accountants").create_accountant(kind)
            accountant.history = [(p.MULTIPLIER, 1.0, p.RELEASES)]
            measured = [float(accountant.get_epsilon(delta)) for delta in p.DELTAS]
        return replications, measured

    return account


# --- audits -----------------------------------------------------------------------------------------------------------


def _audit(tool: str) -> Task:
    def audit(replications: int, seed: int) -> tuple[int, list[float]]:
        measured = []
        for replication in range(replications):
            data, neighbor = p.samples(1000 * seed + replication)
            measured.append(public_tools.TOOLS[tool].lower(data, neighbor, p.DELTA, p.LEVEL, replication))
        return replications, measured

    return audit


TASKS: dict[str, Task] = {
    **{f"{lib}-{rule}": _arms(of, rule) for lib, of in (
        ("river", _river), ("mabwiser", _mabwiser), ("smpybandits", _smpybandits)) for rule in ("ucb", "thompson")},
    "river-tape": _tape(_river), "mabwiser-tape": _tape(_mabwiser), "smpybandits-tape": _tape(_smpybandits),
    "mabwiser-linear": _linear(_mabwiser_linear), "contextualbandits-linear": _linear(_contextualbandits),
    "river-linear": _linear(_river_linear), "vowpalwabbit-linear": _linear(_vowpalwabbit),
    "rlberry-tabular": rlberry,
    "dp-accounting-pld": _dp_accounting("pld", False), "dp-accounting-rdp": _dp_accounting("rdp", False),
    "dp-accounting-mixed": _dp_accounting("pld", True),
    "opacus-prv": _opacus("prv"), "opacus-rdp": _opacus("rdp"),
    "jax-bonferroni": _audit("jax-bonferroni"), "jax-split": _audit("jax-split"), "jax-gdp": _audit("jax-gdp"),
}  # fmt: skip

if __name__ == "__main__":
    answer_all(TASKS)
