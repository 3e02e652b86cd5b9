"""What cannot be run where tests run: the image, work pools, Kubernetes, systemd; a program of its kind reads each file."""

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import uuid
import zipfile
from pathlib import Path

import pytest
import yaml
from documentation import ROOT, blocks
from prefect.utilities.schema_tools.validation import is_valid_schema, validate
from prefect.utilities.templating import apply_values, find_placeholders

DEPLOY = ROOT / "deploy"
POOLS = ("docker", "kubernetes")
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
_RUNTIME = {"command": "prefect flow-run execute", "name": "night", "labels": {}}


# --- the image ------------------------------------------------------------------------------------------------------------


def _instructions():
    """(name, rest) of each instruction of the Containerfile, with continued lines joined."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines() if line.strip()]


def test_the_image_is_pinned_and_starts_on_loopback_without_rights():
    found = _instructions()
    assert {name for name, _ in found} <= {
        "FROM", "ENV", "WORKDIR", "COPY", "ARG", "RUN", "USER", "VOLUME", "STOPSIGNAL", "HEALTHCHECK", "CMD",
    }  # fmt: skip
    bases = [rest.split()[0] for name, rest in found if name == "FROM"]
    assert len(bases) == 2
    assert all(re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", base) for base in bases)
    last = [index for index, (name, _) in enumerate(found) if name == "FROM"][-1]
    stage = dict(found[last:])  # the last of each
    assert stage["USER"].isdigit()
    assert int(stage["USER"]) > 0
    assert [name for name, _ in found[last:]].index("USER") > [name for name, _ in found[last:]].index("RUN")
    assert json.loads(stage["CMD"]) == ["bandana", "serve"]  # whose address is not asked for: 127.0.0.1
    assert "http://127.0.0.1:4200/api/health" in stage["HEALTHCHECK"]
    for setting in ("DO_NOT_TRACK=true", "MLFLOW_DISABLE_TELEMETRY=true", "PREFECT_SERVER_ANALYTICS_ENABLED=false"):
        assert setting in stage["ENV"]
    for command in (part for name, rest in found if name == "RUN" for part in rest.split("&&")):
        if "pip install" in command:
            assert "--no-deps" in command
            assert "--require-hashes" in command or "--no-build-isolation" in command
    assert "EXPOSE" not in dict(found)


def test_the_image_s_own_program_reads_the_containerfile():
    dockerfile = pytest.importorskip("dockerfile", reason="BuildKit's parser: pip install dockerfile==3.4.0")
    read = dockerfile.parse_file(str(DEPLOY / "Containerfile"))
    assert [one.cmd for one in read] == [name for name, _ in _instructions()]


@pytest.mark.nightly
def test_what_the_image_is_built_from_is_enough(tmp_path):
    """In `make test`: the folders that are copied exist. The wheel is built from them alone, as the last step does."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "*"
    for name in (line[1:] for line in lines if line.startswith("!")):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", "wheels", "."], cwd=tmp_path, check=True)
    (wheel,) = (tmp_path / "wheels").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    wanted = {f"bandana/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "flows").rglob("*.py")}
    assert wanted <= names
    assert "bandana/flows/demo.yaml" in names


def test_what_the_image_is_built_from_exists():
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    named = {line[1:] for line in lines if line.startswith("!")}
    assert all((ROOT / name).exists() for name in named)
    linked = [path.resolve().relative_to(ROOT) for path in (ROOT / "bandana").iterdir() if path.name != "__pycache__"]
    assert all(path.parts[0] in named or str(path) in named for path in linked)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {project["readme"], *project["license-files"], "pyproject.toml", "requirements.lock"} <= named


# --- work pools -----------------------------------------------------------------------------------------------------------


def _pool(kind):
    return json.loads((DEPLOY / f"{kind}-work-pool.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", POOLS)
def test_a_work_pool_s_template_is_filled_in_by_its_defaults(kind):
    """With Prefect's own functions: the schema, the defaults against it, and every placeholder."""
    pool = _pool(kind)
    variables = pool["variables"]
    is_valid_schema(variables)
    defaults = {name: one["default"] for name, one in variables["properties"].items() if "default" in one}
    assert not validate(defaults, variables)
    wrong = {"docker": {"nano_cpus": -1}, "kubernetes": {"cpu_limit": "-1"}}[kind]
    assert validate({**defaults, **wrong}, variables)
    placeholders = {one.name for one in find_placeholders(pool["job_configuration"])}
    assert placeholders == set(variables["properties"])
    filled = apply_values(pool["job_configuration"], {**_RUNTIME, **defaults})
    assert "{{" not in json.dumps(filled)
    assert filled["env"]["MLFLOW_DISABLE_TELEMETRY"] == "true"
    if kind == "docker":
        assert filled["mem_limit"] == filled["memswap_limit"]
        assert filled["container_create_kwargs"]["nano_cpus"] > 0
        assert filled["container_create_kwargs"]["cap_drop"] == ["ALL"]
        assert not filled["privileged"]
    else:
        (container,) = filled["job_manifest"]["spec"]["template"]["spec"]["containers"]
        assert set(container["resources"]["limits"]) == {"cpu", "memory"} == set(container["resources"]["requests"])


@pytest.mark.nightly
@pytest.mark.parametrize("kind", POOLS)
def test_a_worker_s_own_class_takes_the_template(kind, prefect_server):
    """In `make test`: Prefect's schema and placeholders."""
    module = pytest.importorskip(
        f"prefect_{kind}.worker", reason="pip install prefect-docker==0.7.4 prefect-kubernetes==0.8.0"
    )
    from prefect.client.schemas.objects import FlowRun

    configuration = getattr(module, f"{kind.capitalize()}WorkerJobConfiguration")
    made = asyncio.run(configuration.from_template_and_values(base_job_template=_pool(kind), values={}))
    made.prepare_for_flow_run(FlowRun(id=uuid.uuid4(), flow_id=uuid.uuid4(), name="night 1"))
    if kind == "kubernetes":
        kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate==1.37.0")
        made.job_manifest["metadata"]["name"] = "night-1"
        kubernetes_validate.validate(made.job_manifest, "1.37", strict=True)


def test_container_pools_name_flows_that_exist():
    from prefect.flows import load_flow_from_entrypoint

    tree = yaml.safe_load((DEPLOY / "prefect.containers.yaml").read_text(encoding="utf-8"))
    at_home = yaml.safe_load((ROOT / "prefect.yaml").read_text(encoding="utf-8"))
    assert tree["prefect-version"] == at_home["prefect-version"]
    assert len(tree["deployments"]) == 2
    for deployment in tree["deployments"]:
        flow = load_flow_from_entrypoint(deployment["entrypoint"])
        assert set(deployment["parameters"]) <= set(flow.parameters.properties)
        assert deployment["concurrency_limit"] == 1


@pytest.mark.nightly
def test_pools_and_their_deployments_are_made_by_the_lines_of_the_page(prefect_server, tmp_path):
    """In `make test`: templates are filled in, and each flow is found. Containers are started by nobody here."""
    page = (ROOT / "docs" / "how-to" / "containers.md").read_text(encoding="utf-8")
    lines = [line for block in blocks(page) for line in block.body.splitlines()]
    made = [line for line in lines if line.startswith(("prefect work-pool create", "prefect --no-prompt deploy"))]
    assert len(made) == 3
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **prefect_server, "PATH": path, "PREFECT_HOME": str(tmp_path)}
    for line in made:
        done = subprocess.run(["bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        for kind in POOLS:
            pool = client.read_work_pool(f"bandana-{kind}")
            assert (pool.type, pool.base_job_template) == (kind, _pool(kind))
        deployment = client.read_deployment_by_name("nightly-benchmark/demo-container")
    assert deployment.work_pool_name == "bandana-docker"
    assert deployment.entrypoint == "bandana.flows.annexes.operations.schedule.nightly_benchmark"
    assert deployment.global_concurrency_limit.limit == 1


# --- Kubernetes -----------------------------------------------------------------------------------------------------------


def _manifests():
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")))


def test_manifests_hang_together_and_leave_no_door_open():
    found = {(one["kind"], one["metadata"]["name"]): one for one in _manifests()}
    assert len(found) == len(_manifests())
    (worker,) = [one for (kind, _), one in found.items() if kind == "Deployment"]
    pod = worker["spec"]["template"]["spec"]
    assert ("ServiceAccount", pod["serviceAccountName"]) in found
    assert worker["spec"]["selector"]["matchLabels"].items() <= worker["spec"]["template"]["metadata"]["labels"].items()
    (container,) = pod["containers"]
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    assert {kind for kind, _ in found} & {"Service", "Ingress"} == set()
    (binding,) = [one for (kind, _), one in found.items() if kind == "RoleBinding"]
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in found
    defaults = {name: one.get("default") for name, one in _pool("kubernetes")["variables"]["properties"].items()}
    assert ("Namespace", defaults["namespace"]) in found
    assert ("PersistentVolumeClaim", defaults["claim"]) in found
    assert ("ServiceAccount", defaults["service_account_name"]) in found
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    assert container["image"].startswith(f"prefecthq/prefect:{pinned['prefect']}-")


def test_manifests_are_those_of_kubernetes():
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="pip install kubernetes-validate==1.37.0")
    for one in _manifests():
        kubernetes_validate.validate(one, "1.37", strict=True)


# --- systemd --------------------------------------------------------------------------------------------------------------


def _unit(path):
    pairs = [line.split("=", 1) for line in path.read_text(encoding="utf-8").splitlines() if re.match(r"[A-Z]\w+=", line)]
    found = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def test_units_start_what_the_page_for_a_team_starts():
    page = (ROOT / "docs" / "team.md").read_text(encoding="utf-8")
    started = [line for block in blocks(page) if ": stays" in block.mark for line in block.body.splitlines()[-1:]]
    assert len(started) == 3
    units = {path.stem: _unit(path) for path in UNITS}
    assert set(units) == {"bandana-mlflow", "bandana-prefect", "bandana-serve", "bandana-worker"}
    commands = {name: unit["ExecStart"][0].replace("/srv/bandana/venv/bin/", "") for name, unit in units.items()}
    assert commands["bandana-mlflow"] == started[0]
    assert started[1] in commands["bandana-prefect"]
    serve = shlex.split(re.sub(r"--alert \S+", "", started[2]))
    assert shlex.split(commands["bandana-serve"].replace("/srv/bandana/team.yaml", "team.yaml")) == serve
    for name, unit in units.items():
        files = [Path(file).name for file in unit["EnvironmentFile"]]
        assert all(file.endswith(".secrets") or (DEPLOY / file).exists() for file in files), name
        assert all(file in page for file in files if file.endswith(".secrets"))


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_a_unit_may_write_its_own_folder_and_nothing_else(path):
    unit = _unit(path)
    wanted = {
        "User": "bandana", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ReadWritePaths": "/srv/bandana",
        "CapabilityBoundingSet": "", "PrivateDevices": "yes", "ProtectHome": "yes", "PrivateTmp": "yes", "UMask": "0077",
    }  # fmt: skip
    assert {key: unit[key] for key in wanted} == {key: [value] for key, value in wanted.items()}
    assert unit["MemoryMax"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here (Debian: systemd)")
def test_systemd_understands_the_units(tmp_path):
    copies = []
    for path in UNITS:
        text = re.sub(r"/srv/bandana/venv/bin/\w+", shutil.which("true"), path.read_text(encoding="utf-8"))
        copies.append(tmp_path / path.name)
        copies[-1].write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", *map(str, copies)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    copies[0].write_text(copies[0].read_text().replace("ProtectHome=yes", "ProtectHomes=yes"))
    assert (
        "ProtectHomes"
        in subprocess.run(["systemd-analyze", "verify", str(copies[0])], capture_output=True, text=True).stderr
    )
