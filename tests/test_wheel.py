"""What a stranger has who installs the wheel into an empty environment and works in an empty folder.

Only what needs no wheel is in `make test`: where ready specs lie, and that the first page is typed as it stands.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documentation import ROOT, marked_pages, types_a_page
from typer.main import get_command

from bandana import ready
from bandana.flows.cli import app
from benchmarks import first_verdict
from benchmarks.installed import PYTHONS, environment, install, python_of, run, words_of_a_user

FROM_THE_PRODUCT = r"\S+: not in this folder; read from the installed \S+"
"""The line that says where a ready spec was read."""
INSTALLED = r"/\S+/site-packages/bandana/(?=(?:examples|experiments)/)"
STAYS = {"ui", "serve", "demo", "leaderboard", "refute", "crosscheck", "audit-catalog"}
"""Commands that serve or work for minutes if they are typed alone; the tests below type most of them."""
TEN_LINES = '''
import numpy as np
import bandana
from bandana.primitives import Price, priced
from bandana.privacy_core import ApproxDP, Gaussian, calibrate
from bandana.testing import assert_private

@priced(Price("pure(epsilon=1)", sensitivity=1, norm="L1"))
def noisy(value: float, rng: np.random.Generator) -> float:
    return value + rng.laplace()

def count(data: list[int], seed: int) -> float:
    return noisy(float(sum(data)), np.random.default_rng(seed))

noise: Gaussian = Gaussian(1.0, calibrate(ApproxDP(1.0, 1e-5)))
assert_private(count, [1, 0, 1], [1, 0, 0], "pure(epsilon=1)")
result = bandana.run("smoke", data="here")
first: str = result.names[0]
'''
MISTAKES = """
import bandana
from bandana.primitives import Price
from bandana.privacy_core import ApproxDP

ApproxDP("one", 1e-5)
bandana.run("smoke", date="here")
Price(1.0, sensitivity=1)
"""
"""Each line after the imports is wrong."""


# --- without a wheel ----------------------------------------------------------------------------------------------------


def test_a_ready_spec_has_a_name_in_every_folder_and_a_file_of_the_user_comes_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("smoke", "smoke.yaml", "experiments/smoke.yaml"):
        assert ready.place(Path(name)) == ready.ROOT / "experiments" / "smoke.yaml"
        assert re.fullmatch(FROM_THE_PRODUCT, capsys.readouterr().err.strip())
    assert ready.place(Path("experiments/data")) == ready.ROOT / "experiments" / "data"
    assert ready.place(Path("examples/own_bandit.py")).read_text() == (ROOT / "examples/own_bandit.py").read_text()
    for name in ("nothing.yaml", "../experiments/smoke.yaml", "/smoke.yaml", "data", "."):
        assert ready.place(Path(name)) == Path(name)
    (tmp_path / "smoke.yaml").write_text("mine")
    assert ready.place(Path("smoke.yaml")) == Path("smoke.yaml")


def test_ready_files_are_copied_once_and_nothing_of_the_user_is_touched(tmp_path):
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "mine.py").write_text("mine")
    assert ready.copy(tmp_path) == ["experiments: copied", "examples: is there, and stays as it is"]
    assert [path.name for path in (tmp_path / "examples").iterdir()] == ["mine.py"]
    copied, every = ({path.relative_to(root) for path in root.glob("experiments/**/*.yaml")} for root in (tmp_path, ROOT))
    assert copied == every
    assert ready.copy(tmp_path)[0] == "experiments: is there, and stays as it is"


def test_every_ready_spec_is_listed():
    assert ready.specs() == sorted(path.stem for path in (ROOT / "experiments").glob("*.yaml"))
    assert {"smoke", "nightly"} <= set(ready.specs())


def test_the_first_verdict_is_typed_as_its_page_shows_it():
    pytest.importorskip("bandana.flows.annexes.anything")
    reader = first_verdict.page()
    assert reader.install == "pip install bandana-dp==1.0.0"
    assert (reader.file, len(reader.commands)) == ("release.py", 2)
    compile(reader.text, reader.file, "exec")


# --- at night: the light installation -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def light(wheel, pins, tmp_path_factory):
    """The interpreter of an environment with the light installation and mypy."""
    python = environment(tmp_path_factory.mktemp("light") / "venv")
    install(python, wheel, "mypy", pins=pins)
    return python


@pytest.fixture
def types(light, tmp_path):
    """Types a line in an empty folder; returns standard output and errors together."""

    def one(line, code=0):
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=words_of_a_user(light) | {"COLUMNS": "150"}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == code, f"{line} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    return one


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("interpreter", [None, *PYTHONS])
def test_a_strangers_first_verdicts_come_from_the_lines_of_the_page(interpreter, tmp_path):
    """In `make test`: the page has these lines. How long it takes: `python -m benchmarks.first_verdict`."""
    place = python_of(interpreter) if interpreter else sys.executable
    if place is None:
        pytest.skip(f"no {interpreter} on this machine")
    python = environment(tmp_path / "venv", place)
    wheels = first_verdict.wheels_of(tmp_path, python)
    (folder := tmp_path / "empty").mkdir()
    pip, honest, broken = first_verdict.typed(first_verdict.page(), folder, wheels, python)
    assert pip.code == 0, pip.printed
    assert (honest.code, honest.printed.split("  ")[0]) == (0, "NOT REFUTED"), honest.printed
    assert (broken.code, broken.printed.split("  ")[0]) == (1, "FAIL"), broken.printed
    assert len([*(folder / "bandana_data" / "own").glob("*.evidence.npz")]) == 2


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_every_command_answers_in_an_empty_folder(types):
    """In `make test`: the same commands from the checkout."""
    for name in get_command(app).commands:
        assert f"bandana {name} " in types(f"bandana {name} --help")
        if name not in STAYS:
            done = types(f"bandana {name}; echo ended with $?")
            assert re.search(r"^ended with [0-2]$", done, re.MULTILINE), done
            assert "Traceback" not in done


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_ready_specs_are_listed_checked_and_tried_without_the_repository(types):
    """In `make test`: the folder that they are read from."""
    listed = types("bandana list").partition("Ready specs, for `bandana check NAME` and `bandana run NAME`:\n")[2]
    names = listed.partition("\n\n")[0].replace("\n", " ").split(", ")
    assert names == ready.specs()
    assert types("bandana check smoke").endswith("/bandana/experiments/smoke.yaml: correct\n")
    assert types("bandana check experiments/smoke.yaml").endswith("/bandana/experiments/smoke.yaml: correct\n")
    assert "of work on " in types("bandana run smoke --dry-run")
    assert "pip install 'bandana-dp[pipeline]'" in types("bandana run smoke", 2)
    printed = types("python -c \"import bandana; print(len(bandana.run('smoke', data='here').names))\"")
    assert int(printed.splitlines()[-1]) > 1
    assert "cannot be read" in types("bandana check nothing", 2)
    passed = types("bandana audit-own examples/own_bandit.py:bandit --claim 'gdp(mu=1, relation=reward)'")
    assert "\nPASS " in passed


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_case_of_the_campaign_is_refuted_without_the_repository(types, tmp_path):
    """In `make test`: the same campaign, from the checkout."""
    printed = types("bandana refute glm-bandits-tree")
    assert re.search(r"^REFUTED +glm-bandits-tree: .* \[defect\]", printed, re.MULTILINE)
    assert re.search(r"^NOT REFUTED +glm-bandits-tree: .* \[fixed\]", printed, re.MULTILINE)
    assert (tmp_path / "bandana_data/refutations/glm-bandits-tree/measured.json").is_file()
    assert "there are diffprivlib-gaussian-nb, " in types("bandana refute nothing", 2)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_mypy_checks_a_users_lines_against_the_wheel(types, tmp_path):
    """In `make test`: mypy of the product itself."""
    (tmp_path / "mine.py").write_text(TEN_LINES)
    assert types("mypy --strict mine.py") == "Success: no issues found in 1 source file\n"
    (tmp_path / "wrong.py").write_text(MISTAKES)
    wrong = re.findall(r"^wrong\.py:(\d+): error", types("mypy wrong.py", 1), re.MULTILINE)
    assert wrong == ["6", "7", "8"]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_pyright_checks_a_users_lines_against_the_wheel(light, tmp_path):
    """In `make test`: mypy of the product itself."""
    if (pyright := shutil.which("pyright")) is None:
        pytest.skip("no pyright on this machine")
    (tmp_path / "mine.py").write_text(TEN_LINES)
    (tmp_path / "wrong.py").write_text(MISTAKES)
    done = run(pyright, "--outputjson", "--pythonpath", light, "mine.py", "wrong.py", cwd=tmp_path)
    diagnostics = json.loads(done.stdout)["generalDiagnostics"]
    lines = [(each["file"].rpartition("/")[2], each["range"]["start"]["line"] + 1) for each in diagnostics]
    assert lines == [("wrong.py", line) for line in (6, 7, 8)], diagnostics


def as_from_here(printed):
    """Output without the places of files that are installed, and without the lines that name these."""
    return re.sub(INSTALLED, "", re.sub(rf"^{FROM_THE_PRODUCT}\n", "", printed, flags=re.MULTILINE))


# --- at night: everything -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(wheel, pins, tmp_path_factory):
    """The interpreter of an environment with the extra `all`, and pytest, which pages use."""
    python = environment(tmp_path_factory.mktemp("whole") / "venv")
    install(python, f"{wheel}[all]", "pytest", pins=pins)
    return python


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", marked_pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_is_typed_without_the_repository(path, whole, tmp_path):
    """In `make test`: its commands can be parsed, its specs are correct."""
    types_a_page(path, tmp_path, words_of_a_user(whole), as_from_here)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_demo_and_the_leaderboard_start_without_the_repository(whole, tmp_path):
    """In `make test`: the demo's flow, and a benchmark of one problem."""
    bandana = whole.parent / "bandana"
    done = run(bandana, "leaderboard", "--dry-run", cwd=tmp_path, **words_of_a_user(whole))
    assert done.returncode == 0, done.stderr
    problems = {path.stem for path in (ROOT / "experiments/benchmark").glob("*.yaml")}
    assert {line.partition(":")[0] for line in done.stdout.splitlines()} == problems | {"audits"}
    done = run(bandana, "demo", cwd=tmp_path, **words_of_a_user(whole))
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^PASS ", done.stdout, re.MULTILINE)) == 3
    assert (tmp_path / "bandana_data/suites/demo/report.pdf").is_file()
