"""What the catalog says of evidence: words, levels and planted faults that are not its own are refused."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bandana.algorithms.claim import Claim
from bandana.audits.claims import parse
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.places import ALWAYS, SOMETIMES
from bandana.audits.outcome import DETERMINISTIC, Setup, TriedControl
from bandana.audits.subjects import subjects
from bandana.flows.annexes.compliance.catalog_words import _check_searches, with_catalog
from bandana.flows.annexes.compliance.evidence.lines import Line, Verification

SEARCHES = {"noise-halved": {"sampling", "noise"}, "noise-reused": {"deterministic"}}


def _outcome(not_planted, **expected):
    names = {"halved": "noise-halved", "reused": "noise-reused", "shown": "value-shown", "tail": "exact-in-the-tail"}
    controls = [TriedControl(names[name], "", tuple(by.split()), (), 0.0, 1.0) for name, by in expected.items()]
    return SimpleNamespace(all_controls=controls, about=Setup(not_planted=not_planted), coverage=None)


@pytest.mark.parametrize(
    ("expected", "not_planted", "wrong"),
    [
        ({"halved": "noise sampling", "reused": "deterministic", "shown": "deterministic"}, {}, ""),
        ({"halved": "noise"}, {}, "noise-halved"),
        ({"halved": "noise"}, {"x": (), "noise-halved": ("sampling",)}, ""),
        ({"reused": "deterministic noise"}, {}, "noise-reused"),
        ({"shown": "sampling", "tail": ""}, {}, "value-shown, exact-in-the-tail"),
    ],
)
def test_a_search_that_need_not_catch_a_fault_any_more_is_refused(expected, not_planted, wrong):
    """Whatever code the evidence states: nothing in the file decides whether this is compared."""
    line = _check_searches(_outcome(not_planted, **expected), SEARCHES)
    assert (line.stated, line.is_ok, line.part) == (wrong or "as stated", not wrong, "planted faults")


# --- all words of an audit's evidence ------------------------------------------------------------------------------


def _evidence(label, name=None):
    """What evidence of a subject of the catalog says in words, as honest as can be; nothing is run."""
    subject = subjects()[label]()
    listed = {control.name: control.caught_by for control in subject.controls} | dict.fromkeys(ALWAYS, (DETERMINISTIC,))
    searches = {}
    for control in subject.controls:
        searches.setdefault(control.name, []).extend(control.caught_by)
    controls = tuple(TriedControl(each, "", tuple(searches.get(each, listed[each])), (), 0.0, 1.0) for each in listed)
    return SimpleNamespace(
        subject={"kind": "catalog", "name": name or label},
        claim=subject.trial.claim,
        about=Setup(),
        all_controls=controls,
        coverage=None,
    )


def _lines(outcome, prefix=""):
    """Lines that wait for the catalog, and one that it has nothing to say of."""
    claim = outcome.claim
    words = {"claim: statement": claim.statement, "claim: unit": claim.unit,
             "claim: theorem and source": f"{claim.theorem}; {claim.source}"}  # fmt: skip
    lines = [Line("subject", outcome.subject["name"], outcome.subject["name"], True)]
    lines += [Line(prefix + what, said, "needs the catalog", None, "claim") for what, said in words.items()]
    return with_catalog(Verification((*lines, Line("verdict", "PASS", "PASS", True, "bounds and verdict"))), outcome)


def _refused(found):
    return [line.what for line in found.differences]


@pytest.mark.parametrize("label", ["adar-ucb tight", "block tree"])
def test_the_catalogs_own_words_are_confirmed(label):
    found = _lines(_evidence(label))
    assert _refused(found) == []
    assert found.is_verified, found.not_compared
    assert _lines(_evidence(label), "test budget: ").is_verified
    assert found.lines[4].what == "verdict", "what the catalog does not know stays"


@pytest.mark.parametrize(
    ("field", "word", "line"),
    [
        ("theorem", "Theorem 99", "claim: theorem and source"),
        ("source", "another paper", "claim: theorem and source"),
        ("unit", "all data of all people", "claim: unit"),
        ("covers", "the output", "claim: statement"),
    ],
)
@pytest.mark.parametrize("prefix", ["", "test budget: "])
def test_a_word_of_the_claim_that_is_not_the_catalogs_is_refused(field, word, line, prefix):
    outcome = _evidence("adar-ucb tight")
    outcome.claim = replace(outcome.claim, **{field: word})
    assert isinstance(outcome.claim, Claim)
    assert _refused(_lines(outcome, prefix)) == [prefix + line]


def test_an_algorithm_that_the_catalog_does_not_hold_is_refused():
    found = _lines(_evidence("adar-ucb tight", name="my-ucb tight"))
    assert _refused(found) == ["subject"]
    assert found.differences[0].recomputed == "the catalog holds no such algorithm"


def test_evidence_of_another_kind_is_left_as_it_is():
    outcome = _evidence("adar-ucb tight", name="my-ucb")
    outcome.subject["kind"] = "algorithm"
    assert [line.is_ok for line in _lines(outcome).lines] == [True, None, None, None, True]


@pytest.mark.parametrize(("level", "is_refused"), [("1", False), ("0.1", True), ("1.0", True)])
def test_the_level_in_a_name_is_that_of_the_claim(level, is_refused):
    outcome = _evidence("adar-ucb tight", name=f"adar-ucb tight eps={level}")
    outcome.claim = replace(outcome.claim, stated=parse("rdp(alpha=2, epsilon=1, relation=reward)").stated)
    assert ("subject: level" in _refused(_lines(outcome))) is is_refused


def test_planted_faults_are_those_of_the_catalog_or_listed_as_harmless():
    first = next(iter(CONTROLS["adar-ucb"])).name
    fewer = _evidence("adar-ucb tight")
    fewer.all_controls = tuple(control for control in fewer.all_controls if control.name != first)
    assert _refused(_lines(fewer)) == ["planted faults"]
    fewer.about = Setup(not_planted={first: ()})
    assert _refused(_lines(fewer)) == [], "an audit run again shows whether it is harmless here"
    more = _evidence("adar-ucb tight")
    more.all_controls += (TriedControl("noise-free", "", ("sampling",), (), 0.0, 1.0),)
    assert _refused(_lines(more)) == ["planted faults"]
    more.all_controls = (*more.all_controls[:-1], TriedControl(next(iter(SOMETIMES)), "", (DETERMINISTIC,), (), 0.0, 1.0))
    assert _refused(_lines(more)) == [], "it depends on the noise that is drawn"
