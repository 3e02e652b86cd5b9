"""A web page of somebody else, in a browser on the machine of a server: what it asks, and what it gets."""

import base64
import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

FOREIGN = "https://elsewhere.example"


class Answer(NamedTuple):
    status: int
    headers: Any  # names in any case
    body: Any


def ask(api, path, body=None, *, login=None, method=None, **headers):
    """One request; with `login`, user:password, as Prefect's clients send it."""
    if login is not None:
        headers["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(api + path, data, {"Content-Type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=240) as answer:
            found = answer.read()
            is_json = answer.headers.get_content_type() == "application/json"
            return Answer(answer.status, answer.headers, json.loads(found) if is_json else found)
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers, error.read())


def start_a_script(api, script, **how):
    """Three requests that have whoever serves flows run a shell script: a flow, a deployment with the script, a run of it.

    Returns:
      the answers, up to the first that refuses.
    """
    answers = [ask(api, "/flows/", {"name": "nightly-benchmark"}, **how)]
    for path, body in (
        ("/deployments/", {
            "name": "small", "entrypoint": "flow.py:flow",
            "pull_steps": [{"prefect.deployments.steps.run_shell_script": {"script": script}}],
        }),
        ("/deployments/{}/create_flow_run", {"state": {"type": "SCHEDULED"}}),
    ):  # fmt: skip
        if answers[-1].status >= 400:
            break
        before = answers[-1].body["id"]
        answers.append(
            ask(api, path.format(before), {**body, **({"flow_id": before} if path == "/deployments/" else {})}, **how)
        )
    return answers


def is_refused(api):
    """Asserts that every step of the attack is refused without the login, and that a browser is granted nothing."""
    foreign = {"Origin": FOREIGN}
    steps = (
        ("/flows/", {"name": "nightly-benchmark"}),
        ("/deployments/", {"name": "small", "flow_id": "00000000-0000-0000-0000-000000000000"}),
        ("/deployments/00000000-0000-0000-0000-000000000000/create_flow_run", {}),
        ("/deployments/filter", {}),
        ("/admin/settings", None),
        ("/csrf-token?client=me", None),
        ("/openapi.json", None),
    )
    for path, body in steps:
        for headers in (foreign, {**foreign, "Content-Type": "text/plain"}, {}):
            answer = ask(api, path, body, **headers)
            assert answer.status == 401, (path, answer)
            assert "Access-Control-Allow-Origin" not in answer.headers, path
        assert ask(api, path, body, login="bandana:guess").status == 401, path
        preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
        answer = ask(api, path, method="OPTIONS", **foreign, **preflight)
        assert answer.status == 400, (path, answer)
        assert "Access-Control-Allow-Origin" not in answer.headers, path
    answer = ask(api, "/flows/", method="OPTIONS", Origin=api.removesuffix("/api"), **preflight)
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, api.removesuffix("/api"))
    return True


def is_refused_a_stream(api, login):
    """Asserts that events stream to who knows the login alone: websockets know no CORS."""
    from websockets.exceptions import ConnectionClosed, InvalidStatus
    from websockets.sync.client import connect

    address = api.replace("http:", "ws:") + "/events/out"

    def greeted(token, **options):
        with connect(address, open_timeout=60, **options) as stream:
            stream.send(json.dumps({"type": "auth", "token": token}))
            return json.loads(stream.recv(timeout=60))["type"]

    for token, options in ((login, {}), ("guess", {"subprotocols": ["prefect"]}), (None, {"subprotocols": ["prefect"]})):
        try:
            found = greeted(token, origin=FOREIGN, **options)
        except (ConnectionClosed, InvalidStatus):
            continue
        raise AssertionError(f"{token} {options}: {found}")
    assert greeted(login, subprotocols=["prefect"]) == "auth_success"
    return True
