"""A live policy as a service of this machine: HTTP on the loopback interface, with a token."""

from __future__ import annotations

import hmac
import json
import sys
from collections import Counter
from collections.abc import Mapping

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware

from bandana.flows.annexes.live import page
from bandana.flows.annexes.live.policy import ChoiceError, Policy
from bandana.flows.annexes.live.store import StoreError
from bandana.flows.servers.loopback import HOST
from bandana.privacy_core import BudgetExceeded

_HOSTS = [HOST, "localhost", "[::1]"]
_LONGEST = 200


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Ask(_Body):
    """The next person."""

    context: list[list[float]] | None = Field(None, description="A vector for each action, where the policy takes contexts.")
    person: str | None = Field(None, max_length=_LONGEST, description="Binds the reward to this person.")


class Tell(_Body):
    """A reward, any time later."""

    id: str = Field(max_length=_LONGEST, description="Name of the choice.")
    reward: float = Field(description="Clipped to the declared range; never logged.")
    person: str | None = Field(None, max_length=_LONGEST, description="Whom the choice was bound to, where it was.")


class Chosen(BaseModel):
    """Answer of `ask`."""

    id: str
    action: int


class Fate(BaseModel):
    """Answer of `tell`: kept, duplicate or late."""

    fate: str


def log(line: Mapping[str, object]) -> None:
    """Writes one structured line to standard output; no caller gives it a reward or a context."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def service(policy: Policy, token: str) -> FastAPI:
    """The application.

    Args:
      policy: opened with `World(publish=log)`, so that asks, tells and releases are logged.
      token: that every request must bring: `Authorization: Bearer TOKEN`, or for pages `?token=TOKEN`.
    """
    app = FastAPI(title="Bandana live", docs_url=None, redoc_url=None)  # their pages would load scripts of others
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS)
    fates: Counter[str] = Counter()

    def allowed(request: Request) -> None:
        given = request.headers.get("authorization", "").removeprefix("Bearer ") or request.query_params.get("token", "")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise HTTPException(401, "token: missing or wrong; send Authorization: Bearer TOKEN")

    app.add_exception_handler(ChoiceError, lambda _, error: _refused(422, error))
    app.add_exception_handler(StoreError, lambda _, error: _refused(503, error))
    app.add_exception_handler(BudgetExceeded, lambda _, error: _refused(409, error))

    def ask(body: Ask) -> Chosen:
        """An action for the next person; it is on disk when this answers."""
        choice = policy.ask(body.context, person=body.person)
        return Chosen(id=choice.id, action=choice.action)

    def tell(body: Tell) -> Fate:
        """Stores a reward; it is on disk when this answers."""
        fate = policy.tell(body.id, body.reward, person=body.person)
        fates[fate] += 1
        return Fate(fate=fate)

    def privacy() -> dict[str, str | float | int | None]:
        """Claimed, accounted, and left in the book."""
        return policy.privacy()._asdict()

    def evidence() -> JSONResponse:
        """Settings and all releases, for an auditor."""
        return JSONResponse(policy.evidence())

    def metrics() -> PlainTextResponse:
        """Counts and budgets in Prometheus' text form."""
        return PlainTextResponse(_metrics(policy, fates))

    def shown() -> HTMLResponse:
        """Released means of the arms with intervals, counts and budgets."""
        return HTMLResponse(page.html(policy))

    guarded = [Depends(allowed)]
    for path, call in {"/ask": ask, "/tell": tell}.items():
        app.add_api_route(path, call, methods=["POST"], dependencies=guarded)
    for path, view in {"/privacy": privacy, "/evidence": evidence, "/metrics": metrics, "/": shown}.items():
        app.add_api_route(path, view, methods=["GET"], dependencies=guarded, response_model=None)
    return app


def _refused(status: int, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status)


def _metrics(policy: Policy, fates: Counter[str]) -> str:
    registry, privacy = CollectorRegistry(), policy.privacy()
    for name, count in policy.counts().items():
        Gauge(f"bandana_live_{name}", f"Number of records {name}, of all processes", registry=registry).set(count)
    tells = Gauge("bandana_live_tells", "Rewards told to this process, by fate", ["fate"], registry=registry)
    for fate in ("kept", "duplicate", "late"):
        tells.labels(fate).set(fates[fate])
    if privacy.left is not None:
        Gauge("bandana_live_book_left", "Largest epsilon that the book still covers", registry=registry).set(privacy.left)
    text: str = generate_latest(registry).decode()
    return text
