"""`bandana report --compare`: runs are found by suite, folder or file, and what is no report is refused in one line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bandana.audits.reporting import validate
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.queries.compare import compare_runs, conclude, read_report, tables
from bandana.flows.results.audit_report import write_document
from bandana.flows.texts.mistakes import SpecError
from tests.report_documents import audit, later, make, whole


def _write(document, folder):
    write_document(document, folder / "report", ["json"])
    return folder


@pytest.fixture
def data(tmp_path):
    """A data folder with the suites `then` and `now`, small enough to be drawn at once."""
    folder = DataFolder(tmp_path / "data")
    first = make(audits=[audit() | {"tradeoff": None, "power": None}])
    second = make(audits=[audit() | {"tradeoff": None, "power": None, "verdict": "INCONCLUSIVE"}]) | {
        "spec": "name: other\n"
    }
    for name, document in (("then", first), ("now", second)):
        _write(document | {"suite": name}, folder.suite(name))
    return folder


def test_a_run_is_a_suite_a_folder_or_a_file(data, tmp_path):
    found = read_report("then", data)
    assert found["suite"] == "then"
    for reference in (data.suite("then"), data.suite("then") / "report.json"):
        assert read_report(str(reference), DataFolder(tmp_path)) == found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("name: demo", "is not a report: Expecting value"),
        ("[]", "is not a report of a run: its schema is None"),
        ('{"schema": "bandana/comparison/1"}', "is not a report of a run: its schema is 'bandana/comparison/1'"),
        ('{"schema": "bandana/report/2"}', "was written by another version of Bandana .* run `bandana report`"),
        ('{"schema": "bandana/report/12"}', r"is not a valid report: \$: .* lacks the properties kind"),
    ],
)
def test_what_is_not_a_report_is_refused(tmp_path, content, words):
    place = tmp_path / "x.json"
    place.write_text(content)
    with pytest.raises(SpecError, match=words):
        read_report(str(place), DataFolder(tmp_path))


def test_what_is_not_there_is_refused(tmp_path):
    for reference, words in (
        ("nothing", "no suite 'nothing' with a report.json"),
        ("no/such/file.json", "no/such/file.json does not exist"),
        (str(tmp_path), "holds no report.json"),
    ):
        with pytest.raises(SpecError, match=words):
            read_report(reference, DataFolder(tmp_path / "data"))


def test_the_comparison_is_written_and_the_same_for_the_same_runs(data):
    found, files = compare_runs("then", "now", data)
    validate(found)
    assert set(files) == {"html", "pdf", "json"}
    assert json.loads(files["json"].read_text()) == found
    before = {kind: place.read_bytes() for kind, place in files.items()}
    again, places = compare_runs("then", "now", data)
    assert again == found
    assert {kind: place.read_bytes() for kind, place in places.items()} == before


def test_runs_of_two_data_folders_are_compared(data, tmp_path):
    other = _write(whole() | {"suite": "then"}, tmp_path / "elsewhere" / "then")
    found, files = compare_runs("then", str(other), data)
    assert {audit["status"] for audit in found["audits"]} == {"same", "new"}
    assert files["html"].is_relative_to(data.root)


def test_the_terminal_shows_what_changed(data):
    result = CliRunner().invoke(app, ["report", "--compare", "then", "now", "--data", str(data.root)])
    assert result.exit_code == 0, result.output
    for word in ("PASS → INCONCLUSIVE", "1 verdict became worse.", "The specifications differ.", "html"):
        assert word in result.output


def test_machines_read_what_changed_as_one_object(data):
    result = CliRunner().invoke(app, ["report", "--compare", "then", "now", "--data", str(data.root), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(found["files"]) == {"html", "pdf", "json"}
    written = json.loads(Path(found["files"]["json"]).read_text())
    assert written == {key: value for key, value in found.items() if key != "files"}


def test_words_of_a_user_are_no_markup():
    from rich.console import Console

    after = later()
    after["audits"].append(audit("[red]x[/red] [/]"))
    from bandana.audits.reporting import compare

    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    for table in tables(compare(whole(), after)):
        console.print(table)
    assert "[red]x[/red] [/]" in console.export_text()


def test_mistakes_end_with_2(data):
    for arguments, words in (
        (["report", "--compare", "then", "never", "--data", str(data.root)], "no suite 'never'"),
        (["report", "spec.yaml", "--compare", "then", "now", "--data", str(data.root)], "takes two runs and no spec"),
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert words in result.output


def test_the_conclusion_counts_evidence(data):
    lines = conclude(compare_runs("then", "then", data)[0])
    assert lines[-1] == "Evidence: 1 file the same, 0 different."
    assert "1 same" in lines[0]
