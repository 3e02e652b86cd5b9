"""MLflow's first screen in `bandana ui`: no Assistant, and prepared charts that stay over a reload."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bandana.flows.servers.loopback import why_unusable
from bandana.flows.tracking.comparison_view import VIEW_KEY, comparison_state, search_fields
from bandana.flows.tracking.pages_server import FirstScreen, addition
from bandana.flows.tracking.store.address import URI_VARIABLE
from bandana.flows.tracking.tracker import CellRecord, Tracker

CHROMIUM = "/usr/bin/chromium"


def ask(
    app: FirstScreen, path: str, method: str = "GET", headers: tuple[tuple[bytes, bytes], ...] = ()
) -> tuple[int, dict, str]:
    """Status, headers and body of one request."""
    sent: list[Any] = []

    messages = [{"type": "http.request", "body": b""}]

    async def receive() -> dict:
        if not messages:
            await asyncio.Event().wait()  # the browser stays
        return messages.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app({"type": "http", "path": path, "method": method, "headers": [*headers]}, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], dict(sent[0]["headers"]), body.decode()


def inner(status: int = 200, pieces: tuple[bytes, ...] = (b"<html><head></he", b"ad></html>")) -> tuple[Any, list[Any]]:
    """An application that answers everything with these pieces, and what it was asked."""
    asked: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope)
        headers = [(b"content-length", b"99"), (b"etag", b"x"), (b"content-type", b"text/html")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for i, piece in enumerate(pieces):
            await send({"type": "http.response.body", "body": piece, "more_body": i + 1 < len(pieces)})

    return app, asked


@pytest.mark.parametrize(
    "path", ["/ajax-api/3.0/mlflow/assistant/config", "/prefix/ajax-api/3.0/mlflow/assistant/message", "/mlflow/assistant"]
)
def test_the_assistants_routes_are_closed(path: str) -> None:
    app, asked = inner()
    for method in ("GET", "POST"):
        status, _, body = ask(FirstScreen(app), path, method)
        assert status == 404
        assert "Assistant is off" in json.loads(body)["detail"]
    assert asked == []


def test_the_assistant_has_no_other_route_in_the_installed_mlflow() -> None:
    from mlflow.server.assistant.api import assistant_router

    paths = [route.path for route in assistant_router.routes]
    assert len(paths) > 5
    assert all("/mlflow/assistant" in path for path in paths)


def test_the_first_page_gets_the_script_once_and_nothing_else_changes() -> None:
    app, asked = inner()
    status, headers, body = ask(FirstScreen(app), "/", headers=((b"if-none-match", b"x"), (b"host", b"127.0.0.1")))
    assert status == 200
    assert body == f"<html><head>{addition()}</head></html>"
    assert int(headers[b"content-length"]) == len(body.encode())
    assert b"etag" not in headers
    assert asked[0]["headers"] == [(b"host", b"127.0.0.1")], "an answer from another server's cache would have no script"
    assert ask(FirstScreen(app), "/static-files/x.js")[2] == "<html><head></head></html>"
    refused, _ = inner(403, (b"Invalid Host header </head>",))
    assert ask(FirstScreen(refused), "/")[2] == "Invalid Host header </head>"


def test_reports_are_served_to_this_machine_alone_and_nothing_else_of_the_folder(tmp_path: Path) -> None:
    suites = tmp_path / "suites"
    (suites / "smoke" / "audits").mkdir(parents=True)
    for name in ("report.html", "audits/ucb.html", "spec.yaml"):
        (suites / "smoke" / name).write_text(f"<p>{name}</p>")
    (tmp_path / "secret.html").write_text("secret")
    (suites / "link.html").symlink_to(tmp_path / "secret.html")
    app, asked = inner()
    screen, here = FirstScreen(app, suites), ((b"host", b"127.0.0.1:5000"),)
    status, headers, body = ask(screen, "/reports/smoke/report.html", headers=here)
    assert (status, body) == (200, "<p>report.html</p>")
    assert headers[b"content-type"].startswith(b"text/html")
    assert headers[b"content-security-policy"].startswith(b"sandbox; default-src 'none'")
    assert ask(screen, "/reports/smoke/audits/ucb.html", headers=here)[0] == 200
    for path in ("smoke/spec.yaml", "smoke/none.html", "../secret.html", "link.html", "/etc/hostname.html", "smoke"):
        assert ask(screen, f"/reports/{path}", headers=here)[0] == 404
    for host in (b"evil.example:5000", b"evil.example", b""):
        assert ask(screen, "/reports/smoke/report.html", headers=((b"host", host),))[0] == 404
    assert asked == []
    assert ask(FirstScreen(app), "/reports/smoke/report.html", headers=here)[2].startswith("<html>")


def test_the_script_names_what_the_installed_mlflow_stores() -> None:
    """Keys of the browser's storage, and the search fields that keep MLflow from loading a shared view."""
    import mlflow

    folder = Path(mlflow.__file__).parent / "server" / "js" / "build" / "static" / "js"
    shipped = "".join(path.read_text(encoding="utf-8") for path in (*folder.glob("main.*.js"), *folder.glob("*.chunk.js")))
    script = addition()
    for key in re.findall(r'"(mlflow\.[a-zA-Z.]+)_v1"', script):
        assert f'key:"{key}",version:1' in shipped
    assert len(re.findall(r'"mlflow\.[a-zA-Z.]+_v1"', script)) == 3
    fields = ",".join(f'"{name}"' for name in search_fields(comparison_state()))
    order = '"searchFilter","orderByKey","orderByAsc","startTime","lifecycleFilter","modelVersionFilter","datasetsFilter"'
    assert f"[{order}]" in shipped
    assert sorted(fields.split(",")) == sorted(order.split(","))
    assert '"data-assistant-ui"' in shipped
    assert '"MLflowLocalStorage"' in shipped
    assert '"ExperimentPage"' in shipped
    assert 'version="1.1"' in shipped


def test_the_search_fields_are_written_as_mlflow_writes_them() -> None:
    fields = search_fields(comparison_state())
    assert fields["orderByAsc"] == "true"
    assert base64.b64decode(fields["datasetsFilter"]) == b"[]"
    assert fields["searchFilter"] == "tags.role = 'cell' and tags.current = 'true'"


# --- a real server, and a real browser ------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The comparison page of a tracked suite on a server of its own."""
    monkeypatch.delenv(URI_VARIABLE, raising=False)
    tracker = Tracker(tmp_path)
    tracker.experiment("demo", "text")
    for name in ("ucb", "klucb"):
        tracker.log_cell(
            "demo", CellRecord(name, name, metrics={"regret/final": 2.0}, curves={"regret/mean": ([1, 9], [1, 2])})
        )
    port = next(port for port in range(5100, 5200) if not why_unusable(port))
    environment = {**os.environ, **tracker.server_environment(), "HOME": str(tmp_path)}
    with subprocess.Popen([sys.executable, *tracker.server_arguments(port)], env=environment) as server:
        try:
            deadline = time.monotonic() + 180
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                except OSError:
                    assert server.poll() is None, "the server ended"
                    assert time.monotonic() < deadline
                    time.sleep(0.5)
            yield tracker.compare_url("demo", f"http://127.0.0.1:{port}")
        finally:
            server.terminate()


@pytest.mark.slow
def test_the_pages_answer_without_an_assistant_and_to_their_own_host_alone(served: str) -> None:
    base = served.partition("#")[0]
    page = urllib.request.urlopen(base).read().decode()
    assert page.count("bandana-view") == 2, "once as data, once in the script"
    assert "main." in page
    for path, headers in (("ajax-api/3.0/mlflow/assistant/config", {}), ("", {"Host": "example.org"})):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(base + path, headers=headers))
        assert refused.value.code == (403 if headers else 404)
    searched = urllib.request.urlopen(f"{base}ajax-api/2.0/mlflow/experiments/get-by-name?experiment_name=demo")
    assert json.loads(searched.read())["experiment"]["name"] == "demo"


@pytest.mark.nightly
@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="needs a browser")
def test_in_a_browser_the_prepared_charts_survive_a_reload_and_back(served: str) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})

        def is_prepared() -> None:
            page.get_by_text("Details", exact=False).last.wait_for(timeout=60_000)
            page.get_by_text("Parameters and results", exact=False).first.wait_for(timeout=60_000)
            assert f"viewStateShareKey={VIEW_KEY}" in page.url
            assert page.locator("[data-assistant-ui]").locator("visible=true").count() == 0
            assert page.get_by_text("MLflow Assistant").locator("visible=true").count() == 0

        page.goto(served)
        is_prepared()
        assert "searchFilter" in page.url, "MLflow has written its search fields: the address is the long one"
        page.reload()
        is_prepared()
        page.locator('a[href*="/runs/"]').first.click()
        page.wait_for_url(re.compile(r"/runs/[0-9a-f]{32}"), timeout=60_000)
        page.go_back()
        is_prepared()
        browser.close()
