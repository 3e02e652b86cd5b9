"""`bandana.audit`: objects of this process, with the outcome of the command."""

import importlib.util
import linecache
import os
import signal
import sys
import time

import numpy as np
import pytest
from documentation import ROOT
from whole_evidence import assert_follows_from_its_scores

import bandana
from bandana.audits.evidence import read
from bandana.audits.reporting import validate
from bandana.flows.annexes.anything import api

CLAIM = "gdp(mu=1, relation=reward)"
FEW = {"replays": 1000, "rounds": 16, "examples": 10}


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(before_forks):
    return bandana.audit(example("own_bandit").bandit, CLAIM, **FEW)


def test_the_public_names_are_the_annex_s():
    assert bandana.audit is api.audit
    assert bandana.Audit is api.Audit


def test_an_object_is_audited_as_its_file_is(found):
    """The same replays on the same seeds, bit for bit, and the same verdict."""
    named = bandana.audit(str(ROOT / "examples/own_bandit.py:bandit"), CLAIM, **FEW)
    assert found.label == "own_bandit.py:EpisodicGreedy"
    assert named.label == "own_bandit.py:bandit"
    assert (found.verdict, found.reasons) == (named.verdict, named.reasons)
    assert found.outcome.bounds == named.outcome.bounds
    assert found.outcome.scores.keys() == named.outcome.scores.keys()
    for name, sides in found.outcome.scores.items():
        assert all(np.array_equal(a, b) for a, b in zip(sides, named.outcome.scores[name], strict=True))


def test_an_audit_has_its_numbers_its_text_and_its_evidence(found, tmp_path):
    three = found.numbers["mu"]
    assert three.claimed == 1
    assert three.claimed * (1 + 1e-9) >= three.accounted >= three.measured > 0
    assert found.text().startswith(f"{found.verdict:<13} own_bandit.py:EpisodicGreedy: all actions are 1-GDP")
    assert repr(found) == f"<Audit of own_bandit.py:EpisodicGreedy: {found.verdict}>"
    place = found.save(tmp_path / "deep" / "e.npz")
    assert_follows_from_its_scores(place)
    assert read(place).outcome.verdict == found.verdict
    with pytest.raises(bandana.SpecError, match=r"ends in \.npz, got 'e\.zip'"):
        found.save(tmp_path / "e.zip")


def test_an_audit_writes_its_report(found, tmp_path):
    import json

    files = found.report(tmp_path)
    assert sorted(path.name.partition(".")[2] for path in files) == ["evidence.npz", "html", "json", "pdf"]
    document = json.loads(next(path for path in files if path.suffix == ".json").read_text())
    validate(document)
    assert document["commands"][0] == f'bandana.audit(EpisodicGreedy, "{CLAIM}")'


def test_a_function_that_leaks_fails():
    """Exact rewards decide in nine of ten episodes: the bound, 3.6 under fixed seeds, is far above the claim."""
    found = bandana.audit(example("black_box").leaky, CLAIM, replays=2000, rounds=16)
    assert found.verdict == "FAIL"
    assert found.numbers["mu"].accounted is None
    assert any("measured exceeds claimed" in reason for reason in found.reasons)


NOTEBOOK = """\
from dataclasses import dataclass
import numpy as np
from bandana.privacy_core import Interval

@dataclass(frozen=True)
class Cell:
    n_actions: int = 2
    reward_range: Interval = Interval(0.0, 1.0)
    def init(self, n_reps):
        return (), np.zeros((n_reps, 2))
    def act(self, released, context, step):
        return {act}
    def hold(self, released, actions):
        return np.ones(len(actions), dtype=int)
    def absorb(self, sensitive, released, record, ledger):
        return sensitive, released
"""


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_class_of_a_notebook_is_searched_for_randomness(is_kept):
    """A notebook keeps the text of its cells where tracebacks find it; what it does not keep cannot be searched."""
    text, cell = NOTEBOOK.replace("{act}", "np.random.default_rng(0).integers(0, 2, len(released))"), "<cell 1>"
    if is_kept:
        linecache.cache[cell] = (len(text), None, text.splitlines(keepends=True), cell)
    namespace = {"__name__": "__main__"}
    try:
        exec(compile(text, cell, "exec"), namespace)
        said = "draws its own randomness.*default_rng" if is_kept else "source of Cell cannot be read"
        with pytest.raises(bandana.SpecError, match=said):
            bandana.audit(namespace["Cell"](), CLAIM)
    finally:
        linecache.cache.pop(cell, None)


@pytest.mark.parametrize(
    ("subject", "options", "said"),
    [
        ("class", {}, r"algorithm: EpisodicGreedy is a class: give an object of it, EpisodicGreedy\(\.\.\.\)"),
        (3, {}, r"algorithm: int is neither an algorithm nor a function \(rewards, seed\) -> actions"),
        ("bandit", {"claim": "gdp(mu=1)"}, "claim: .* does not say which data sets are neighbors"),
        ("bandit", {"rounds": 1}, "rounds must be at least 3 here, got 1"),
        ("bandit", {"replays": 10}, "replays must be at least 1000, got 10"),
        ("bandit", {"probes": [40]}, r"probe must lie in \[0, 32\)"),
        ("nowhere.py:bandit", {}, r"algorithm: nowhere\.py cannot be read"),
    ],
)
def test_a_mistake_names_the_argument_and_no_option(subject, options, said):
    module = example("own_bandit")
    given = {"class": module.EpisodicGreedy, "bandit": module.bandit}.get(subject, subject)
    with pytest.raises(bandana.SpecError, match=said) as caught:
        bandana.audit(given, **{"claim": CLAIM, **options})
    assert "--" not in str(caught.value)


def leaves(rewards, seed):
    os._exit(0)


def crashes(rewards, seed):
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs(rewards, seed):
    time.sleep(60)


@pytest.mark.parametrize(
    ("play", "options", "said"),
    [
        (leaves, {}, "ended its process with exit code 0 instead of returning"),
        (crashes, {}, r"crashed its process \(SIGSEGV\)"),
        (hangs, {"timeout": 0.5}, "did not answer within 0.5 s: raise the limit for one call with timeout"),
        (hangs, {"timeout": -1}, "^timeout must be above 0"),
    ],
)
def test_what_own_code_does_to_its_process_is_one_line(play, options, said):
    with pytest.raises(bandana.SpecError, match=said) as caught:
        bandana.audit(play, CLAIM, **FEW, **options)
    assert "\n" not in str(caught.value)


CALLED = []


def in_turn(rewards, seed):
    CALLED.append(seed)
    print("here")
    return np.broadcast_to(np.arange(rewards.shape[1]) % 2, rewards.shape[:2]).copy()


def test_only_an_audit_that_is_not_isolated_runs_in_this_process(capsys):
    with pytest.warns(UserWarning, match="printed .* bytes to standard output, beginning with 'here'"):
        found = bandana.audit(in_turn, CLAIM, **FEW)
    assert (found.verdict, CALLED, capsys.readouterr().out) == ("NOT REFUTED", [], "")
    assert bandana.audit(in_turn, CLAIM, **FEW, isolated=False).outcome.bounds == found.outcome.bounds
    assert CALLED
