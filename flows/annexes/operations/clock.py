"""When things run: cron schedules, checked before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from bandana.flows.texts.mistakes import SpecError

_FIELDS = "minute hour day month weekday"


@dataclass(frozen=True)
class Times:
    """Cron schedules of the nightly benchmarks and the weekly audit, and their time zone, such as Europe/Berlin."""

    nightly: str = "0 2 * * *"
    weekly: str = "0 3 * * 0"
    timezone: str = "UTC"

    def check(self) -> None:
        """Refuses what is no schedule with SpecError, which names the option, its value, and what is allowed."""
        from prefect.client.schemas.schedules import CronSchedule
        from pydantic import ValidationError

        for option, cron in (("--nightly", self.nightly), ("--weekly", self.weekly)):
            try:
                CronSchedule(cron=cron)
            except ValidationError as error:
                raise SpecError(f'{option}: {cron!r} is not a cron schedule: {_FIELDS}, such as "0 2 * * *"') from error
        try:
            CronSchedule(cron=self.nightly, timezone=self.timezone)
        except ValidationError as error:
            raise SpecError(f"--timezone: {self.timezone!r} is not a time zone, such as UTC or Europe/Berlin") from error
