"""`bandana ui`: the compare links and the loopback interface; and the files that describe a shared server."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import bandana
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.keys.checkout import checkout
from bandana.flows.tracking.metrics import AUDIT_METRICS, METRICS
from bandana.flows.tracking.store.address import URI_VARIABLE
from bandana.flows.tracking.tracker import CellRecord, Tracker

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "mlflow"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with one tracked suite and one that never got so far."""
    monkeypatch.delenv(URI_VARIABLE, raising=False)
    monkeypatch.setattr(DataFolder, "prepare", lambda _: None)
    tracker = Tracker(tmp_path)
    tracker.experiment("demo", "text")
    tracker.log_cell("demo", CellRecord("key", "ucb"))
    for suite in ("demo", "begun"):
        DataFolder(tmp_path).suite(suite).mkdir(parents=True)
    return tmp_path


def test_the_pages_open_on_loopback_with_a_link_a_suite(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr("os.execv", lambda *command: started.append(command))
    for name in ("MLFLOW_BACKEND_STORE_URI", "MLFLOW_DEFAULT_ARTIFACT_ROOT"):
        monkeypatch.setenv(name, "of another project")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    done = CliRunner().invoke(app, ["ui", "--data", str(data), "--port", str(port)])
    assert done.exit_code == 0, done.output
    assert f"  demo: http://127.0.0.1:{port}/#/experiments/1/runs?" in done.output
    assert "  begun: MLflow has no experiment 'begun' yet" in done.output
    ((_, command),) = started
    assert command[command.index("--host") + 1] == "127.0.0.1"
    import os

    assert os.environ["MLFLOW_BACKEND_STORE_URI"] == f"sqlite:///{data}/mlflow/mlflow.db"


def test_a_port_in_use_is_told_before_anything_starts(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("started"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["ui", "--data", str(data), "--port", str(port)])
    assert done.exit_code == 2
    assert f"--port: {port} on 127.0.0.1 cannot be used (Address already in use)" in done.output


def test_the_searches_of_the_manual_find_what_they_say(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    tracker = Tracker(tmp_path)
    params = {"algorithm": "adar-ucb", "role": "algorithm", "environment": "bernoulli"}
    metrics = {"privacy/epsilon_accounted": 0.5, "regret/final": 100.0}
    tags = {"verdict": "FAIL", "made.benchmark.numpy": "2.4.6"}
    tracker.log_cell("demo", CellRecord("old", "a cell", params=params, metrics=metrics))
    tracker.log_cell("demo", CellRecord("new", "a cell", params=params, metrics=metrics, tags=tags))
    tracker.log_suite("demo", "suite", {}, {}, [])
    assert tracker.mark_baseline("demo", {"a cell"}) == 1
    client = MlflowClient(tracking_uri=tracker.address.uri)
    number = client.get_experiment_by_name("demo").experiment_id
    text = (ROOT / "docs" / "tracking.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"## Search\n.*?```text\n(.*?)```", text, re.DOTALL)
    found = [
        sorted(run.data.tags["run_key"] for run in client.search_runs([number], line)) for line in block.strip().splitlines()
    ]
    assert found == [["new"], ["new"], ["new", "old"], ["new"], ["new", "old"], [], ["old"], ["new"], ["new"]]


def test_the_manual_names_every_tag_and_the_run_holds_every_tag_of_the_manual(tmp_path: Path) -> None:
    from mlflow import MlflowClient

    tracker = Tracker(tmp_path)
    tags = {"cell": "a cell", "verdict": "PASS", "environment": "bernoulli", "source": "a paper"}
    tracker.log_cell("demo", CellRecord("old", "a cell", tags=tags))
    tracker.log_cell("demo", CellRecord("new", "a cell", tags=tags))
    client = MlflowClient(tracking_uri=tracker.address.uri)
    runs = client.search_runs([client.get_experiment_by_name("demo").experiment_id])
    held = {tag for run in runs for tag in run.data.tags}
    text = (ROOT / "docs" / "tracking.md").read_text(encoding="utf-8")
    table = text[text.index("| tag | content |") : text.index("!!! note")]
    columns = [row.split("|")[1] for row in table.splitlines() if row.startswith("|")]
    named = {name for column in columns for name in re.findall(r"`([a-z_.A-Z]+)`", column)}
    of_a_checkout = set() if checkout() else {"mlflow.source.git.commit", "bandana.clean"}
    assert named - of_a_checkout == held - {"mlflow.runName", "mlflow.source.name", "mlflow.source.type"}


def test_the_manual_names_every_metric() -> None:
    text = (ROOT / "docs" / "tracking.md").read_text(encoding="utf-8")
    assert [name for name in (*(metric.name for metric in METRICS), *AUDIT_METRICS) if f"`{name}`" not in text] == []


# --- the folder mlflow/ ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8")))


def settings_of(name: str) -> dict[str, str]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_every_variable_of_the_compose_file_is_in_its_example_and_no_secret_has_a_value() -> None:
    text = (FOLDER / "compose.yaml").read_text(encoding="utf-8")
    used = dict(re.findall(r"\$\{([A-Z_]+)(:[?-])", text))
    example = settings_of("compose.env.example")
    assert used.keys() == example.keys()
    secrets = {name for name in example if re.search("PASSWORD|SECRET|AUTH", name)}
    assert len(secrets) == 5
    for name in secrets:
        assert example[name] == "", f"{name} has a value that everybody knows"
        assert used[name] == ":?", f"{name} must stop the start while it is empty"
    assert "*.env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_everything_listens_on_loopback_and_is_watched(compose: dict[str, Any]) -> None:
    assert set(compose["services"]) == {"database", "mlflow", "prefect", "serve"}
    for name, service in compose["services"].items():
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}, name
        assert "privileged" not in service
        assert "network_mode" not in service
        if name == "serve":  # it listens nowhere
            assert "ports" not in service
            continue
        assert service["ports"], name
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name
        assert service["healthcheck"]["test"], name
    origins = compose["services"]["prefect"]["environment"]["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"]
    assert origins == compose["services"]["prefect"]["environment"]["PREFECT_SERVER_UI_API_URL"].removesuffix("/api")
    for name in ("mlflow", "prefect"):
        assert compose["services"][name]["depends_on"]["database"]["condition"] == "service_healthy"
    declared = set(compose["volumes"])
    mounted = {
        re.sub(r"\$\{\w+:-(.*?)\}", r"\1", volume).split(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", ())
    }
    assert {name for name in mounted if not name.startswith(".")} == declared
    assert all((FOLDER / name).exists() for name in mounted if name.startswith("."))


def test_versions_are_those_of_the_project_and_nothing_is_reported_home(compose: dict[str, Any]) -> None:
    pinned = dict(
        re.split("==", line.strip())
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line and not line.startswith("#")
    )
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    for name in ("mlflow", "prefect", "psycopg2-binary"):
        assert f"\n{name}=={pinned[name]} " in lock  # which the image installs
    version = bandana.__version__
    services = compose["services"]
    for name in ("mlflow", "prefect", "serve"):
        assert services[name]["image"] == f"bandana:{version}"
        assert (FOLDER / services[name]["build"]["context"] / services[name]["build"]["dockerfile"]).exists()
    for place in ("deploy/Containerfile", "deploy/docker-work-pool.json", "deploy/kubernetes-work-pool.json"):
        named = re.findall(r"\bbandana:(\d[\w.]*)", (ROOT / place).read_text(encoding="utf-8"))
        assert named == [version], place
    assert all(":" in service["image"] and "latest" not in service["image"] for service in services.values())
    assert services["mlflow"]["environment"]["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert services["prefect"]["environment"]["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    command = ["bandana.flows.tracking.team_server", "server", "--app-name", "basic-auth"]
    assert services["mlflow"]["command"][2:6] == command
    assert "NO_PERMISSIONS" in (FOLDER / "basic_auth.ini").read_text(encoding="utf-8")
