"""The first hour of a reviewer: a bundle and a key come from somebody else, and every claim is to be checked."""

import json
import re
import sys
import zipfile

import pytest
from desk import Desk, stands_on_its_pages, tasks_of
from jsonschema import Draft202012Validator

EVIDENCE = "docs/evidence.md"
READ = "docs/tutorials/read-a-report.md"
SCHEDULE = "docs/schedule.md"
BUNDLE = "ev-small.bundle.zip"
SMALL = {"nightly": "ev-small", "[0.5, 1]": "1", "8000": "4000", "40": "20", "50": "20"}
FIRST = "evidence/adar-ucb-tight-eps-1.npz"


def receives_a_bundle_and_a_key(desk):
    """The sender works in a folder of their own, with lines of the same pages."""
    ann = Desk(desk.folder / "ann")
    ann.folder.mkdir()
    ann.saves(SCHEDULE, "ev-small.yaml", "name: nightly", swap=SMALL)
    assert ann.types(SCHEDULE, "bandana run nightly.yaml --audit", swap={"nightly.yaml": "ev-small.yaml"}).startswith("PASS")
    assert "public    ann.pub\nname      ed25519:" in ann.types(EVIDENCE, "bandana key new ann")
    ann.types(EVIDENCE, "bandana key new ann", swap={"ann": "eve"})
    packed = ann.types(EVIDENCE, "bandana bundle ev-small --key ann")
    assert packed.endswith("Anybody can check it:  bandana verify bandana_data/suites/ev-small/ev-small.bundle.zip\n")
    for name in (f"bandana_data/suites/ev-small/{BUNDLE}", "ann.pub", "eve.pub"):
        (ann.folder / name).rename(desk.folder / name.rpartition("/")[2])
    desk.facts["ann"] = ann


def reads_first_what_it_is_and_how_to_check_it(desk):
    with zipfile.ZipFile(desk.folder / BUNDLE) as bundle:
        assert bundle.namelist()[0] == "README.md"
        text = bundle.read("README.md").decode()
        bundle.extractall(desk.folder / "unpacked")
    answer = text.splitlines()[2]
    assert answer.startswith("Each person is promised that ")
    assert answer.endswith("the audit found no breach; the promise is moderate.")
    headings = ["## Check it", "## What is in here", "## What signing proves"]
    assert [line for line in text.splitlines() if line.startswith("## ")] == headings
    assert "`bandana verify`" in text.partition("## Check it")[2].partition("## ")[0]


def verifies_all_with_parts_of_the_audit_run_again(desk):
    text = desk.types(EVIDENCE, "bandana verify ev-small.bundle.zip --key ann.pub --replay 3")
    first = text.splitlines()[0]
    assert re.match(rf"{re.escape(BUNDLE)}: verified, \d+ lines compared and none differs; the verdict is PASS\.", first)
    assert "signature of the given key" in text.splitlines()[:8]
    replayed = re.search(r"^replayed +3 of (\d+) blocks.*with probability 1 - \(1 - f\)\^3 or more", text, re.MULTILINE)
    assert replayed is not None
    desk.facts["verified"] = text


def finds_no_line_that_differs(desk):
    rows = re.findall(r"^│ .*│ (yes|NO|-) +│$", desk.facts["verified"], re.MULTILINE)
    assert len(rows) > 30
    assert "NO" not in rows
    assert rows.count("yes") > 30


def is_told_who_signed(desk):
    with zipfile.ZipFile(desk.folder / BUNDLE) as bundle:
        assert bundle.read("signer.pub") == (desk.folder / "ann.pub").read_bytes()
    text = desk.types(EVIDENCE, "bandana verify ev-small.bundle.zip --key ann.pub --replay 5%", 3,
                      {"ann.pub": "eve.pub", "--replay 5%": "--quick"})  # fmt: skip
    assert "refused" in text.splitlines()[0].casefold()
    assert "signature" in text.splitlines()[0]


def looks_quickly_and_is_told_what_was_not_compared(desk):
    quick = {"--replay 5%": "--quick"}
    text = desk.types(EVIDENCE, "bandana verify ev-small.bundle.zip --key ann.pub --replay 5%", 4, quick)
    assert re.match(rf"{re.escape(BUNDLE)}: partly compared, .* Not compared: ", text, re.IGNORECASE)


def uses_the_verifier_in_one_file(desk):
    (desk.folder / "unpacked/bandana-verify.py").rename(desk.folder / "bandana-verify.py")
    text = desk.types(EVIDENCE, "python bandana-verify.py ev-small.bundle.zip", 4)
    assert re.match(rf"{re.escape(BUNDLE)}: partly compared, ", text, re.IGNORECASE)
    assert "none differs; the verdict is PASS" in text.splitlines()[0]


def catches_a_number_that_was_changed_in_the_report(desk):
    _is_refused(desk, "report.json", lambda content: content.replace(b'"PASS"', b'"FAIL"', 1))


def catches_evidence_that_was_changed(desk):
    _is_refused(desk, FIRST, lambda content: content[:5000] + b"x" + content[5001:])


def catches_a_readme_that_was_changed(desk):
    _is_refused(desk, "README.md", lambda content: content.replace(b"moderate", b"strong"))


def _is_refused(desk, name, change):
    """A bundle with one changed file: exit code 3, and the first line names the file."""
    with zipfile.ZipFile(desk.folder / BUNDLE) as bundle, zipfile.ZipFile(desk.folder / "changed.zip", "w") as other:
        other.comment = bundle.comment
        for info in bundle.infolist():
            content = bundle.read(info)
            if info.filename == name:
                content, before = change(content), content
                assert content != before
            other.writestr(info, content)
    text = desk.types(EVIDENCE, "bandana verify ev-small.bundle.zip --key ann.pub --replay 5%", 3,
                      {BUNDLE: "changed.zip", "--replay 5%": "--quick"})  # fmt: skip
    first = text.splitlines()[0]
    assert first.startswith("changed.zip: ")
    assert name in first, text


def verifies_one_audit_by_its_evidence(desk):
    text = desk.types(EVIDENCE, "bandana verify evidence/adar-ucb-tight-eps-1.npz", swap={FIRST: f"unpacked/{FIRST}"})
    assert ": verified, " in text.splitlines()[0]


def notices_a_single_byte(desk):
    own = {"bandana_data/own/own_bandit-bandit.evidence.npz": f"unpacked/{FIRST}"}
    desk.types(EVIDENCE, "cp bandana_data/own/own_bandit-bandit.evidence.npz changed.npz", swap=own)
    desk.types(EVIDENCE, "printf 'x' | dd of=changed.npz")
    desk.sees(EVIDENCE, "bandana verify changed.npz", 2)


def reads_the_answer_on_the_first_screen(desk):
    page = (desk.folder / "unpacked/report.html").read_text(encoding="utf-8")
    assert page.index('<p class="headline good">Each person is promised that') < page.index('<section id="answer"')
    desk.facts["answer"] = answer = page.partition('<section id="answer"')[2].partition("</section>")[0]
    assert answer.index("<svg") < answer.index("<table") < answer.index("<dl>")
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', answer)
    assert heads == ["Algorithm", "Verdict", "Strength", "claimed", "accounted", "measured"]
    assert re.findall(r"<strong>moderate</strong>: ε = 4\.377 exceeds 1; even odds become", answer)
    assert "rdp(2, 1)" in answer


def finds_every_word_of_it_explained(desk):
    words = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", desk.facts["answer"])
    assert [word for word, _ in words] == [
        "ε (epsilon)", "δ (delta)", "claimed", "accounted", "measured", "verdict", "strength", "regret",
    ]  # fmt: skip
    assert all(len(meaning.split()) > 5 for _, meaning in words)


def prints_four_pages(desk):
    assert _pages(desk.folder / "unpacked/report.pdf") == 4


def asks_for_the_appendix_too(desk):
    ann = desk.facts["ann"]
    place = re.search(r"^appendix +(.*)$", ann.types(READ, "bandana report --appendix"), re.MULTILINE)
    assert place is not None
    assert _pages(ann.folder / place[1]) > 4


def _pages(path):
    return max(int(count) for count in re.findall(rb"/Type/Pages/Count (\d+)", path.read_bytes()))


def reads_the_report_by_machine(desk):
    report = json.loads((desk.folder / "unpacked/report.json").read_text(encoding="utf-8"))
    schema = json.loads(desk.types("docs/how-to/write-a-spec.md", "bandana schema > spec.schema.json",
                                   swap={"schema > spec.schema.json": "schema report"}))  # fmt: skip
    Draft202012Validator(schema).validate(report)
    desk.facts["report"] = report


def sees_the_three_numbers_in_order(desk):
    (audit,) = desk.facts["report"]["audits"]
    for quantity in (audit["main"], audit["mu"]):
        assert quantity["claimed"] >= quantity["accounted"] - 1e-9 >= quantity["measured"] > 0
    assert audit["reasons"][0] == "claimed >= accounted >= measured"


def sees_that_the_audit_could_have_failed(desk):
    (audit,) = desk.facts["report"]["audits"]
    assert len(audit["controls"]) > 8
    assert all(fault["caught"] for fault in audit["controls"])


def finds_what_nobody_answers(desk):
    page = (desk.folder / "unpacked/report.html").read_text(encoding="utf-8")
    checklist = page.partition('<section id="checklist"')[2].partition("</section>")[0]
    answers = re.findall(r">(answered|declared|not declared|not covered)<", checklist)
    assert len(answers) == 24
    assert "not covered" in answers


SCRIPT = sys.modules[__name__]


@pytest.mark.nightly
@pytest.mark.parametrize("task", tasks_of(SCRIPT), ids=lambda task: task.__name__)
def test_an_hour_goes_well(desk, task):
    """In `make test`: all that is typed stands on the pages."""
    desk.does(task)


def test_all_that_is_typed_stands_on_the_pages():
    stands_on_its_pages(SCRIPT, 10)
