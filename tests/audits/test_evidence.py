"""Evidence stands alone: what is read is what was written, and whatever is no evidence is refused."""

import io
import json
import zipfile

import numpy as np
import pytest
from evidence_cases import change_field, change_scores, forge, outcome_of
from nightly import first

from bandana.algorithms.environments.data_sets import Change, CovariateKind
from bandana.audits.evidence import UnusableEvidence, archive, read, to_bytes, write
from bandana.audits.evidence.archive import check_size
from bandana.audits.evidence.fields import from_json, load, plain
from bandana.audits.neighbors.neighbor import Canaries, Changed, Context, Given, Neighbor, Others


@pytest.fixture(scope="module")
def honest():
    return outcome_of("own_bandit")


@pytest.fixture(scope="module")
def broken():
    return outcome_of("broken_bandit", controls=())


@pytest.fixture
def file(honest, tmp_path):
    path = tmp_path / "evidence.npz"
    write(path, honest)
    return path


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
        assert [len(content[f"transcript{pair}_data"]) for pair in (0, 3)] == [2000, 4000]
        assert [len(content[f"actions{pair}_data"]) for pair in (0, 3)] == [1000, 2000]
    assert description["schema"] == "bandana/evidence/4"
    assert description["claim"]["text"] == "gdp(mu=1.0, relation=reward, trust=central)"
    assert description["effort"]["seed"] == 1
    with zipfile.ZipFile(file) as packed:
        assert packed.testzip() is None


# --- tampering -----------------------------------------------------------------------------------------------------


def _is_caught(path):
    try:
        found = read(path)
    except UnusableEvidence:
        return True
    return found.sha256 != found.sha256_found


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


def test_a_forger_who_changes_nothing_is_believed(file):
    before = file.read_bytes()
    forge(file, lambda description, arrays: None)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_field("schema", value="bandana/evidence/9"), "holds 'bandana/evidence/9', this version reads"),
        (lambda d, a: d.pop("bounds"), "lacks 'bounds'"),
        (lambda d, a: a.pop("transcript0_neighbor"), "lacks 'transcript0_neighbor'"),
        (lambda d, a: [a.pop(f"transcript0_{s}") for s in ("data", "neighbor")], "no scores named transcript0"),
        (change_field("claim", "text", value="gdp(mu=1)"), "add relation=reward"),
        (change_field("events", 0, "event", value="Cauchy"), "lacks 'Cauchy'"),
        (change_field("effort", "replays", value=10), "replays must be at least 1000"),
        (change_field("power", value=True), "power must be a number, got True"),
        (change_field("power", value="1"), "power must be a number, got '1'"),
        (change_field("events", 0, "count", value=True), "events[0].count must be a whole number, got True"),
        (change_field("effort", "seed", value=1.5), "effort.seed must be a whole number, got 1.5"),
        (
            change_field("effort", "replays", value=10**400),
            "effort.replays must be a whole number, got a number of very many digits",
        ),
        (lambda d, a: d.update(events=None, coverage=None), "must say what its verdict covers: coverage is null"),
        (change_field("claim", "theorem", value=None), "claim.theorem must be text, got None"),
        (change_field("caveats", value={}), "caveats must be a list, got {}"),
        (change_field("reasons", value=["all is well"]), "reasons is no field of evidence"),
        (change_field("inequalities", value={}), "inequalities is no field of evidence"),
        (change_field("bounds", 0, "view", value="all"), "bounds[0].view must be one of transcript, report, actions"),
        (
            change_field("bounds", 0, "neighbor", value="every pair"),
            "bounds[0].neighbor must be a mapping, got 'every",
        ),
        (change_field("about", "probes", value="0, 2"), "about.probes must be a list, got '0, 2'"),
        (
            change_field("schema", value="bandana/evidence/3"),
            "evidence/4': verify it with the version that made it",
        ),
        (change_scores("transcript0_data", lambda s: s.astype(np.float64)), "must be float32"),
        (change_scores("transcript0_data", lambda s: s.reshape(2, -1)), "along one axis"),
    ],
)
def test_evidence_that_cannot_be_used_says_why(file, change, message):
    forge(file, change)
    with pytest.raises(UnusableEvidence) as caught:
        read(file)
    assert message in str(caught.value)


def test_a_field_that_stands_twice_is_no_evidence():
    assert from_json('{"a": [1, {"b": 2}]}') == {"a": [1, {"b": 2}]}
    with pytest.raises(ValueError, match="'b' stands twice"):
        from_json('{"a": [1, {"b": 2, "b": 3}]}')


def test_objects_are_read_as_they_are_written():
    change = Change(0.0, 1.0, ((0.0, 1.0), (2.0, 1.0)), CovariateKind.STATES)
    around = Context(0.0, 1.0, Others.RISING, 3)
    for neighbor in (Changed((2,), change, around), Given("mine"), Canaries(10, 20)):
        assert load(Neighbor, json.loads(json.dumps(plain(neighbor)))) == neighbor
    for value in ({"name": 1}, {"records": [0]}, {**plain(Changed((2,), change, around)), "records": [True]}, [], None):
        with pytest.raises((ValueError, KeyError)):
            load(Neighbor, value)
    assert str(Changed((2,), change, around)).endswith("; others 0 before and 1 after it (record 3)")


def test_what_is_no_evidence_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    with pytest.raises(UnusableEvidence, match="cannot be read"):
        read(path)
    for content in (b"", b"hello", b"PK" + b"0" * 100):
        path.write_bytes(content)
        with pytest.raises(UnusableEvidence):
            read(path)
    np.savez(path, scores=np.zeros(3))
    with pytest.raises(UnusableEvidence, match="is no evidence file: it must be a NumPy archive that ends with its SHA-256"):
        read(path)


def test_pickles_are_never_loaded(file):
    def change(description, arrays):
        arrays["evil_data"] = np.array([{"a": 1}], dtype=object)

    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        forge(file, change)
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(file, "a") as packed:
        packed.writestr("evil_data.npy", buffer.getvalue())
    with pytest.raises(UnusableEvidence, match="Object arrays cannot be loaded"):
        read(file)


def test_an_archive_that_unpacks_to_too_much_is_not_unpacked(file, monkeypatch):
    size = sum(item.file_size for item in zipfile.ZipFile(file).infolist())
    check_size(file.read_bytes(), size)
    with pytest.raises(ValueError, match=f"it unpacks to {size:,} bytes, more than {size - 1:,}"):
        check_size(file.read_bytes(), size - 1)
    monkeypatch.setattr(archive, "check_size", lambda content: check_size(content, size - 1))
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(UnusableEvidence, match="it unpacks to"):
        read(file)
