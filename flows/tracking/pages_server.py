"""MLflow's pages of one store on the loopback interface, without its Assistant, with prepared charts that stay, and reports.

MLflow 3.17.2 has no setting that turns its Assistant off: on loopback the chat panel opens by itself, and its routes may run
commands on this machine. Here the routes answer 404, and the page that starts MLflow's user interface closes the panel. The
same page keeps the prepared view of `bandana.flows.tracking.comparison_view` over a reload (see `first_screen.js`).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import warnings
from importlib import resources
from pathlib import Path

from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.types import ASGIApp

from bandana.flows.tracking.comparison_view import VIEW_KEY, comparison_state, search_fields
from bandana.flows.tracking.store.mlflow_private import server_environment

BACKEND, ARTIFACTS, SUITES = "MLFLOW_BACKEND_STORE_URI", "MLFLOW_DEFAULT_ARTIFACT_ROOT", "BANDANA_SUITES"
_CLOSED = "/mlflow/assistant"
_STYLE = "[data-assistant-ui]{display:none!important}"
_CACHED = (b"if-none-match", b"if-modified-since", b"range")  # of a page that was not ours
_DROPPED = ("content-length", "etag", "last-modified", "cache-control")
_SHOWN = (".html", ".pdf", ".json")
_SANDBOX = {
    "content-security-policy": "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:"
}


class FirstScreen(BaseHTTPMiddleware):
    """Middleware around MLflow's application: no Assistant, a first page with Bandana's script, and reports at `/reports`.

    Args:
      app: MLflow's application, which checks the Host header and the origin of each request.
      suites: folder of the suites whose reports are served, to this machine's browsers; None: none.
    """

    def __init__(self, app: ASGIApp, suites: Path | None = None) -> None:
        super().__init__(app)
        self._addition, self._suites = addition().encode(), suites and suites.resolve()

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """Answers one request."""
        path = request.scope["path"]
        if _CLOSED in path:
            return JSONResponse({"detail": "MLflow's Assistant is off in the pages of bandana ui"}, 404)
        if self._suites is not None and path.startswith("/reports/"):
            place = (self._suites / path.removeprefix("/reports/")).resolve()
            # Else another page could read it.
            is_ours = request.headers.get("host", "").rpartition(":")[0] in ("127.0.0.1", "localhost")
            if is_ours and place.suffix in _SHOWN and place.is_relative_to(self._suites) and place.is_file():
                return FileResponse(place, headers=_SANDBOX if place.suffix == ".html" else None)
            return JSONResponse({"detail": "there is no such report"}, 404)
        if path != "/" or request.method != "GET":
            return await call_next(request)
        request.scope["headers"] = [(name, value) for name, value in request.scope["headers"] if name not in _CACHED]
        response = await call_next(request)
        body = b"".join([part async for part in response.body_iterator])  # type: ignore[attr-defined]
        whole = body.replace(b"</head>", self._addition + b"</head>", 1) if response.status_code == 200 else body
        headers = {name: value for name, value in response.headers.items() if name not in _DROPPED}
        return Response(whole, response.status_code, headers | {"cache-control": "no-store"})


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
    return FirstScreen(app, Path(os.environ[SUITES]) if SUITES in os.environ else None)


def main() -> None:
    """Serves the pages until it is interrupted, in silence also while they start."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
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
