"""Jobs of many kinds for a simulated world, and by brute force the occurrences that each of them has."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any

import msgspec

from rsched.core.instants import format_utc
from rsched.core.jobs.model import FunctionTarget, JobSpec, Misfire, ScheduleSpec
from rsched.core.schedule import zones
from tests.support.cron_oracle import Matcher, Walk, wall_in

# All clocks' changes and all these schedules fall on whole quarters of an hour, so that the oracle may look that often.
QUARTER_S = 900
HOUR_MS = 3_600_000
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Africa/Casablanca", "Antarctica/Troll", "Australia/Lord_Howe",
         "Asia/Kathmandu", "America/Havana", "Africa/Cairo", "America/St_Johns", "Europe/Dublin", "Asia/Kolkata")  # fmt: skip
CRONS = ("0 2 * * *", "30 1 * * *", "30 2 * * *", "0 0 * * *", "0 */6 * * *", "15,45 1-3 * * *", "0 9-17/4 * * MON-FRI",
         "30 2 * * SUN", "0 0 1 * *", "0 12 L * *", "0 6 * * MON#1", "15 3 13 * FRI", "0 0 */10 * *", "0 1 LW * *",
         "45 23 * * *", "0 3 29 2 *", "0 8 * 1-6 *", "0 * * * *")  # fmt: skip
DST = (None, {"gap": "skip"}, {"overlap": "both"}, {"gap": "skip", "overlap": "both"})


class Oracle:
    """Occurrences within low <= t < high (ms), by looking at every quarter of an hour."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low // (QUARTER_S * 1000) * QUARTER_S * 1000 - QUARTER_S * 1000, high

    @cache  # noqa: B019 - one oracle a test
    def walk(self, zone: str) -> Walk:
        return Walk(wall_in(zones.zone_info(zone)), self.low // 1000, self.high // 1000, step=QUARTER_S)

    @cache  # noqa: B019
    def cron(self, text: str, zone: str, gap: str | None, overlap: str | None) -> list[int]:
        matcher = Matcher(text)
        unset = ("skip", "both") if matcher.every_hour else ("shift", "first")
        return self.walk(zone).fired(matcher, gap=gap or unset[0], overlap=overlap or unset[1])

    def of(self, spec: ScheduleSpec) -> list[int]:
        if spec.at is not None:
            found = [_ms(spec.at)]
        elif spec.every is not None:
            every, anchor = int(str(spec.every).rstrip("h")) * HOUR_MS, _ms(spec.anchor or "")
            first = anchor + -(-(self.low - anchor) // every) * every
            found = list(range(first, self.high, every))
        else:
            dst = spec.dst
            found = self.cron(spec.cron or "", spec.timezone or "UTC", dst and dst.gap, dst and dst.overlap)
        if spec.exclude:
            zone = zones.zone_info(spec.timezone or "UTC")
            excluded = {day for text in spec.exclude for day in _days(text)}
            found = [t for t in found if datetime.fromtimestamp(t / 1000, UTC).astimezone(zone).date() not in excluded]
        if spec.start is not None:
            found = [t for t in found if t >= _ms(spec.start)]
        if spec.end is not None:
            found = [t for t in found if t < _ms(spec.end)]
        return found[: spec.max_runs] if spec.max_runs is not None else found


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def _days(text: str) -> list[date]:
    first, _, last = text.partition("/")
    a = datetime.fromisoformat(first).date()
    b = datetime.fromisoformat(last or first).date()
    return [a + timedelta(days=n) for n in range((b - a).days + 1)]


def random_schedules(rng: random.Random, now: int, until: int) -> dict[str, Any]:
    """`schedule` or `schedules` of a JobSpec, for the time between now and until (ms)."""

    def day() -> str:
        return format_utc(rng.randrange(now, until))[:10]

    def cron() -> dict[str, Any]:
        spec: dict[str, Any] = {"cron": rng.choice(CRONS), "timezone": rng.choice(ZONES)}
        if rng.random() < 0.3 and (dst := rng.choice(DST)):
            spec["dst"] = dst
        return spec

    def once() -> dict[str, Any]:
        return {"at": format_utc(rng.randrange(now + HOUR_MS, until) // (QUARTER_S * 1000) * QUARTER_S * 1000)}

    kind = rng.random()
    if kind < 0.12:
        return {"schedule": _spec(once())}
    if kind < 0.25:
        anchor = format_utc(now // HOUR_MS * HOUR_MS + rng.randrange(4) * QUARTER_S * 1000)
        return {"schedule": _spec({"every": f"{rng.choice([5, 7, 24, 36])}h", "anchor": anchor})}
    if kind < 0.4:
        return {"schedules": [_spec(cron()), _spec(cron() if rng.random() < 0.7 else once())]}
    spec = cron()
    if rng.random() < 0.2:
        spec["exclude"] = [day(), _range(day()), _range(day())]
    if rng.random() < 0.15:
        spec["start"] = format_utc(rng.randrange(now, now + (until - now) // 3))
    if rng.random() < 0.15:
        spec["end"] = format_utc(rng.randrange(until - (until - now) // 3, until))
    if rng.random() < 0.15:
        spec["max_runs"] = rng.randint(1, 200)
        spec.setdefault("start", format_utc(now))
    if rng.random() < 0.2:
        spec["window"] = "10m"
    return {"schedule": _spec(spec)}


def _range(first: str) -> str:
    last = datetime.fromisoformat(first).date() + timedelta(days=4)
    return f"{first}/{last}"


def _spec(fields: dict[str, Any]) -> ScheduleSpec:
    return msgspec.convert(fields, ScheduleSpec)


def random_spec(rng: random.Random, name: str, now: int, until: int) -> JobSpec:
    window = rng.choice([None, None, "12h"])
    return JobSpec(
        name=name,
        target=FunctionTarget(function="f"),
        misfire_policy=rng.choice(["run_once", "run_all", "skip"]),
        misfire=Misfire(grace=rng.choice(["60s", "60s", "2h"]), catchup_window=window),
        **random_schedules(rng, now, until),
    )
