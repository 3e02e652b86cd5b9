"""The pages on Python: their blocks run in order, and print what is shown; and the notebook of the tutorial."""

import contextlib
import importlib.util
import io
import json
import re
import sys

import pytest
from documentation import ROOT, blocks, is_as_shown

TUTORIAL = ROOT / "docs/tutorials/ten-lines.md"
PAGES = [TUTORIAL, ROOT / "docs/how-to/python.md"]


@pytest.fixture
def notebooks():
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs/notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def _here(tmp_path, monkeypatch):
    """A folder of its own, which holds the files of the tutorial and is searched by `import`.

    Work is done in this process: that workers play the same bytes is seen in `test_run`.
    """
    monkeypatch.setattr("bandana.flows.api.run.n_workers", lambda: 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "mine", None)
    del sys.modules["mine"]  # the test's own, afterwards forgotten
    for block in blocks(TUTORIAL.read_text(encoding="utf-8")):
        if block.mark.startswith("file: "):
            (tmp_path / block.mark.removeprefix("file: ")).write_text(block.body, encoding="utf-8")


@pytest.mark.slow
@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_what_a_page_runs_prints_what_it_shows(path):
    namespace, printed, n_shown = {}, None, 0
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.mark == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(block.body, path.name, "exec"), namespace)
            printed = output.getvalue()
        if block.mark == "printed":
            assert is_as_shown(block.body, printed), f"printed\n{printed}\nand the page shows\n{block.body}"
            n_shown += 1
    assert n_shown


def test_ten_lines_are_ten():
    code = next(block.body for block in blocks(TUTORIAL.read_text(encoding="utf-8")) if block.mark == "python")
    assert len([line for line in code.splitlines() if line]) <= 10


def test_the_notebook_is_the_page(notebooks):
    """So that running the page runs the notebook: `python docs/notebooks.py` writes it again."""
    text = TUTORIAL.read_text(encoding="utf-8")
    written = TUTORIAL.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert written == notebooks.notebook(text)
    found = json.loads(written)
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    code = ["".join(cell["source"]) + "\n" for cell in found["cells"] if cell["cell_type"] == "code"]
    shown = [block for block in blocks(text) if block.mark == "python" or block.mark.startswith("file: ")]
    assert [re.sub(r"^%%writefile .*\n", "", cell) for cell in code] == [block.body for block in shown]
    assert not any(cell["outputs"] for cell in found["cells"] if cell["cell_type"] == "code")
    assert len({cell["id"] for cell in found["cells"]}) == len(found["cells"])
    prose = "".join("".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "markdown")
    assert "<!--" not in prose


def test_every_public_name_is_on_the_page():
    import bandana

    text = (ROOT / "docs/how-to/python.md").read_text(encoding="utf-8")
    methods = [name for name in vars(bandana.Result) if not name.startswith("_") and name not in ("check_whole", "cells")]
    assert len(methods) >= 8
    functions = [f"bandana.{name}" for name in bandana.__all__ if name[0].islower()]
    assert not [name for name in [*functions, *(f"result.{name}" for name in methods)] if name not in text]
