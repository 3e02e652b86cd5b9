"""`bandana calibrate`: the numbers of all private algorithms, what it prints, what machines read, and what it refuses."""

import functools
import inspect
import json
import math
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bandana.algorithms.catalog import CATALOG
from bandana.algorithms.papers.readings import EXTRAS, READINGS
from bandana.flows.annexes.planning import calibrations
from bandana.flows.annexes.planning.calibrations import compare, find, form_of, number, option, verdict
from bandana.flows.annexes.planning.command import calibrate
from bandana.flows.annexes.planning.played_noise import epsilon_of
from bandana.flows.cli import app
from bandana.flows.commands.options import USER_MISTAKE
from bandana.privacy_core import GaussianDP, NoPrivacy, PureDP

PRIVATE = [entry for entry in CATALOG if entry.promise is not None]
FORMS = [" ".join(form_of(entry)) for entry in PRIVATE]
MU = GaussianDP.from_epsilon_delta(1.0, 1e-5).mu


@pytest.fixture(scope="module", autouse=True)
def _played_once():
    """What one test has played is not played again for the same entry, reading and parameters."""
    known = {}

    def remembered(entry, reading, given):
        given = {name: value for name, value in given.items() if value is not None}
        key = " ".join(form_of(entry)), reading, frozenset(given.items())
        if key not in known:
            known[key] = compare(entry, reading, given)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrations, "compare", remembered)
        yield


def _entry(form):
    (found,) = find(*form.split())
    return found


def _small(entry):
    """Parameters at which a run takes little time."""
    found = calibrations.defaults(entry)
    if "dimension" not in found or "linear" in entry.plays_on:
        horizon = 1000 if entry.name == "dp-ucb" else found["horizon"]  # its trees hold every round
    else:
        horizon = 200 if "switch" in found else 60
    return {"horizon": horizon} | ({"n_features": 4} if "n_features" in found else {})


@functools.cache
def _all(form):
    return calibrations.compare(_entry(form), calibrations.ALL_READINGS, _small(_entry(form)))


def _print(form, reading=None, **given):
    """The first calibration in one reading."""
    entry = _entry(form)
    (found,) = compare(entry, reading, _small(entry) | given)
    return found.columns[0]


def _calibrate(*arguments):
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)])


def _arguments(form, *others):
    entry = _entry(form)
    algorithm, model, guarantee = form.split()
    small = [text for name, value in _small(entry).items() for text in (option(name), value)]
    return [algorithm, "--model", model, "--guarantee", guarantee, *small, *others]


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_calibration_of_every_private_algorithm_is_played(form):
    entry = _entry(form)
    for comparison in _all(form):
        assert tuple(column.calibration for column in comparison.columns) == entry.calibrations
        for column in comparison.columns:
            assert column.noise
            assert all(size > 0 for size in column.noise.values())
            least, proved, summed = (epsilon_of(x, column.claim) for x in (column.at_least, column.proved, column.accounted))
            assert 0 < least <= proved * (1 + 1e-12) <= summed * (1 + 1e-9)
            if column.calibration in ("tight", "tree"):
                assert column.is_true
                # Shuffled bits are a whole number a user; test_shuffled.py shows that one less breaks the promise.
                near = 1e-4 if entry.privacy_model == "shuffle" else 1e-6
                assert summed == pytest.approx(column.claimed, rel=near)
                assert column.factor >= 1 - 1e-9


def test_every_reading_but_those_of_l2_constants_is_true_by_default():
    false = {(form, c.reading) for form in FORMS for c in _all(form) if c.columns[0].is_true is not True}
    models = [f"{name} {model} pure" for name in ("ucrl-vtr", "ucrl-vtr-plus") for model in ("joint", "local")]
    assert false == {(form, "l2-constants") for form in models}


@pytest.mark.parametrize(
    ("form", "reading", "given", "mu", "factor"),
    [
        ("capri joint approximate", "natural", {"horizon": 1024}, ".0195", "13.7"),
        ("gp-ucb joint approximate", "consistent", {"horizon": 300}, ".0172", "15.6"),
        ("gp-ucb joint approximate", "sketch", {"horizon": 300}, ".0243", "11.0"),
        ("gp-ucb local approximate", "statement", {"epsilon": 1.0}, ".209", "1.28"),
        ("ucrl-vtr joint approximate", "appendix", {"horizon": 1000}, "6.3e-4", "426"),
        ("ucrl-vtr local approximate", None, {}, ".0394", "6.8"),
        ("ucrl-vtr-plus local approximate", None, {}, ".0272", "9.9"),
        ("lsvi-ucb joint approximate", None, {"horizon": 1000}, "3.95e-5", "6.8e3"),
    ],
)
def test_prints_in_figures(form, reading, given, mu, factor):
    found = _print(form, reading, **given)
    for value, text in ((found.proved.mu, mu), (found.factor, factor)):
        digits = len(text.partition("e")[0].replace(".", "").lstrip("0"))
        assert f"{value:.{digits - 1}e}" == f"{float(text):.{digits - 1}e}"
    assert found.is_true


def test_renyi_bandits_meet_their_claim_with_equality():
    for form in ("adar-ucb central renyi", "adar-gope central renyi", "adar-oful central renyi"):
        for alpha, epsilon in ((2.0, 1.0), (8.0, 0.5)):
            found = _print(form, alpha=alpha, epsilon=epsilon)
            assert found.proved.mu == pytest.approx(math.sqrt(2 * epsilon / alpha))
            assert found.factor == pytest.approx(1, rel=1e-9)
    first = _print("adar-ucb central renyi").noise
    assert first["each release", "first pull", None] == pytest.approx(2 * first["each release", "", None])
    assert _print("adar-oful central renyi", reward_bound=0.5).factor == pytest.approx(2)


FALSE = [
    ("gp-ucb joint approximate", "lemma-12", {"epsilon": 0.01, "horizon": 300}),
    ("gp-ucb joint approximate", "lemma-12-proof", {"epsilon": 0.01, "horizon": 300}),
    ("gp-ucb joint approximate", "sketch", {"noise_scale": 4.0, "has_square": True, "horizon": 300}),
    ("gp-ucb joint approximate", "consistent", {"is_clipped": False}),
    ("gp-ucb joint approximate", "lemma-2", {"is_clipped": False}),
    ("gp-ucb local approximate", "statement", {"is_clipped": False}),
    ("gp-ucb local approximate", "statement", {"epsilon": 8.0, "n_features": 16}),
    ("gp-ucb local approximate", "statement", {"epsilon": 10.0, "delta": 0.1}),
    ("gp-ucb local approximate", "proof", {"noise_scale": 1.25}),
    ("capri joint approximate", "unrooted", {"horizon": 1000, "s_max": 0.033}),
    ("ucrl-vtr joint pure", "l2-constants", {"dimension": 8}),
    ("ucrl-vtr local pure", "l2-constants", {"dimension": 8}),
    ("lsvi-ucb joint pure", "l2-constants", {"dimension": 64, "n_batches": 17, "horizon": 170}),
]


@pytest.mark.parametrize(("form", "reading", "given"), FALSE)
def test_false_claims_are_reported(form, reading, given):
    found = _print(form, reading, **given)
    assert found.is_true is False
    assert epsilon_of(found.at_least, found.claim) > found.claim.epsilon
    assert verdict(found).startswith("The claim is FALSE")


def test_what_makes_a_false_claim_true():
    sketch = {"noise_scale": 4.0, "horizon": 300}
    assert _print("gp-ucb joint approximate", "sketch", **sketch).is_true
    assert _print("lsvi-ucb joint pure", "l1-constants", dimension=64, n_batches=17, horizon=170).is_true
    unclipped = _print("gp-ucb joint approximate", is_clipped=False)
    assert unclipped.proved == NoPrivacy()
    assert unclipped.factor is None


def test_by_how_much_claims_are_false():
    lacking = _print("gp-ucb joint approximate", "lemma-12", epsilon=0.01, horizon=1000)
    assert epsilon_of(lacking.proved, lacking.claim) == pytest.approx(4.8, abs=0.1)
    assert 1 / lacking.factor == pytest.approx(263, abs=1)
    for epsilon, true in ((8.0, 8.03), (10.0, 10.56)):
        found = _print("gp-ucb local approximate", "statement", epsilon=epsilon, n_features=16)
        assert epsilon_of(found.proved, found.claim) == pytest.approx(true, abs=0.005)


def test_other_readings_change_the_loss_as_the_run_would():
    """Equal variances cost 4.5 where the GOE costs 4; base 10 divides the noise; a larger bound multiplies it."""
    appendix, main = (_print("ucrl-vtr joint approximate", reading) for reading in ("appendix", "main-text"))
    assert main.proved.mu / appendix.proved.mu == pytest.approx(math.sqrt(4.5 / 4))
    assert main.noise == appendix.noise
    natural, wide = (_print("capri joint approximate", "natural", **given) for given in ({}, {"sigma_max": 1.04}))
    assert natural.proved.mu / wide.proved.mu == pytest.approx(1.04)
    base = _print("capri joint approximate", "base-10")
    (quantity,) = natural.noise
    assert natural.noise[quantity] / base.noise[quantity] == pytest.approx(base.proved.mu / natural.proved.mu)
    assert natural.proved.mu < base.proved.mu
    bound, square = {"norm_bound": 10.0}, {"has_square": True}
    without, within = (_print("gp-ucb joint approximate", **given) for given in (bound, bound | square))
    assert within.proved.mu / without.proved.mu == pytest.approx(3.57, abs=0.005)
    assert _print("gp-ucb joint approximate", **square) == _print("gp-ucb joint approximate")


def test_a_tail_of_rewards_counts_in_the_bound_and_in_the_noise():
    """Lemma 12 counts it with another constant."""
    y = math.sqrt(1 + 2 * 16 * math.log(8 * 60 / 1e-5))
    for reading, ratio in (("consistent", 1.0), ("lemma-12", (2 + 16 * math.log(4 * 60 / 1e-5)) / (1 + y**2))):
        tail = _print("gp-ucb joint approximate", reading, noise_scale=4.0)
        bounded = _print("gp-ucb joint approximate", reading, norm_bound=y)
        assert bounded.proved.mu / tail.proved.mu == pytest.approx(ratio)


def test_tight_noise_by_hand():
    def tight(form, **given):
        (found,) = compare(_entry(form), None, _small(_entry(form)) | given)
        return found.columns[-1].noise

    assert tight("capri joint approximate")["each release", "", None] == pytest.approx(2 / MU)
    assert tight("capri joint approximate", reward_bound=3.0)["each release", "", None] == pytest.approx(6 / MU)
    assert tight("gp-ucb local approximate")["each release", "matrix", None] == pytest.approx(2 / MU)
    local = tight("gp-ucb local approximate", horizon=49)
    assert local["running sum", "matrix", None] == pytest.approx(7 * local["each release", "matrix", None])
    printed = _print("gp-ucb joint approximate", horizon=60).noise
    assert printed["running sum", "vector", None] == pytest.approx(5**0.5 * printed["each release", "vector", None])


def test_what_lies_between_the_bounds_is_left_open():
    found = {_print("ucrl-vtr local pure", "l2-constants", dimension=3, episode_length=h).is_true for h in (2, 3, 4, 9)}
    assert found == {True, False} or None in found
    for d, length in ((2, 9), (3, 3), (3, 4)):
        column = _print("ucrl-vtr local pure", "l2-constants", dimension=d, episode_length=length)
        assert column.at_least.epsilon < column.proved.epsilon < 1.06 * column.at_least.epsilon
        expected = True if column.proved.epsilon <= 1 else False if column.at_least.epsilon > 1 else None
        assert column.is_true is expected
    between = calibrations.Column("printed", column.promise, column.noise, PureDP(1.1), PureDP(1.1), PureDP(0.9))
    assert between.is_true is None
    assert verdict(between).startswith("Whether the claim is true is not known")


# --- what is shown ------------------------------------------------------------------------------------------------------


def test_the_command_prints_calibrations_side_by_side_and_what_each_is_worth():
    done = subprocess.run(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", "calibrate", "gp-ucb", "--model", "joint",
         "--epsilon", "1", "--delta", "1e-5", "--horizon", "100", "--n-features", "4"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"each release: matrix and vector +│ +\S+ \(x \S+\) │ +7\.461 │", done.stdout)
    text = " ".join(done.stdout.split())
    assert "printed gives 0.01693-GDP: epsilon 0.04878 at delta 1e-05. Claimed: epsilon 1." in text
    assert re.search(r"The claim is true, with 15\.\d+ times the noise that it needs\.", text)
    assert "tight gives 0.2681-GDP: epsilon 1 at delta 1e-05. Claimed: epsilon 1." in text
    assert "Other readings: lemma-2, sketch, lemma-12, lemma-12-proof" in text


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_shown_within_the_width(form):
    done = _calibrate(*_arguments(form, "--reading", "all"))
    assert done.exit_code == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines()) <= calibrations.WIDTH
    shown = len(_all(form)) * len(_entry(form).calibrations)
    assert done.stdout.count("The claim is") + done.stdout.count("Whether the claim") == shown
    assert "Other readings" not in done.stdout
    assert "…" not in done.stdout


@pytest.mark.parametrize("form", FORMS)
def test_machines_read_the_same_numbers(form):
    tree = json.loads(_calibrate(*_arguments(form, "--reading", "all", "--json")).stdout)
    assert [tree["algorithm"], tree["model"], tree["guarantee"]] == form.split()
    assert [each["reading"] for each in tree["readings"]] == list(calibrations.readings(_entry(form)))
    for told, comparison in zip(tree["readings"], _all(form), strict=True):
        assert tree["parameters"] == comparison.values
        for numbers, column in zip([told, *told["calibrations"]], comparison.columns[:1] + comparison.columns, strict=True):
            assert numbers["mu"] == getattr(column.proved, "mu", None)
            assert numbers["true_epsilon"] == epsilon_of(column.proved, column.claim)
            assert numbers["true_epsilon_at_least"] == epsilon_of(column.at_least, column.claim)
            assert numbers["accounted_epsilon"] == epsilon_of(column.accounted, column.claim)
            assert numbers["is_true"] is column.is_true
        assert list(told["calibrations"][0]["noise"].values()) == list(comparison.columns[0].noise.values())
        same = [row for row in told["noise"] if row["tight_by"] == "the same noise, scaled"]
        assert [row["factor"] for row in same] == pytest.approx([comparison.columns[0].factor] * len(same))
        assert {row["tight_by"] for row in told["noise"]} <= {"the same noise, scaled", *_entry(form).calibrations}


def test_a_renyi_claim_is_also_shown_at_delta():
    text = " ".join(_calibrate("adar-ucb", "--epsilon", "1", "--delta", "1e-5").stdout.split())
    assert "1-GDP: a Renyi divergence of 1 of order 2, and epsilon 4.377 at delta 1e-05. Claimed: 1 of order 2." in text
    assert "with exactly the noise that it needs" in text
    other = " ".join(_calibrate("adar-ucb", "--alpha", "8", "--epsilon", "0.5").stdout.split())
    assert "a Renyi divergence of 0.5 of order 8" in other


def test_infinite_numbers_are_null_and_said_in_words():
    arguments = _arguments("gp-ucb local approximate", "--no-clip")
    assert "printed gives no epsilon at all" in _calibrate(*arguments).stdout
    tree = json.loads(_calibrate(*arguments, "--json").stdout)["readings"][0]
    assert tree["mu"] is tree["true_epsilon"] is tree["true_epsilon_at_delta"] is None
    assert tree["is_true"] is False


def test_two_bounds_stand_where_the_loss_is_not_known_exactly():
    text = " ".join(_calibrate(*_arguments("ucrl-vtr joint pure", "--reading", "l2-constants")).stdout.split())
    assert re.search(r"an epsilon between [\d.]+ \(two episodes that attain it\) and [\d.]+ \(proved\)", text)
    assert "the ledger adds up to" in _calibrate(*_arguments("lsvi-ucb joint approximate")).stdout


def test_a_name_of_several_forms_shows_them_all():
    arguments = ["--episodes", "1e1", "--epsilon", "0.5"]
    text = _calibrate("lsvi-ucb", *arguments, "--set", "n_batches=4").stdout
    assert "lsvi-ucb joint approximate" in text
    assert "lsvi-ucb joint pure" in text
    found = json.loads(_calibrate("ucrl-vtr", "--guarantee", "pure", *arguments, "--json").stdout)
    assert [(each["model"], each["parameters"]["horizon"]) for each in found] == [("joint", 10), ("local", 10)]


def test_a_non_private_algorithm_has_nothing_to_calibrate():
    done = _calibrate("ucb", "--epsilon", "1")
    assert (done.exit_code, done.stdout.count("\n")) == (0, 1)
    assert "ucb is not private" in done.stdout
    assert json.loads(_calibrate("ucb", "--json").stdout) == {"algorithm": "ucb", "is_private": False, "readings": []}


# --- what is refused --------------------------------------------------------------------------------------------------


PURE, LSVI = ["ucrl-vtr", "--model", "local", "--guarantee", "pure"], ["lsvi-ucb", "--guarantee", "approximate"]
CAPRI, GP = ["capri", "--model", "joint"], ["gp-ucb", "--model", "joint"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nix"], "unknown algorithm 'nix'; `bandana list` shows all "),
        (["gp-ucb-joint"], "gp-ucb-joint is now written as: bandana calibrate gp-ucb --model joint"),
        (["ucrl-vtr-joint-pure"], "is now written as: bandana calibrate ucrl-vtr --model joint --guarantee pure"),
        (["adar-ucb", "--model", "local"], "adar-ucb has no form that is local; it has: --model central --guarantee renyi"),
        ([*LSVI, "--alpha", 2], "lsvi-ucb joint approximate does not take --alpha; it takes --epsilon, --delta, --horizon"),
        ([*PURE, "--delta", 1e-5], "ucrl-vtr local pure does not take --delta"),
        ([*CAPRI, "--no-clip"], "capri joint approximate does not take --clip/--no-clip"),
        ([*CAPRI, "--epsilon", "nan"], "--epsilon must lie between 1e-09 and 1e+09, got nan"),
        ([*CAPRI, "--delta", 0], "--delta must be above 0 and at most 0.1, got 0.0"),
        ([*PURE, "--episode-length", 1], "--episode-length must be a whole number of at least 2, got 1"),
        ([*PURE, "--episodes", 1], "--horizon must be a whole number of at least 2, got 1"),
        (["adar-gope", "--guarantee", "renyi", "--alpha", 1], "--alpha must be a finite Renyi order above 1, got 1.0"),
        ([*GP, "--norm-bound", -1], "--norm-bound must be a finite number above 0, got -1.0"),
        ([*GP, "--noise-scale", -1], "--noise-scale must be a finite number"),
        ([*GP, "--reading", "nix"], "--reading of gp-ucb joint approximate must be one of consistent, "),
        ([*CAPRI, "--sigma-max", 0.5], "--sigma-max must be at least s_max = 1.0, got 0.5"),
        ([*GP, "--set", "nix=1"], "gp-ucb joint approximate does not take --nix"),
        ([*LSVI, "--set", "batches=nix"], "--set batches must be one of static, geometric, determinant, got 'nix'"),
        ([*GP, "--set", "nix"], "--set takes NAME=VALUE, such as n_batches=8; got 'nix'"),
        (["dp-se", "--horizon", 100], "--horizon is too short: nothing is released within 100, ask for more"),
    ],
)
def test_a_users_mistake_ends_with_2_and_one_line(arguments, message):
    done = _calibrate(*arguments)
    assert done.exit_code == USER_MISTAKE
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize("value", ["x", "1.5", "nan", "inf"])
def test_counts_are_whole_numbers(value):
    done = _calibrate("capri", "--horizon", value)
    assert done.exit_code == USER_MISTAKE
    assert "--horizon" in done.stderr


def test_the_command_takes_every_parameter_by_an_option_or_by_set():
    taken = set(inspect.signature(calibrate).parameters)
    parameters = {name for entry in PRIVATE for name in calibrations.defaults(entry)}
    assert taken - parameters == {"algorithm", "model", "guarantee", "reading", "others", "as_json", "debug"}
    assert all(option(name).startswith("--set ") == (name not in taken) for name in parameters)


def test_readings_and_their_parameters_belong_to_private_entries():
    assert set(READINGS) | set(EXTRAS) <= {form_of(entry) for entry in PRIVATE}
    for entry in PRIVATE:
        for name in calibrations.readings(entry) if "reading" in entry.parameters else ():
            assert name in entry.parameters["reading"].options


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (1.0, "1"), (23.594, "23.59"), (406.14, "406.1"), (1079.3, "1,079"), (502_523.4, "502,500"),
        (0.0498, "0.0498"), (0.001, "0.001"), (1.0009e-5, "1.001e-05"), (123_456_789.0, "1.235e+08"), (9.99996, "10"),
        (float("inf"), "infinite"),
    ],
)  # fmt: skip
def test_numbers_have_four_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize("text", ["1_000", "１２", "nan", "1e400", "12%", "x"])
def test_what_is_no_number_is_a_mistake(text):
    done = CliRunner().invoke(app, ["calibrate", "adar-ucb", f"--epsilon={text}"])
    assert done.exit_code == USER_MISTAKE


@pytest.mark.parametrize("value", [0.999, 0.11, 1.0, 0.0])
def test_a_delta_is_at_most_a_tenth(value):
    done = CliRunner().invoke(app, ["calibrate", "gp-ucb", "--model", "joint", "--delta", str(value)])
    assert done.exit_code == USER_MISTAKE
    assert "delta must be above 0 and at most 0.1" in done.output
