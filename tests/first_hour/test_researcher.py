"""The first hour of a researcher: a rule of their own beside the catalog, a figure and a table, and mistakes on the way."""

import json
import sys

import pytest
from desk import stands_on_its_pages, tasks_of, text_of
from documentation import blocks

README = "README.md"
TEN = "docs/tutorials/ten-lines.md"
PYTHON = "docs/how-to/python.md"
SPEC = "docs/how-to/write-a-spec.md"
OWN = "docs/bring-your-own.md"


def sees_which_algorithms_there_are(desk):
    rows = desk.types(README, "bandana list").splitlines()
    assert rows[0].split() == ["algorithm", "trust", "models", "guarantees", "plays", "on"]
    assert any(row.split()[:4] == ["adar-ucb", "none", "central", "renyi"] for row in rows)


def sees_one_algorithm_and_starts_from_its_spec(desk):
    text = desk.types(SPEC, "bandana list ALGORITHM", swap={"ALGORITHM": "adar-ucb"})
    assert "claim: (alpha, epsilon)-RDP of all actions" in text
    assert "source: Azize and Basu" in text
    (desk.folder / "try.yaml").write_text(text.partition("a spec to start from\n")[2], encoding="utf-8")
    assert desk.types(README, "bandana check bad.yaml", swap={"bad": "try"}).endswith("try.yaml: correct\n")


def has_the_catalog_as_a_table(desk):
    desk.asks("import bandana")
    desk.python(PYTHON, "bandana.catalog(")
    private = desk.asks("print(bandana.catalog().query('guarantee.notna()')[['claim', 'source']].notna().all().all())")
    assert private == "True\n"


def benchmarks_an_own_algorithm_in_ten_lines(desk):
    desk.saves(TEN, "mine.py")
    desk.python(TEN, "bandana.run(spec)")
    assert "<svg" in (desk.folder / "mine.svg").read_text(encoding="utf-8")
    assert desk.asks("print(result)").startswith("<Result of suite 'mine': 6 cells, 20 replications, in ")


def sees_how_large_the_difference_is(desk):
    desk.python(TEN, 'result.compare("mine", "mine without noise")')
    low, high = json.loads(desk.asks("d = result.compare('mine', 'uniform play'); print([d.low, d.high])"))
    assert low < high < 0


def has_both_claims_audited(desk):
    desk.python(TEN, "audit=True")
    columns = "['mu_claimed', 'mu_accounted', 'mu_measured']"
    rows = json.loads(desk.asks(f"print(bandana.load('mine').frame()[{columns}].dropna().to_json(orient='values'))"))
    assert len(rows) == 2
    assert all(claimed >= accounted - 1e-9 >= measured > 0 for claimed, accounted, measured in rows)


def has_the_papers_figure_and_table_in_five_lines(desk):
    block = next(each for each in blocks(text_of(TEN)) if each.mark == "python" and "export" in each.body)
    lines = ["import bandana", "result = bandana.load('mine')", *block.body.splitlines()]
    assert len(lines) <= 5
    assert desk.asks("\n".join(lines)) == "table.tex regret.pdf regret.pgf regret.svg\n"
    assert (desk.folder / "paper/regret.pdf").read_bytes().startswith(b"%PDF")
    table = (desk.folder / "paper/table.tex").read_text(encoding="utf-8")
    assert table.count(r"\begin{tabular}") == table.count(r"\end{tabular}") == 1
    assert table.count(r"\rule") == 0
    assert all(rule in table for rule in (r"\toprule", r"\midrule", r"\bottomrule"))
    assert "mine &" in table


def runs_a_suite_from_a_dict(desk):
    desk.python(PYTHON, '"name": "coins"')


def mistypes_a_cell(desk):
    assert "did you mean 'adar-ucb tight eps=1'?" in desk.python(PYTHON, "except bandana.SpecError")


def opens_a_finished_suite(desk):
    desk.python(PYTHON, "bandana.load(")
    assert desk.asks("print(result.frame().regret.notna().all())") == "True\n"


def has_tables_of_privacy_and_of_curves(desk):
    desk.python(PYTHON, "result.frame()")
    desk.python(PYTHON, "result.curves(replicates=True)")
    last = "result.curves(replicates=True).groupby('cell').regret.max()"
    assert int(desk.asks(f"print(len({last}))")) == 7


def compares_with_intervals_that_hold_together(desk):
    desk.python(PYTHON, "cost = result.compare(")
    desk.python(PYTHON, 'result.comparisons("ucb", cells=')
    own = "(table.simultaneous_low <= table.difference_low) & (table.difference_high <= table.simultaneous_high)"
    assert desk.asks(f"print(len(table), ({own}).all())") == "2 True\n"


def draws_regret_against_rounds_and_against_privacy(desk):
    desk.python(PYTHON, "result.plot(")
    assert all((desk.folder / name).read_bytes().startswith(b"%PDF") for name in ("coins.pdf", "privacy.pdf"))
    assert desk.asks("print(against_privacy.axes[0].get_xlabel())").startswith("µ claimed")
    legend = desk.asks("print(*(t.get_text() for t in (figure.legends or [figure.axes[0].get_legend()])[0].get_texts()))")
    assert "AdaR-UCB, ε = 1" in legend


def names_and_sorts_the_rows_of_the_table(desk):
    desk.python(PYTHON, 'result.export("for-the-paper"')
    table = (desk.folder / "for-the-paper/table.tex").read_text(encoding="utf-8")
    rows = [line.split(" & ")[0] for line in table.splitlines() if line.endswith(r"\\") and "$" in line][1:]
    assert len(rows) == 7
    assert rows[0] == "UCB"
    assert rows[-1] == "uniform play"


def has_the_report_of_it(desk):
    desk.python(PYTHON, "result.report(")
    assert "adar-ucb" in (desk.folder / "coins.html").read_text(encoding="utf-8")


def audits_the_own_algorithm_alone(desk):
    desk.python(PYTHON, "bandana.audit(")
    desk.python(PYTHON, "audited.save(")
    theirs = {"bandana_data/own/black_box-play.evidence.npz": "mine.npz"}
    text = desk.types(OWN, "bandana verify bandana_data/own/black_box-play.evidence.npz", 4, theirs)
    assert text.startswith("mine.npz: PARTLY COMPARED, ")
    assert "none differs; the verdict is PASS" in text.splitlines()[0]


def tunes_a_parameter(desk):
    small = {"replications: 100": "replications: 20", "10000": "2000"}
    desk.saves(SPEC, "parts.yaml", swap=small)
    assert "run `bandana tune`" in desk.types(SPEC, "bandana check parts.yaml", 2)
    chosen = desk.types(SPEC, "bandana tune parts.yaml").splitlines()
    assert [line.split("beta = ")[1].split()[0] in ("3.1", "4", "6") for line in chosen[:-1]] == [True] * 3
    assert desk.types(SPEC, "bandana check parts.yaml").endswith("parts.yaml: correct\n")


def asks_for_equal_privacy_from_everybody(desk):
    desk.saves(SPEC, "everybody.yaml")
    plan = json.loads(desk.types("docs/how-to/ci.md", "bandana check SPEC --json", swap={"SPEC": "everybody.yaml"}))
    private = [cell for cell in plan["cells"] if cell["claim"]]
    assert len(private) > 10
    assert {round(cell["mu"], 3) for cell in private} == {0.5, 2.0}


def sees_each_mistake_in_a_spec_with_its_line(desk):
    desk.saves(SPEC, "wrong.yaml")
    desk.sees(SPEC, "bandana check wrong.yaml", 2)
    check = {"bad": "mistakes"}
    for old, new, message in (
        ("kind: bernoulli", "kind: bernouli", ":4: environment.kind: unknown kind 'bernouli'; did you mean 'bernoulli'?"),
        ("horizon: 10000", "horizon: 1e4", "mistakes.yaml: correct"),
        ("algorithm: adar-ucb", "algorithm: AdaR-UCB", "unknown algorithm 'AdaR-UCB'; did you mean 'adar-ucb'?"),
        ("- algorithm: adar-ucb\n    privacy", "- adar-ucb:\n      privacy", "write `algorithm: adar-ucb` for `adar-ucb:`"),
        ("  means:", "\tmeans:", "mistakes.yaml:5: not valid YAML: a tab; indent with blanks"),
        ("privacy:", "privcy:", "did you mean 'privacy'?"),
    ):
        desk.saves(SPEC, "small.yaml")
        (desk.folder / "small.yaml").rename(desk.folder / "mistakes.yaml")
        desk.edits("mistakes.yaml", old, new)
        assert message in desk.types(README, "bandana check bad.yaml", 0 if "correct" in message else 2, check)


def claims_more_than_the_noise_keeps(desk):
    claim = desk.folder / "claim.yaml"
    desk.saves(SPEC, "small.yaml")
    (desk.folder / "small.yaml").rename(claim)
    desk.edits("claim.yaml", "algorithm: adar-ucb\n    privacy: {alpha: 2, epsilon: 1}",
               'file: mine.py:NoisyUCB\n    claim: "gdp(mu=0.5, relation=reward)"')  # fmt: skip
    text = desk.types(README, "bandana check bad.yaml", 2, {"bad": "claim"})
    assert "0.5-GDP allows mu = 0.5, and the ledger of 2,000 rounds composes to mu = 1" in text
    desk.clones("examples")
    text = desk.types(OWN, "bandana audit-own examples/broken_bandit.py:bandit", 1)
    assert text.startswith("FAIL ")
    assert "release 2 declares the records [8, 12), yet its exact value moved by 1" in text


SCRIPT = sys.modules[__name__]


@pytest.mark.nightly
@pytest.mark.parametrize("task", tasks_of(SCRIPT), ids=lambda task: task.__name__)
def test_an_hour_goes_well(desk, task):
    """In `make test`: all that is typed stands on the pages."""
    desk.does(task)


def test_all_that_is_typed_stands_on_the_pages():
    stands_on_its_pages(SCRIPT, 20)
