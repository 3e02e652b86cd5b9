"""A private data set has one book, whatever file holds its rows: a re-export is charged in it, or refused with its name."""

import io
import json
import os

import numpy as np
import pandas as pd
import pytest
import yaml
from typer.testing import CliRunner

from bandana.audits.reporting import render_html
from bandana.audits.reporting.document import validate
from bandana.flows.annexes.books.bookkeeping import identity
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook
from bandana.flows.annexes.books.bookkeeping.identity import FOLDER, Rows, read
from bandana.flows.annexes.books.bookkeeping.known import DataSet
from bandana.flows.annexes.books.charges import check_affords, check_has_no_book
from bandana.flows.cells.audits import audit_cell
from bandana.flows.cells.play import benchmark_block
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import BENCHMARK, Store
from bandana.flows.own.data import pinned
from bandana.flows.plan.plan import Plan
from bandana.flows.queries.explain import explain
from bandana.flows.results.report_document import assemble
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import BookError, SpecError
from bandana.privacy_core import GaussianDP

N_ROWS = 300
MU = 0.1
"""GDP parameter of a run that is (2, 0.01)-RDP."""
DATA = {"book": "trial", "budget": {"epsilon": 3, "delta": 1.0e-6}}


def table(kind, seed=0):
    """Rows of people: two rewards of 0 or 1, three rewards in steps, or two real ones."""
    generator = np.random.default_rng(seed)
    if kind == "bits":
        values = (generator.random((N_ROWS, 2)) < [0.3, 0.5]).astype(int)
    elif kind == "steps":
        values = generator.integers(0, 5, (N_ROWS, 3)) / 4
    else:
        values = generator.random((N_ROWS, 2)).round(6)
    return pd.DataFrame(values, columns=["stay", "go", "call"][: values.shape[1]])


def text_of(frame, **how):
    return frame.to_csv(index=False, **how).encode()


def bits(seed=0):
    return table("bits", seed)


@pytest.fixture
def folder(tmp_path):
    return DataFolder.open(tmp_path / "data")


@pytest.fixture
def play(tmp_path, folder):
    """Plays a private table, given as bytes, and returns its blocks; `data` is its field of the spec."""

    def run(content, data=DATA, name="night", environment=None, is_checked=True, **more):
        path = write(content, data, name, environment, **more)
        blocks = blocks_of(path)
        if is_checked:
            check_affords(blocks)
        for block in blocks:
            benchmark_block(block, Store(folder.results))
        return path

    def write(content, data=DATA, name="night", environment=None, **more):
        ending = (environment or {}).pop("ending", "csv")
        (tmp_path / f"{name}.{ending}").write_bytes(content)
        spec = {
            "name": name, "seed": 7, "horizon": 20, "replications": 3, "block_size": 2,
            "environment": {"kind": "table", "path": f"{name}.{ending}", **({"data": data} if data else {}),
                            **(environment or {})},
            "algorithms": [{"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": 0.01}}],
            "audit": {"rounds": 16, "replays": 2000}, **more,
        }  # fmt: skip
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
        return path

    def blocks_of(path):
        return [block for cell in Plan.of(pinned(load_spec(path), folder.root)).played for block in cell.blocks()]

    run.write, run.blocks_of = write, blocks_of
    return run


def book_of(folder, name="trial"):
    return BudgetBook(str(folder.book(name)))


def spent_by(n_runs):
    return GaussianDP(MU * np.sqrt(n_runs)).epsilon_at(1e-6)


def one_line(caught):
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) <= 200
    return said


SAME_ROWS = {
    "CRLF": lambda frame: text_of(frame).replace(b"\n", b"\r\n"),
    "1.0 for 1": lambda frame: text_of(frame.astype(float)),
    "1e0 for 1": lambda frame: text_of(frame.map(lambda value: f"{value:e}")),
    "a byte order mark": lambda frame: b"\xef\xbb\xbf" + text_of(frame),
    "quotes": lambda frame: text_of(frame, quoting=1),
    "blanks": lambda frame: text_of(frame).replace(b",", b" , ").replace(b"\n", b" \n"),
    "no last line end": lambda frame: text_of(frame)[:-1],
    "swapped columns": lambda frame: text_of(frame[frame.columns[::-1]]),
    "one appended row": lambda frame: text_of(frame) + b",".join([b"1"] * frame.shape[1]) + b"\n",
}
"""Re-exports in which people keep their places."""


def with_ids(frame):
    """Another column, of numbers that no other data set has."""
    return frame.assign(number=np.random.default_rng(5).random(len(frame)))


OTHER_ROWS = {
    "reversed rows": lambda frame: text_of(frame[::-1]),
    "a renamed header": lambda frame: text_of(frame.rename(columns=lambda name: f"new {name}")),
    "a renamed header, and swapped": lambda frame: text_of(frame[frame.columns[::-1]].rename(columns=lambda n: f"new {n}")),
    "shuffled rows": lambda frame: text_of(frame.sample(frac=1, random_state=3)),
    "rows that are there twice": lambda frame: text_of(pd.concat([frame, frame])[1:]),
    "the first half of the rows": lambda frame: text_of(frame[: N_ROWS // 2]),
    "the other half of the rows": lambda frame: text_of(frame[N_ROWS // 2 :]),
    "one changed value": lambda frame: text_of(frame.assign(stay=[*frame["stay"][:-1], 1 - frame["stay"].iloc[-1]])),
    "another column of one value": lambda frame: text_of(frame.assign(none=0)),
    "another column of random numbers": lambda frame: text_of(with_ids(frame)),
    "that, and shuffled": lambda frame: text_of(with_ids(frame).sample(frac=1, random_state=3)),
    "that, and a row": lambda frame: text_of(with_ids(frame)) + b",".join([b"1"] * (frame.shape[1] + 1)) + b"\n",
}
"""Re-exports of another kind: which record is whose is not known any more."""
KINDS = ("bits", "steps", "reals")


@pytest.mark.parametrize("kind", KINDS)
def test_every_reexport_is_known_by_its_rows_and_other_people_are_not(kind):
    frame, key = table(kind), b"k" * 32
    known = Rows(read(text_of(frame), "people.csv"), key).note

    def is_known(content, name="other.csv"):
        return Rows(read(content, name), key).is_same(known)

    missed = [what for what, reexport in (SAME_ROWS | OTHER_ROWS).items() if not is_known(reexport(frame))]
    assert missed == []
    for seed in range(1, 15):
        assert not is_known(text_of(table(kind, seed))), "the same law, and other people"
        assert not is_known(text_of(table(kind, seed)[: N_ROWS // 3]))
        assert not is_known(text_of(pd.concat([table(kind, seed + i) for i in range(1, 9)])))
    for ending, write in (("parquet", frame.to_parquet), ("json", frame.to_json)):
        file = io.BytesIO()
        write(file)
        assert is_known(file.getvalue(), f"other.{ending}") == (ending == "parquet")


def test_numbers_of_rows_and_short_tables_are_shared_by_accident():
    """Running numbers are in all tables; of five people with two bits all are alike."""
    key, ids = b"k" * 32, np.arange(N_ROWS)
    one, other = (Rows(read(text_of(table("reals", seed).assign(id=ids)), "a.csv"), key) for seed in (0, 1))
    assert not other.is_same(one.note)
    one, other = (Rows(read(b"a,b\n" + rows, "a.csv"), key) for rows in (b"0,1\n1,0\n0,0\n", b"0,1\n1,1\n0,0\n0,1\n1,0\n"))
    assert not other.is_same(one.note)
    assert not one.is_same(other.note)


def test_files_that_are_no_tables_are_known_line_by_line():
    key = b"k" * 32
    lines = b"".join(b"%d%s\n" % (i * i, b"," * i) for i in range(50))
    known = Rows(read(lines, "a.csv"), key)
    assert known.n_rows == 50
    assert Rows(read(lines.replace(b"\n", b"\r\n"), "b.csv"), key).is_same(known.note)
    assert Rows(read(b"", "empty.csv"), key).n_rows == 0
    assert not Rows(read(b"", "empty.csv"), key).is_same(known.note)
    assert not known.is_same(Rows(read(b"", "empty.csv"), key).note)


def test_a_large_table_is_known_by_a_sample_of_its_hashes(monkeypatch):
    monkeypatch.setattr(identity, "_MOST_HASHES", 2_500)
    key, values = b"k" * 32, pd.DataFrame(np.random.default_rng(0).random((20_000, 2)), columns=["a", "b"])
    known = Rows(read(text_of(values), "a.csv"), key).note
    assert {len(sketch.hashes) for sketch in known.rows} == {500}
    for part in (values.sample(2_000, random_state=1), values.sample(frac=1, random_state=1)[["b", "a"]]):
        assert Rows(read(text_of(part), "b.csv"), key).is_same(known)
    others = pd.DataFrame(np.random.default_rng(1).random((20_000, 2)), columns=["a", "b"])
    assert not Rows(read(text_of(others), "b.csv"), key).is_same(known)
    part = pd.concat([values[:400], others[:9_600]]).sample(frac=1, random_state=1)
    assert not Rows(read(text_of(part), "b.csv"), key).is_same(known), "four in a hundred"


@pytest.mark.parametrize("kind", ["bits", pytest.param("reals", marks=pytest.mark.nightly)])
def test_a_reexport_with_people_in_their_places_is_charged_in_the_same_book(play, folder, kind):
    frame, name = table(kind), 0
    play(text_of(frame))
    for name, reexport in enumerate(SAME_ROWS.values(), start=1):
        play(reexport(frame), name=f"night-{name}", seed=name)
        assert book_of(folder).state().spent == pytest.approx(spent_by(3 * (name + 1)), rel=1e-3)
    assert len(book_of(folder).state().charges) == 2 * (len(SAME_ROWS) + 1)


@pytest.mark.parametrize("kind", ["bits", pytest.param("steps", marks=pytest.mark.nightly)])
def test_a_reexport_without_its_book_is_refused_with_the_name_of_the_book(play, folder, kind):
    frame = table(kind)
    play(text_of(frame))
    before = book_of(folder).entries()
    for what, reexport in (SAME_ROWS | OTHER_ROWS).items():
        blocks = play.blocks_of(play.write(reexport(frame), data=None, name="other", seed=8))
        for use in (check_affords, lambda each: benchmark_block(each[0], Store(folder.results))):
            with pytest.raises(SpecError, match=r"environment\.data: .*budget book books/trial\.sqlite") as caught:
                use(blocks)
            assert "name it" in one_line(caught), what
    assert book_of(folder).entries() == before


@pytest.mark.parametrize("kind", ["bits", pytest.param("steps", marks=pytest.mark.nightly)])
def test_a_reexport_with_a_new_book_is_refused_with_the_name_of_the_other(play, folder, kind):
    frame = table(kind)
    play(text_of(frame))
    for what, reexport in (SAME_ROWS | OTHER_ROWS).items():
        with pytest.raises(
            BookError, match=r"book fresh: other\.csv (has rows of|is in) the book books/trial\.sqlite"
        ) as caught:
            play(reexport(frame), data=DATA | {"book": "fresh"}, name="other")
        assert "one data set has one book" in one_line(caught), what
    assert book_of(folder, "fresh").entries() == []


def test_people_in_other_places_are_not_charged_in_their_book_but_refused(play, folder):
    frame = table("steps")
    play(text_of(frame))
    before = book_of(folder).entries()
    for reexport in OTHER_ROWS.values():
        content = reexport(frame)
        with pytest.raises(BookError, match=r"it belongs to another data set than other.csv.*restore the file"):
            play(content, name="other")
    assert book_of(folder).entries() == before


def test_a_dropped_column(play):
    frame = table("steps")
    play(text_of(frame))
    for part in (frame[["stay", "call"]], frame[["call", "go"]].sample(frac=1, random_state=3), frame[["stay", "go"]][50:]):
        with pytest.raises(SpecError, match=r"budget book books/trial.sqlite"):
            play(text_of(part), data=None, name="other")


def test_rows_of_many_values_are_known_one_by_one(play):
    """A tenth of the rows of the smaller data set is the limit: 30 of 300."""
    frame, others = table("reals"), table("reals", seed=1)
    play(text_of(frame))
    mixed = [pd.concat([frame[:n_known], others[n_known:]]).sample(frac=1, random_state=2) for n_known in (28, 33)]
    play(text_of(mixed[0]), data=DATA | {"book": "fresh"}, name="few")
    with pytest.raises(BookError, match=r"many\.csv has rows of the book"):
        play(text_of(mixed[1]), data=DATA | {"book": "third"}, name="many")
    few_rows = frame.sample(40, random_state=1)
    with pytest.raises(SpecError, match="has rows of the budget book"):
        play(text_of(few_rows), data=None, name="subset")


@pytest.mark.parametrize("kind", KINDS)
def test_other_people_have_books_of_their_own(play, folder, kind):
    for seed in range(4):
        play(text_of(table(kind, seed)), data=DATA | {"book": f"book-{seed}"}, name=f"night-{seed}", seed=seed)
        assert len(book_of(folder, f"book-{seed}").state().charges) == 2
    play(text_of(table(kind, 9)), data=None, name="bare", twins=False, references=False)


def test_rows_that_are_alike_by_accident_are_declared_and_the_report_says_so(play, folder):
    """Ten people are ten of few: without a declaration the same ten rows in another order are the same people."""
    rows = b"0,1\n1,0\n1,1\n0,0\n1,0\n0,0\n0,1\n1,1\n1,1\n0,0\n"
    play(b"stay,go\n" + rows, horizon=10)
    other = b"now,later\n" + b"\n".join(reversed(rows.split()))
    with pytest.raises(BookError, match=r"write not_the_data_of: \[trial\]"):
        play(other, data=DATA | {"book": "fresh"}, name="other", horizon=10)
    apart = {"not_the_data_of": ["trial"]}
    path = play(other, data=DATA | {"book": "fresh"}, name="other", horizon=10, environment=apart)
    document = assemble(Plan.of(pinned(load_spec(path), folder.root)), path.read_text(), Store(folder.results))
    validate(json.loads(json.dumps(document)))
    assert "declared to be of other people than those of the budget book trial" in render_html(document)
    assert book_of(folder, "fresh").state().earlier == 0, "the runs of the others"
    shuffled = b"a,b\n" + b"\n".join(sorted(rows.split()))
    play(shuffled, data=None, name="bare", horizon=10, environment={"not_the_data_of": ["trial", "fresh"]}, seed=9)


def test_no_declaration_makes_a_file_the_data_of_others(play):
    play(text_of(bits()))
    for data in (None, DATA | {"book": "fresh"}):
        with pytest.raises((SpecError, BookError), match=r"book books/trial\.sqlite"):
            play(text_of(bits()), data=data, name="same", environment={"not_the_data_of": ["trial"]}, seed=8)


def test_two_books_that_an_earlier_version_opened_for_the_same_rows_stay_usable(play, folder, monkeypatch):
    content = text_of(bits())
    with monkeypatch.context() as patch:
        patch.setattr(DataSet, "note", lambda _: None)
        play(content)
        play(content[:-1], data=DATA | {"book": "fresh"}, name="other")
    for seed in (8, 9):
        play(content, seed=seed)
        play(content[:-1], data=DATA | {"book": "fresh"}, name="other", seed=seed)
    assert [len(book_of(folder, name).state().charges) for name in ("trial", "fresh")] == [6, 6]


def test_the_declaration_changes_no_key(play):
    content = text_of(bits())
    keys = [
        [block.key for block in play.blocks_of(play.write(content, data=None, environment=more))]
        for more in ({}, {"not_the_data_of": ["trial"]})
    ]
    assert keys[0] == keys[1]


@pytest.mark.parametrize("public", [["values"], ["means"], ["means", "regret"]])
def test_rows_with_a_book_cannot_be_made_public(play, folder, public):
    frame = bits()
    play(text_of(frame))
    for content in (text_of(frame), text_of(frame[::-1])):
        path = play.write(content, data=None, name="open", environment={"public": public}, seed=8)
        blocks = play.blocks_of(path)
        for use in (check_affords, lambda each: benchmark_block(each[0], Store(folder.results))):
            with pytest.raises(SpecError, match=r"budget book books/trial\.sqlite") as caught:
                use(blocks)
            one_line(caught)
    if public == ["values"]:
        with pytest.raises(SpecError, match="play them without public: "):
            audit_cell(blocks[0].cell, Store(folder.results))


def test_logged_rounds_of_the_same_file_are_refused(play, folder, tmp_path):
    frame = table("steps").set_axis(["reward", "propensity", "other"], axis=1)
    frame = frame.assign(propensity=0.5, action=(table("bits")["go"]))[["action", "propensity", "reward"]]
    play(text_of(frame))
    parquet = io.BytesIO()
    frame.to_parquet(parquet)
    for name, content in (("log.csv", text_of(frame)), ("log.parquet", parquet.getvalue())):
        stem, ending = name.split(".")
        logged = {"kind": "logged", "actions": ["0", "1"], "ending": ending}
        path = play.write(content, data=None, name=stem, environment=logged)
        with pytest.raises(SpecError, match=r"play them in a table, and name it"):
            check_affords(play.blocks_of(path))


# --- runs that came before the book ------------------------------------------------------------------------------------


BARE = {"data": None, "twins": False, "references": False}


@pytest.mark.parametrize("what", ["the same file", "CRLF", "swapped columns", "reversed rows", "a renamed header"])
def test_runs_before_the_book_are_charged_by_the_first_run_that_names_it(play, folder, capsys, what):
    frame = bits()
    play(text_of(frame), name="early", **BARE)
    reexports = {"the same file": text_of} | SAME_ROWS | OTHER_ROWS
    path = play.write(reexports[what](frame), seed=8)
    check_affords(play.blocks_of(path))
    state = book_of(folder).state()
    assert state.spent == pytest.approx(spent_by(3), rel=1e-2)
    assert (state.earlier, state.unprotected) == (3, 0)
    assert "book trial: 3 earlier runs over these rows are charged" in capsys.readouterr().err
    (stop,) = {charge.stop for charge in state.charges}
    assert stop == (N_ROWS if what == "reversed rows" else 20), "all records, where nobody knows which"
    play(text_of(frame) if what == "the same file" else reexports[what](frame), seed=8)
    assert book_of(folder).state().spent == pytest.approx(spent_by(6), rel=1e-2)


def test_a_lost_result_and_a_killed_run_are_charged_too(play, folder, monkeypatch):
    from bandana.flows.cells import play as playing

    play(text_of(bits()), name="early", **BARE)
    for path in folder.results.rglob("*.npz"):
        path.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(playing.replicates, "play", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            play(text_of(bits()), name="killed", **BARE, seed=8)
    play(text_of(bits()), seed=9)
    assert book_of(folder).state().earlier == 5, "a whole run, and the first block of one that was killed"


def test_results_of_an_earlier_version_are_found_in_the_store(play, folder):
    """It noted no runs: the same file is known by its digest."""
    play(text_of(bits()), name="early", **{**BARE, "twins": True})
    for path in (folder.root / FOLDER).iterdir():
        path.unlink()
    play(text_of(table("bits", 1)), name="others", **BARE)
    play(text_of(bits()), environment={"rows": [0, 100]}, seed=8)
    state = book_of(folder).state()
    assert (state.earlier, state.unprotected) == (3, 2)
    assert state.spent == pytest.approx(spent_by(6), rel=1e-2)
    assert {charge.facts["suite"] for charge in state.charges} == {"before the book", "night"}


def test_open_charges_earlier_runs_beyond_the_budget_and_says_what(play, folder):
    content = text_of(bits())
    early = play(content, name="early", data=None)
    path = play.write(content, data=DATA | {"budget": {"epsilon": 0.5, "delta": 1e-6}}, seed=8)

    def run(*words, status=0):
        done = CliRunner().invoke(app, [*words, str(path), "--data", str(folder.root)])
        assert done.exit_code == status, done.output
        return done.output.replace("\n", " ")

    assert "3 earlier runs over these rows are charged when it opens" in run("check")
    with pytest.raises(BookError, match="out of budget"):
        check_affords(play.blocks_of(path))
    assert book_of(folder).entries() == []
    said = run("book", "open")
    n_bare = sum(len(cell.blocks()) for cell in Plan.of(load_spec(early)).played if not cell.is_private)
    assert f"{spent_by(3):.3f}"[:4] in said
    assert "of epsilon 0.5, so that further runs are refused" in said
    assert f"no budget covers {n_bare} results without noise" in said
    assert n_bare > 0
    before = book_of(folder).entries()
    assert run("book", "open") == said
    assert book_of(folder).entries() == before, "nothing is charged twice"
    assert f"before the book: 3 runs, which are charged, and {n_bare} results without noise" in run("book", "show")
    assert "whole" in run("book", "verify")
    with pytest.raises(BookError, match="out of budget"):
        check_affords(play.blocks_of(path))


def test_open_without_earlier_runs_or_without_a_book(play, folder):
    path = play.write(text_of(bits()))
    done = CliRunner().invoke(app, ["book", "open", str(path), "--data", str(folder.root)])
    assert "book trial: open; no earlier runs over these rows are known" in done.output
    assert [entry.kind for entry in book_of(folder).entries()] == ["opened"]
    bare = play.write(text_of(bits()), data=None, name="bare")
    done = CliRunner().invoke(app, ["book", "open", str(bare), "--data", str(folder.root)])
    assert done.exit_code == 2
    assert "no environment has a budget book" in done.output


def test_the_report_and_check_name_a_file_without_a_book_and_one_that_came_before_it(play, folder):
    path = play(text_of(bits()), data=None, twins=True, references=False)

    def page():
        document = assemble(Plan.of(pinned(load_spec(path), folder.root)), path.read_text(), Store(folder.results))
        validate(json.loads(json.dumps(document, allow_nan=False)))
        return render_html(document)

    assert "No budget book is named for night.csv: earlier runs over these rows are not counted." in page()
    (line,) = explain(Plan.of(load_spec(path), folder.root), ["benchmark"], folder.root)["books"]
    assert line == "night.csv: no budget book: earlier runs over these rows are not counted"
    path = play(text_of(bits()), name="later")
    assert "3 of these runs came before the book" in page()
    assert "2 results without noise came before it, and no budget covers them" in page()
    path = play.write(text_of(bits()[::-1]), data=None, name="again")
    (line,) = explain(Plan.of(load_spec(path), folder.root), ["benchmark"], folder.root)["books"]
    assert "again.csv is refused: environment.data: again.csv has rows of the budget book books/trial.sqlite" in line
    path = play.write(text_of(bits()[::-1]), data=DATA | {"book": "fresh"}, name="again")
    (line,) = explain(Plan.of(load_spec(path), folder.root), ["benchmark"], folder.root)["books"]
    assert line == "book fresh: again.csv has rows of the book books/trial.sqlite, so that every run is refused"


# --- what the data folder keeps ------------------------------------------------------------------------------------


def test_notes_are_for_their_owner_alone_and_hold_no_hash_without_the_secret(play, folder):
    content = text_of(bits())
    play(content, name="early", **BARE)
    play(content)
    notes = sorted((folder.root / FOLDER).iterdir())
    assert [path.suffix for path in notes] == [".jsonl", ".npz"]
    assert {os.stat(path).st_mode & 0o777 for path in notes} == {0o600}
    other = DataFolder.open(folder.root.parent / "other")
    spec = pinned(load_spec(play.write(content, data=None, name="elsewhere")), other.root)
    benchmark_block(next(block for cell in Plan.of(spec).played for block in cell.blocks()), Store(other.results))
    (elsewhere,) = (other.root / FOLDER).glob("*.npz")
    with np.load(notes[1]) as here, np.load(elsewhere) as there:
        assert not set(map(str, here["wholes"])) & set(map(str, there["wholes"]))
        assert not np.isin(here["rows 0 hashes"], there["rows 0 hashes"]).any()


def test_a_data_folder_whose_secret_was_lost_refuses_instead_of_forgetting(play, folder):
    play(text_of(bits()))
    (folder.root / "secret").unlink()
    with pytest.raises(BookError, match=r"written under another secret.*restore the secret"):
        play(text_of(bits()), data=None, name="other")


def test_a_damaged_note_is_one_line(play, folder):
    play(text_of(bits()))
    (note,) = (folder.root / FOLDER).glob("*.npz")
    note.write_bytes(b"no note")
    os.utime(note, (1, 1))
    with pytest.raises(BookError, match=r"note of a data set's rows cannot be read.*restore it from a copy"):
        play(text_of(bits()[::-1]), data=None, name="other")


def test_a_book_of_an_earlier_version_is_known_for_its_file_and_knows_its_rows_from_the_next_charge_on(
    play, folder, monkeypatch
):
    from bandana.flows.annexes.books.bookkeeping import book as books

    content = text_of(bits())
    with monkeypatch.context() as patch:
        patch.setattr(books, "_facts_of", lambda writer, data: {"data": books._mac(writer, data.content),
                                                                "bytes": len(data.content)})  # fmt: skip
        patch.setattr(books.BudgetBook, "_check_data", lambda *_: None)
        check_affords(play.blocks_of(play.write(content)))
    assert "rows" not in book_of(folder).entries()[0].facts
    assert not list((folder.root / FOLDER).glob("*.npz"))
    with pytest.raises(SpecError, match=r"the rows of other.csv have the budget book"):
        play(content, data=None, name="other")
    with pytest.raises(BookError, match="it belongs to another data set"):
        play(content.replace(b"\n", b"\r\n"), name="crlf")
    play(content, seed=8)
    extended = [entry.facts for entry in book_of(folder).entries() if entry.kind == "extended"]
    assert [facts["rows"] for facts in extended] == [N_ROWS]
    play(content.replace(b"\n", b"\r\n"), name="crlf", seed=9)
    with pytest.raises(SpecError, match="has rows of the budget book"):
        play(text_of(bits()[::-1]), data=None, name="other")


def test_a_file_that_no_book_knows_asks_for_no_notes(play, folder):
    path = play.write(text_of(bits()), data=None, environment={"public": ["values"]})
    for block in play.blocks_of(path):
        check_has_no_book(block.cell.environment)
        benchmark_block(block, Store(folder.results))
    assert not (folder.root / FOLDER).exists()
    assert len(Store(folder.results).sizes(BENCHMARK)) > 0
    play(text_of(bits()), name="private", seed=8)
    assert book_of(folder).state().unprotected > 0, "what was played while the rows were public"
