"""Nothing that the documentation starts listens beyond the loopback interface, and nothing there answers a stranger."""

import os
import re
import socket
import time

import pytest
from documentation import ROOT, blocks, pages
from documented_servers import STAYS, Place, _commands_of, commands, staying, unknown
from intruder import is_refused
from listening import Terminals, admits, beyond_loopback, listening, shows_pages

_SERVERS = r"(?:prefect server start|dask scheduler|dask worker|mlflow server|mlflow ui|python -m \S+team_server server)"
_PORTS = ("4200", "8786", "8787")


def _documented():
    """(page, block, line) of each documented line that starts a server."""
    for path in pages():
        for block in blocks(path.read_text(encoding="utf-8")):
            for line in block.body.replace("\\\n", " ").splitlines():
                if re.match(rf"(?:\$ )?(?:[A-Z_]+=\S+ )*{_SERVERS}\b", line):
                    yield path, block.body, line


def test_every_documented_server_names_the_loopback_interface_and_asks_for_a_password():
    found = list(_documented())
    for path, block, line in found:
        assert re.search(r"--host 127\.0\.0\.1(?:\s|$)", line), f"{path.name}: {line}"
        if "dask" in line:
            assert re.search(r"--dashboard-address 127\.0\.0\.1:\d+(?:\s|$)", line), f"{path.name}: {line}"
            assert re.search(r"--protocol tls|worker tls://", line), f"{path.name}: {line}"
        if "prefect" in line:
            assert re.search(r'PREFECT_SERVER_API_AUTH_STRING="\$', block), f"{path.name}: {line}"
            assert "PREFECT_SERVER_CORS_ALLOWED_ORIGINS=http://127.0.0.1:" in block, f"{path.name}: {line}"
        if "mlflow" in line or "team_server" in line:
            assert "--app-name basic-auth" in line, f"{path.name}: {line}"
    assert {re.search(_SERVERS, line).group() for _, _, line in found} >= {
        "prefect server start", "dask scheduler", "dask worker", "python -m bandana.flows.tracking.team_server server",
    }  # fmt: skip


def test_every_documented_program_is_known_to_stay_or_to_end():
    """What a page starts and no test knows would be scanned by none: say in `documented_servers.py` whether it stays."""
    assert not [str(line) for line in unknown()]
    assert {line.kind for line in staying()} == {*STAYS}


def test_no_documented_line_that_stays_names_another_interface():
    for line in staying():
        for option in re.findall(r"--[a-z-]*(?:host|address|bind|interface|listen)[a-z-]*[ =](\S+)", line.words):
            assert option.startswith("127.0.0.1"), line
        assert "--with-healthcheck" not in line.words, f"{line}: its page of health listens on all interfaces"
        if line.kind in ("prefect server", "mlflow server", "dask scheduler", "dask worker"):
            assert "--host 127.0.0.1" in line.words, line
    for line in commands():
        for port in re.findall(r"(?:--publish|-p)[ =](\S+:\S+)", line.words):
            assert port.startswith("127.0.0.1:"), line


@pytest.mark.parametrize(
    ("body", "language", "expected"),
    [
        ("A=1 B='x y' \\\n  mlflow server --host 127.0.0.1", "sh", ["mlflow server --host 127.0.0.1"]),
        ("cd x && exec prefect worker start --pool a # stays", "sh", ["cd x", "prefect worker start --pool a"]),
        ("$ bandana ui\nMLflow starts; dask worker\n$ ls", "console", ["bandana ui", "ls"]),
        ("python -c 'a; b && c' | tail -n 1", "sh", ["python -c 'a; b && c'", "tail -n 1"]),
        ("for i in 1 2; do bandana serve $i; done", "sh", ["for i in 1 2", "bandana serve $i", "done"]),
        ("cat > x <<'END'\nnginx\nEND\nuvicorn app", "sh", ["cat > x", "uvicorn app"]),
    ],
)
def test_commands_are_found_in_blocks(body, language, expected):
    assert [" ".join(words.split()) for words in _commands_of(body, is_console=language == "console")] == expected


def _lines():
    return [pytest.param(line, id=f"{line.page} {line.kind}") for line in staying()]


@pytest.mark.nightly
@pytest.mark.parametrize("line", _lines())
def test_what_a_documented_line_starts_listens_on_loopback_alone(line, tmp_path):
    """Each as it stands, with what it needs; every socket of it and its children, for ten seconds after it is ready."""
    with Terminals(tmp_path, "") as terminals:
        place = Place(tmp_path)
        process = place.start(line, terminals)
        if line.kind == "prefect worker":  # it asks, and nobody asks it
            terminals.wait(lambda: "started" in (tmp_path / "terminals.log").read_text(errors="replace"))
        elif line.kind == "bandana serve" and "--server" in line.words:
            terminals.wait(lambda: "Ctrl-C" in (tmp_path / "terminals.log").read_text(errors="replace"))
        else:
            wanted = {"dask worker": 6, "dask scheduler": 2}.get(line.kind, 1)
            terminals.wait(lambda: len(listening(process)) >= wanted)
        seen, deadline = set(), time.monotonic() + 10
        while time.monotonic() < deadline:
            seen |= listening(process)
            assert all(one.poll() is None for one in terminals.processes)
            time.sleep(0.2)
        assert not beyond_loopback(seen), (tmp_path / "terminals.log").read_text(errors="replace")
        assert seen or line.kind in ("prefect worker", "bandana serve")


def test_no_documented_line_writes_a_password():
    for path in pages():
        for value in re.findall(r"AUTH_STRING=(\S+)", path.read_text(encoding="utf-8")):
            assert re.match(r'"\$|\.\.\.|bandana:\$\(secret\)', value), f"{path.name}: {value}"


@pytest.fixture
def page(tmp_path):
    """The blocks of the page on scaling out, by their mark, on ports that are free, and terminals as it describes them."""
    text = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in _PORTS]
    ports = dict(zip(_PORTS, (probe.getsockname()[1] for probe in probes), strict=True))
    for probe in probes:
        probe.close()
    text = re.sub("|".join(rf"\b{port}\b" for port in _PORTS), lambda found: str(ports[found.group()]), text)
    text = text.replace("--nworkers auto", "--nworkers 2")
    marked = {mark: [one.body for one in blocks(text) if one.mark == mark] for mark in ("secrets", "clients", "listens")}
    assert [len(found) for found in marked.values()] == [1, 1, 3]
    with Terminals(tmp_path, "") as shell:
        shell.run(marked["secrets"][0])
    with Terminals(tmp_path / "bandana-keys", marked["clients"][0]) as terminals:
        yield terminals, marked["listens"], marked["secrets"][0], {int(name): port for name, port in ports.items()}


_ASK = """
import sys
from distributed import Client
with Client(sys.argv[1], timeout=60) as client:
    client.wait_for_workers(2, timeout=120)
    print(client.submit(lambda: 6 * 7).result(60))
"""


@pytest.mark.slow
def test_the_pages_dask_listens_on_loopback_alone_and_knows_its_own(page):
    pytest.importorskip("distributed")
    terminals, (_, scheduler, workers), secrets, ports = page
    places = [terminals.open(scheduler), terminals.open(workers)]
    address = f"tls://127.0.0.1:{ports[8786]}"
    assert terminals.run(f"python -c '{_ASK}' {address}") == "42\n"
    found = [listening(place) for place in places]
    assert {("127.0.0.1", ports[8786]), ("127.0.0.1", ports[8787])} <= found[0]
    assert len(found[1]) >= 6  # of the workers and their nannies, and the workers' status pages
    assert not beyond_loopback(set.union(*found))
    strangers = terminals.folder.parent / "stranger"
    strangers.mkdir()
    with Terminals(strangers, "") as stranger:
        stranger.run(secrets.partition("&& cd bandana-keys")[2])
    own = {name: str(terminals.folder / f"dask.{name}") for name in ("crt", "key")}
    others = {name: str(strangers / f"dask.{name}") for name in ("crt", "key")}
    closed = [port for _, port in set.union(*found) if not shows_pages(port)]
    assert len(closed) == 5  # the scheduler, two workers and their nannies
    for port in closed:
        assert admits(port, **own)
        assert not admits(port, **others)
        assert not admits(port)
    assert all(path.stat().st_mode & 0o077 == 0 for path in terminals.folder.iterdir() if path.name != "terminals.log")


@pytest.mark.nightly
def test_the_pages_prefect_listens_on_loopback_alone_and_refuses_strangers(page):
    terminals, (server, _, _), _, ports = page
    place = terminals.open(server)
    api = f"http://127.0.0.1:{ports[4200]}/api"
    terminals.wait(lambda: ("127.0.0.1", ports[4200]) in listening(place))
    assert is_refused(api)
    assert "No work pools found" in terminals.run("prefect work-pool ls")
    assert listening(place) == {("127.0.0.1", ports[4200])}


@pytest.mark.slow
def test_a_dask_cluster_of_this_machine_listens_on_loopback_alone_and_knows_its_own():
    pytest.importorskip("prefect_dask")
    from bandana.flows.running.executors import Executor, Resources, task_runner

    before = listening(os.getpid())
    with task_runner(
        Resources(executor=Executor.DASK, workers=1), Executor.LOCAL, "bandana.flows.suites.step_flows"
    ) as runner:
        assert runner.client.submit(lambda: 6 * 7).result(60) == 42
        found = listening(os.getpid()) - before
        assert len(found) >= 5
        assert ("127.0.0.1", 8787) not in found  # a port of its own: another cluster may have that one
        assert not beyond_loopback(found)
        closed = [port for _, port in found if not shows_pages(port)]
        assert len(closed) == 3  # the scheduler, the worker and its nanny
        assert not [port for port in closed if admits(port)]
