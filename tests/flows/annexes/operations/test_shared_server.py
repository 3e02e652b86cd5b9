"""`bandana serve --server`: what is refused before anything starts, and what a server is asked for its password."""

import base64
from http.server import BaseHTTPRequestHandler

import pytest
from http_answers import answering
from typer.testing import CliRunner

from bandana.flows.annexes.operations.shared_server import check_address, connected
from bandana.flows.cli import app
from bandana.flows.servers.prefect_health import ServerError
from bandana.flows.texts.mistakes import SpecError

LOGIN = "bandana:a secret"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("127.0.0.1:4200", "is not the address of Prefect's API, such as http://127.0.0.1:4200/api"),
        ("ftp://127.0.0.1/api", "is not the address of Prefect's API"),
        ("http://", "is not the address of Prefect's API"),
        ("http://bandana:word@127.0.0.1:4200/api", "no password belongs into the address"),
        ("http://prefect.example.org/api", "beyond this machine and not encrypted"),
        ("http://10.0.0.7:4200/api", "beyond this machine and not encrypted"),
        ("http://127.0.0.1.example.org/api", "beyond this machine and not encrypted"),
    ],
)
def test_an_address_that_a_password_must_not_travel_to_is_refused(address, told, tmp_path):
    with pytest.raises(SpecError, match=told) as refused:
        check_address(address, insecure=False)
    assert "word" not in str(refused.value).replace("password", "")
    done = CliRunner().invoke(app, ["serve", "--server", address, "--data", str(tmp_path / "data")])
    assert done.exit_code == 2
    assert told in done.stderr
    assert not (tmp_path / "data").exists()


def test_addresses_of_this_machine_and_encrypted_ones_are_taken():
    for address in ("http://127.0.0.1:4200/api", "http://localhost:4200/api", "http://[::1]/api", "https://example.org/api"):
        check_address(address, insecure=False)
    check_address("http://prefect:4200/api", insecure=True)


@pytest.fixture
def server():
    """Something that asks for the login as Prefect's server does, and all paths that it was asked for."""

    paths = []

    class Asked(BaseHTTPRequestHandler):
        def do_GET(self):
            self._answer(200)

        def do_POST(self):
            wanted = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
            self._answer(404 if "elsewhere" in self.path else 200 if self.headers["Authorization"] == wanted else 401)

        def _answer(self, code):
            paths.append(self.path)
            self.send_response(code)
            self.end_headers()

    with answering(Asked) as url:
        yield url, paths


def test_a_server_is_asked_for_its_health_and_for_the_login(server, monkeypatch):
    url, paths = server
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", LOGIN)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    with connected(f"{url}/api") as pages:
        assert pages == url
    assert paths == ["/api/health", "/api/flows/count"]
    for login in ("bandana:another", ""):
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", login)
        with (
            pytest.raises(ServerError, match="denies access: set PREFECT_API_AUTH_STRING") as refused,
            connected(f"{url}/api"),
        ):
            pass
        assert "another" not in str(refused.value)
    with pytest.raises(ServerError, match="is no Prefect server: it answers 404"), connected(f"{url}/elsewhere"):
        pass
    with pytest.raises(ServerError, match="does not answer"), connected("http://127.0.0.1:9/api"):
        pass
