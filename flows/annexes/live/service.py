"""A live policy as a service of this machine: HTTP on the loopback interface, with a token, and a page of releases."""

from __future__ import annotations

import hmac
import json
import math
import sys
from collections import Counter
from collections.abc import Mapping

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from jinja2 import Environment
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware

from bandana.flows.annexes.live.estimates import ArmMean, arm_means
from bandana.flows.annexes.live.policy import ChoiceError, Policy
from bandana.flows.annexes.live.store import StoreError
from bandana.flows.servers.loopback import HOST
from bandana.privacy_core import BudgetExceeded

_HOSTS = [HOST, "localhost", "[::1]"]
_LONGEST = 200
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="10"><title>{{ router.algorithm }} - Bandana live</title><style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .8rem .3rem 0; }
tr + tr { border-top: 1px solid #ddd; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { position: relative; height: .8rem; background: #eee; min-width: 7rem; } .bar * { position: absolute; height: 100%; }
.bar span { background: #8fb3d9; } .bar b { width: 3px; margin-left: -1px; background: #123f70; } p { color: #444; }
@media (max-width: 40rem) { .bar { display: none; } }
</style></head><body>
<h1>{{ router.algorithm }}</h1>
<table>
<tr><th>claimed</th><td>{{ privacy.claimed }}</td></tr>
<tr><th>accounted</th><td>{{ privacy.accounted }}, after {{ privacy.n_releases }} releases</td></tr>
{% if privacy.left is not none %}<tr><th>left in book {{ router.book }}</th>
<td>one run of at most epsilon {{ "%.3g"|format(privacy.left) }}</td></tr>{% endif %}
<tr><th>noise</th><td>{{ privacy.noise }}</td></tr>
<tr><th>persons asked for</th><td>{{ counts.asked }}, of whom {{ counts.entered }} entered</td></tr>
{% if regret is not none %}<tr><th>regret, by released means</th><td>{{ "%.4g"|format(regret) }}</td></tr>{% endif %}
</table>
{% if means %}
<h2>Arms</h2>
<table><tr><th>arm</th><th>rewards</th><th>mean</th><th>95 % interval</th><th></th></tr>
{% for mean in means %}<tr><td>{{ mean.arm }}</td><td class="number">{{ mean.n_rewards }}</td>
{% if mean.n_rewards %}<td class="number">{{ "%.3f"|format(mean.mean) }}</td>
<td class="number">{{ "%.3f"|format(mean.low) }} to {{ "%.3f"|format(mean.high) }}</td>
<td><div class="bar"><span style="left:{{ place(mean.low) }}%;width:{{ place(mean.high) - place(mean.low) }}%"></span>
<b style="left:{{ place(mean.mean) }}%"></b></div></td>
{% else %}<td colspan="3">nothing released yet</td>{% endif %}</tr>
{% endfor %}</table>
<p>Each arm's intervals hold at all times together with probability 95 %. A person who did not answer counts as
{{ "%g"|format(router.missing_reward) }}.</p>
{% else %}<p>This policy decides from contexts: it releases no means of arms.</p>{% endif %}
<p>Everything here follows from noisy releases and from the times of asks. Regret by released means adds up, over the rewards
that were released, how far their arm's released mean is below the largest one.</p>
</body></html>
"""


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
        return HTMLResponse(_html(policy))

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


def _html(policy: Policy) -> str:
    """The page, in one file; it loads nothing."""
    router = policy.router
    low, high = router.reward_range
    means = [] if router.is_contextual else arm_means(policy)

    def place(value: float) -> float:
        return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 2)

    template = Environment(autoescape=True).from_string(_PAGE)
    facts = {"router": router, "privacy": policy.privacy(), "counts": policy.counts(), "means": means}
    return template.render(**facts, regret=regret_by_means(means), place=place)


def regret_by_means(means: list[ArmMean]) -> float | None:
    """Released rewards times the distance of their arm's released mean from the largest; None before all arms have one."""
    if not means or any(math.isnan(mean.mean) for mean in means):
        return None
    best = max(mean.mean for mean in means)
    return math.fsum(mean.n_rewards * (best - mean.mean) for mean in means)
