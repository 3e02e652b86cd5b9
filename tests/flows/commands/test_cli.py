"""The command line without a server: exit codes, messages, and what machines read."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bandana.algorithms.catalog import names, of_name
from bandana.flows.cli import PANELS, app
from bandana.flows.commands.audit.command import renamed
from bandana.flows.commands.failures import explain, failures
from bandana.flows.commands.options import FAILURE, USER_MISTAKE
from bandana.flows.folder.settings import DataFolder
from bandana.flows.plan.plan import cells_of
from bandana.flows.queries.catalog import starter
from bandana.flows.running.interrupt import server_ended
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError


@pytest.fixture
def bandana(tmp_path, monkeypatch):
    """Runs a command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words])


def _as_a_user(*arguments, cwd=None):
    """In a process of its own: the console script, its exit code, and what Python prints of an error."""
    return subprocess.run(
        [sys.executable, "-c", "from bandana.flows.cli import main; main()", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("module", ["bandana", "bandana.flows.cli"])
def test_nothing_heavy_is_imported_before_a_command_wants_it(module):
    """Help answers at once; and NumPy reads how many threads it may use when it is imported, so `main` must come first."""
    heavy = ("numpy", "scipy", "numba", "prefect", "mlflow", "pydantic", "matplotlib")
    program = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_list_json_is_an_array_of_the_agreed_fields(bandana):
    done = bandana("list", "--json")
    assert done.exit_code == 0
    entries = json.loads(done.stdout)
    agreed = {"name", "family", "privacy_model", "guarantee", "calibrations", "claim", "source"}
    assert all(set(entry) == agreed | {"label", "plays_on", "parameters"} for entry in entries)
    by_name = {entry["label"]: entry for entry in entries}
    assert by_name["linucb joint"]["name"] == "linucb"
    assert by_name["ucb"]["privacy_model"] == "none"
    assert by_name["adar-ucb"]["privacy_model"] == "central"
    assert by_name["adar-ucb"]["guarantee"] == "renyi"
    assert by_name["adar-ucb"]["calibrations"] == ["printed", "tight"]
    assert by_name["adar-ucb"]["plays_on"] == ["finite", "linear"]
    assert by_name["linucb joint"]["plays_on"] == ["contextual"]
    assert [item["name"] for item in by_name["linucb joint"]["parameters"]] == ["failure", "beta_scale", "ridge", "epochs"]
    assert by_name["ucrl-vtr joint pure"]["parameters"][-1] == {
        "name": "reading", "meaning": by_name["ucrl-vtr local pure"]["parameters"][-1]["meaning"],
        "default": "l1-constants", "options": ["l2-constants", "l1-constants"],
    }  # fmt: skip


def test_list_has_one_line_an_algorithm_in_80_columns(bandana, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    table, _, _ = bandana("list").stdout.partition("\n\n")  # what follows is about the last leaderboard
    lines = table.splitlines()
    assert [line.split()[0] for line in lines] == ["algorithm", *names()]
    assert max(map(len, lines)) <= 80
    local = bandana("list", "--model", "local", "--family", "rl").stdout.splitlines()
    assert [line.split()[0] for line in local[1:]] == ["ucrl-vtr", "ucrl-vtr-plus", "ucb-vi", "dp-ucbvi"]


def test_list_of_one_algorithm_shows_all_that_is_known(bandana):
    shown = " ".join(bandana("list", "ucrl-vtr").stdout.split())
    for words in ("Corollary 5", "1 / horizon", "l2-constants", "(joint pure, local pure only)", "- algorithm: ucrl-vtr"):
        assert words in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["exp3"], "unknown algorithm 'exp3'; did you mean 'dp-exp3'? `bandana list` shows all"),
        (["capri-joint"], "capri-joint is now `algorithm: capri` with `model: joint`"),
        (["--model", "nobody"], "--model must be one of none, central, joint, local, shuffle, got 'nobody'"),
        (["--family", "x"], "--family must be one of bandits, finite_arm"),
        (["ucb", "--model", "local"], "ucb has no entry in the trust model and family"),
    ],
)
def test_list_refuses_what_it_does_not_know(bandana, words, message):
    done = bandana("list", *words)
    assert done.exit_code == USER_MISTAKE
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize("name", names())
def test_every_algorithm_comes_with_a_spec_that_runs_all_its_forms(name):
    cells = cells_of(parse_spec(starter(name), "starter", Path()))
    assert {cell.entry.label for cell in cells} == {entry.label for entry in of_name(name)}


def test_check_tells_what_a_spec_will_do_and_runs_nothing(write_spec, tmp_path):
    done = _as_a_user("check", write_spec(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "adar-ucb tight rdp(2, 1)" in done.stdout
    assert "(2, 1)-RDP" in done.stdout
    assert os.listdir(tmp_path) == ["spec.yaml"]


@pytest.mark.parametrize("command", ["check", "run", "audit", "report"])
def test_a_users_mistake_ends_with_2_and_one_clear_message(bandana, write_spec, tmp_path, command):
    done = bandana(command, write_spec(horizon=1))
    assert done.exit_code == USER_MISTAKE
    assert "horizon must be at least 2 for 2 arms, got 1" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == ["spec.yaml"]


def test_a_kind_of_report_whose_annex_is_missing_is_a_mistake(bandana, write_spec, monkeypatch):
    monkeypatch.setattr("bandana.flows.commands.reports.plugged", lambda point: {})
    done = bandana("report", write_spec(), "--registry")
    assert done.exit_code == USER_MISTAKE
    assert "--registry: is of an annex that this installation does not have" in " ".join(done.stderr.split())


def test_debug_shows_the_traceback(bandana, write_spec):
    """What a command leaves uncaught, Python prints with its traceback."""
    done = bandana("check", write_spec(horizon=1), "--debug")
    assert isinstance(done.exception, SpecError)
    assert "horizon must be at least 2" not in done.output


def test_an_audit_of_a_spec_without_private_algorithms_is_a_mistake(bandana, write_spec):
    done = bandana("audit", write_spec(algorithms=[{"algorithm": "ucb"}]))
    assert done.exit_code == USER_MISTAKE
    assert "nothing to audit" in done.stderr


def test_a_reader_that_leaves_ends_a_command_without_a_word():
    """`bandana list | head -1`: what stops reading gets what it wants, and no line about a pipe."""
    command = [sys.executable, "-c", "from bandana.flows.cli import main; main()", "list", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == FAILURE


def test_a_pipe_that_breaks_elsewhere_is_a_failure_with_a_line(capfd):
    with pytest.raises(SystemExit), failures(debug=False):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")
    assert "BrokenPipeError" in capfd.readouterr().err


def test_failures_are_explained():
    assert explain(SpecError("a: b")) == ("a: b", USER_MISTAKE)
    message, code = explain(OSError(errno.ENOSPC, "No space left on device", "results/x.npz"))
    assert (code, "disk is full (results/x.npz)" in message) == (FAILURE, True)
    wrapped = RuntimeError("task failed")
    wrapped.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert "disk is full" in explain(wrapped)[0]
    assert "continue" in explain(KeyboardInterrupt())[0]
    assert explain(RuntimeError("odd"))[1] == FAILURE


def test_a_data_folder_that_cannot_be_made_is_a_mistake(bandana, write_spec, tmp_path):
    (tmp_path / "file").write_text("")
    done = bandana("run", write_spec(), "--data", tmp_path / "file" / "data")
    assert done.exit_code == USER_MISTAKE
    assert "--data: the folder cannot be used" in done.stderr


def test_a_disk_without_room_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("bandana.flows.folder.settings.shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match="less than 128 MiB are free") as caught:
        DataFolder.open(tmp_path).prepare()
    assert explain(caught.value)[1] == FAILURE
    assert "the disk is full" in explain(caught.value)[0]


@pytest.mark.parametrize(("free", "is_full"), [((1 << 20) - 1, True), (1 << 20, False)])
def test_a_server_that_ended_is_blamed_on_a_full_disk_only_where_it_is_full(free, is_full, tmp_path, monkeypatch):
    monkeypatch.setattr("bandana.flows.running.interrupt.shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    told = server_ended("the server ended with status 1", tmp_path)
    expected = f"the disk is full ({tmp_path})" if is_full else "the server ended with status 1; finished work is kept"
    assert told.startswith(expected)


def test_a_disk_with_just_enough_room_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr("bandana.flows.folder.settings.shutil.disk_usage", lambda _: SimpleNamespace(free=128 << 20))
    DataFolder.open(tmp_path).prepare()
    monkeypatch.setattr("bandana.flows.folder.settings.shutil.disk_usage", lambda _: SimpleNamespace(free=(128 << 20) - 1))
    with pytest.raises(OSError, match="128 MiB"):
        DataFolder.open(tmp_path).prepare()


# --- one command each, and the form before 1.0 ----------------------------------------------------------------------


def test_the_help_shows_the_panels_of_its_commands_in_their_order():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).stdout
    titles = [line.strip("╭─╮ ") for line in shown.splitlines() if line.startswith("╭")]
    used = {command.rich_help_panel for command in get_command(app).commands.values()}
    assert titles == ["Options", *(panel for panel in PANELS.values() if panel in used)]
    assert used <= set(PANELS.values())


def test_the_help_shows_five_panels():
    pytest.importorskip("bandana.flows.annexes.operations")  # the core's own commands fill four
    assert {command.rich_help_panel for command in get_command(app).commands.values()} == set(PANELS.values())


@pytest.mark.parametrize("name", ["audit", "audit-own", "audit-release", "audit-catalog"])
def test_a_command_that_audits_shows_a_dozen_options_and_the_rest_when_asked(name):
    pytest.importorskip("bandana.flows.annexes.anything")
    command = get_command(app).commands[name]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    assert len([each for each in options if not each.hidden]) <= 12
    run = CliRunner().invoke
    hidden = [each.opts[0] for each in options if each.hidden]
    assert all(opt not in run(app, [name, "--help"]).stdout for opt in hidden)
    if hidden:
        assert all(opt in run(app, [name, "--help-all"], env={"COLUMNS": "120"}).stdout for opt in hidden)


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (["audit", "--algorithm", "a.py:b", "--claim", "c"], ["audit-own", "a.py:b", "--claim", "c"]),
        (["audit", "--claim", "c", "--mechanism=a.py:b"], ["audit-release", "--claim", "c", "a.py:b"]),
        (["audit", "--samples", "p", "q", "--json"], ["audit-release", "--samples", "p", "q", "--json"]),
        (["audit", "--only", "x", "--all"], ["audit-catalog", "--only", "x"]),
    ],
)
def test_the_form_before_1_0_is_read_as_what_it_is_now(words, now, capsys):
    assert renamed(words) == now
    assert capsys.readouterr().err.count("\n") == 1
    for kept in (["audit", "x.yaml"], ["run", "--all"], []):
        assert renamed(kept) == kept
    assert capsys.readouterr().err == ""


def test_the_form_before_1_0_works_and_says_what_it_is_now():
    pytest.importorskip("bandana.flows.annexes.anything")
    done = CliRunner().invoke(app, ["audit", "--algorithm", "nowhere.py:bandit", "--claim", "gdp(mu=1, relation=reward)"])
    assert done.exit_code == 2
    note, error = done.stderr.splitlines()
    assert note == "note: `bandana audit --algorithm` is now `bandana audit-own`; the old form works until 2.0"
    assert error.startswith("error: algorithm: nowhere.py cannot be read")
