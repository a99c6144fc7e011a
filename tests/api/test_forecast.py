"""The forecast on a real Redis, against every occurrence of every job."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from rsched_api.routes import forecast as forecasts

from bench.jobs import item
from rsched.core.errors import Invalid
from rsched.core.instants import parse_instant
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.schedule.schedule import Draft, resolve
from tests.store.world import World

pytestmark = pytest.mark.anyio
CRONS = ("0 * * * *", "*/15 * * * *", "0 2 * * *", "30 9 * * MON-FRI", "0 0 1 * *", "0 9-17/4 * * *")


@pytest.fixture
async def world(anyio_backend: str, redis_url: str, redis_prefix: str) -> World:
    found = World.at(redis_url, prefix=redis_prefix)
    await found.open()
    return found


def random_schedule(rng: random.Random, now: int) -> ScheduleSpec:
    kind = rng.random()
    if kind < 0.3:
        return ScheduleSpec(every=rng.choice(["7s", "90s", "1h", "45m"]), anchor="2026-01-01T00:00:00Z")
    if kind < 0.5:
        return ScheduleSpec(delay=rng.randrange(1, 40 * 3600))
    zone = rng.choice(["UTC", "Asia/Kolkata", "America/New_York"])
    return ScheduleSpec(cron=rng.choice(CRONS), timezone=zone)


async def test_each_minute_has_the_runs_of_all_jobs(world: World) -> None:
    rng = random.Random(1)
    # Not within a second of a minute's turn, at which the forecast would begin later than this.
    while (now := await world.store.clock.read()) % 60_000 > 57_000:
        pass
    start = now // 60_000 * 60_000
    expected: dict[str, Counter[int]] = {}
    items = []
    for n in range(300):
        team = f"team-{n % 3}"
        spec = random_schedule(rng, now)
        put, _ = item(f"job {n}", spec, function="f", now=now, team=team)
        items.append(put)
        _, schedule = resolve(Draft(spec, team=team, name=f"job {n}"), now_ms=now)
        at = schedule.next_after(now)
        while at is not None and at < start + 24 * 3_600_000:
            expected.setdefault(team, Counter())[(at - start) // 60_000] += 1
            at = schedule.next_after(at)
    assert (await world.store.jobs.put(items, atomic=True)).ok
    view = await forecasts._view(world.store, hours=24, team=None)
    assert (view.jobs, view.sampled, len(view.per_minute)) == (300, 1.0, 1440)
    assert parse_instant(view.from_) == start
    for team in view.teams:
        assert {m: n for m, n in enumerate(team.per_minute) if n} == dict(expected[team.team])
        assert team.runs == expected[team.team].total()
    assert view.runs == sum(c.total() for c in expected.values())
    one = await forecasts._view(world.store, hours=24, team="team-1")
    assert ([t.team for t in one.teams], one.runs) == (["team-1"], expected["team-1"].total())
    await world.close()


async def test_of_very_many_jobs_a_part_is_counted_and_scaled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now = await world.store.clock.read()
    spec = ScheduleSpec(cron="0 * * * *", timezone="UTC")
    items = [item(f"job {n}", spec, function="f", now=now)[0] for n in range(2000)]
    assert (await world.store.jobs.put(items, atomic=True)).ok
    monkeypatch.setattr(forecasts, "MAX_COUNTED", 500)
    view = await forecasts._view(world.store, hours=6, team=None)
    assert 0.15 < view.sampled < 0.35
    assert view.runs == 2000 * 6
    assert {n for n in view.per_minute if n} == {2000}
    assert [s.runs for s in view.spikes] == [2000] * 6
    assert [(f.window, f.peak) for f in view.flattened] == [("1m", 2000), ("5m", 400), ("15m", 133), ("30m", 67)]
    await world.close()


@pytest.mark.parametrize("hours", ["0", "169", "00999999", "x", "-1", "1.5", "\u0661"])
def test_hours_that_are_none_are_refused(hours: str) -> None:
    with pytest.raises(Invalid, match="1 to 168"):
        forecasts._hours(hours)
