"""What the API answers beside jobs and runs, as server and client know it. Instants are RFC 3339."""

from __future__ import annotations

import msgspec


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """One nominal instant, in UTC and in the schedule's own zone. note: what a change of the clock did to it."""

    utc: str
    local: str
    note: str | None = None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """description: the schedule in plain words. warnings: what is legal and perhaps not meant."""

    occurrences: list[Occurrence]
    description: str = ""
    warnings: list[str] = []


class TeamForecast(msgspec.Struct, frozen=True, kw_only=True):
    """runs: in all. per_minute: from `from` on; of a spread window a minute has a part of a run, hence rounded."""

    team: str
    runs: int
    peak: int
    per_minute: list[int]


class SpikeView(msgspec.Struct, frozen=True, kw_only=True):
    """A minute that stands out; teams: those with most of its runs."""

    at: str
    runs: int
    teams: dict[str, int]


class Flattened(msgspec.Struct, frozen=True, kw_only=True):
    """peak: the highest minute if all that is due at once, of every job without a window, had this one."""

    window: str
    peak: int


class ForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """jobs: how many have a due time. sampled: the part of them that was counted, the rest scaled up.

    teams: those with the most runs, the others together as `_other`.
    """

    from_: str = msgspec.field(name="from")
    to: str
    jobs: int
    sampled: float
    runs: int
    peak: int
    per_minute: list[int]
    teams: list[TeamForecast]
    spikes: list[SpikeView]
    flattened: list[Flattened]


class SkipView(msgspec.Struct, frozen=True, kw_only=True):
    """total occurrences from first_at to last_at (both included) made no run. at: when that was decided."""

    first_at: str
    last_at: str
    total: int
    reason: str
    at: str


class CalendarView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A team's calendar of exclusions. total: how many dates and ranges it has; dates: those, only where one is asked for."""

    team: str
    name: str
    version: int
    total: int
    dates: list[str] | msgspec.UnsetType = msgspec.UNSET


class BackfillView(msgspec.Struct, frozen=True, kw_only=True):
    """occurrences: that are pending now (or would be: dry_run), in so many ranges, the first and the last of them. already: that
    have a run or are pending one, and were left out. pace_per_s: how many of them start a second.
    """

    job_id: str
    occurrences: int
    already: int
    ranges: int
    first: str | None
    last: str | None
    pace_per_s: int
    dry_run: bool


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """A job that matched."""

    job_id: str
    name: str | None
    team: str


class BulkFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job is as it was; code as in a problem document."""

    job_id: str
    code: str
    detail: str


class BulkAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs that matched, at most 1,000 a request. unchanged: were as asked already. next_cursor: there are
    more, send the request again with it. dry_run: nothing was changed.
    """

    matched: int
    changed: int
    unchanged: int
    failed: list[BulkFailure]
    dry_run: bool
    items: list[BulkItem]
    next_cursor: str | None
