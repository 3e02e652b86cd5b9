"""The login of the served Prefect: what its clients and its pages are given."""

import subprocess

from bandana.flows.annexes.operations.commands import _from_file
from bandana.flows.annexes.operations.service import service_settings
from bandana.flows.servers import login


def test_a_served_prefect_answers_its_own_pages_and_who_knows_the_login():
    found = service_settings(4300, "me:secret")
    assert found["PREFECT_SERVER_API_AUTH_STRING"] == found["PREFECT_API_AUTH_STRING"] == "me:secret"
    assert found["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] == "http://127.0.0.1:4300,http://localhost:4300"
    assert found["PREFECT_SERVER_API_HOST"] == "127.0.0.1"
    import prefect.settings

    assert not [name for name in found if not hasattr(prefect.settings, name)], "Prefect knows no setting of that name"
    assert not hasattr(prefect.settings, "PREFECT_SERVER_API_AUTH_STRINGS")


def test_the_shown_command_reads_the_login_from_its_file(tmp_path):
    path = tmp_path / "it's [v1] (final) $HOME" / "login"
    known = login.keep(path)
    shown = _from_file(login.CLIENT, path)
    assert known not in shown
    done = subprocess.run(["bash", "-c", f"export {shown}; printenv {login.CLIENT}"], capture_output=True, text=True)
    assert done.stdout == known + "\n"
