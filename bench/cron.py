"""The two cron evaluators side by side: the bit sets that serve, and croniter on naive wall time, its twin in the tests."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from croniter import croniter

from bench.figures import circumstances
from rsched.core.cron import parser as cron
from rsched.core.cron.timetable import Timetable
from rsched.core.schedule.zones import load_zone
from rsched.runtime.clock import Clock

_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
_HITS = 100_000


def _expressions(count: int) -> list[str]:
    rng = random.Random(1)
    found: dict[str, None] = {}
    while len(found) < count:
        minute, hour = rng.randrange(60), rng.choice(["*", "*/2", str(rng.randrange(24)), "9-17"])
        day, weekday = rng.choice(["*", str(rng.randint(1, 28))]), "*"
        if day == "*":
            weekday = rng.choice(["*", "1-5", str(rng.randrange(7))])
        found[f"{minute} {hour} {day} {rng.choice(['*', '*', '1-6', str(rng.randint(1, 12))])} {weekday}"] = None
    return list(found)


async def measure(*, expressions: int, clock: Clock) -> dict[str, Any]:
    """One pass over that many distinct (expression, zone): the next occurrence of each, parsed and loaded before."""
    texts = _expressions(expressions)
    pairs = [(text, _ZONES[n % len(_ZONES)]) for n, text in enumerate(texts)]
    now_ms = clock.wall_ms()
    tables = [Timetable(cron.parse(text), load_zone(zone)) for text, zone in pairs]
    began = clock.perf_s()
    for table in tables:
        table.next_after(now_ms)
    bit_sets_s = clock.perf_s() - began
    began = clock.perf_s()
    for _ in range(_HITS):
        tables[0].next_after(now_ms)
    hit_s = clock.perf_s() - began
    twins = [(croniter(text, ret_type=datetime), load_zone(zone)) for text, zone in pairs]
    began = clock.perf_s()
    for twin, zone in twins:
        wall = datetime.fromtimestamp(zone.unseen_after(now_ms // 1000), UTC).replace(tzinfo=None)
        twin.get_next(start_time=wall)
    croniter_s = clock.perf_s() - began
    return {
        "benchmark": "cron",
        "expressions": expressions,
        "one_pass_s": {"bit_sets": round(bit_sets_s, 3), "croniter": round(croniter_s, 3)},
        "us_per_miss": {
            "bit_sets": round(bit_sets_s / expressions * 1e6, 2),
            "croniter": round(croniter_s / expressions * 1e6, 2),
        },
        "us_per_memo_hit": round(hit_s / _HITS * 1e6, 3),
        "ratio": round(croniter_s / bit_sets_s, 1),
        **circumstances(clock),
    }
