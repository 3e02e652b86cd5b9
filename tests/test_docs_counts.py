"""What `benchmarks.docs` and `benchmarks.first_hour` count: by hand on small pages, and goals that need no built site."""

import subprocess
from pathlib import Path

import pytest
from documentation import ROOT
from typer.testing import CliRunner

from bandana.flows.cli import app
from benchmarks import docs, first_hour
from benchmarks.result import Result

PAGE = """<html><body><nav>menu of words</nav><article><h1>Two words<a class="headerlink" href="#x">link</a></h1>
<p>Three more words, <code>one</code>.<br> And <math><mi>x</mi></math> two.</p><pre>not these</pre>
<table><tr><td>one cell</td><td>1,234.5 ± 6</td></tr></table></article>outside</body></html>"""


def test_words_of_prose_and_tables_are_counted():
    counted = docs.Words(PAGE)
    assert (counted.n, counted.n_numbers) == (2 + 4 + 2 + 2, 2)


def test_a_site_is_counted_page_by_page(tmp_path):
    (tmp_path / "reference").mkdir()
    for name in ("index.html", "404.html", "reference/spec.html"):
        (tmp_path / name).write_text(PAGE, encoding="utf-8")
    assert docs.site(tmp_path) == docs.Site(pages=2, words=10, numbers=2, reference=10)
    with pytest.raises(FileNotFoundError, match="build the site with `make docs`"):
        docs.site(tmp_path / "nothing")


def test_prose_is_what_people_read_as_sentences():
    page = "# Title\n\nA [cat](x.md) sat\ndown.\n\n- one item\n- two\n\n| a | b |\n|---|---|\n\n```sh\nls\n```\n"
    assert docs.prose(page) == "A cat sat\ndown.\none item.\ntwo."


def test_reading_ease_by_hand():
    """Six words of one syllable in two sentences: 206.835 - 1.015 x 3 - 84.6 x 1."""
    assert docs.reading_ease("The cat sat. The dog ran.") == pytest.approx(206.835 - 1.015 * 3 - 84.6)
    assert docs.reading_ease("Differential privacy necessitates considerable sophistication.") < 0
    with pytest.raises(ValueError, match="no reading ease"):
        docs.reading_ease("```sh\nls\n```\n")


@pytest.mark.parametrize("name", docs.FIRST)
def test_the_first_pages_read_easily(name):
    assert docs.reading_ease((ROOT / name).read_text(encoding="utf-8")) >= docs.LEAST_EASE


def test_the_readme_is_short():
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 120


# --- python -m benchmarks.first_hour ------------------------------------------------------------------------------------


def test_a_result_is_a_line_beside_its_goal():
    assert str(Result("list", 0.314, 1, "s")).split() == ["list", "0.31", "goal", "<=", "1", "s", "met"]
    assert str(Result("ease", 49.6, 50, "", ">=")).split() == ["ease", "50", "goal", ">=", "50", "MISSED"]
    assert str(Result("words", 59_868, 60_000, "")).split() == ["words", "59,868", "goal", "<=", "60,000", "met"]


def test_a_start_is_the_median_of_its_runs_but_the_first(monkeypatch):
    seconds = iter([first_hour.Seconds(9, 9), *(first_hour.Seconds(n, n + 1) for n in (0.5, 0.1, 0.3))] * 3)
    monkeypatch.setattr(first_hour, "timed", lambda words, folder: next(seconds))
    rows = list(first_hour.starts(3))
    assert [(row.measured, row.limit) for row in rows] == [(0.3, 1), (0.3, 2), (0.3, 8)]
    assert all("1.30 s of wall" in row.name for row in rows)


def test_what_is_started_is_what_users_type():
    pytest.importorskip("bandana.flows.annexes.anything")
    for _, words, _ in first_hour.STARTS:
        assert all(Path(word.partition(":")[0]).is_file() for word in words if word.startswith("/"))
        assert not CliRunner().invoke(app, [words[0], "--help"]).exit_code


def test_a_command_that_is_timed_spends_processor_time_and_must_end_well(tmp_path):
    seconds = first_hour.timed(["--version"], tmp_path)
    assert seconds.processor > 0
    assert seconds.wall > 0
    with pytest.raises(subprocess.CalledProcessError):
        first_hour.timed(["check", "no-such.yaml"], tmp_path)


def test_pages_of_a_pdf_are_counted_at_its_root():
    tree = b"1 0 obj <</Type/Pages/Count 4/Kids[2 0 R]>> endobj 2 0 obj <</Type /Pages /Count 3>> <</Type/Page>>"
    assert first_hour.pages_of(tree) == 4
    with pytest.raises(ValueError, match="no page tree"):
        first_hour.pages_of(b"%PDF-1.7 <</Type/Page>>")


@pytest.mark.parametrize(("lines", "code"), [(100, 0), (121, 1)])
def test_one_command_prints_every_number_and_fails_where_one_is_missed(monkeypatch, capsys, lines, code):
    monkeypatch.setattr("sys.argv", ["first_hour", "--site", "--demo"])
    monkeypatch.setattr(first_hour, "starts", lambda repeat: [Result(f"{repeat} starts", 0.5, 1, "s")])
    monkeypatch.setattr(first_hour, "demo", lambda: [Result("demo", lines, 120, "s")])
    monkeypatch.setattr(first_hour, "site", lambda: docs.sizes_of(docs.Site(60, 60_000, 1, 1)))
    assert first_hour.main() == code
    printed = capsys.readouterr().out
    assert printed.count("MISSED") == code
    shown = ("5 starts", "lines of README.md", "reading ease of docs/index.md", "pages of the documentation", "words that")
    assert all(each in printed for each in shown)
    assert "not measured" not in printed
