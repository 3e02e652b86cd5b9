"""`bandana calibrate`: what it prints, what machines read, and what it says of a mistake."""

import inspect
import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bandana.algorithms.papers import CALIBRATIONS, find
from bandana.flows.cli import app
from bandana.flows.commands.accounting import calibrate
from bandana.flows.commands.options import USER_MISTAKE
from bandana.flows.queries import calibrate as printing
from bandana.flows.queries.calibrate import number, option


def _calibrate(*arguments):
    return CliRunner().invoke(app, ["calibrate", *map(str, arguments)])


def test_the_command_prints_printed_tight_factor_and_the_true_epsilon():
    done = subprocess.run(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", "calibrate", "gp-ucb-joint",
         "--epsilon", "1", "--delta", "1e-5", "--horizon", "1024"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"a tree node, each entry +│ the same tree, y\^2 left out +│ +366\.6 │ 23\.59 │ x 15\.54", done.stdout)
    assert "0.01725-GDP: epsilon 0.04982 at delta 1e-05. Claimed: epsilon 1." in done.stdout
    assert "The claim is true, with 15.54 times the noise that it needs." in done.stdout
    assert "Other readings: lemma-2, sketch, lemma-12, lemma-12-proof" in done.stdout


def test_the_parameters_stand_above_the_table_defaults_included():
    text = _calibrate("ucrl-vtr-joint", "--episodes", "1e3").stdout
    above = text[: text.index("┏")]
    for name, value in (("epsilon", "1"), ("delta", "1e-05"), ("episodes", "1,000"), ("episode-length", "5")):
        assert re.search(rf"--{name} +{value} ", above), name


@pytest.mark.parametrize("name", sorted(CALIBRATIONS))
def test_every_calibration_is_shown_within_the_width(name):
    done = _calibrate(name, "--reading", "all")
    assert done.exit_code == 0, done.stderr
    assert max(len(line) for line in done.stdout.splitlines()) <= printing.WIDTH
    assert done.stdout.count("The claim is") + done.stdout.count("Whether the claim") == len(find(name).readings)
    assert "Other readings" not in done.stdout
    assert "…" not in done.stdout


@pytest.mark.parametrize("name", sorted(CALIBRATIONS))
def test_machines_read_the_same_numbers(name):
    tree = json.loads(_calibrate(name, "--json", "--reading", "all").stdout)
    calibration = find(name)
    assert tree["algorithm"] == name
    assert [each["reading"] for each in tree["readings"]] == list(calibration.readings)
    for each in tree["readings"]:
        found = calibration.compare(each["reading"])
        assert each["mu"] == found.mu
        assert each["true_epsilon"] == found.true_epsilon
        assert each["is_true"] is found.is_true
        assert [noise["printed"] for noise in each["noise"]] == [row.printed for row in found.rows]
        assert [noise["tight"] for noise in each["noise"]] == [row.tight for row in found.rows]
        assert [noise["factor"] for noise in each["noise"]] == [row.factor for row in found.rows]
    assert tree["parameters"] == dict(calibration.compare().parameters)


def test_a_renyi_claim_is_also_shown_at_delta():
    text = " ".join(_calibrate("adar-ucb", "--epsilon", "1", "--delta", "1e-5").stdout.split())
    assert "1-GDP: a Renyi divergence of 1 of order 2, and epsilon 4.377 at delta 1e-05. Claimed: 1 of order 2." in text
    assert "with exactly the noise that it needs" in text
    other = " ".join(_calibrate("adar-ucb", "--alpha", "8", "--epsilon", "0.5").stdout.split())
    assert "a Renyi divergence of 0.5 of order 8" in other


def test_a_false_claim_is_called_false():
    wrong = _calibrate("gp-ucb-joint", "--reading", "lemma-12", "--epsilon", "0.01", "--horizon", "1024")
    assert wrong.exit_code == 0
    assert "The claim is FALSE, the noise is 263.2 times too small." in wrong.stdout
    unclipped = _calibrate("gp-ucb-local", "--no-clip").stdout
    assert "What is printed gives no epsilon at all" in unclipped
    assert "The claim is FALSE." in unclipped
    tree = json.loads(_calibrate("gp-ucb-local", "--no-clip", "--json").stdout)["readings"][0]
    assert tree["mu"] is tree["true_epsilon"] is tree["true_epsilon_at_delta"] is None
    assert tree["is_true"] is False
    pure = " ".join(_calibrate("ucrl-vtr-joint-pure").stdout.split())
    assert re.search(r"an epsilon between 1\.238 \(two episodes that attain it\) and 1\.283 \(proved\)", pure)


def test_a_claim_between_the_two_bounds_is_left_open():
    calibration = find("ucrl-vtr-local-pure")
    found = [calibration.compare(dimension=d, episode_length=h) for d in (2, 3, 4) for h in range(2, 30)]
    left_open = next(each for each in found if each.is_true is None)
    assert printing.verdict(left_open).startswith("Whether the claim is true is not known")


def test_a_non_private_algorithm_has_nothing_to_calibrate():
    done = _calibrate("ucb", "--epsilon", "1")
    assert (done.exit_code, done.stdout.count("\n")) == (0, 1)
    assert "ucb is not private" in done.stdout
    assert json.loads(_calibrate("ucb", "--json").stdout) == {"algorithm": "ucb", "is_private": False, "readings": []}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nix"], "unknown algorithm 'nix'; known are: adar-ucb, "),
        (["gp-ucb"], "gp-ucb has several calibrations, name one of: gp-ucb-joint, gp-ucb-local"),
        (["lsvi-ucb-joint", "--alpha", 2], "lsvi-ucb-joint does not take --alpha; it takes --epsilon, --delta, --episodes"),
        (
            ["ucrl-vtr-joint", "--horizon", 9],
            "does not take --horizon; it takes --epsilon, --delta, --episodes, --episode-length",
        ),
        (["ucrl-vtr-local-pure", "--delta", 1e-5], "ucrl-vtr-local-pure does not take --delta"),
        (["capri-joint", "--no-clip"], "capri-joint does not take --clip/--no-clip"),
        (["capri-joint", "--epsilon", "nan"], "--epsilon must be a finite number above 0, got nan"),
        (["capri-joint", "--delta", 0], "--delta must lie strictly between 0 and 1, got 0.0"),
        (["ucrl-vtr-joint", "--episode-length", 1], "--episode-length must be a whole number of at least 2, got 1"),
        (["adar-gope", "--alpha", 1], "--alpha must be a finite Renyi order above 1, got 1.0"),
        (["gp-ucb-joint", "--reading", "nix"], "--reading of gp-ucb-joint must be one of consistent, "),
        (["capri-joint", "--sigma-max", 0.5], "--sigma-max must be at least s_max = 1.0, got 0.5"),
        (["lsvi-ucb-joint", "--episodes", 2, "--dimension", 40], "--episodes is too small"),
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
    done = _calibrate("capri-joint", "--horizon", value)
    assert done.exit_code == USER_MISTAKE
    assert "--horizon" in done.stderr


def test_the_command_takes_every_parameter_and_no_other():
    taken = set(inspect.signature(calibrate).parameters)
    parameters = {parameter.name for calibration in CALIBRATIONS.values() for parameter in calibration.parameters}
    assert taken == parameters | {"context", "algorithm", "reading", "as_json", "debug"}


@pytest.mark.parametrize("name", sorted(CALIBRATIONS))
def test_every_parameter_has_its_option(name):
    for parameter in find(name).parameters:
        flags = option(parameter.name).split("/")
        value = [] if len(flags) > 1 else [parameter.default if parameter.default is not None else 1]
        for flag in flags:
            done = _calibrate(name, "--json", flag, *value)
            assert done.exit_code == 0, done.stderr
            expected = (flag == flags[0]) if len(flags) > 1 else value[0]
            assert json.loads(done.stdout)["parameters"][parameter.name] == expected


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
