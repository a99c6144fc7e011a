"""Schedules as tests write them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st

from rsched.core.errors import Invalid
from rsched.core.instants import format_utc, parse_instant
from rsched.core.jobs.model import DstPolicy, ScheduleSpec
from rsched.core.schedule.schedule import Draft, Resolved, Schedule, load, resolve

NOW = parse_instant("2026-10-25T20:30:00.123Z")
DAY = 86_400_000

Calendars = Mapping[str, Sequence[str]]


def at(text: str) -> int:
    return parse_instant(text)


def one(*, now: int = NOW, calendars: Calendars | None = None, **fields: Any) -> tuple[ScheduleSpec, Schedule]:
    found, schedule = resolve(Draft(ScheduleSpec(**fields)), now_ms=now, calendars=calendars)
    assert found.schedule is not None
    assert found.schedules == []
    assert load(Draft(found.schedule), calendars=calendars).arg == schedule.arg
    return found.schedule, schedule


def several(*entries: dict[str, Any], now: int = NOW, calendars: Calendars | None = None) -> tuple[Resolved, Schedule]:
    specs = [ScheduleSpec(**fields) for fields in entries]
    found, schedule = resolve(Draft(None, specs), now_ms=now, calendars=calendars)
    assert found.schedule is None
    again = load(Draft(None, found.schedules), calendars=calendars)
    assert (again.kind, again.arg, again.window_ms) == (schedule.kind, schedule.arg, schedule.window_ms)
    return found, schedule


def refused(*entries: dict[str, Any], calendars: Calendars | None = None) -> dict[str, str]:
    specs = [ScheduleSpec(**fields) for fields in entries]
    with pytest.raises(Invalid) as caught:
        resolve(Draft(specs[0]) if len(specs) == 1 else Draft(None, specs), now_ms=NOW, calendars=calendars)
    return dict(caught.value.errors)


def utc(schedule: Schedule, after: int, n: int) -> list[str]:
    return [format_utc(t, short=True) for t in schedule.upcoming(after, n)]


ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca",
    "Africa/Cairo", "Asia/Beirut", "America/Havana", "America/Santiago",  # where the clocks change at midnight
)  # fmt: skip
days = st.integers(0, 120).map(lambda n: datetime(2026, 9, 15, tzinfo=UTC) + timedelta(days=n))
stretches = st.tuples(days, st.integers(0, 9)).map(lambda p: f"{p[0]:%Y-%m-%d}/{p[0] + timedelta(days=p[1]):%Y-%m-%d}")
instants = st.integers(at("2026-09-10T00:00:00Z") // 1000, at("2027-01-30T00:00:00Z") // 1000).map(lambda s: s * 1000)
rules = st.sampled_from(
    [
        {"cron": "0 2 * * *"}, {"cron": "*/30 * * * *"}, {"cron": "15 1,2,23 * * *"}, {"cron": "0 0 L * *"},
        {"cron": "*/20 0,1,2 * * *", "second": "0,30", "dst": DstPolicy(gap="skip", overlap="both")},
        {"every": "7h", "anchor": "2026-01-01T00:00:00Z"}, {"every": "90m", "anchor": "2026-01-01T00:00:01Z"},
    ]
)  # fmt: skip
