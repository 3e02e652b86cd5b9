"""Catalog entries for finite Markov decision processes without structure."""

from __future__ import annotations

from functools import partial

from bandana.algorithms.entry import AS_KNOWN, Form, RegretBound, Settings, built_by
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, Kind, Parameter, declared
from bandana.algorithms.problem import LINEAR_MDP, MIXTURE
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rl.tabular.forms import UCBVISettings
from bandana.algorithms.rl.tabular.regret_bound import is_proved, regret_bound
from bandana.algorithms.rl.tabular.ucb_vi import BONUSES, UCBVI, UNIT
from bandana.privacy_core import TrustModel

_AZAR = "Azar, Osband and Munos (2017), Minimax regret bounds for reinforcement learning"
_VIETRI = "Vietri, Balle, Krishnamurthy and Wu (2020), Private reinforcement learning with PAC and regret guarantees"
_QIAO = "Qiao and Wang (2023), Near-optimal differentially private reinforcement learning"
_GARCELON = (
    "Garcelon, Perchet, Pike-Burke and Pirotta (2021), Local differential privacy for regret minimization in reinforcement "
    "learning"
)
_OTHERS, _MESSAGES = "the actions of all other users and the final policy", "a user's messages"
_RECORD = "one user's episode (states, actions and rewards)"
_PARAMETERS = declared(
    FAILURE,
    BETA_SCALE,
    Parameter(
        "looks", "How often the policy is planned anew, at most.", None, Kind.COUNT,
        otherwise="after every floor(sqrt(horizon)) episodes",
    ),
)  # fmt: skip
_AUDIT_SHAPE, _AUDIT_SCALE = (2, 3), 0.01


def _built(bonus: str, trust: TrustModel | None, settings: Settings) -> UCBVI:
    problem = settings.problem
    assert problem.model is not None
    if problem.reward_range.low < UNIT.low or problem.reward_range.high > UNIT.high:
        raise ValueError(f"UCB-VI is made for rewards in [0, 1], got the range {problem.reward_range}: scale them")
    model = problem.model
    build = built_by(UCBVISettings, n_states=model.n_states, episode_length=model.horizon, trust=trust, bonus=bonus)
    algorithm: UCBVI = build(settings)
    return algorithm


def _in_audit(settings: Settings) -> Settings:
    """A look after every episode, and widths so narrow that what is decided depends on all that is released."""
    return settings.with_parameters(looks=settings.problem.known_horizon, beta_scale=_AUDIT_SCALE)


def _bound(bonus: str, form: Form, settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    """The bound with the constants of the algorithm that is built."""
    algorithm = _built(bonus, form.trust, settings)
    if not is_proved(algorithm):
        return None
    text = (
        f"{form.paper}, with widths of our own: sum_h [2 B S A cap_h + 2 sqrt(2 S A k) W_h + 2 S A (1 + log k) G_h] + "
        "sqrt(k sum_h cap_h^2 log(1/failure) / 2), and at most k sum_h cap_h. Here "
        f"B = {algorithm.looks[0]}, {algorithm.bonus} bonus. Exceeded with probability at most {2 * algorithm.failure:.3g}"
    )
    return RegretBound(regret_bound(algorithm, grid), text)


_FORMS = (
    Form(f"{_AZAR}, UCBVI, in batches", _AZAR),
    Form(
        f"{_QIAO}, Section 4, with Gaussian noise on all counters at once", _QIAO, TrustModel.JOINT, "approximate",
        ("tight",), f"(epsilon, delta)-joint DP: {_OTHERS}, replace one episode", _OTHERS,
        "derived here, after their central privatizer",
    ),
    Form(
        f"{_VIETRI}, PUCB", _VIETRI, TrustModel.JOINT, "pure", (AS_KNOWN, "tight"),
        f"epsilon-joint DP: {_OTHERS}, replace one episode", _OTHERS, "the theorem on PUCB's privacy, with twice its noise",
    ),
    Form(
        f"{_GARCELON}, LDP-OBI, with Gaussian noise on all counters at once", _GARCELON, TrustModel.LOCAL, "approximate",
        ("tight",), f"(epsilon, delta)-local DP: {_MESSAGES}, replace one episode", _MESSAGES,
        "derived here, after LDP-OBI",
    ),
    Form(
        f"{_GARCELON}, LDP-OBI", _GARCELON, TrustModel.LOCAL, "pure", (AS_KNOWN, "tight"),
        f"epsilon-local DP: {_MESSAGES}, replace one episode", _MESSAGES, "the theorem on LDP-OBI's privacy",
    ),
)  # fmt: skip
_OF_VARIANCES = (
    Form(f"{_AZAR}, UCBVI with variances, in batches, with bounds on both sides", _AZAR),
    *(
        Form(
            f"{_QIAO}, DP-UCBVI, with constants and noise of our own", _QIAO, trust, guarantee, ("tight",),
            f"{level}-{trust} DP: {whose}, replace one episode", whose, f"derived here, after {theorem}",
        )
        for trust, whose, theorem in (
            (TrustModel.JOINT, _OTHERS, "the central privatizer"), (TrustModel.LOCAL, _MESSAGES, "the local privatizer"),
        )
        for guarantee, level in (("approximate", "(epsilon, delta)"), ("pure", "epsilon"))
    ),
)  # fmt: skip

ENTRIES = tuple(
    form.entry(
        name,
        "rl/tabular",
        partial(_built, bonus, form.trust),
        _RECORD,
        plays_on=(LINEAR_MDP, MIXTURE),
        parameters=_PARAMETERS,
        in_audit=_in_audit,
        audit_shape=_AUDIT_SHAPE,
        bound=partial(_bound, bonus, form),
    )
    for name, bonus, forms in (("ucb-vi", BONUSES[0], _FORMS), ("dp-ucbvi", BONUSES[1], _OF_VARIANCES))
    for form in forms
)
