"""Evidence stands alone: what it states is recomputed, and whatever is changed in it shows."""

import io
import json
import math
import zipfile

import numpy as np
import pytest
from nightly import first
from own_cases import UNIT, example
from scores_alone import assert_partly_compared

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import random_table
from bandana.algorithms.problem import Problem
from bandana.audits.audit import audit
from bandana.audits.claims import parse
from bandana.audits.evidence import UnusableEvidence, archive, read, seal, to_bytes, verify, write
from bandana.audits.evidence.archive import check_size
from bandana.audits.evidence.kinds import from_json
from bandana.audits.evidence.standalone import DIFFERS, exit_code
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.outcome import Effort, Verdict
from bandana.audits.own.white_box import examine
from bandana.audits.trial import Trial
from bandana.privacy_core import RenyiDP

EFFORT = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=20, seed=1)
TABLE = random_table(16, 2, UNIT, 0)
SUBJECT = {"kind": "algorithm", "name": "bandit", "source sha256": "0"}


def _about(*probes):
    seeds = "SeedSequence(1), one child per pair and side"
    return {"table": "coins", "probes": ", ".join(map(str, probes)), "seeds": seeds, "code sha256": "0" * 64}


def _outcome(name, **more):
    claim = parse("gdp(mu=1, relation=reward)")
    return examine(Trial(example(name).bandit, claim, TABLE, (0, 2)), EFFORT, SUBJECT, _about(0, 2), **more)


@pytest.fixture(scope="module")
def honest():
    return _outcome("own_bandit")


@pytest.fixture(scope="module")
def broken():
    return _outcome("broken_bandit", controls=())


@pytest.fixture
def file(honest, tmp_path):
    path = tmp_path / "evidence.npz"
    write(path, honest)
    return path


def test_honest_evidence_is_compared_line_by_line_as_far_as_its_scores_go(honest, file):
    assert honest.verdict is Verdict.PASS, honest.reasons
    found = verify(file)
    assert_partly_compared(found)
    assert found.compared == ("hashes", "bounds and verdict", "claim")
    assert found.claimed == ("claim (the author's words)", "origin (who, when, on which machine)")
    assert found.subject == SUBJECT
    assert found.claim == "all actions are 1-GDP; gdp(mu=1.0, relation=reward, trust=central)"
    assert found.verdict == "PASS"
    shown = {line.what: line.recomputed for line in found.lines}
    assert shown["verdict"] == "PASS"
    assert shown["claimed: mu"] == "1"
    assert sum(line.what.startswith("transcript; record") for line in found.lines) == 2 * 4


def test_a_failed_audit_is_compared_too_and_says_what_scores_cannot_tell(broken, tmp_path):
    write(tmp_path / "e.npz", broken)
    found = verify(tmp_path / "e.npz")
    assert_partly_compared(found)
    by_name = {line.what: line for line in found.lines}
    assert by_name["verdict"].recomputed == found.verdict == "FAIL"
    assert by_name["searches"].stated == "counterexample, noise finding, coverage"
    assert by_name["searches"].is_ok is None
    assert by_name["mu: accounted >= measured"].recomputed == "broken"


def test_what_is_read_is_what_was_written(honest, file):
    again = read(file)
    assert again.sha256 == again.sha256_found
    assert again.outcome.bounds == honest.bounds
    assert again.outcome.controls == honest.controls
    assert again.outcome.numbers == honest.numbers
    assert again.outcome.events == honest.events
    for name, pair in honest.scores.items():
        for mine, theirs in zip(pair, again.outcome.scores[name], strict=True):
            assert np.array_equal(mine, theirs)
            assert theirs.dtype == np.float64
    assert to_bytes(again.outcome) == file.read_bytes()


def test_any_reader_of_archives_can_open_it(file):
    with np.load(file) as content:
        description = json.loads(bytes(content["description"]))
        assert len(content["transcript0_data"]) == 4000
        assert len(content["actions0_data"]) == 2000
    assert description["schema"] == "bandana/evidence/3"
    assert description["claim"]["text"] == "gdp(mu=1.0, relation=reward, trust=central)"
    assert description["effort"]["seed"] == 1
    with zipfile.ZipFile(file) as packed:
        assert packed.testzip() is None


OLD_NAMES = {
    "noise_finding": "flaw", "caveats": "doubts", "summary": "told", "cost": "price", "covariates": "brought",
    "replaced_covariates": "replaced_brought",
}  # fmt: skip


def _with_old_names(value):
    if isinstance(value, dict):
        return {OLD_NAMES.get(key, key): _with_old_names(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_old_names(item) for item in value]
    return "structural" if value == "deterministic" else value


@pytest.mark.parametrize("name", ["honest", "broken"])
def test_evidence_of_the_version_before_is_read_under_the_new_names(name, request, tmp_path):
    write(tmp_path / "e.npz", request.getfixturevalue(name))
    new = (tmp_path / "e.npz").read_bytes()

    def age(description, arrays):
        old = _with_old_names(description)
        description.clear()
        description.update(old | {"schema": "bandana/evidence/2"})

    _forge(tmp_path / "e.npz", age)
    assert_partly_compared(verify(tmp_path / "e.npz"))
    assert to_bytes(read(tmp_path / "e.npz").outcome) == new


# --- tampering -----------------------------------------------------------------------------------------------------


def _is_caught(path):
    try:
        return verify(path).is_refused
    except UnusableEvidence:
        return True


@pytest.mark.parametrize(("anywhere", "apart"), first(1, [(12, 29), (60, 9)]))
def test_any_changed_byte_is_seen(file, anywhere, apart):
    content = file.read_bytes()
    rng = np.random.default_rng(0)
    end = range(len(content) - 200, len(content), apart)
    places = {*rng.integers(0, len(content), anywhere).tolist(), *range(0, 40, 7), *end}
    for place in sorted(places):
        for flip in (1, 0x80):
            changed = bytearray(content)
            changed[place] ^= flip
            file.write_bytes(bytes(changed))
            assert _is_caught(file), (place, flip)


@pytest.mark.parametrize("cut", [0, 1, 63, 64, 65, 1000])
def test_a_cut_or_grown_file_is_seen(file, cut):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) - cut] if cut else content + b"0")
    assert _is_caught(file)


def _forge(path, change):
    """Changes description and arrays, and computes the hash anew: a careful forger."""
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    description = json.loads(bytes(arrays.pop("description")))
    change(description, arrays)
    path.write_bytes(seal(description, arrays))


def _set(*keys, value):
    def change(description, arrays):
        node = description
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = value(node[keys[-1]]) if callable(value) else value

    return change


def _array(name, change_array):
    def change(description, arrays):
        arrays[name] = change_array(arrays[name])

    return change


def _swap(description, arrays):
    arrays["transcript0_data"], arrays["transcript0_neighbor"] = arrays["transcript0_neighbor"], arrays["transcript0_data"]


def _with_nan(scores):
    changed = scores.copy()
    changed[17] = math.nan
    return changed


def test_a_forger_who_changes_nothing_is_believed(file):
    before = file.read_bytes()
    _forge(file, lambda description, arrays: None)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (_set("bounds", 0, "lower", value=0.5), "transcript; record 0"),
        (_set("bounds", 0, "method", value="mu-band"), "transcript; record 0"),
        (_set("bounds", 0, "method", value="mu-guess"), "transcript; record 0"),
        (_set("bounds", 0, "parameters", value={"delta": 0.1}), "transcript; record 0"),
        (_set("bounds", 1, "parameters", "delta", value=0.1), "transcript; record 0"),
        (_set("bounds", 1, "parameters", "seed", value=7), "transcript; record 0"),
        (_set("bounds", 0, "level", value=lambda level: level / 2), "transcript; record 0"),
        (_set("bounds", 0, "level", value=lambda level: level * 2), "failure probability"),
        (_set("failure", value=0.01), "failure probability"),
        (_set("effort", "confidence", value=0.99), "failure probability"),
        (_set("effort", "confidence", value=0.9), "failure probability"),
        (_set("effort", "replays", value=100_000), "scores"),
        (_set("numbers", 0, "measured", value=0.5), "measured: mu"),
        (_set("numbers", 0, "accounted", value=0.9), "accounted: mu"),
        (_set("numbers", 0, "claimed", value=2.0), "claimed: mu"),
        (_set("numbers", 1, "measured", value=0.0), "measured: epsilon"),
        (_set("numbers", value=[]), "quantities"),
        (_set("claim", "text", value="gdp(mu=0.5, relation=reward)"), "verdict"),
        (_set("claim", "mu", value=2.0), "claim as GDP: mu"),
        (_set("events", 0, "count", value=4), "accounted: mu"),
        (_set("events", 0, "noise_multiplier", value=2.0), "accounted: mu"),
        (_set("inequalities", "mu: claimed >= measured", value=False), "mu: claimed >= measured"),
        (_set("inequalities", value={}), "mu: claimed >= measured"),
        (_set("verdict", value="FAIL"), "verdict"),
        (_set("reasons", value=["all is well"]), "reasons"),
        (_set("counterexample", value={"summary": "a story"}), "verdict"),
        (_set("noise_finding", value="a story"), "verdict"),
        (_set("controls", value=[]), "verdict"),
        (_set("controls", 0, "measured", value=0.1), "control noise-halved"),
        (_set("controls", 0, "caught_by", value=[]), "control noise-halved"),
        (_set("controls", 0, "limit", value=9.0), "control noise-halved"),
        (_set("caveats", value=["a caveat"]), "verdict"),
        (_array("transcript0_data", lambda s: s + 1.0), "transcript; record 0"),
        (_array("transcript0_neighbor", lambda s: s[:-1]), "scores transcript0, neighbor"),
        (_array("transcript0_data", _with_nan), "scores transcript0, data"),
        (_array("actions1_data", lambda s: s + 3), "actions; record 2"),
        (_swap, "transcript; record 0"),
    ],
)
def test_a_number_that_is_wrong_under_a_right_hash_is_named(file, change, line):
    _forge(file, change)
    found = verify(file)
    assert found.lines[0].is_ok, "the hash is right"
    assert found.is_refused
    assert exit_code(found) == DIFFERS
    assert any(difference.what.startswith(line) for difference in found.differences), found.differences


def test_a_fail_cannot_be_turned_into_a_pass(broken, tmp_path):
    write(tmp_path / "e.npz", broken)
    _forge(tmp_path / "e.npz", lambda description, arrays: description.update(verdict="PASS", counterexample=None))
    found = verify(tmp_path / "e.npz")
    assert [(line.stated, line.recomputed) for line in found.differences if line.what == "verdict"] == [("PASS", "FAIL")]


def test_constant_scores_support_no_pass(file):
    """A forger who makes all scores equal, with counts and bounds to match, is left with INCONCLUSIVE."""

    def change(description, arrays):
        for name in arrays:
            arrays[name] = np.zeros_like(arrays[name])
        for bound in description["bounds"]:
            bound["lower"] = 0.0
        for numbers in description["numbers"]:
            numbers["measured"] = 0.0

    _forge(file, change)
    differences = {line.what: line for line in verify(file).differences}
    assert [*differences] == ["form: verdict", "form: reasons", "verdict", "reasons"]
    assert (differences["verdict"].stated, differences["verdict"].recomputed) == ("PASS", "INCONCLUSIVE")
    assert "every score is 0" in differences["reasons"].recomputed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("schema", value="bandana/evidence/9"), "holds 'bandana/evidence/9', this version reads"),
        (lambda d, a: d.pop("bounds"), "lacks 'bounds'"),
        (lambda d, a: a.pop("transcript0_neighbor"), "lacks 'transcript0_neighbor'"),
        (lambda d, a: [a.pop(f"transcript0_{s}") for s in ("data", "neighbor")], "no scores named transcript0"),
        (_set("claim", "text", value="gdp(mu=1)"), "add relation=reward"),
        (_set("events", 0, "event", value="Cauchy"), "lacks 'Cauchy'"),
        (_set("effort", "replays", value=10), "replays must be at least 1000"),
        (_set("power", value=True), "power must be a number, got True"),
        (_set("power", value="1"), "power must be a number, got '1'"),
        (_set("events", 0, "count", value=True), "events[0].count must be a number, got True"),
        (_set("effort", "seed", value=1.5), "effort.seed must be a whole number, got 1.5"),
        (
            _set("effort", "replays", value=10**400),
            "effort.replays must be a whole number, got a number of very many digits",
        ),
        (_set("claim", "theorem", value=None), "claim.theorem must be text, got None"),
        (_set("reasons", value={}), "reasons must be a list, got {}"),
        (_array("transcript0_data", lambda s: s.astype(np.float64)), "must be float32"),
        (_array("transcript0_data", lambda s: s.reshape(2, -1)), "along one axis"),
    ],
)
def test_evidence_that_cannot_be_used_says_why(file, change, message):
    _forge(file, change)
    with pytest.raises(UnusableEvidence) as caught:
        verify(file)
    assert message in str(caught.value)


def test_a_field_that_stands_twice_is_no_evidence():
    assert from_json('{"a": [1, {"b": 2}]}') == {"a": [1, {"b": 2}]}
    with pytest.raises(ValueError, match="'b' stands twice"):
        from_json('{"a": [1, {"b": 2, "b": 3}]}')


def test_what_is_no_evidence_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    with pytest.raises(UnusableEvidence, match="cannot be read"):
        verify(path)
    for content in (b"", b"hello", b"PK" + b"0" * 100):
        path.write_bytes(content)
        with pytest.raises(UnusableEvidence):
            verify(path)
    np.savez(path, scores=np.zeros(3))
    with pytest.raises(UnusableEvidence, match="is no evidence file: it must be a NumPy archive that ends with its SHA-256"):
        verify(path)


def test_pickles_are_never_loaded(file):
    def change(description, arrays):
        arrays["evil_data"] = np.array([{"a": 1}], dtype=object)

    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        _forge(file, change)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(file, "a") as packed:
        packed.writestr("evil_data.npy", buffer.getvalue())
    with pytest.raises(UnusableEvidence, match="Object arrays cannot be loaded"):
        verify(file)


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(file, monkeypatch):
    size = sum(item.file_size for item in zipfile.ZipFile(file).infolist())
    check_size(file.read_bytes(), size)
    with pytest.raises(ValueError, match=f"it unpacks to {size:,} bytes, more than {size - 1:,}"):
        check_size(file.read_bytes(), size - 1)
    monkeypatch.setattr(archive, "check_size", lambda content: check_size(content, size - 1))
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(UnusableEvidence, match="it unpacks to"):
        verify(file)


def test_a_catalog_audit_writes_what_it_keeps(tmp_path):
    entry = find("adar-ucb")
    settings = entry.settings(Problem(2, UNIT), "tight", RenyiDP(2.0, 1.0))
    effort = Effort(replays=4000, confidence=0.95, delta=1e-5, examples=20, seed=1)
    trial = Trial(entry.build(settings), entry.promise(settings), TABLE, entry.probes(2))
    small = entry.settings(Problem(2, UNIT), "tight", RenyiDP(2.0, 0.1))
    weak = Trial(entry.build(small), entry.promise(small), TABLE, entry.probes(2))
    subject = {"kind": "catalog", "name": "adar-ucb tight"}
    about = _about(*entry.probes(2))
    outcome = audit(weak, CONTROLS["adar-ucb"][:2], effort, at_test_budget=trial, subject=subject, about=about)
    assert outcome.verdict is Verdict.PASS, outcome.reasons
    assert outcome.controls == ()
    assert len(outcome.at_test_budget.controls) == 2
    assert outcome.failure == outcome.at_test_budget.failure == pytest.approx(0.025)
    write(tmp_path / "e.npz", outcome)
    assert to_bytes(read(tmp_path / "e.npz").outcome) == (tmp_path / "e.npz").read_bytes()
    found = verify(tmp_path / "e.npz")
    assert_partly_compared(found, "claim (needs the catalog)")
    assert sum(line.what.startswith("test budget: transcript") for line in found.lines) == 3 * 4
    assert sum(line.what.startswith("transcript") for line in found.lines) == 3 * 4
    _forge(tmp_path / "e.npz", _set("at_test_budget", "bounds", 0, "lower", value=0.1))
    assert [line.what[:12] for line in verify(tmp_path / "e.npz").differences] == ["test budget:"]
    write(tmp_path / "e.npz", outcome)
    _forge(tmp_path / "e.npz", _set("at_test_budget", "effort", "replays", value=5000))
    assert "test budget: same audit" in [line.what for line in verify(tmp_path / "e.npz").differences]
