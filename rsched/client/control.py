"""The methods that stop, start and repeat what schedules do: pause, resume, trigger, backfill, bulk verbs, calendars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from rsched.client.bodies import Instant, Length, plain
from rsched.client.calls import Calls, decode, job_path
from rsched.client.views import BackfillView, BulkAnswer, CalendarView, Page, SkipView
from rsched.core.answers import JobView, RunView
from rsched.core.jobs.model import Ack, MisfirePolicy, Overlap

BulkVerb = Literal["pause", "resume", "delete"]


class Control(Calls):
    def pause_job(
        self,
        job: str,
        *,
        note: str | None = None,
        until: Instant | Length | None = None,
        missed: MisfirePolicy | None = None,
        team: str | None = None,
        ack: Ack | None = None,
    ) -> JobView:
        """No occurrence runs until resume_job, or until `until` (an instant to come, or how long from now).

        missed: what is done then about those that passed meanwhile; by default a recurring job's are recorded as skipped. Of a
        paused job note and end of the pause become these, if any is given.
        """
        body = _given({"note": note, "until": until, "missed": missed})
        return self._post(job_path(job, "/pause"), JobView, body=body or None, team=team, ack=ack)

    def resume_job(
        self, job: str, *, missed: MisfirePolicy | None = None, team: str | None = None, ack: Ack | None = None
    ) -> JobView:
        """missed: what is done about the occurrences that passed meanwhile; by default what the pause said."""
        body = _given({"missed": missed})
        return self._post(job_path(job, "/resume"), JobView, body=body or None, team=team, ack=ack)

    def trigger_job(
        self,
        job: str,
        *,
        payload: Any = msgspec.UNSET,
        overlap: Overlap | None = None,
        team: str | None = None,
        idempotency_key: str | None = None,
        ack: Ack | None = None,
    ) -> RunView:
        """Owes one manual run now, beside the schedule. A repeat with the same key gives the same run.

        payload, overlap: for this run, instead of the job's. Conflict for an overlap policy where the job's own is allow.
        """
        body = _given({"overlap": overlap})
        if payload is not msgspec.UNSET:
            body["payload"] = plain(payload, "payload")
        return self._post(
            job_path(job, "/trigger"), RunView, body=body or None, team=team, key=idempotency_key, ack=ack
        )

    def backfill(
        self,
        job: str,
        start: Instant,
        end: Instant | None = None,
        *,
        dry_run: bool = False,
        team: str | None = None,
        ack: Ack | None = None,
    ) -> BackfillView:
        """Owes the occurrences in start <= t < end (by default now) that have no run. Safe to repeat. Conflict unless active."""
        body = _given({"from": start, "to": end, "dry_run": dry_run or None})
        return self._post(job_path(job, "/backfill"), BackfillView, body=body, team=team, ack=ack)

    def skips(self, job: str, *, team: str | None = None) -> Iterator[SkipView]:
        """Occurrences that made no run and why, the latest first, fetched page by page as you go."""
        cursor: str | None = None
        while True:
            page = self.skips_page(job, team=team, cursor=cursor)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def skips_page(
        self, job: str, *, team: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Page[SkipView]:
        """One page of skips. limit: 1 to 1000."""
        return self._get(job_path(job, "/skips"), Page[SkipView], team=team, cursor=cursor, limit=limit)

    def bulk(
        self,
        verb: BulkVerb,
        *,
        team: str | None = None,
        tag: str | None = None,
        state: str | None = None,
        q: str | None = None,
        name: str | None = None,
        all_jobs: bool = False,
        dry_run: bool = False,
        note: str | None = None,
        until: Instant | Length | None = None,
        missed: MisfirePolicy | None = None,
        cursor: str | None = None,
        ack: Ack | None = None,
    ) -> BulkAnswer:
        """Pauses, resumes or deletes the jobs that match, at most 1,000 a call; next_cursor: call again with it for the rest.

        name: the whole of it, with * for any text; q: a part of it. all_jobs: needed where nothing else is given.
        """
        body: dict[str, Any] = {"filter": _given({"team": team, "tag": tag, "state": state, "q": q, "name": name})}
        body |= _given({"note": note, "until": until, "missed": missed, "cursor": cursor})
        body |= {"all": all_jobs, "dry_run": dry_run}
        return self._post(f"/v1/jobs:{verb}", BulkAnswer, body=body, ack=ack)

    def put_calendar(
        self,
        team: str,
        name: str,
        dates: Sequence[str],
        *,
        if_match: int | None = None,
        ack: Ack | None = None,
    ) -> CalendarView:
        """Creates or replaces a team's calendar: dates (`2026-12-25`) and ranges (`2026-12-24/2027-01-02`) for `exclude`."""
        raw, headers = msgspec.json.encode({"dates": list(dates)}), _if_match(if_match)
        return decode(
            self._transport.request("PUT", _calendar(team, name), query={"ack": ack}, body=raw, headers=headers),
            CalendarView,
        )

    def get_calendar(self, team: str, name: str) -> CalendarView:
        return self._get(_calendar(team, name), CalendarView)

    def calendars_page(self, team: str, *, cursor: str | None = None, limit: int = 100) -> Page[CalendarView]:
        """A team's calendars by name, without their dates."""
        return self._get(f"/v1/teams/{quote(team, safe='')}/calendars", Page[CalendarView], cursor=cursor, limit=limit)

    def delete_calendar(self, team: str, name: str, *, if_match: int | None = None, ack: Ack | None = None) -> None:
        """Conflict while jobs use it."""
        self._transport.request("DELETE", _calendar(team, name), query={"ack": ack}, headers=_if_match(if_match))


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain(value, name) for name, value in fields.items() if value is not None}


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"If-Match": f'"{version}"'}


def _calendar(team: str, name: str) -> str:
    return f"/v1/teams/{quote(team, safe='')}/calendars/{quote(name, safe='')}"
