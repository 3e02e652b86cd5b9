"""Every question of docs/review-questions.md is answered by the named line of a report, or marked as not covered."""

import re
from html import unescape
from pathlib import Path

import pytest

from bandana.audits.reporting import render_html
from tests.report_documents import audit, deployment, make, words_of

PAGE = Path(__file__).parents[1] / "docs" / "review-questions.md"
ROW = re.compile(r"^\| (\d+) \| (.+?\?) \| ([NR ]+) \| (.+?) \|$", re.MULTILINE)
QUESTIONS = [(int(number), question, answer) for number, question, _, answer in ROW.findall(PAGE.read_text("utf-8"))]
NOT_COVERED = [number for number, _, answer in QUESTIONS if answer == "not covered"]


@pytest.fixture(scope="module")
def sections():
    """Title of each section of a report -> its words."""
    document = make(audits=[audit() | {"tradeoff": None}]) | {"deployment": deployment()}
    document["environments"][0]["data"] = "private"
    page = render_html(document)
    found = {}
    for section in re.findall(r"<section .*?</section>", page, flags=re.DOTALL):
        title = re.search(r"<h2[^>]*>[\dA-Z]  (.*?)(?:: .*?)?</h2>", section).group(1)
        found[title] = unescape(words_of(section))
    return found


def test_there_are_forty_and_few_are_left_open():
    assert [number for number, _, _ in QUESTIONS] == list(range(1, 41))
    assert len(NOT_COVERED) <= 5


@pytest.mark.parametrize(("number", "question", "answer"), [row for row in QUESTIONS if row[0] not in NOT_COVERED])
def test_a_question_is_answered_where_the_page_says(sections, number, question, answer):
    title, line = answer.removeprefix("Declared. ").split(": ", 1)
    assert line in sections[title]
    if answer.startswith("Declared. "):
        assert "declared" in sections[title].lower()


def test_a_line_that_no_report_has_is_seen(sections):
    assert "Price of privacy" not in sections["Label"]
