"""The command `bandana crosscheck`: what it shows, what machines read, and its exit codes."""

import json
import subprocess
import sys
from dataclasses import replace
from functools import cache

import pytest
from rich.console import Console
from typer.testing import CliRunner

from bandana.flows.annexes.crosscheck import tables as command
from bandana.flows.annexes.crosscheck.ledgers import named_cases
from bandana.flows.annexes.crosscheck.library_defects import KNOWN_DEFECTS, Kind, Status
from bandana.flows.annexes.crosscheck.second_opinions import CrossCheck, second_opinions
from bandana.flows.cli import app
from bandana.flows.commands.options import FAILURE, USER_MISTAKE

DELTA = 1e-5
NAMED = {case.name: case for case in named_cases()}


def _result(ours=None, **changes):
    return replace(_whole(ours), **changes)


@cache
def _whole(ours):
    cases = (NAMED["Gaussian 1"], NAMED["discrete Gaussian 1"])
    opinions = tuple(opinion for case in cases for opinion in second_opinions(case, [DELTA], ours))
    found = KNOWN_DEFECTS[0].measure()
    findings = (found, replace(found, status=Status.FIXED), replace(found, status=Status.UNKNOWN, value=None, note="gone"))
    versions = {"dp-accounting": "0.6.0", "opacus": "1.6.0"}
    return CrossCheck((DELTA,), opinions, ("ucb",), ("linucb-batched at 0.1: too many bits",), findings, versions)


@pytest.fixture
def run(monkeypatch):
    def invoke(result, *arguments):
        monkeypatch.setattr(command, "crosscheck", lambda deltas, on_progress: replace(result, deltas=tuple(deltas)))
        return CliRunner().invoke(app, ["crosscheck", *arguments])

    return invoke


def test_agreement_ends_with_0_and_shows_both_tables(run):
    done = run(_result())
    assert done.exit_code == 0, done.output
    assert "Second opinions at delta = 1e-05" in done.stdout
    assert "Known defects of the libraries, measured now" in done.stdout
    assert "10 checks on 2 ledgers: all hold. 6 opinions do not apply." in done.stdout
    assert "it knows Gaussian noise only" in done.stdout
    assert "No noise to account: ucb." in done.stdout


def test_a_contradiction_ends_with_1_and_is_explained(run):
    done = run(_result(ours=lambda delta: 4.0))
    assert done.exit_code == FAILURE
    text = " ".join(done.stdout.split())
    assert "✗" in text
    assert "Gaussian 1 at delta = 1e-05, dp-accounting PLD optimistic: ours is 4, it allows 4.37712809" in text
    assert "all hold" not in text


def test_a_library_that_broke_ends_with_1_and_its_own_words(run):
    whole = _result()
    broken = replace(whole.opinions[1], holds=False, epsilon=None, note="RuntimeError: planted")
    done = run(replace(whole, opinions=(*whole.opinions[:1], broken, *whole.opinions[2:])))
    assert done.exit_code == FAILURE
    assert "RuntimeError: planted" in done.stdout
    assert "✗ error" in done.stdout


def test_a_defect_that_is_gone_is_said_and_is_no_failure(run):
    done = run(_result())
    assert "Not asked, as it cannot be built: linucb-batched at 0.1: too many bits." in done.stdout
    assert "fixed in this version: REPLACE_ONE" in done.stdout
    assert "could not be measured: REPLACE_ONE" in done.stdout
    assert done.exit_code == 0


def test_machines_get_strict_json(run):
    done = run(_result(ours=lambda delta: 4.0), "--json")
    assert done.exit_code == FAILURE
    tree = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert tree["is_sound"] is False
    assert tree["versions"] == {"dp-accounting": "0.6.0", "opacus": "1.6.0"}
    assert tree["counts"]["failed"] == sum(opinion["holds"] is False for opinion in tree["opinions"]) > 0
    assert (tree["not_private"], tree["refused"]) == (["ucb"], ["linucb-batched at 0.1: too many bits"])
    optimistic = next(o for o in tree["opinions"] if o["accountant"] == "PLD optimistic")
    assert (optimistic["expected"], optimistic["holds"], optimistic["highest"]) == ("lower", False, None)
    assert {finding["status"] for finding in tree["defects"]} == {str(status) for status in Status}
    assert tree["defects"][0]["kind"] == Kind.TOO_LOW


def test_deltas_are_handed_on(run):
    done = run(_result(), "--delta", "1e-5", "--delta", "1e-3", "--json")
    assert json.loads(done.stdout)["deltas"] == [1e-5, 1e-3]
    assert json.loads(run(_result(), "--json").stdout)["deltas"] == [1e-5]


@pytest.mark.parametrize("delta", ["0", "1", "-0.1", "2", "nan"])
def test_a_delta_out_of_range_is_a_mistake_with_one_line(delta):
    done = CliRunner().invoke(app, ["crosscheck", f"--delta={delta}"])
    assert done.exit_code == USER_MISTAKE
    assert done.stderr.startswith("error: --delta must be above 0 and at most 0.1, got ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_the_tables_fit_100_columns_also_with_long_names():
    opinions = tuple(replace(o, ledger="a-very-long-algorithm-joint printed (2, 0.1)-RDP") for o in _result().opinions)
    console = Console(width=command.WIDTH, record=True, force_terminal=False)
    with console.capture() as shown:
        console.print(command.render(_result(opinions=opinions)))
    lines = shown.get().splitlines()
    assert max(map(len, lines)) <= 100
    assert "…" not in shown.get()


@pytest.mark.nightly
def test_the_whole_command_agrees_and_keeps_the_libraries_quiet(tmp_path):
    """In `make test`: the tables of an agreement that is given, and the opinions themselves in `test_second_opinions`."""
    done = subprocess.run(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", "crosscheck"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "adar-ucb tight" in done.stdout
    assert "all hold" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
