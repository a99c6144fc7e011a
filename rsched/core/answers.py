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
