"""`bandana audit-release`: data sets, claims, mistakes, and own code that misbehaves in its process."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner
from whole_evidence import assert_follows_from_its_scores

from bandana.audits.evidence import read
from bandana.flows.annexes.anything.data_sets import read_data
from bandana.flows.cli import app
from bandana.flows.commands.options import FAILURE, USER_MISTAKE
from bandana.flows.running.child import Limits, run
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Relation

OWN = """\
import os, sys, time
import numpy as np

def noisy(data, seed, scale=1.0):
    return float(np.sum(data)) + np.random.default_rng(seed).laplace(0, scale)

def too_little(data, seed):
    return noisy(data, seed, 0.25)

def columns(data, seed):
    return noisy(data[:, 0], seed)

def ends(data, seed):
    os._exit(0)

def exits(data, seed):
    sys.exit(0)

def crashes(data, seed):
    os.kill(os.getpid(), 11)

def hangs(data, seed):
    while True:
        pass

def forks(data, seed):
    os.fork()
    return 1.0

def fails(data, seed):
    return 1 / 0

def greedy(data, seed):
    return np.ones(10**12).sum()

def chatty(data, seed):
    print("hello")
    os.write(1, b"from below")
    return noisy(data, seed)

def slow(data, seed):
    time.sleep(0.05)
    return 1.0
"""


@pytest.fixture
def audit(tmp_path, monkeypatch):
    """Without first calls, of a process each: they are audited beside the museum and in `pairs/test_starts.py`."""
    monkeypatch.setattr("bandana.flows.annexes.anything.releases.apart", lambda *_: None)
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "bandana_data"))
    (tmp_path / "mine.py").write_text(OWN)

    def call(name, *more, data="[0]", neighbor="[1]", claim="pure(epsilon=1.5)", replays=2000):
        given = [f"{tmp_path / 'mine.py'}:{name}"]
        given += ["--data", data] if data else []
        given += ["--neighbor", neighbor] if neighbor else []
        given += ["--claim", claim, "--replays", str(replays), *map(str, more)]
        return CliRunner().invoke(app, ["audit-release", *given])

    return call


def test_an_honest_release_is_not_refuted_and_says_what_it_covered(audit):
    result = audit("noisy")
    assert result.exit_code == 0, result.output
    first, read, advice, covers = result.stdout.splitlines()[:4]
    assert first.startswith("NOT REFUTED   mine.py:noisy: 1.5-DP on the given pair; claimed epsilon = 1.5, found >= ")
    assert read.startswith(
        "  read: 1 number an output, all of them, in 2,000 runs a side, one run a call; events of one side"
    )
    assert advice.startswith("  next: ")
    assert covers.startswith("  covers this pair of data sets alone")
    assert "PASS" not in result.output


def test_a_release_that_leaks_fails_and_leaves_evidence_and_a_report(audit):
    found = json.loads(audit("too_little", "--json").stdout)
    files = {kind: Path(place) for kind, place in found["files"].items()}
    assert {kind for kind, place in files.items() if place.stat().st_size} == {"evidence", "html", "pdf", "json"}
    assert json.loads(files["json"].read_text())["audits"][0]["verdict"] == "FAIL"
    assert read(files["evidence"]).outcome.claim.relation is Relation.GIVEN_PAIR
    assert_follows_from_its_scores(files["evidence"])


def test_a_claim_may_name_its_pair(audit):
    result = audit("too_little", data="", neighbor="", claim="pure(epsilon=1, pair=([0], [1]))")
    assert result.exit_code == FAILURE
    assert result.stdout.startswith("FAIL          mine.py:too_little: 1-DP on the given pair")
    assert "give it once" in audit("noisy", claim="pure(epsilon=1, pair=([0], [1]))").stderr


@pytest.mark.parametrize(
    ("claim", "users", "epsilon", "words"),
    [
        ("pure(epsilon={}, relation=add-remove)", (), 3.0, "\n  covers each of 4 records removed"),
        ("pure(epsilon={}, relation=user)", ("--users", "['a', 'b', 'a', 'b']"), 4.0,
         "\n  covers all records of each of 2 users removed: 2 neighbors"),
    ],
)  # fmt: skip
def test_neighbors_of_one_data_set_are_searched(audit, claim, users, epsilon, words):
    """The largest record is 3, and user b's records sum to 4."""
    result = audit("noisy", *users, data="[0, 1, 0, 3]", neighbor="", claim=claim.format(1))
    assert result.exit_code == FAILURE, result.output
    assert words in result.stdout
    evidence = next(line.split()[1] for line in result.stdout.splitlines() if line.startswith("evidence"))
    assert_follows_from_its_scores(Path(evidence))
    assert read(Path(evidence)).outcome.verdict == "FAIL"
    assert audit("noisy", *users, data="[0, 1, 0, 3]", neighbor="", claim=claim.format(epsilon)).exit_code == 0


def test_neighbors_that_cannot_be_searched_are_refused(audit):
    for claim, more, data, words in (
        ("pure(epsilon=1, relation=record)", (), "[0, 1]", "a release needs --data and --neighbor"),
        ("pure(epsilon=1, relation=user)", (), "[0, 1]", "--users: relation=user needs whose each record is"),
        ("pure(epsilon=1, relation=add-remove)", ("--users", "[1, 2]"), "[0, 1]", "no other claim does"),
        ("pure(epsilon=1, relation=user)", ("--users", "3"), "[0, 1]", "one number or name for each record"),
        ("pure(epsilon=1, relation=add-remove)", (), "3", "nobody can say what its records are"),
    ):
        assert words in audit("noisy", *more, data=data, neighbor="", claim=claim).stderr


def test_an_algorithm_is_audited_on_a_given_pair(tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path))
    low, high = np.zeros((16, 2)), np.zeros((16, 2))
    high[3] = 1.0
    for name, rewards in (("a.npy", low), ("b.npy", high)):
        np.save(tmp_path / name, rewards)
    given = [
        "audit-own",
        "examples/own_bandit.py:bandit",
        "--pair",
        str(tmp_path / "a.npy"),
        str(tmp_path / "b.npy"),
    ]
    for claim, code in (("gdp(mu=1)", 0), ("gdp(mu=0.5)", FAILURE)):
        result = CliRunner().invoke(app, [*given, "--claim", claim, "--replays", "2000", "--json"])
        assert result.exit_code == code, result.output
        evidence = Path(json.loads(result.stdout)["files"]["evidence"])
        assert_follows_from_its_scores(evidence)
        assert (read(evidence).outcome.verdict == "FAIL") is (code == FAILURE)
    result = CliRunner().invoke(app, [*given, "--claim", "gdp(mu=1, relation=reward)"])
    assert "the pair is the relation" in result.stderr


def test_a_broken_release_fails(audit):
    result = audit("too_little", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == FAILURE
    assert found["verdict"] == "FAIL"
    assert found["measured"] > found["claimed"] == 1.5


@pytest.mark.parametrize(
    ("name", "words", "more"),
    [
        ("ends", "ended its process with exit code 0 instead of returning", ()),
        ("exits", "SystemExit: 0", ()),
        ("crashes", "crashed its process (SIGSEGV)", ()),
        ("hangs", "did not answer within 0.5 s", ("--timeout", 0.5)),
        ("forks", "forked, and both processes returned", ()),
        ("fails", "mine.py:31: ZeroDivisionError: division by zero", ()),
        ("greedy", "needs more memory than the limit", ()),
        ("slow", "fewer than 400 show nothing: allow more time with --seconds", ("--seconds", 0.5)),
        ("nobody", "defines no 'nobody'; it defines", ()),
    ],
)
def test_own_code_that_misbehaves_ends_with_one_line_and_status_2(audit, name, words, more):
    result = audit(name, *more)
    assert result.exit_code == USER_MISTAKE
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout


def test_json_stays_clean_when_own_code_prints(audit):
    result = audit("chatty", "--json")
    assert json.loads(result.stdout)["verdict"] == "NOT REFUTED"
    assert "bytes to standard output, beginning with" in result.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"claim": "pure(epsilon=x)"}, "--claim: claim"),
        ({"data": "nothing.npy"}, "--data: nothing.npy cannot be read"),
        ({"neighbor": "1 +"}, "--neighbor: must be a file (.npy, .csv, .json) or a Python literal"),
        ({"replays": 10}, "--replays must be at least 1000"),
    ],
)
def test_mistakes_in_the_options_are_told(audit, more, words):
    result = audit("noisy", **more)
    assert result.exit_code == USER_MISTAKE
    assert words in result.stderr


def test_options_that_do_not_go_together_are_refused(audit, tmp_path):
    assert "No such option: --rounds" in audit("noisy", "--rounds", 8).stderr
    for given, words in (
        (["audit-release", "x.py:f", "--claim", "pure(epsilon=1)"], "needs --data and --neighbor"),
        (["audit-release", "--samples", "a.npy", "b.npy"], "--claim: is missing"),
        (["audit-release", "--claim", "pure(epsilon=1)"], "name a function, FILE.py:NAME, or two files of outputs"),
        (["audit-own", "--neighbor", "[1]", "x.py:f"], "No such option: --neighbor"),
    ):
        result = CliRunner().invoke(app, given)
        assert result.exit_code == USER_MISTAKE
        assert words in result.stderr


def test_samples_are_audited_in_each_format(tmp_path):
    rng = np.random.default_rng(0)
    sides = rng.laplace(size=2000), rng.laplace(3, 1, size=2000)
    places = [tmp_path / "p.npy", tmp_path / "q.csv", tmp_path / "q.json"]
    np.save(places[0], sides[0])
    places[1].write_text("value\n" + "\n".join(map(str, sides[1])))
    places[2].write_text(json.dumps(sides[1].tolist()))
    for other in places[1:]:
        given = ["audit-release", "--samples", str(places[0]), str(other), "--claim", "pure(epsilon=1)", "--json"]
        result = CliRunner().invoke(app, given)
        assert result.exit_code == FAILURE
        assert json.loads(result.stdout)["verdict"] == "FAIL"


def test_data_sets_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("age,name\n3,x\n4,y\n")
    (tmp_path / "b.csv").write_text("1,2\n3,4\n")
    (tmp_path / "c.csv").write_text("1\n2,3\n")
    assert read_data("--data", str(tmp_path / "a.csv")) == [{"age": "3", "name": "x"}, {"age": "4", "name": "y"}]
    assert read_data("--data", str(tmp_path / "b.csv")).tolist() == [[1, 2], [3, 4]]
    assert read_data("--data", "{'a': [1, 2]}") == {"a": [1, 2]}
    with pytest.raises(SpecError, match="line 2 has 2 fields, the first has 1"):
        read_data("--data", str(tmp_path / "c.csv"))


def test_a_child_returns_values_and_raises_errors():
    assert run(lambda: 3, Limits()).value == 3
    with pytest.raises(KeyError, match="missing"):
        run(lambda: {}["missing"], Limits())
