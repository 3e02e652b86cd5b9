"""The page for a team, followed from top to bottom by three users on a machine of its own, each block as it stands."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest
from documentation import ROOT, Block, blocks, console, is_as_shown
from intruder import ask
from listening import beyond_loopback, family, listening
from people import PERSONS, Machine
from postgres_server import why_not

from bandana.configuration import NAME, load
from bandana.flows.spec.spec import parse_spec

PAGE = ROOT / "docs" / "team.md"
BLOCKS = blocks(PAGE.read_text(encoding="utf-8"))
_MARK = re.compile(r"as: (?P<who>[a-z]+(?:, [a-z]+)*?)(?:: (?P<how>installs|stays, [a-z]+|prints|refused))?")
_VERSIONS = {"mlflow": "alembic_version", "mlflow_users": "alembic_version_auth", "prefect": "alembic_version"}
_DOWNGRADE = """python -c "
from alembic import command
from sqlalchemy import create_engine
from {module} import _get_alembic_config
url = 'postgresql+psycopg2://bandana@/{database}?host=/var/run/postgresql'
with create_engine(url).begin() as connection:
    config = _get_alembic_config(url)
    config.attributes['connection'] = connection
    command.downgrade(config, '-1')
" """
_OLDER = (
    _DOWNGRADE.format(module="mlflow.store.db.utils", database="mlflow"),
    _DOWNGRADE.format(module="mlflow.server.auth.db.utils", database="mlflow_users"),
    "set -a && . ./prefect.settings && prefect server database downgrade --yes --revision -1",
)
_EXPERIMENT = "/api/2.0/mlflow/experiments/get-by-name?experiment_name=team"
_ASSISTANT = "/ajax-api/3.0/mlflow/assistant/config"
_FLOW_RUNS = "SELECT id, state_name FROM flow_run WHERE state_type <> 'SCHEDULED' ORDER BY id"
_HEALTH = {"mlflow": "http://127.0.0.1:5000/health", "prefect": "http://127.0.0.1:4200/api/health"}


def _marked(block: Block) -> tuple[list[str], str]:
    """Who runs a block, and how."""
    found = _MARK.fullmatch(block.mark)
    assert found is not None, f"nobody is said to run this block:\n{block.body}"
    return found["who"].split(", "), found["how"] or ""


def _settings(name: str) -> dict[str, str]:
    lines = (ROOT / "deploy" / f"{name}.settings").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


# --- in `make test` -------------------------------------------------------------------------------------------------------


def test_every_block_is_run_by_somebody_and_can_be_parsed():
    ways = set()
    for block in BLOCKS:
        if block.mark.startswith("file: "):
            continue
        who, how = _marked(block)
        assert set(who) <= set(PERSONS)
        ways.add(how.partition(",")[0])
        commands = [command for command, _ in console(block.body)] if block.language == "console" else [block.body]
        assert commands
        subprocess.run(["bash", "-n"], input="\n".join(commands), text=True, check=True)
    assert ways == {"", "installs", "stays", "prints", "refused"}
    outside = re.sub(r"^```.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^(?:    |\$ ).*", outside, re.MULTILINE), "commands outside of blocks are not run"


def test_the_files_of_the_page_are_correct(tmp_path):
    files = {block.mark.removeprefix("file: "): block.body for block in BLOCKS if block.mark.startswith("file: ")}
    assert set(files) == {"team.yaml", "who.py", "bandana.toml.example"}
    (tmp_path / NAME).write_text(files["bandana.toml.example"], encoding="utf-8")
    assert len([*load(tmp_path / NAME).variables(tmp_path)]) == 7
    assert parse_spec(files["team.yaml"], "team.yaml", ROOT).name == "team"
    compile(files["who.py"], "who.py", "exec")


def test_settings_hold_no_secret_and_are_those_that_the_programs_read():
    from mlflow import environment_variables
    from prefect.settings import Settings
    from prefect.settings.legacy import _get_valid_setting_names

    known = {name for name in dir(environment_variables) if name.startswith("MLFLOW_")}
    known |= {"DO_NOT_TRACK", "MLFLOW_TRACKING_USERNAME", "BANDANA_DATA", "BANDANA_TRACKING_URI"}
    known |= {
        "MLFLOW_BACKEND_STORE_URI",
        "MLFLOW_ARTIFACTS_DESTINATION",
        "MLFLOW_SERVER_ALLOWED_HOSTS",
    }  # options of `server`
    known |= _get_valid_setting_names(Settings)
    for name in ("mlflow", "prefect", "nights"):
        found = _settings(name)
        assert set(found) <= known, set(found) - known
        assert not [key for key in found if re.search(r"PASSWORD|SECRET|AUTH_STRING", key)]
        assert not [value for value in found.values() if re.search(r"://[^/@]*:[^/@]+@", value)]
    page = PAGE.read_text(encoding="utf-8")
    assert _settings("prefect")["PREFECT_API_URL"] in page
    assert f"BANDANA_TRACKING_URI={_settings('nights')['BANDANA_TRACKING_URI']}" in page
    ini = configparser.ConfigParser()
    ini.read(ROOT / "mlflow" / "basic_auth.ini")
    assert "database_uri" in ini["mlflow"]  # which the page replaces


# --- the whole page -------------------------------------------------------------------------------------------------------


@pytest.fixture
def machine():
    folder = Path(tempfile.mkdtemp(prefix="bandana-team-"))
    made = Machine(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


class Reader:
    """Somebody who follows the page, block by block."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.left = machine, list(BLOCKS)

    def follow(self, *words: str) -> str:
        """Runs the next blocks up to the first one that holds one of the words; returns what that one printed."""
        while True:
            block = self.left.pop(0)
            printed = self._do(block)
            if any(word in block.body for word in words):
                return printed

    def _do(self, block: Block) -> str:
        if block.mark.startswith("file: "):
            for person in PERSONS:
                (self.machine.home(person) / block.mark.removeprefix("file: ")).write_text(block.body)
            return ""
        who, how = _marked(block)
        printed = ""
        for person in who if how != "installs" else ():
            if how.startswith("stays"):
                self.start(how.partition(", ")[2], person, block.body)
            elif block.language == "console":
                ((command, shown),) = console(block.body)
                printed = self.machine.run(person, command, 1 if how == "refused" else 0)
                shown = self.machine.here(shown)
                # A command that is refused may say that it begins before it says why it ends.
                said = printed[printed.index("error: ") :] if how == "refused" else printed
                assert is_as_shown(shown, said), f"{command} printed\n{printed}\nand the page shows\n{shown}"
            else:
                printed = self.machine.run(person, block.body)
        return printed

    def start(self, name: str, person: str, script: str) -> None:
        machine = self.machine
        before = len(machine.said(name)) if machine.log(name).exists() else 0
        machine.open(name, person, script)
        deadline = time.monotonic() + 300
        while not self._is_ready(name, before):
            assert machine.terminals[name][2].poll() is None, machine.said(name)[-3000:]
            assert time.monotonic() < deadline, machine.said(name)[-3000:]
            time.sleep(0.3)

    def _is_ready(self, name: str, before: int) -> bool:
        if name == "serve":
            return "Ctrl-C ends it" in self.machine.said(name)[before:]
        with suppress(OSError), urllib.request.urlopen(self.machine.here(_HEALTH[name]), timeout=2):
            return True
        return False

    def start_all(self) -> None:
        for name, (person, script, _) in list(self.machine.terminals.items()):
            self.start(name, person, script)


def _secrets(place: Path) -> dict[str, str]:
    lines = [line for path in place.glob("*.secrets") for line in path.read_text().splitlines()]
    return dict(line.split("=", 1) for line in lines)


def _runs(machine: Machine) -> list[tuple[str, str, str]]:
    """(run id, name, user) of each run, from MLflow's database."""
    query = (
        "SELECT run_uuid, name, (SELECT value FROM tags t WHERE t.run_uuid = r.run_uuid AND t.key = 'mlflow.user') "
        "FROM runs r ORDER BY run_uuid"
    )
    return [tuple(line.split("|")) for line in _sql(machine, "mlflow", query)]


def _sql(machine: Machine, database: str, query: str) -> list[str]:
    return machine.run("bandana", f'psql --tuples-only --no-align --dbname={database} --command="{query}"').splitlines()


def _answers(machine: Machine, user: str, password: str, path: str = _EXPERIMENT) -> int:
    """What MLflow's server answers to a login."""
    from base64 import b64encode

    login = b64encode(f"{user}:{password}".encode()).decode()
    request = urllib.request.Request(
        machine.here(f"http://127.0.0.1:5000{path}"),
        headers={"Authorization": f"Basic {login}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.nightly
@pytest.mark.skipif(
    shutil.which("python3.11") is None or sys.version_info[:2] != (3, 11), reason="the lock is for Python 3.11"
)
def test_the_installation_of_the_page(tmp_path):
    """The block as it stands, where packages of these tests are seen: only what differs from the lock is fetched."""
    (block,) = [block for block in BLOCKS if block.mark.endswith(": installs")]
    source = tmp_path / "source"
    source.mkdir()
    for path in ROOT.iterdir():
        if path.name != ".git":
            (source / path.name).symlink_to(path)
    seen = os.pathsep.join(path for path in sys.path if path.endswith("site-packages"))
    environment = {**os.environ, "PYTHONPATH": seen}
    script = block.body.replace("/srv/bandana", str(tmp_path))
    done = subprocess.run(["bash", "-e", "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    bandana = tmp_path / "venv" / "bin" / "bandana"
    listed = subprocess.run([bandana, "list"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert "adar-ucb" in listed.stdout
    (package,) = (tmp_path / "venv").glob("lib/python3.11/site-packages/bandana")
    assert (package / "flows" / "demo.yaml").is_file()


@pytest.mark.nightly
@pytest.mark.timeout(2400)
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_a_team_of_three_follows_the_page(machine):
    """In `make test`: blocks are parsed, settings are known, and each part has tests of its own."""
    pytest.importorskip("psycopg2")
    pytest.importorskip("flask_wtf")
    reader, place = Reader(machine), machine.place
    reader.follow("bandana account nights")
    for user in ("ann", "bob", "eve"):
        shutil.move(place / f"first-password.{user}", machine.home(user) / "first-password")
    assert "changed: the password of eve" in reader.follow("rm ~/first-password")
    reader.follow("bandana share team nights")
    reader.follow("python who.py")
    reader.follow("bandana run team.yaml\nerror")
    assert not list((machine.home("bob") / "bandana_data").rglob("*.npz")), "refused before anything is computed"
    runs = _runs(machine)
    assert len(runs) == 6  # five cells and the suite
    assert {user for _, _, user in runs} == {"ann"}
    reader.follow("bandana run team.yaml")  # Eve's
    assert [run for run in _runs(machine) if "suite" not in run[1]] == [run for run in runs if "suite" not in run[1]]
    reader.follow("bandana baseline")
    reader.follow("bandana serve")

    # The drill of the page, then a night whose regret got worse.
    began = time.time()
    reader.follow("no-such-spec")
    machine.hook.wait(1, 60 + 60)
    assert "no-such-spec" in machine.hook.sent[0][1]["body"]
    baseline = place / "data" / "suites" / "team" / "baseline.json"
    recorded = json.loads(baseline.read_text())
    better = json.loads(baseline.read_text())
    for cell in better["cells"]:
        if cell["regret"] is not None:
            for name in ("value", "standard_error", "low", "high"):
                cell["regret"]["final"][name] *= 0.1
    baseline.write_text(json.dumps(better))
    drill = next(block.body for block in BLOCKS if "no-such-spec" in block.body)
    machine.run("bandana", re.sub(r" --param.*", "", drill))
    machine.hook.wait(2, 300)
    arrived, told = machine.hook.sent[1]
    assert "worse than the baseline" in told["body"]
    secrets = _secrets(place)
    api, login = machine.here("http://127.0.0.1:4200/api"), secrets["PREFECT_API_AUTH_STRING"]
    events = ask(api, "/events/filter", {"filter": {"event": {"name": ["bandana.gate.failed"]}}}, login=login).body["events"]
    assert len(events) == 1
    late = arrived - datetime.fromisoformat(events[0]["occurred"]).timestamp()
    print(f"the webhook was told {late:.1f} s after the gate's word")
    assert 0 < late < 60
    assert began < arrived
    baseline.write_text(json.dumps(recorded))

    # What listens, and what can be read.
    for name in ("mlflow", "prefect", "serve"):
        assert not beyond_loopback(listening(machine.pid(name))), name
    spoken = [*secrets.values(), *((machine.home(user) / "mlflow-password").read_text().strip() for user in ("ann", "bob"))]
    for process in (one for name in machine.terminals for one in family(machine.pid(name))):
        with suppress(OSError):
            shown = Path(f"/proc/{process.pid}/cmdline").read_text()
            assert not [secret for secret in spoken if secret.rpartition(":")[2] in shown]
    assert "MLFLOW_AUTH_ADMIN_PASSWORD" not in secrets
    assert all(path.stat().st_mode & 0o077 == 0 for path in [*place.glob("*.secrets"), place / "admin.password"])
    assert _answers(machine, "admin", (place / "admin.password").read_text().strip()) == 200
    assert _answers(machine, "bob", (machine.home("bob") / "mlflow-password").read_text().strip()) == 200
    assert _answers(machine, "bob", "another password") == 401
    assert ask(api, "/flows/count", {}).status == 401
    assert _answers(machine, "bob", (machine.home("bob") / "mlflow-password").read_text().strip(), _ASSISTANT) == 404

    # A backup, a disaster, and everything is as it was.
    reader.follow("pg_dump")
    before = _runs(machine), _sql(machine, "prefect", _FLOW_RUNS)
    kept = {path.relative_to(place): path.read_bytes() for path in (place / "data" / "results").rglob("*.npz")}
    assert kept
    machine.stop()
    shutil.rmtree(place / "data")
    _sql(machine, "mlflow", "DROP TABLE tags CASCADE")
    _sql(machine, "mlflow_users", "DROP TABLE users CASCADE")
    _sql(machine, "prefect", "DROP TABLE flow_run CASCADE")
    reader.follow("pg_restore")
    assert (_runs(machine), _sql(machine, "prefect", _FLOW_RUNS)) == before
    assert {path.relative_to(place): path.read_bytes() for path in (place / "data" / "results").rglob("*.npz")} == kept
    reader.start_all()
    assert "mlflow-password" not in machine.run("ann", "bandana run team.yaml")
    assert [run for run in _runs(machine) if "suite" not in run[1]] == [run for run in before[0] if "suite" not in run[1]]

    # Tables of an earlier version are upgraded.
    machine.stop()
    heads = [_sql(machine, name, f"SELECT version_num FROM {table}") for name, table in _VERSIONS.items()]
    for program in _OLDER:
        machine.run("bandana", program)
    older = [_sql(machine, name, f"SELECT version_num FROM {table}") for name, table in _VERSIONS.items()]
    assert all(old != new for old, new in zip(older, heads, strict=True))
    reader.follow("database upgrade")
    assert [_sql(machine, name, f"SELECT version_num FROM {table}") for name, table in _VERSIONS.items()] == heads
    reader.start_all()
    assert _answers(machine, "eve", (machine.home("eve") / "mlflow-password").read_text().strip()) == 200
    assert reader.follow("--remove") == "removed: eve\n"
    assert _answers(machine, "eve", (machine.home("eve") / "mlflow-password").read_text().strip()) == 401
    assert not reader.left
