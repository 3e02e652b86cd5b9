"""The first page of a report says what is promised, how strong that is, who answers for it, and what nobody measured."""

import re
import shutil
import subprocess

import pytest

from bandana.audits.reporting import render_html, render_pdf
from bandana.audits.reporting.sections.checklist import ANSWERED, DECLARED, NOT_COVERED, items
from bandana.audits.reporting.sections.strength import Promise, odds, right_guesses, strength_of
from tests.report_documents import (
    Elements,
    audit,
    book,
    cell,
    control,
    deployment,
    environment,
    failed,
    make,
    promise,
    three,
    words_of,
)


def rated(epsilon, delta=1e-6, people=1000, verdict="PASS"):
    return strength_of(Promise("a", epsilon, delta, verdict, "one record", "replace"), people)


@pytest.mark.parametrize(
    ("epsilon", "delta", "people", "word"),
    [
        (0.5, 1e-6, 1000, "strong"),
        (1.0, 1e-4, 1000, "strong"),
        (1.01, 1e-6, 1000, "moderate"),
        (10.0, 1e-6, 1000, "moderate"),
        (10.1, 1e-6, 1000, "weak"),
        (20.0, 1e-9, 1000, "weak"),
        (None, 1e-9, 1000, "weak"),
        (0.5, 1e-3, 1000, "weak"),
        (0.5, 9e-4, 1000, "moderate"),
        (0.5, 0.5, 2, "weak"),
        (0.5, 0.5, None, "weak"),
        (0.5, 1e-9, None, "not rated"),
        (0.5, 0.0, None, "strong"),
        (20.0, 0.0, None, "weak"),
    ],
)
def test_strength_follows_epsilon_and_the_number_of_people(epsilon, delta, people, word):
    found = rated(epsilon, delta, people)
    assert found.word == word
    assert (found.tone == "good") == (word == "strong")
    assert bool(found.reasons) == (word != "strong")


def test_a_refuted_promise_has_no_strength():
    assert rated(0.5, verdict="FAIL").word == "refuted"


def test_odds_and_right_guesses_by_hand():
    assert odds(0.0) == "1 : 1"
    assert odds(1.0986122886681098) == "3 : 1"
    assert right_guesses(1.0986122886681098, 0.0) == "75 %"
    # With delta = 1 everything may be published.
    assert right_guesses(0.0, 1.0) == "above 99.9 %"
    assert odds(None) == "no limit"
    assert right_guesses(None, 0.0) == "100 %"


def with_epsilon(epsilon, delta=1e-6, verdict="PASS"):
    found = audit(verdict=verdict)
    found |= {"delta": delta, "epsilon": three(epsilon, epsilon, 0.1 * epsilon)}
    found["measured_epsilon"] = {"unconditional": 0.05 * epsilon, "gaussian": 0.1 * epsilon}
    return found


def page_of(*audits, people=1000, **other):
    found = make(audits=[entry | {"tradeoff": None, "power": None} for entry in audits]) | {"benchmark": None}
    return render_html(found | {"people": {"count": people, "source": "counted"}} | other)


@pytest.mark.parametrize(("epsilon", "delta"), [(20.0, 1e-9), (0.5, 0.5), (0.5, 1e-3), (0.5, 0.01)])
def test_a_weak_promise_that_is_kept_is_called_weak_in_the_same_sentence(epsilon, delta):
    page = page_of(with_epsilon(epsilon, delta))
    green = [attributes["class"] for _, attributes in Elements(page).found if "good" in attributes.get("class", "")]
    assert green == ["headline good", "badge good", "badge good"], "banner, verdict, and again in the appendix: no strength"
    assert "the audit found no breach; the promise is weak." in page
    assert re.search("<strong>weak</strong>: (ε = 20 exceeds 10|n × δ = .* is not below 1)", page)


@pytest.mark.parametrize(
    ("verdict", "tone", "words"),
    [
        ("PASS", "good", "the audit found no breach;"),
        ("NOT REFUTED", "quiet", "the audit found no breach in the actions, which is all it saw;"),
        ("INCONCLUSIVE", "unsure", "the audit could not decide whether it is kept;"),
        ("FAIL", "bad", "the audit found it broken;"),
    ],
)
def test_the_banner_follows_the_verdict_and_the_sentence_says_it(verdict, tone, words):
    page = page_of(with_epsilon(0.5, verdict=verdict))
    (sentence,) = re.findall(rf'<p class="headline {tone}">(.*)</p>', page)
    assert sentence.startswith("Each person is promised that the results reveal little about any one reward (one round); ")
    assert words in sentence
    assert sentence.endswith("the promise is refuted." if verdict == "FAIL" else "the promise is strong.")
    assert f"1 audit: 1 {verdict}. Replayed 64 of 1,000 rounds; walked 1,000 of 1,000." in page


def test_strengths_of_several_promises_stand_in_the_sentence_and_each_reason_in_its_row():
    page = page_of(*(with_epsilon(each) | {"label": f"at {each}"} for each in (0.5, 5.0, 6.0, 20.0)))
    assert "none of 4 audits found a breach; 1 promise is strong, 2 moderate and 1 weak." in page
    rows = re.findall(r"<strong>(\w+)</strong>: (.*?); even odds become .* : 1, right guesses .* %</td>", page)
    moderate = [("moderate", f"ε = {each} exceeds 1") for each in (5, 6)]
    assert rows == [("strong", "ε is at most 1, n × δ at most 0.1"), *moderate, ("weak", "ε = 20 exceeds 10")]
    assert "all promises are weak." in page_of(with_epsilon(20.0), with_epsilon(30.0) | {"label": "other"})


def test_the_first_screen_is_a_sentence_a_picture_a_table_of_six_columns_and_its_eight_words():
    page = render_html(make(audits=[audit() | {"tradeoff": None}]))
    first = re.search(r'<section id="answer".*?</section>', page, flags=re.DOTALL).group()
    assert first.count("<svg") == first.count("<table") == 1
    assert first.count('<th scope="col"') == 6
    assert first.count("<dt>") == 8
    assert ">tight rdp(2, 1)</th>" in first
    assert "eps=" not in first, "one epsilon a page, at the stated delta"
    assert "ε at δ = 10⁻⁵" in first


def test_people_who_stand_behind_several_simulated_rounds_are_counted_once():
    page = page_of(with_epsilon(0.5, 1e-3), people=800)
    assert facts_of(page, "label")["δ and people"] == "δ = 0.001: n × δ = 0.8."
    assert "Here 800 people share 1,000 records, so that somebody has several." in page


def facts_of(page, section):
    """Terms of a section with their texts."""
    inside = re.search(rf'<section id="{section}".*?</section>', page, flags=re.DOTALL).group()
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", inside, flags=re.DOTALL)
    return {words_of(term): words_of(text) for term, text in pairs}


def test_the_label_names_everything_a_reviewer_asks_first():
    found = facts_of(render_html(make(audits=[audit() | {"tradeoff": None}])), "label")
    assert list(found) == [
        "What", "Whose data", "Unit of privacy", "Users who return", "Trust model", "Number of people", "δ and people",
        "One run or many", "Rounds audited", "Noise", "Who", "Code", "When",
    ]  # fmt: skip
    assert found["Rounds audited"] == "Replayed 64 of 1,000 rounds; walked 1,000 of 1,000."
    assert found["What"] == "Reminders, on two arms. Private algorithms: adar-ucb."
    assert "simulated" in found["Whose data"]
    assert found["Unit of privacy"].startswith("One reward (one round); neighbors: replace one reward.")
    assert found["Number of people"] == "1,000, the rounds of one run."
    assert found["δ and people"] == "δ = 10⁻⁵: n × δ = 0.01."
    assert "this report has 20 private runs. Each draws its own rounds" in found["One run or many"]
    assert "can subtract this noise" in found["Noise"]
    assert "curator and approver not declared; computed by somebody on somewhere (recorded)" in found["Who"].lower()
    assert "4b" * 20 in found["Code"]
    assert "Expiry not declared" in found["When"]


def test_delta_of_one_over_n_names_the_person_that_it_gives_up():
    page = page_of(with_epsilon(0.5, 1e-3))
    assert facts_of(page, "label")["δ and people"] == "δ = 0.001: the promise may fail for 1 of 1,000 people."


def test_runs_on_private_rows_are_added_up():
    document = make(audits=[])
    document["environments"] = [environment("people.csv") | {"data": "private"}]
    cells = [cell(f"private {mu}", 1.0, 10.0, "people.csv") | {"mu": mu, "replications": 4} for mu in (0.3, 0.4)]
    document["benchmark"] |= {"cells": cells}
    found = facts_of(render_html(document), "label")
    # 4 runs at 0.3 and 4 at 0.4: mu = sqrt(4 * 0.09 + 4 * 0.16) = 1, which is epsilon 4.377 at delta 1e-5.
    assert "the 8 private runs of this report compose to at most µ = 1, ε = 4.377 at δ = 10⁻⁵" in found["All runs together"]
    assert "No budget book is named" in found["All runs together"]
    states = {item.topic: item.state for item in items(document)}
    assert states["Composition of runs"] == NOT_COVERED
    page = render_html(document)
    assert "All runs on people.csv: moderate: ε = 4.377 exceeds 1." in page
    cells[0] |= {"replications": 400}
    again = render_html(document)
    assert "All runs on people.csv: weak: ε = " in again, "one run may be strong, and all of them weak"


def test_a_budget_book_stands_beside_the_suite_and_its_most_costly_cell():
    document = make(audits=[])
    document["environments"] = [environment("people.csv") | {"data": "private"}]
    document["benchmark"] |= {"cells": [cell("private", 1.0, 10.0, "people.csv")]}
    document["books"] = [book()]
    page = render_html(document)
    assert facts_of(page, "label")["All runs together"] == (
        "All runs on people.csv, of every suite, have spent ε = 2.5 of 3 at δ = 10⁻⁶; those charged to this suite ε = 1, "
        "its most costly cell ε = 0.8 (budget book trial, 9 entries, the last abababababab)."
    )
    assert "All runs in the budget book trial: moderate: ε = 2.5 exceeds 1." in page
    assert {item.topic: item.state for item in items(document)}["Composition of runs"] == ANSWERED
    nothing = dict.fromkeys(("head", "entries", "delta", "budget", "spent", "left", "suite_spent", "most_costly_cell"))
    document["books"] = [book(**nothing, problem="book trial: locked by another process")]
    page = render_html(document)
    assert "The budget book trial cannot be read: book trial: locked by another process." in words_of(page)
    assert "All runs in the budget book trial: weak: no finite ε." in page
    assert {item.topic: item.state for item in items(document)}["Composition of runs"] == NOT_COVERED


@pytest.mark.parametrize(("noise", "word"), [("reproducible (NumPy SFC64)", "moderate"), ("secure (opendp)", "strong")])
def test_noise_on_private_data_that_can_be_undone_is_no_strong_promise(noise, word):
    document = make(audits=[])
    document["environments"] = [environment("people.csv") | {"data": "private"}]
    found = cell("private", 0.1, 10.0, "people.csv") | {"promise": promise(0.5, delta=1e-6), "noise": noise}
    document["benchmark"] |= {"cells": [found | {"replications": 1, "mu": 0.1}]}
    page = render_html(document)
    assert f"the promise is {word}." in page
    assert ("anybody with the seeds can subtract its noise" in page) == (word == "moderate")


def test_what_is_declared_stands_apart_from_what_was_measured():
    document = make(audits=[audit() | {"tradeoff": None}]) | {"deployment": deployment(people=500)}
    document["people"] = {"count": 500, "source": "declared by the operator"}
    page = render_html(document)
    inside = page[page.index('<section id="label"') : page.index('<section id="audits"')]
    before, declared = inside.split("Declared by the operator, not measured")
    for word in ("Choose the reminder", "Answers to letters and calls", "Five years", "the number of rounds"):
        assert word in declared
        assert word not in before
    assert "500 people share 1,000 records, so that somebody has several" in words_of(before)
    assert "Curator Ministry of Reminders (declared)" in words_of(before)
    assert "Expires 2027-11-01 (declared)." in words_of(before)
    states = {item.topic: item.state for item in items(document)}
    for topic in ("Purpose", "Data source", "License", "Retention and access", "Approval", "Expiry", "Number of people"):
        assert states[topic] == DECLARED, topic


def test_the_checklist_says_what_nobody_covers():
    document = make(audits=[])
    states = {item.topic: item.state for item in items(document)}
    assert states["Privacy parameters"] == ANSWERED
    for topic in ("Adversary", "Implementation", "Side channels", "Bias", "Purpose", "Noise"):
        assert states[topic] == NOT_COVERED, topic
    document["benchmark"]["cells"][1]["noise"] = "secure (discrete noise on a grid, opendp, cryptographic generator)"
    assert {item.topic: item.state for item in items(document)}["Noise"] == ANSWERED


@pytest.mark.parametrize("audits", [[], [audit()], [failed()]])
def test_every_answer_of_the_checklist_leads_to_a_section_of_the_report(audits):
    document = make(audits=[entry | {"tradeoff": None} for entry in audits])
    page = render_html(document)
    ids = {attributes["id"] for tag, attributes in Elements(page).found if tag == "section"}
    assert {item.section for item in items(document)} - {""} <= ids
    assert all(item.section for item in items(document) if item.state == ANSWERED)


def test_many_promises_show_the_weakest():
    audits = [with_epsilon(float(level)) | {"label": f"at {level}"} for level in range(1, 13)]
    page = page_of(*audits)
    inside = page[page.index('<section id="answer"') : page.index('<section id="label"')]
    assert "8 of 12 promises: those that did not pass, and the weakest." in inside
    assert ">at 12</th>" in inside
    assert ">at 4</th>" not in inside
    audits[0]["verdict"] = "INCONCLUSIVE"
    again = page_of(*audits)
    assert ">at 1</th>" in again[: again.index('<section id="label"')], "the strongest, and nobody knows whether it is kept"


@pytest.mark.parametrize("written", ["Does it run?", "Two arms.", "Two arms"])
def test_a_description_ends_with_one_mark(written):
    read = {"Two arms": "Two arms."}.get(written, written)
    page = render_html(make() | {"description": written})
    assert facts_of(page, "label")["What"].startswith(f"{read} Private algorithms: ")


def test_a_pure_promise_needs_no_delta():
    found = cell("pure", 0.5, 10.0) | {"promise": promise(0.5, is_pure=True)}
    document = make(audits=[])
    document["benchmark"] |= {"cells": [found]}
    page = render_html(document)
    assert facts_of(page, "label")["δ and people"] == "No δ is needed: the promise is pure."
    assert "the promise is strong." in page


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext (poppler) is not installed")
def test_the_four_pages_are_four_pages(tmp_path):
    """First screen, label, audits with regret, and checklist of an experiment with six audits and full declarations."""
    faults = [control(f"a-planted-fault-{i}") for i in range(11)]
    audits = [audit(f"adar-ucb tight eps={i}") | {"controls": faults} for i in range(6)]
    cells = [cell(f"adar-ucb tight eps={i}", 0.1 * 3**i, 200.0 + i) for i in range(6)]
    document = make(audits=audits) | {"deployment": deployment(), "people": {"count": 2000, "source": "declared"}}
    document["benchmark"] |= {"cells": cells}
    pages = pages_of(document, tmp_path / "report.pdf")
    begins = [next(i for i, text in enumerate(pages) if title in text) for title in _TITLES]
    assert begins == [0, 1, 2, 2, 3]
    assert len(pages) == 4
    assert "The web page has the appendix: A Scope and claim; B Mechanism" in pages[-1]
    whole = pages_of(document, tmp_path / "whole.pdf", appendix=True)
    assert "A Scope and claim" in whole[4], "the appendix begins a page of its own"


def pages_of(document, place, **options):
    place.write_bytes(render_pdf(document, **options))
    text = subprocess.run(["pdftotext", place, "-"], capture_output=True, text=True, check=True).stdout
    return [" ".join(page.split()) for page in text.removesuffix("\f").split("\f")]


_TITLES = ("1 In short", "2 Label", "3 Audits", "4 Regret", "5 Checklist")


# --- users who return ---------------------------------------------------------------------------------------------------


def returning(found=None, **visits):
    """A report with one promise, on an environment whose users return."""
    document = make(audits=[] if found is None else [found])
    document["environments"] = [environment() | {"visits": visits}]
    document["benchmark"] = None if found is not None else document["benchmark"]
    return document


def test_without_a_declaration_every_promise_is_to_one_record():
    page = words_of(render_html(make(audits=[audit()])))
    assert "Nothing is declared: every promise is to one record." in page
    assert "The promise to one record, whether tests found it kept" in page


def test_a_promise_to_one_record_where_ids_repeat_is_warned_of():
    document = returning(most=4, apart=1)
    document["benchmark"]["cells"][1]["of_user"] = {"mu": 4.0, "epsilon": 24.4}
    page = words_of(render_html(document))
    assert "On bernoulli a user has up to 4 records (declared)." in page
    assert "Warning: ids repeat, and the promise covers one record alone." in page
    assert "To a user the ledger of private 1 accounts ε = 24.4." in page


def test_a_promise_to_users_says_so():
    whole = "all records of one user"
    page = words_of(render_html(returning(audit() | {"unit": whole, "relation": whole}, most=4, apart=8)))
    assert "The promise to one user, whether tests found it kept" in page
    assert "a user has up to 4 records, 8 or more records apart (declared). The promise covers all records of a user" in page
    assert "Warning: ids repeat" not in page
    assert "A person with k records" not in page


def test_rounds_that_no_audit_reached_are_not_called_covered():
    short = audit() | {"rounds": {"replayed": 64, "walked": 0}}
    page = render_html(make(audits=[short]))
    assert facts_of(page, "label")["Rounds audited"] == "Replayed 64 of 1,000 rounds; walked 64 of 1,000."
    assert "1 PASS. Replayed 64 of 1,000 rounds" in words_of(page)
    (power,) = [item for item in items(make(audits=[short])) if item.topic == "Power of the tests"]
    assert (power.state, power.answer) == (NOT_COVERED, "Later rounds were not seen.")
    (whole,) = [item for item in items(make(audits=[audit()])) if item.topic == "Power of the tests"]
    assert whole.state == ANSWERED
