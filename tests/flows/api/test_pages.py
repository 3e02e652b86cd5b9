"""The page on Python: its blocks run in order, and print what it shows."""

import contextlib
import io
import sys

import pytest
from documentation import ROOT, blocks, is_as_shown

PAGES = [ROOT / "docs/how-to/python.md"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_a_page_runs_prints_what_it_shows(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "mine", None)
    del sys.modules["mine"]  # the test's own, afterwards forgotten
    namespace, printed, n_shown = {}, None, 0
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.mark.startswith("file: "):
            (tmp_path / block.mark.removeprefix("file: ")).write_text(block.body, encoding="utf-8")
        if block.mark == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block.body, path.name, "exec"), namespace)
            printed = output.getvalue()
        if block.mark == "printed":
            assert is_as_shown(block.body, printed), f"printed\n{printed}\nand the page shows\n{block.body}"
            n_shown += 1
    assert n_shown
