"""Alerts of a service: Prefect automations that tell a webhook, Slack or a mailbox what went wrong, or that nothing ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import UUID

from bandana.flows.texts.mistakes import SpecError

if TYPE_CHECKING:
    from prefect.events.schemas.automations import EventTrigger, Posture

BLOCK = "bandana-alert"
PREFIX = "Bandana alert: "
GRACE = timedelta(hours=6)
"""Time after the longest gap between two scheduled runs silence becomes an alert."""
_MOST_AUTOMATIONS = 200  # what Prefect's server lists at once
_BROKEN = ("Failed", "Crashed", "TimedOut")
_ENDED = (*_BROKEN, "Completed", "Cancelled")
_SLACK = ("hooks.slack.com", "hooks.slack-gov.com")
_BODY = "{{ flow_run.state.message }}\n{{ flow_run|ui_url }}"


@dataclass(frozen=True)
class Watched:
    """A deployment whose runs are watched.

    Attributes:
      id: of the deployment.
      silence: no run ending for so long is an alert.
    """

    id: str
    silence: timedelta


def check(url: str) -> None:
    """Refuses an address that no message can be sent to, with SpecError; nothing is sent."""
    from apprise import Apprise

    parts = urlsplit(url)
    is_webhook = parts.scheme in ("http", "https")
    if not (bool(parts.hostname) if is_webhook else Apprise().add(url)):
        # The address itself may hold a password.
        raise SpecError(
            f"--alert: {parts.scheme or 'no scheme'}: must be a webhook (https://...), or an address that apprise knows, "
            "such as mailto://USER:PASSWORD@HOST?to=WHOM or slack://..."
        )


def longest_gap(cron: str, timezone: str) -> timedelta:
    """The longest time between two of the next scheduled runs, over at least two weeks of days or a year of weeks."""
    import asyncio

    from prefect.server.schemas.schedules import CronSchedule

    dates = asyncio.run(CronSchedule(cron=cron, timezone=timezone).get_dates(n=60))
    return timedelta(seconds=max((later - earlier).total_seconds() for earlier, later in pairwise(dates)))


def watch(url: str | None, watched: Mapping[str, Watched]) -> None:
    """Replaces all alerts that the server has by those of these deployments; without a URL, none are left.

    Two automations a deployment: one tells of a run that failed or crashed, which an audit that did not pass and a
    regression make it do; the other that no run has ended for too long. Prefect's server sends them while it runs.

    Args:
      url: a webhook, which gets JSON with `subject`, `body` and `text`, or an address that apprise knows.
      watched: name of the deployment -> what to watch.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.sorting import AutomationSort
    from prefect.events.schemas.automations import Posture

    with get_client(sync_client=True) as client:
        for stored in client.read_automations(sort=AutomationSort.NAME_ASC, limit=_MOST_AUTOMATIONS):
            if stored.name.startswith(PREFIX):
                client.delete_automation(stored.id)
    if url is None:
        return
    block = _block(url)
    for name, deployment in watched.items():
        broken = _trigger(deployment, _BROKEN, Posture.Reactive, timedelta(0))
        subject = f"Bandana: {name}: {{{{ flow_run.name }}}} is {{{{ flow_run.state.name }}}}"
        _create(f"{name} failed", "A run failed or crashed.", broken, block, subject, _BODY)
        silent = _trigger(deployment, _ENDED, Posture.Proactive, deployment.silence)
        body = f"No run of {name} has ended for {deployment.silence / timedelta(hours=1):.4g} hours."
        _create(f"no {name}", "No run ended for too long.", silent, block, f"Bandana: {name} did not run", body)


def _block(url: str) -> UUID:
    """Id of the stored block that sends; the address is stored as a secret."""
    from prefect.blocks.notifications import CustomWebhookNotificationBlock, SlackWebhook

    block: Any  # its methods are synchronous here, whatever their types say
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and parts.hostname not in _SLACK:
        text = {"text": "{{subject}}\n{{body}}", "subject": "{{subject}}", "body": "{{body}}"}
        block = CustomWebhookNotificationBlock(name=BLOCK, url="{{address}}", json_data=text, secrets={"address": url})
    else:
        block = SlackWebhook(url=url)  # takes every address that apprise knows
    stored: UUID = block.save(BLOCK, overwrite=True)
    return stored


def _trigger(deployment: Watched, states: tuple[str, ...], posture: Posture, within: timedelta) -> EventTrigger:
    from prefect.events.schemas.automations import EventTrigger
    from prefect.events.schemas.events import ResourceSpecification

    related = {"prefect.resource.id": [f"prefect.deployment.{deployment.id}"], "prefect.resource.role": "deployment"}
    return EventTrigger(
        expect={f"prefect.flow-run.{state}" for state in states},
        match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
        match_related=ResourceSpecification(related),
        posture=posture,
        threshold=1,
        within=within,
    )


def _create(name: str, description: str, trigger: EventTrigger, block: UUID, subject: str, body: str) -> None:
    from prefect.automations import Automation
    from prefect.events.actions import SendNotification

    action = SendNotification(block_document_id=block, subject=subject, body=body)
    Automation(name=f"{PREFIX}{name}", description=description, trigger=trigger, actions=[action]).create()
