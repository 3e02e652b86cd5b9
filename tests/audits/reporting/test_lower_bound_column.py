"""Regret over its lower bound in both tables of a report; and what they say where none is known."""

from report_documents import sample

from bandana.audits.reporting import content
from bandana.audits.reporting.sections.utility import TIMES_LEAST, about_least, times_least


def tables(document):
    sections = {section["id"]: section["blocks"] for section in content.sections(document)}
    return [next(b for b in sections[name] if b["kind"] == "table") for name in ("regret", "regret-details")]


def shown(table):
    place = [column["title"] for column in table["columns"]].index(TIMES_LEAST)
    return {row[0]["spans"][0]["text"]: row[place]["spans"][0]["text"] for row in table["rows"]}


def test_both_tables_divide_by_the_bound():
    document = sample()
    for cell in document["benchmark"]["cells"]:
        if cell["epsilon"] is not None:
            cell["lower_bound"] = [0.0, 1.0, cell["final_mean"] / 4]
            cell["lower_bound_text"] = "all algorithms; this problem, asymptotically"
    for table in tables(document):
        found = shown(table)
        private = {c["label"] for c in document["benchmark"]["cells"] if c["epsilon"] is not None}
        assert {found[label] for label in private} == {"4"}
        assert {found[label] for label in set(found) - private} <= {"–"}
        assert "must lose" in table["caption"]
        assert len(table["widths"]) == len(table["columns"])


def test_a_page_without_a_bound_says_so():
    document = sample()
    for table in tables(document):
        assert TIMES_LEAST not in [column["title"] for column in table["columns"]]
        assert "No lower bound on the regret is known here" in table["caption"]


def test_a_bound_of_zero_or_withheld_regret_divides_nothing():
    cell = dict(sample()["benchmark"]["cells"][0])
    assert times_least(cell | {"lower_bound": [0.0, 0.0, 0.0]}) == "–"
    assert times_least(cell | {"lower_bound": [1.0, 1.0, 1.0], "mean": None}) == "–"
    assert about_least([cell | {"mean": None}]) == ""
