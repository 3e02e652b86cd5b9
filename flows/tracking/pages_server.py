"""MLflow's pages of one store on the loopback interface, without its Assistant, and with prepared charts that stay.

MLflow 3.17.2 has no setting that turns its Assistant off: on loopback the chat panel opens by itself, and its routes may run
commands on this machine. Here the routes answer 404, and the page that starts MLflow's user interface closes the panel. The
same page keeps the prepared view of `bandana.flows.tracking.comparison_view` over a reload (see `first_screen.js`).
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import resources
from typing import Any

from bandana.flows.tracking.comparison_view import VIEW_KEY, comparison_state, search_fields
from bandana.flows.tracking.store.mlflow_private import server_environment

BACKEND, ARTIFACTS = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_DEFAULT_ARTIFACT_ROOT"
_CLOSED = "/mlflow/assistant"
_STYLE = "[data-assistant-ui]{display:none!important}"
_CACHED = (b"if-none-match", b"if-modified-since", b"range")  # of a page that was not ours

Message = MutableMapping[str, Any]
"""A message of ASGI."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class FirstScreen:
    """An ASGI application around MLflow's: no Assistant, and a first page with Bandana's script.

    Args:
      app: MLflow's application, which checks the Host header and the origin of each request.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._addition = addition().encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif _CLOSED in scope["path"]:
            await _refuse(send)
        elif scope["path"] == "/" and scope["method"] == "GET":
            kept = [(name, value) for name, value in scope["headers"] if name not in _CACHED]
            await self._app({**scope, "headers": kept}, receive, self._adding(send))
        else:
            await self._app(scope, receive, send)

    def _adding(self, send: Send) -> Send:
        """Holds the page back until it is whole, and sends it with the addition at the end of its head."""
        start: Message = {}
        body = bytearray()

        async def forward(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body"):
                return
            whole = (
                bytes(body).replace(b"</head>", self._addition + b"</head>", 1) if start["status"] == 200 else bytes(body)
            )
            dropped = (b"content-length", b"etag", b"last-modified", b"cache-control")
            headers = [(name, value) for name, value in start["headers"] if name.lower() not in dropped]
            headers += [(b"content-length", str(len(whole)).encode()), (b"cache-control", b"no-store")]
            await send({**start, "headers": headers})
            await send({"type": "http.response.body", "body": whole})

        return forward


async def _refuse(send: Send) -> None:
    text = b'{"detail": "MLflow\'s Assistant is off in the pages of bandana ui"}'
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def addition() -> str:
    """Text that is added to the head of MLflow's page: a style sheet, the view as data, and the script."""
    state = comparison_state()
    view = json.dumps({"key": VIEW_KEY, "fields": search_fields(state), "state": state}).replace("<", "\\u003c")
    script = resources.files("bandana.flows.tracking").joinpath("first_screen.js").read_text(encoding="utf-8")
    return (
        f'<style>{_STYLE}</style><script id="bandana-view" type="application/json">{view}</script><script>{script}</script>'
    )


def create_app() -> FirstScreen:
    """MLflow's application for the store that the environment names, behind `FirstScreen`.

    The store is laid out or found whole first, so that a broken one ends the start and not each request.
    """
    from mlflow.server import constants

    store, artifacts = os.environ[BACKEND], os.environ[ARTIFACTS]
    os.environ |= {
        constants.BACKEND_STORE_URI_ENV_VAR: store,
        constants.REGISTRY_STORE_URI_ENV_VAR: store,
        constants.ARTIFACT_ROOT_ENV_VAR: artifacts,
    } | server_environment()
    from mlflow.server.fastapi_app import app
    from mlflow.server.handlers import initialize_backend_stores

    initialize_backend_stores(store, store, artifacts)
    return FirstScreen(app)


def main() -> None:
    """Serves the pages until it is interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    # Its own remark on how MLflow is built: nothing that a user could do anything about.
    warnings.filterwarnings("ignore", message="starlette.middleware.wsgi is deprecated")
    import uvicorn

    uvicorn.run(create_app(), host=arguments.host, port=arguments.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
