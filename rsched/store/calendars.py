"""Holiday calendars of teams: named lists of dates, and date ranges, on which schedules that name them do not fire.

Authority: the calendar's version, as for jobs. A changed calendar leaves a note for the schedulers to compute its jobs anew
(see `refreshes`). Errors: ShardClosed, Unavailable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from rsched.store.connection import Part
from rsched.store.replies import VerbReply, call_verb


class Exclusions(NamedTuple):
    """A team's calendar: its version, and its dates and date ranges as ScheduleSpec.exclude has them."""

    version: int
    entries: list[str]


class Calendars(Part):
    """Writes and reads the holiday calendars of teams."""

    async def put(self, team: str, name: str, *, expect: int, entries: Sequence[str] | None) -> VerbReply:
        """Writes a team's calendar.

        Args:
            team: The team.
            name: The calendar's name, unique within the team.
            expect: The version that it has now, 0 where there is none yet.
            entries: Its dates and date ranges; None deletes it.

        Returns:
            Tags: ok, missing, conflict.
        """
        body = b"" if entries is None else msgspec.msgpack.encode(list(entries))
        return await call_verb(self._redis, "put_calendar", team=team, name=name, expect=expect, body=body)

    async def get_many(self, team: str, names: Iterable[str]) -> dict[str, Exclusions]:
        """Returns the team's calendars of these names, as far as there are such, by name."""
        wanted = sorted(names)
        if not wanted:
            return {}
        values = await self._redis.ask(
            self._redis.client.hmget(self._redis.keys.calendars, [f"{team}/{name}" for name in wanted])
        )
        calendars = {}
        for name, value in zip(wanted, values, strict=True):
            version, _, body = (value or b"").partition(b"\n")
            if body:
                calendars[name] = Exclusions(int(version), msgspec.msgpack.decode(body, type=list[str]))
        return calendars
