"""When schedules run: a preview of one, the forecast of all, occurrences that made no run, and holiday calendars."""

from __future__ import annotations

import msgspec


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """One nominal instant.

    Attributes:
        utc: RFC 3339 in UTC.
        local: RFC 3339 in the schedule's own zone.
        note: What a change of the clock did to it.
    """

    utc: str
    local: str
    note: str | None = None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """When a schedule would run.

    Attributes:
        occurrences: The first of them, in order.
        description: The schedule in plain words.
        warnings: What is legal and perhaps not meant.
    """

    occurrences: list[Occurrence]
    description: str = ""
    warnings: list[str] = []


class TeamForecast(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one team to come.

    Attributes:
        team: Its name.
        runs: In all.
        peak: In the highest minute.
        per_minute: From `from` on; a minute of a spread window has a part of a run, hence rounded.
    """

    team: str
    runs: int
    peak: int
    per_minute: list[int]


class SpikeView(msgspec.Struct, frozen=True, kw_only=True):
    """A minute that stands out.

    Attributes:
        at: Its start (RFC 3339).
        runs: Due in it.
        teams: Those with most of its runs, with their number.
    """

    at: str
    runs: int
    teams: dict[str, int]


class Flattened(msgspec.Struct, frozen=True, kw_only=True):
    """What a window would make of the spikes.

    Attributes:
        window: Its length, such as `5m`.
        peak: The highest minute if all that is due at once, of every job without a window, had this one.
    """

    window: str
    peak: int


class ForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """Runs per minute to come.

    Attributes:
        from_: Where it begins (RFC 3339), `from` in JSON.
        to: Where it ends.
        jobs: How many have a due time.
        sampled: The part of them that was counted, the rest is scaled up.
        runs: In all.
        peak: In the highest minute.
        per_minute: From `from` on.
        teams: Those with the most runs, the others together as `_other`.
        spikes: The minutes that stand out.
        flattened: What windows would make of them.
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
    """Occurrences that made no run. Instants are RFC 3339.

    Attributes:
        first_at: The first of them.
        last_at: The last of them.
        total: How many, both ends included.
        reason: Why.
        at: When that was decided.
    """

    first_at: str
    last_at: str
    total: int
    reason: str
    at: str


class CalendarView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A team's holiday calendar.

    Attributes:
        team: Whose it is.
        name: Its name.
        version: Grows with each change.
        total: How many dates and ranges it has.
        dates: Those, only where one calendar is asked for.
    """

    team: str
    name: str
    version: int
    total: int
    dates: list[str] | msgspec.UnsetType = msgspec.UNSET
