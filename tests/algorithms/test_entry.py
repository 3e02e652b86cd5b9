"""Catalog lines: what settings they take, what they promise, and how they shorten what replays play."""

import dataclasses
import math
import re

import numpy as np
import pytest
from mixture_models import mixture

from bandana.algorithms.catalog import CATALOG, find
from bandana.algorithms.entry import Settings, claim_of, fitting, kind_of
from bandana.algorithms.epochs import GrowingEpochs
from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.problem import Problem
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, Interval, PureDP, Relation, RenyiDP, TrustModel

UNIT = Interval(0.0, 1.0)
ARMS = Problem(2, UNIT, 64)
PLANE = Problem(2, UNIT, 64, ((1.0, 0.0), (0.0, 1.0)))
VECTORS = Problem(3, UNIT, 64, dimension=2)
KERNEL = SquaredExponential(0.5)
POOL = Pool(np.random.default_rng(0).uniform(-0.7, 0.7, (2, 3, 2)), np.array([0.5, 0.5]))
POINTS, POOLED = (
    Problem(3, UNIT, 64, dimension=2, kernel=KERNEL),
    Problem(3, UNIT, 64, dimension=2, kernel=KERNEL, pool=POOL),
)
EPISODES = Problem(2, UNIT, 64, model=LinearModel(np.eye(2).reshape(1, 2, 2), 2))
PROBLEMS = {"finite": ARMS, "linear": PLANE, "contextual": VECTORS, "kernel": POINTS, "pooled": POOLED}
PROBLEMS |= {"linear-mdp": EPISODES, "linear-mixture": Problem(2, UNIT, 64, model=mixture()[0])}
LEVELS = {"renyi": RenyiDP(2.0, 0.1), "pure": PureDP(0.1), "approximate": ApproxDP(0.1, 1e-6), "zcdp": ZCDP(0.05)}
PRIVATE = [entry for entry in CATALOG if entry.promise]
by_name = {"ids": lambda entry: entry.label}


def settings_of(entry, **parameters):
    problem = PROBLEMS[entry.plays_on[-1]]
    level = (entry.calibrations[0], LEVELS[entry.guarantee]) if entry.promise else ()
    return entry.settings(problem, *level, **parameters)


def test_a_problem_knows_its_kind_and_its_horizon():
    assert [problem.kind for problem in PROBLEMS.values()] == list(PROBLEMS)
    assert ARMS.known_horizon == 64
    with pytest.raises(ValueError, match="needs the horizon"):
        _ = Problem(2, UNIT).known_horizon


def test_the_kind_of_a_guarantee():
    assert {kind: kind_of(level) for kind, level in LEVELS.items()} == {kind: kind for kind in LEVELS}
    with pytest.raises(ValueError, match="must be a RenyiDP, a PureDP, an ApproxDP or a ZCDP, got"):
        kind_of(GaussianDP(1.0))


def test_parameters_that_are_left_out_have_the_entry_s_value():
    assert find("adar-ucb").settings(ARMS, "tight", LEVELS["renyi"]).parameters == {"beta": 3.1}
    assert find("gope").settings(PLANE).parameters == {"failure": 1 / 64, "beta_scale": 1.0}
    assert find("gope").settings(PLANE, failure=0.2).parameters == {"failure": 0.2, "beta_scale": 1.0}
    assert find("gope").settings(PLANE).with_parameters(beta_scale=0.5).parameters == {"failure": 1 / 64, "beta_scale": 0.5}
    with pytest.raises(ValueError, match="needs the horizon"):
        find("gope").settings(dataclasses.replace(PLANE, horizon=None))


LEVEL = {"epsilon": 0.5, "privacy_delta": 1e-6}


def test_what_is_shown_holds_the_level_and_every_parameter():
    level = ApproxDP(0.5, 1e-6)
    shown = find("linucb joint").settings(VECTORS, "tree", level, ridge=2.0).shown()
    assert shown == {"failure": 1 / 64, "beta_scale": 1.0, "ridge": 2.0, "epochs": "one", **LEVEL}
    assert Settings(ARMS, {}, "tight", RenyiDP(2.0, 1.0)).shown() == {"alpha": 2.0, "epsilon": 1.0}
    assert Settings(ARMS, {}, "tight", PureDP(3.0)).shown() == {"epsilon": 3.0}
    assert Settings(ARMS, {"beta": 2.0}).shown() == {"beta": 2.0}


REFUSED = [
    ("ucb", ARMS, (None, PureDP(1.0)), {}, "ucb is not private: it takes neither a calibration nor a privacy level"),
    ("ucb", ARMS, ("tight",), {}, "ucb is not private"),
    ("ucb", VECTORS, (), {}, "ucb plays on finite and linear problems, not on a contextual one"),
    ("gope", ARMS, (), {}, "gope plays on linear problems, not on a finite one"),
    ("linucb non-private", PLANE, (), {}, "linucb non-private plays on contextual problems, not on a linear one"),
    ("ucb", ARMS, (), {"ridge": 1.0}, "ucb takes no parameter ridge; its parameters are: beta"),
    ("adar-ucb", ARMS, (None, LEVELS["renyi"]), {}, "calibration of adar-ucb must be one of printed, tight, got None"),
    ("adar-ucb", ARMS, ("tree", LEVELS["renyi"]), {}, "calibration of adar-ucb must be one of printed, tight, got 'tree'"),
    ("adar-ucb", ARMS, ("tight",), {}, "adar-ucb needs a privacy level"),
    ("adar-ucb", ARMS, ("tight", PureDP(1.0)), {}, "adar-ucb promises renyi privacy, got 1-DP"),
    ("dp-se", ARMS, ("printed", RenyiDP(2.0, 1.0)), {}, "dp-se promises pure privacy, got (2, 1)-RDP"),
    (
        "dp-bai",
        ARMS,
        ("printed", PureDP(1.0)),
        {},
        "calibration of dp-bai must be one of as-known, tight, got 'printed': we could not read what its paper",
    ),
    ("dp-bai", ARMS, ("loose", PureDP(1.0)), {}, "must be one of as-known, tight, got 'loose'"),
    ("linucb local", VECTORS, ("tight", PureDP(1.0)), {}, "linucb local promises approximate privacy, got 1-DP"),
    ("adar-ucb", ARMS, ("tight", GaussianDP(1.0)), {}, "must be a RenyiDP, a PureDP, an ApproxDP or a ZCDP, got"),
]


@pytest.mark.parametrize(("name", "problem", "level", "parameters", "message"), REFUSED)
def test_settings_that_do_not_fit_are_refused(name, problem, level, parameters, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        find(name).settings(problem, *level, **parameters)


@pytest.mark.parametrize("entry", PRIVATE, **by_name)
def test_the_test_budget_is_one_gdp_and_of_the_same_kind(entry):
    settings = settings_of(entry)
    near = entry.at_test_budget(settings)
    assert kind_of(near.privacy) == entry.guarantee
    assert entry.promise(near).gaussian.mu == pytest.approx(1.0, abs=2e-4)
    assert entry.promise(near).gaussian.mu <= 1 + 1e-9
    assert entry.promise(settings).gaussian.mu < 0.9
    assert dataclasses.replace(near, privacy=settings.privacy) == settings


def test_a_claim_says_who_sees_what_and_becomes_gdp():
    scope = {"relation": Relation.REPLACE_REWARD, "trust": TrustModel.JOINT}
    for privacy, mu in (
        (RenyiDP(8.0, 1.0, **scope), 0.5),
        (PureDP(0.8069, **scope), 1.0),
        (ApproxDP(GaussianDP(1.0).epsilon(1e-5), 1e-5, **scope), 1.0),
    ):
        claim = claim_of(privacy, "all actions", "Theorem 0", "Nobody", "one round")
        assert claim.stated is privacy
        assert claim.gaussian.mu == pytest.approx(mu, abs=2e-4)
        assert (claim.relation, claim.trust) == (claim.gaussian.relation, claim.gaussian.trust) == tuple(scope.values())
        assert claim.statement == f"all actions are {privacy}"
        assert (claim.theorem, claim.source, claim.unit) == ("Theorem 0", "Nobody", "one round")


def test_the_epsilon_of_a_pure_claim_is_its_own():
    """The Gaussian DP that follows from it has a far larger one at a small delta."""
    claim = claim_of(PureDP(1.0), "all actions", "", "", "")
    assert claim.epsilon_at(1e-5) == pytest.approx(1.0, abs=1e-4)
    assert claim.epsilon_at(1e-5) <= 1
    assert claim.gaussian.epsilon(1e-5) > 5
    renyi = claim_of(RenyiDP(2.0, 1.0), "all actions", "", "", "")
    assert renyi.epsilon_at(1e-5) == GaussianDP(1.0).epsilon(1e-5)


@pytest.mark.parametrize("entry", [entry for entry in CATALOG if entry.name == "dp-se"], **by_name)
@pytest.mark.parametrize("horizon", [16, 64, 256])
def test_epochs_of_an_audit_are_short(entry, horizon):
    settings = dataclasses.replace(settings_of(entry), problem=dataclasses.replace(PROBLEMS["linear"], horizon=horizon))
    played = entry.in_audit(settings)
    _, released = entry.build(played).init(1)
    assert 4 * int(released.left[0]) * 2 <= horizon
    assert (played.privacy, played.calibration, played.problem) == (settings.privacy, settings.calibration, settings.problem)


def shortening(rounds, least, horizon=64):
    """An algorithm whose first release takes `rounds` times its parameter, and never less than `least`."""
    settings = Settings(Problem(2, UNIT, horizon), {"length": 1.0})
    return fitting(settings, "length", lambda chosen: max(least, int(rounds * chosen.parameters["length"])))


def test_a_parameter_is_halved_until_several_releases_fit():
    assert shortening(4, 1).parameters == {"length": 1.0}
    assert shortening(5, 1).parameters == {"length": 0.5}
    assert shortening(1000, 1).parameters == {"length": 2.0**-8}


def test_where_no_more_can_be_had_the_longest_of_the_earliest_is_taken():
    assert shortening(100, 10).parameters == {"length": 2.0**-4}
    assert shortening(16, 16).parameters == {"length": 1.0}


def test_rounds_that_are_too_few_are_told_with_those_that_suffice():
    with pytest.raises(ValueError, match="64 rounds are too few for an audit of it: the first release takes 17, ask for 68"):
        shortening(100, 17)
    assert shortening(100, 17, 68)


def test_seeds_count_names_by_place_and_leave_out_the_default_of_a_later_parameter():
    """Otherwise a reworded name or a new parameter would draw other noise for every result there is."""
    joint = find("ucrl-vtr joint pure")
    reading = joint.parameters["reading"]
    assert [reading.in_seeds(name) for name in (*reading.options, reading.default)] == [1, 2.0, 2.0]
    batches = find("lsvi-ucb joint").parameters["batches"]
    assert [batches.in_seeds(name) for name in (None, *batches.options)] == [0.0, 1, 2, 3]
    linucb = find("linucb joint")
    settings = linucb.settings(VECTORS, "tight", ApproxDP(0.5, 1e-6))
    assert linucb.seed_parameters(settings) == {"failure": 1 / 64, "beta_scale": 1.0, "ridge": 1.0, **LEVEL}
    assert linucb.seed_parameters(settings.with_parameters(epochs="growing"))["epochs"] == 2


@pytest.mark.parametrize("name", ["linucb non-private", "linucb joint", "linucb local"])
def test_an_unknown_horizon_is_played_in_growing_epochs(name):
    entry = find(name)
    level = ("tight", ApproxDP(0.5, 1e-6)) if entry.is_private else (None, None)
    settings = entry.settings(dataclasses.replace(VECTORS, horizon=5000), *level, epochs="growing")
    algorithm = entry.build(settings)
    assert isinstance(algorithm, GrowingEpochs)
    assert [algorithm.start_of(epoch) for epoch in range(3)] == [0, 32, 32 + 1024]
    known = [entry.build(entry.settings(dataclasses.replace(VECTORS, horizon=n), *level)) for n in (32, 1024)]
    assert [algorithm._algorithm(epoch) for epoch in range(2)] == known
    bound = entry.bound(settings, None, np.array([5000]))
    assert 0 < bound.values[0] <= 5000
    assert "the sum over all epochs" in bound.text
    assert entry.in_audit(settings).parameters["epochs"] == "one"
    given = entry.build(settings.with_parameters(failure=0.3))
    assert given._algorithm(1).failure == 0.3


@pytest.mark.parametrize(
    "parameter", {p.name: p for e in CATALOG for p in e.parameters.values()}.values(), ids=lambda p: p.name
)
def test_a_parameter_is_declared_with_meaning_default_and_check(parameter):
    assert parameter.meaning.endswith(".")
    assert parameter.shown_default
    assert parameter.check(parameter.default) == parameter.default
    for wrong in (0, -1.0, math.nan, math.inf, "x", True):
        with pytest.raises(ValueError, match=f"^{parameter.name} must be "):
            parameter.check(wrong)


MIXED = dataclasses.replace(
    find("linucb joint"),
    calibrations=("printed", "tight"),
    parts={"printed": {"noise": "printed", "sum": "tree"}, "tight": {"noise": "tight", "sum": "factorized"}},
)


def test_calibration_is_taken_apart() -> None:
    assert MIXED.part_options == {"noise": ("printed", "tight"), "sum": ("tree", "factorized")}
    assert MIXED.calibrated("tight") == ("tight", {"noise": "tight", "sum": "factorized"})
    assert MIXED.calibrated({"sum": "factorized", "noise": "printed"})[0] == "noise=printed sum=factorized"
    assert MIXED.calibrated({"noise": "printed", "sum": "tree"})[0] == "printed"


@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        ("loose", "must be one of printed, tight, got 'loose'"),
        ({"noise": "printed"}, "'sum' is missing, one of: tree, factorized"),
        ({"noise": "printed", "sum": "tree", "width": "exact"}, "have no part 'width'; the parts are: noise, sum"),
        ({"noise": "loud", "sum": "tree"}, "noise of linucb joint must be one of printed, tight, got 'loud'"),
    ],
)
def test_wrong_mixture_names_part_and_options(calibration: str | dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MIXED.calibrated(calibration)
