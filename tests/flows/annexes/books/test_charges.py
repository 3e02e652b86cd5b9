"""Runs over private rows are charged in the data set's book before they draw noise, and never twice for one result."""

import json
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from bandana.audits.reporting.document import validate
from bandana.flows.annexes.books import charges
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook
from bandana.flows.annexes.books.charges import check_affords
from bandana.flows.cells import replicates
from bandana.flows.cells.play import BENCHMARK, BOOK, benchmark_block
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.own.data import pinned
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.queries import cost
from bandana.flows.queries.explain import explain
from bandana.flows.results.report_document import assemble
from bandana.flows.running.side_by_side import Workers
from bandana.flows.spec.spec import load_spec, standing_alone
from bandana.flows.suites import steps
from bandana.flows.texts.mistakes import BookError, SpecError
from bandana.privacy_core import GaussianDP, LiveLedger, SecureNoise
from benchmarks import book_kills

N_ROWS = 300
MU = 0.1
"""GDP parameter of a Gaussian release that is (2, 0.01)-RDP: mu^2 = 2 epsilon / alpha."""
BUDGET = {"epsilon": 3, "delta": 1.0e-6}


@pytest.fixture
def write(tmp_path):
    """Writes a spec on a private table with a book, and returns its path."""

    def build(epsilon=0.01, rows=b"0,1\n1,0\n0,1\n", book="trial", budget=BUDGET, environment=None, name="night", **more):
        (tmp_path / "people.csv").write_bytes(b"stay,go\n" + rows * (N_ROWS // 3))
        data = {"data": {"book": book, "budget": budget}} if book else {}
        spec = {
            "name": name, "seed": 7, "horizon": 200, "replications": 3, "block_size": 2,
            "environment": {"kind": "table", "path": "people.csv", **data, **(environment or {})},
            "algorithms": [{"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": epsilon}}],
            "audit": {"rounds": 16, "replays": 2000}, **more,
        }  # fmt: skip
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
        return path

    return build


@pytest.fixture
def folder(tmp_path):
    return DataFolder.open(tmp_path / "data")


def blocks_of(path, folder):
    return [block for cell in Plan.of(pinned(load_spec(path), folder.root)).played for block in cell.blocks()]


def book_of(folder, name="trial"):
    return BudgetBook(str(folder.book(name)))


def test_a_block_is_charged_its_claim_before_it_draws_and_then_what_it_drew(write, folder, monkeypatch):
    block, store, seen = blocks_of(write(), folder)[0], Store(folder.results), []
    draw = SecureNoise.add_gaussian

    def watched(self, *given):
        if not seen:
            seen.extend(book_of(folder).state().charges)
        return draw(self, *given)

    monkeypatch.setattr(SecureNoise, "add_gaussian", watched)
    _, description = benchmark_block(block, store)
    (reserved,), (paid,) = seen, book_of(folder).state().charges
    assert not reserved.is_settled
    assert reserved.events.total() == paid.events.total() == 2, "one for each replicate"
    (most,), (drawn,) = reserved.events, paid.events
    assert drawn.mu == pytest.approx(MU, rel=1e-9)
    assert drawn.mu < most.mu <= 1.001 * MU
    assert (paid.start, paid.stop) == (0, 200)
    assert description["noise"] == SecureNoise.name
    assert description[BOOK]["number"] == 3
    assert description[BOOK]["hash"] == book_of(folder).entries()[-1].hash


def test_a_rerun_of_stored_results_spends_nothing_and_a_lost_one_pays_again(write, folder):
    blocks, store = blocks_of(write(), folder), Store(folder.results)
    for block in blocks:
        benchmark_block(block, store)
    before = book_of(folder).state()
    assert [c.facts["replications"] for c in before.charges] == [2, 1]
    for block in blocks_of(write(), folder):
        benchmark_block(block, store)
    assert book_of(folder).state() == before
    store.path(BENCHMARK, blocks[0].key).unlink()
    benchmark_block(blocks[0], store)
    assert len(book_of(folder).state().charges) == 3


def test_replications_cells_and_suites_over_the_same_rows_compose_and_disjoint_users_do_not_add(write, folder):
    store = Store(folder.results)

    def spent(**more):
        for block in blocks_of(write(**more), folder):
            benchmark_block(block, store)
        return book_of(folder).state().spent

    def of(n_runs):
        return GaussianDP(MU * np.sqrt(n_runs)).epsilon_at(1e-6)

    first = {"environment": {"rows": [0, 150]}, "horizon": 150}
    assert spent(**first) == pytest.approx(of(3), rel=1e-3)
    assert spent(**first, epsilon=[0.01, 0.02]) == pytest.approx(of(9), rel=1e-3), "a second cell of twice the cost"
    assert spent(**first, name="morning", seed=8) == pytest.approx(of(12), rel=1e-3)
    assert spent(environment={"rows": [150, 300]}, horizon=150, name="others") == pytest.approx(of(12), rel=1e-3)
    assert spent(environment={"rows": [100, 200]}, horizon=100, name="both") == pytest.approx(of(15), rel=1e-3)


def books_said(spec, data):
    return explain(Plan.of(spec, data), ["benchmark"], data)["books"]


def test_a_grid_is_refused_as_a_whole_before_any_work(write, folder):
    path = write(epsilon=[0.01 * i for i in range(1, 9)])
    blocks = blocks_of(path, folder)
    with pytest.raises(BookError, match="out of budget: 16 blocks of 8 cells of night would cost epsilon"):
        check_affords(blocks)
    with pytest.raises(BookError, match="nothing was drawn"), Workers(1) as pool:
        steps.benchmark([Plan.of(load_spec(path)).bound(folder.root)], folder, pool)
    assert book_of(folder).entries() == []
    assert Store(folder.results).sizes(BENCHMARK) == {}
    check_affords(blocks[:4])


def test_a_run_that_would_spend_more_than_its_claim_is_stopped_and_stays_charged(write, folder, monkeypatch):
    block, release, calls = blocks_of(write(), folder)[0], LiveLedger.release, []

    def twice(self, mechanism, value, **more):
        calls.append(release(self, mechanism, value, **more))
        return release(self, mechanism, value, **more)

    monkeypatch.setattr(LiveLedger, "release", twice)
    with pytest.raises(BookError, match=r"adar-ucb tight eps=0.01 would spend more than its claim"):
        benchmark_block(block, Store(folder.results))
    assert len(calls) == 1
    (charge,) = book_of(folder).state().charges
    assert not charge.is_settled
    assert charge.events.total() == 2


def test_two_runs_with_one_seed_over_one_data_set_are_refused(write, folder, tmp_path):
    path = write(noise="reproducible")
    for block in blocks_of(path, folder):
        benchmark_block(block, Store(folder.results))
    assert {c.facts["seed"] is None for c in book_of(folder).state().charges} == {False}
    elsewhere = DataFolder.open(tmp_path / "elsewhere")
    text = yaml.safe_load(path.read_text())
    text["environment"]["data"]["book"] = str(folder.book("trial"))
    path.write_text(yaml.safe_dump(text))
    with pytest.raises(BookError, match="drew noise from the same seed"):
        benchmark_block(blocks_of(path, elsewhere)[0], Store(elsewhere.results))
    path.write_text(yaml.safe_dump(text | {"noise": "secure"}))
    benchmark_block(blocks_of(path, elsewhere)[0], Store(elsewhere.results))


def test_without_a_book_the_data_folder_notices_a_seed_that_is_used_twice(write, folder):
    def play(**more):
        for block in blocks_of(write(book=None, twins=False, references=False, **more), folder):
            benchmark_block(block, Store(folder.results))

    play(noise="reproducible")
    play(noise="reproducible")  # stored
    for path in folder.results.rglob("*.npz"):
        path.unlink()
    play(noise="reproducible")  # the same noise for the same values
    with pytest.raises(BookError, match=r"another run over people.csv, of other rounds or other code, drew noise"):
        play(noise="reproducible", horizon=150)
    play(noise="reproducible", horizon=150, seed=8)
    play(noise="secure", horizon=160)


def test_no_two_private_tables_share_noise_and_a_copy_of_one_has_the_same(write, folder):
    spec = {"noise": "reproducible", "book": None}
    one, other = b"0,1\n1,0\n1,1\n", b"0,1\n1,0\n0,1\n"
    seeds = [blocks_of(write(rows=rows, **spec), folder)[0].noise_seed.spawn_key for rows in (one, other, one)]
    assert seeds[0] == seeds[2] != seeds[1]


@pytest.mark.parametrize(
    ("noise", "public", "expected"),
    [
        (None, [], "secure"),
        (None, ["values"], "reproducible"),
        ("reproducible", [], "reproducible"),
        ("secure", ["values"], "secure"),
    ],
)
def test_private_rows_get_secure_noise_unless_the_spec_says_otherwise(write, folder, noise, public, expected):
    more = {} if noise is None else {"noise": noise}
    quiet = {"twins": False, "references": False, "replications": 40, "block_size": 40}
    path = write(book=None, environment={"public": public}, **quiet, **more)
    (block,), store = blocks_of(path, folder), Store(folder.results)
    assert block.cell.noise == expected
    arrays, description = replicates.play(block)
    assert expected in description["noise"]
    assert "events" not in description
    assert np.isfinite(arrays["mu_spent"]).all()
    again, _ = replicates.play(block)
    # With noise far above the means, 40 replicates choose all arms of several episodes alike with a chance below 1e-30.
    assert np.array_equal(arrays["regret"], again["regret"]) == (expected == "reproducible")
    assert benchmark_block(block, store)[1].get(BOOK) is None


def test_a_spec_that_leaves_the_book_out_is_refused(write, folder):
    benchmark_block(blocks_of(write(), folder)[0], Store(folder.results))
    said = r"the rows of people.csv have the budget book books/trial.sqlite, and every run over them is charged"
    other = blocks_of(write(book=None, seed=8), folder)[0]
    for use in (lambda block: benchmark_block(block, Store(folder.results)), lambda block: check_affords([block])):
        with pytest.raises(SpecError, match=said):
            use(other)
    stored = blocks_of(write(book=None), folder)[0]
    assert benchmark_block(stored, Store(folder.results))[1][BOOK]["number"] == 3, "what is stored is there for all"


def test_nothing_is_played_without_noise_where_there_is_a_book(write, folder):
    played = list(Plan.of(pinned(load_spec(write()), folder.root)).played)
    assert [cell.name for cell in played] == ["adar-ucb tight eps=0.01"]
    for name in ("twins", "references"):
        with pytest.raises(SpecError, match=rf"{name}.*'people.csv' has a budget book, and rows without noise exceed every"):
            load_spec(write(**{name: True}))
        load_spec(write(**{name: False}))
    with pytest.raises(SpecError, match="ucb plays without noise, which exceeds every budget"):
        cells_of(load_spec(write(algorithms=[{"algorithm": "ucb"}])))


MISTAKES = {
    "the rows are public": {"environment": {"public": ["values"]}},
    "a book is a name such as trial-2026": {"book": "what is this?"},
    "an address reads postgresql://HOST/DATABASE#NAME": {"book": "mysql://host/x"},
    "budget.epsilon": {"budget": {"epsilon": 0}},
    "budget.delta": {"budget": {"epsilon": 1, "delta": 1}},
    r"rows must be \[first, one after the last\]": {"environment": {"rows": [5, 5]}},
}


@pytest.mark.parametrize("said", MISTAKES)
def test_mistakes_in_a_spec(write, said):
    with pytest.raises(SpecError, match=said) as caught:
        load_spec(write(**MISTAKES[said]))
    assert "night.yaml:" in str(caught.value)


def test_rows_beyond_the_file(write, folder):
    with pytest.raises(SpecError, match=r"environment.rows: .*people.csv has 300 rows, got \[200, 301\]"):
        cells_of(load_spec(write(environment={"rows": [200, 301]}, horizon=100)))


def test_a_book_in_a_file_is_found_beside_the_spec(write, folder, tmp_path):
    path = write(book="team.sqlite")
    spec = load_spec(path)
    assert spec.environment[0].book.place(folder.root) == str(tmp_path / "team.sqlite")
    benchmark_block(blocks_of(path, folder)[0], Store(folder.results))
    assert BudgetBook(str(tmp_path / "team.sqlite")).state().spent > 0
    elsewhere = tmp_path / "suites" / "spec.yaml"
    elsewhere.parent.mkdir()
    elsewhere.write_text(standing_alone(spec, path.read_text()))
    assert load_spec(elsewhere).environment[0].book == spec.environment[0].book


def test_check_shows_what_a_run_may_spend_and_makes_no_book(write, folder):
    path = write()
    alone = GaussianDP(MU * (1 + 2.0**-10) * np.sqrt(3)).epsilon_at(1e-6)
    said = f"book trial: spent 0 of epsilon 3 at delta 1e-06; 2 blocks of 1 cell of night may raise it to {alone:.4g}"
    for data in (None, folder.root):
        assert books_said(load_spec(path), data) == [said]
    assert not folder.book("trial").exists()
    for block in blocks_of(path, folder):
        benchmark_block(block, Store(folder.results))
    assert books_said(load_spec(path), folder.root) == [], "nothing is left to play"
    (line,) = books_said(load_spec(write(epsilon=2, seed=8)), folder.root)
    assert line.endswith(", which is refused")
    (line,) = books_said(load_spec(write(book="new", budget=None, seed=9)), folder.root)
    assert line == "book new does not exist yet, and the spec gives no budget"


def test_an_estimate_of_the_time_meets_no_private_rows(write, folder, monkeypatch):
    cell = blocks_of(write(), folder)[0].cell
    monkeypatch.setattr(type(cell.environment), "stream", lambda *_: pytest.fail("private rows were played and not charged"))
    assert cost.block_seconds(cell) > 0


def test_a_report_shows_what_all_runs_have_spent(write, folder):
    def reported(path):
        blocks_of_suite = blocks_of(path, folder)
        for block in blocks_of_suite:
            benchmark_block(block, Store(folder.results))
        document = assemble(Plan.of(pinned(load_spec(path), folder.root)), path.read_text(), Store(folder.results))
        validate(json.loads(json.dumps(document, allow_nan=False)))
        return document

    (first,) = reported(write())["books"]
    assert (first["name"], first["head"], first["entries"]) == ("trial", book_of(folder).entries()[-1].hash, 5)
    assert first["spent"] == pytest.approx(GaussianDP(MU * np.sqrt(3)).epsilon_at(1e-6))
    second = reported(write(name="morning", seed=8))
    assert second["books"][0]["spent"] == pytest.approx(GaussianDP(MU * np.sqrt(6)).epsilon_at(1e-6)), (
        "with the other suite's runs"
    )
    assert {cell["noise"] for cell in second["benchmark"]["cells"]} == {SecureNoise.name}
    assert reported(write(book="team.sqlite", rows=b"0,1\n0,0\n0,1\n", name="team"))["spec"].count("/") == 0, (
        "no folder is shown"
    )
    assert reported(write(book=None, rows=b"1,1\n0,0\n0,1\n", name="bare"))["books"] == []


def test_show_verify_and_export(write, folder, tmp_path):
    path = write(epsilon=[0.01, 0.02])
    for block in blocks_of(path, folder):
        benchmark_block(block, Store(folder.results))

    def run(*words, fails=None):
        done = CliRunner().invoke(app, ["book", *map(str, words), *(("--data", folder.root) if "--to" not in words else ())])
        assert done.exit_code == (fails or 0), done.output
        return done.output

    shown = json.loads(run("show", "trial", "--json"))
    (suite,) = shown["suites"]
    assert [cell["replications"] for cell in suite["cells"]] == [3, 3]
    assert suite["most_costly_cell"] == max(cell["epsilon"] for cell in suite["cells"]) < suite["epsilon"] == shown["spent"]
    assert shown["open"] == 0
    assert "all 2 cells together" in run("show", path)
    assert "whole; 9 entries, 6 of them looked up" in run("verify", path, "--head", shown["last"]["hash"][:12])
    assert "no entry has the hash" in run("verify", "trial", "--head", "0" * 12, fails=1)
    export = tmp_path / "trial.json"
    export.write_text(run("export", "trial"))
    assert "whole; 9 entries" in run("verify", export)
    export.write_text(export.read_text().replace('"replications\\":2', '"replications\\":1', 1))
    assert "entry 2 was changed" in run("verify", export, fails=1)
    # A tail that is cut off is whole, and found by what results keep.
    os.rename(folder.book("trial"), tmp_path / "kept")
    for place in (folder.root / "books" / "heads").iterdir():
        place.unlink()
    spec = write(epsilon=0.01, name="fresh", seed=9)
    benchmark_block(blocks_of(spec, folder)[0], Store(tmp_path / "other"))
    assert "names another book of this name" in run("verify", "trial", fails=1), "a new book in place of the old one"
    os.rename(tmp_path / "kept", folder.book("trial"))
    for place in (folder.root / "books" / "heads").iterdir():
        place.unlink()
    with sqlite3.connect(folder.book("trial")) as connection:
        connection.execute("DELETE FROM book_entries WHERE number > 7")
    connection.close()
    assert "ends with entry 7, but the stored result" in run("verify", "trial", fails=1)
    assert "does not exist" in run("show", "nobody", fails=1)
    bare = write(book=None, name="bare")
    assert "no environment has a budget book" in run("verify", bare, fails=2)


def test_killed_runs_leave_the_book_whole_and_never_below_what_was_drawn(tmp_path):
    """In `benchmarks.book_kills` 100 runs are killed; here a few, two at once. The oracle counts every release."""
    blocks = book_kills.blocks_of(tmp_path, 10**6)
    for block in (blocks[0], blocks[-1]):
        benchmark_block(block, Store(tmp_path / "warm"))
    found = [book_kills.kill_runs(tmp_path, night, 2, last=last) for night, last in enumerate((1, 9, 50))]
    assert [outcome.n_runs for outcome in found] == [2] * 3
    assert [outcome.missing for outcome in found] == [0.0] * 3
    assert found[-1].booked > found[-1].drawn > 0


def test_the_oracle_notices_a_run_that_is_not_charged(tmp_path, monkeypatch):
    monkeypatch.setattr(charges, "charge", lambda block: None)
    blocks = book_kills.blocks_of(tmp_path, 1)
    if (pid := os.fork()) == 0:
        try:
            book_kills.play(blocks[:1], Store(tmp_path / "results"), tmp_path / "oracle")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert Path(tmp_path / "oracle").exists()
    assert book_kills.compared(tmp_path, blocks[0], 0).missing > 0
