# Generated from rsched/client/aio/schedules.py by tools/sync_client.py (`make docs`); do not edit.
"""Schedules without a job: when they run, what is to come, and the calendars that they exclude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rsched.client.bodies import Day, Instant, given
from rsched.client.request import calendar_path, delete, get, post, put
from rsched.client.sync.connection import Connection
from rsched.client.views import CalendarView, ForecastView, Page, Preview
from rsched.core.jobs.model import Ack, ScheduleSpec


class Schedules:
    """The part of a client that is about schedules and calendars."""

    _connection: Connection

    def preview_schedule(
        self,
        schedule: ScheduleSpec | Mapping[str, Any] | Sequence[ScheduleSpec | Mapping[str, Any]],
        *,
        start: Instant | None = None,
        count: int = 10,
        team: str | None = None,
        name: str | None = None,
    ) -> Preview:
        """Computes when a schedule, or several as one, would run.

        Args:
            schedule: As a job has it; several for a job with `schedules`.
            start: Only what comes after it, by default now.
            count: How many occurrences.
            team: The job's team, for `H` and the team's calendars.
            name: The job's name, for `H`.

        Raises:
            Invalid: The schedule is wrong; `errors` names each field.
        """
        field = "schedules" if isinstance(schedule, Sequence) else "schedule"
        body = given({field: schedule, "count": count, "from": start, "team": team, "name": name})
        return self._connection.call(post("/v1/schedules:preview", body), Preview)

    def forecast(self, *, hours: int = 24, team: str | None = None) -> ForecastView:
        """Counts the runs to come, minute by minute.

        Args:
            hours: How far to look, 1 to 168.
            team: Of this team only.
        """
        return self._connection.call(get("/v1/forecast", {"hours": hours, "team": team}), ForecastView)

    def put_calendar(
        self,
        team: str,
        name: str,
        *,
        dates: Sequence[Day],
        if_match: int | None = None,
        ack: Ack | None = None,
    ) -> CalendarView:
        """Creates or replaces a team's calendar; the jobs that exclude it follow.

        Args:
            team: The team that has it.
            name: Its name, with a letter in it.
            dates: Dates, and ranges such as "2026-12-24/2027-01-02" (both included).
            if_match: The version that was seen; the calendar is replaced only while it has this one.
            ack: Where the change has to be before the call returns; by default in Postgres.

        Raises:
            VersionConflict: The calendar has another version than if_match.
            Invalid: A date is wrong.
        """
        request = put(calendar_path(team, name), given({"dates": dates}), query={"ack": ack}, if_match=if_match)
        return self._connection.call(request, CalendarView)

    def get_calendar(self, team: str, name: str) -> CalendarView:
        """Reads one calendar of a team, with its dates.

        Args:
            team: The team that has it.
            name: Its name.

        Raises:
            NotFound: There is no such calendar.
        """
        return self._connection.call(get(calendar_path(team, name)), CalendarView)

    def list_calendars(self, team: str) -> Iterator[CalendarView]:
        """Reads a team's calendars by name, without their dates, page by page as you go on.

        Args:
            team: The team that has them.
        """
        cursor: str | None = None
        while True:
            page = self.list_calendars_page(team, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def list_calendars_page(self, team: str, *, cursor: str | None = None, limit: int = 100) -> Page[CalendarView]:
        """Reads one page of a team's calendars.

        Args:
            team: The team that has them.
            cursor: next_cursor of the page before; None for the first page.
            limit: At most so many calendars, 1 to 1000.
        """
        query = {"cursor": cursor, "limit": limit}
        return self._connection.call(get(calendar_path(team), query), Page[CalendarView])

    def delete_calendar(self, team: str, name: str, *, if_match: int | None = None, ack: Ack | None = None) -> None:
        """Deletes a calendar that no job uses.

        Args:
            team: The team that has it.
            name: Its name.
            if_match: The version that was seen; the calendar is deleted only while it has this one.
            ack: Where the change has to be before the call returns; by default in Postgres.

        Raises:
            NotFound: There is no such calendar.
            Conflict: Jobs use it; the text names them.
            VersionConflict: The calendar has another version than if_match.
        """
        self._connection.send(delete(calendar_path(team, name), query={"ack": ack}, if_match=if_match))
