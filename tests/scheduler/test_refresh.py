"""Schedules that new zone data, or another content of a calendar, changes."""

from __future__ import annotations

import logging

import msgspec
import pytest

from bench.jobs import item
from rsched.core.ids import partition_of
from rsched.core.instants import format_utc
from rsched.core.jobs.model import Definition, ScheduleSpec
from rsched.core.jobs.packed import JobRecord, RunEvent, SkipEvent, unpack_job
from rsched.core.schedule import zones
from rsched.core.schedule.misfire import resolve_resumed
from rsched.core.schedule.schedule import load
from rsched.core.states import JobState, RunState
from rsched.scheduler.refresh import Refresher, RefreshLoop, Report
from rsched.store.jobs import PutItem
from rsched.store.restore import RestoreProgress
from tests.store.world import World

pytestmark = pytest.mark.anyio
LOG = logging.getLogger("test.refresh")
HOUR_MS = 3_600_000
OLD = "0lder0release000"


async def stored(
    world: World,
    name: str,
    spec: ScheduleSpec,
    *,
    arg: str | None = None,
    due: int | None = None,
    team: str = "default",
) -> PutItem:
    """A job as an earlier release, or an earlier calendar, had computed it."""
    put, _ = item(name, spec, function="f", now=await world.store.clock.read(), team=team)
    record = unpack_job(put.value)
    if arg is not None:
        put = put._replace(value=record._replace(head=record.head._replace(arg=arg)).pack())
    if due is not None:
        put = put._replace(due=due)
    assert (await world.store.jobs.put([put], atomic=True)).ok
    return put


async def present(world: World, put: PutItem) -> JobRecord:
    found = await world.store.jobs.get(put.job)
    assert isinstance(found, JobRecord)
    return found


async def due(world: World, put: PutItem) -> int | None:
    return (await world.store.jobs.get_due_times([put.job])).get(put.job)


BERLIN = ScheduleSpec(cron="0 2 * * *", timezone="Europe/Berlin")


async def test_a_job_of_changed_zone_data_is_due_at_its_new_instant_and_no_other_job_is_touched(world: World) -> None:
    now = await world.store.clock.read()
    changed = await stored(world, "changed", BERLIN, arg=OLD, due=now + 50 * HOUR_MS)
    same = await stored(world, "same", ScheduleSpec(cron="0 2 * * *", timezone="Asia/Kolkata"))
    plain = await stored(world, "plain", ScheduleSpec(every="1h", anchor="2026-01-01T00:00:00Z"))
    report = await Refresher(world.store, log=LOG).refresh()
    assert (report.looked_at, report.changed, report.moved, report.late) == (2, 1, 1, 0)
    assert report.zones == {"Europe/Berlin": 1}
    after = await present(world, changed)
    schedule = load(after.definition)
    assert (after.head.arg, after.head.version, after.head.schedule_version) == (schedule.arg, 2, 2)
    assert await due(world, changed) == schedule.next_after(now)
    for other in (same, plain):
        assert ((await present(world, other)).head.version, await due(world, other)) == (1, other.due)
    again = await Refresher(world.store, log=LOG).refresh()
    assert again.changed == 0


async def test_what_was_staged_by_the_old_data_is_withdrawn(world: World) -> None:
    now = await world.store.clock.read()
    await world.store.partitions.cache_occurrences(
        OLD, after=now - HOUR_MS, occurrences=[now + 1500, now + 90 * HOUR_MS], ended=False
    )
    job = await stored(world, "a", BERLIN, arg=OLD, due=now + 1500)
    assert (
        await world.store.runs.claim("", horizon_ms=5000, limit=9, partitions=[(partition_of(job.job), 0)])
    ).total == 1
    await Refresher(world.store, log=LOG).refresh()
    while not (await world.store.runs.release(limit=9)).total:
        pass
    assert (await world.fetch()).runs == []
    ended = [e.record.state for e in await world.events() if isinstance(e, RunEvent)]
    assert ended[-1] is RunState.SKIPPED


async def test_a_late_job_settles_what_it_missed_first(world: World) -> None:
    now = await world.store.clock.read()
    job = await stored(world, "late", BERLIN, arg=OLD, due=now - HOUR_MS)
    refresher = Refresher(world.store, log=LOG)
    report = await refresher.refresh()
    assert (report.changed, report.late) == (0, 1)
    assert await due(world, job) == now - HOUR_MS
    await world.client.zadd(world.keys.due(partition_of(job.job)), {job.job: now + HOUR_MS})
    assert (await refresher.refresh()).changed == 1


async def test_a_paused_job_stays_as_it_is_but_for_its_schedule(world: World) -> None:
    now = await world.store.clock.read()
    job = await stored(world, "paused", BERLIN, arg=OLD, due=now + HOUR_MS)
    await world.store.jobs.pause(job.job, until=now + 9 * HOUR_MS, note="later", missed="run_all")
    assert (await Refresher(world.store, log=LOG).refresh()).changed == 1
    head = (await present(world, job)).head
    assert (head.state, head.until, head.note, head.missed) == (JobState.PAUSED, now + 9 * HOUR_MS, "later", "a")
    assert head.arg != OLD
    assert await due(world, job) is None
    assert await world.client.zscore(world.keys.pauses, job.job) == now + 9 * HOUR_MS


async def test_what_a_paused_job_missed_is_still_owed_after_a_refresh(world: World) -> None:
    now = await world.store.clock.read()
    job = await stored(world, "paused", ScheduleSpec(cron="*/10 * * * *", timezone="UTC"), arg=OLD)
    record = await present(world, job)
    since = now // 600_000 * 600_000 - 3 * HOUR_MS
    head = record.head._replace(
        version=2, schedule_version=2, schedule_changed_at=since - 1, state=JobState.PAUSED, paused_from=since
    )
    assert (await world.store.jobs.put([PutItem(job.job, 1, None, record._replace(head=head).pack())], atomic=True)).ok
    assert (await Refresher(world.store, log=LOG).refresh()).changed == 1
    after = await present(world, job)
    _, settled = resolve_resumed(after.head, load(after.definition), "run_all", now=now)
    assert settled.catch_up == (since, now // 600_000 * 600_000)
    assert not [e for e in await world.events() if isinstance(e, SkipEvent)]


async def test_a_job_without_occurrences_any_more_completes(world: World) -> None:
    now = await world.store.clock.read()
    spec = ScheduleSpec(cron="0 2 * * *", timezone="UTC", end="2020-01-01T00:00:00Z")
    job = await stored(world, "ended", BERLIN, arg=OLD, due=now + HOUR_MS)
    record = unpack_job(job.value)
    value = record._replace(definition=_with_schedule(record, spec)).pack()
    assert (await world.store.jobs.put([PutItem(job.job, 1, now + HOUR_MS, value)], atomic=True)).ok
    report = await Refresher(world.store, log=LOG).refresh()
    assert (report.changed, report.completed) == (1, 1)
    assert (await present(world, job)).head.state is JobState.COMPLETED
    assert await due(world, job) is None


def _with_schedule(record: JobRecord, spec: ScheduleSpec) -> Definition:
    return msgspec.structs.replace(record.definition, schedule=spec)


async def test_a_schedule_that_cannot_be_computed_invalidates_its_job_alone(world: World) -> None:
    now = await world.store.clock.read()
    bad = await stored(world, "bad", BERLIN, arg=OLD, due=now + HOUR_MS)
    good = await stored(world, "good", BERLIN, arg=OLD, due=now + HOUR_MS)
    record = unpack_job(bad.value)
    value = record._replace(
        definition=_with_schedule(record, ScheduleSpec(cron="0 2 * * *", timezone="No/Where"))
    ).pack()
    assert (await world.store.jobs.put([PutItem(bad.job, 1, now + HOUR_MS, value)], atomic=True)).ok
    report = await Refresher(world.store, log=LOG).refresh()
    assert (report.changed, report.invalid) == (1, 1)
    assert (await present(world, bad)).head.state is JobState.INVALID
    assert (await present(world, good)).head.state is JobState.ACTIVE


async def test_a_changed_calendar_moves_the_jobs_that_name_it(world: World) -> None:
    loop = RefreshLoop(world.store, log=LOG)
    await loop.step()
    tomorrow = date_of(await world.store.clock.read(), days=1)
    assert (await world.store.calendars.put("ops", "holidays", expect=0, entries=["2020-01-01"])).tag == "ok"
    await loop.step()
    spec = ScheduleSpec(cron="0 12 * * *", timezone="UTC", exclude=["holidays"])
    put, _ = item(
        "named",
        spec,
        function="f",
        now=await world.store.clock.read(),
        team="ops",
        calendars={"holidays": ["2020-01-01"]},
    )
    assert (await world.store.jobs.put([put], atomic=True)).ok
    other = await stored(world, "other", ScheduleSpec(cron="0 12 * * *", timezone="UTC"), team="ops")
    days = [date_of(await world.store.clock.read(), days=n) for n in range(3)]
    assert (await world.store.calendars.put("ops", "holidays", expect=1, entries=days)).tag == "ok"
    await loop.step()
    moved = await due(world, put)
    assert moved is not None
    assert date_of(moved, days=0) > days[-1] >= tomorrow
    assert await due(world, other) == other.due
    assert await world.store.refreshes.list_pending() == []
    # Deleted, it leaves a job that cannot be computed: nobody but that one is concerned.
    assert (await world.store.calendars.put("ops", "holidays", expect=2, entries=None)).tag == "ok"
    await loop.step()
    assert (await present(world, put)).head.state is JobState.INVALID
    assert (await present(world, other)).head.state is JobState.ACTIVE


def date_of(ms: int, *, days: int) -> str:
    return format_utc(ms + days * 24 * HOUR_MS)[:10]


async def test_newer_data_is_used_at_once_and_older_data_never(world: World, caplog: pytest.LogCaptureFixture) -> None:
    now = await world.store.clock.read()
    job = await stored(world, "a", BERLIN, arg=OLD, due=now + HOUR_MS)
    await world.store.refreshes.set_tzdata("9999z")
    loop = RefreshLoop(world.store, log=LOG)
    for _ in range(2):
        await loop.step()
    assert (await present(world, job)).head.arg == OLD
    assert [r.levelname for r in caplog.records if "upgrade it" in r.getMessage()] == ["WARNING"]
    await world.store.refreshes.set_tzdata("2000a")
    await loop.step()
    assert (await present(world, job)).head.arg != OLD
    assert await world.store.refreshes.get_tzdata() == zones.tzdata_version()


async def test_jobs_that_are_not_back_yet_are_refreshed_once_they_are(world: World) -> None:
    now = await world.store.clock.read()
    put = await stored(world, "a", BERLIN, arg=OLD, due=now + HOUR_MS)
    values = world.keys.jobs(partition_of(put.job))
    value = await world.client.hget(values, put.job)
    await world.client.hdel(values, put.job)
    await world.store.restore.set_progress(RestoreProgress("jobs", 1, 0, 1, 0, now))
    loop = RefreshLoop(world.store, log=LOG)
    await loop.step()
    assert (loop.waits, await world.store.refreshes.get_tzdata()) == (True, None)
    await world.client.hset(values, put.job, value)
    await world.store.restore.set_progress(RestoreProgress("done", 1, 1, 1, 0, now))
    await loop.step()
    assert (loop.waits, await world.store.refreshes.get_tzdata()) == (False, zones.tzdata_version())
    assert (await present(world, put)).head.arg != OLD


@pytest.mark.parametrize("new_generation", [True, False])
async def test_a_look_at_all_jobs_counts_only_where_none_went_missing_meanwhile(
    world: World, new_generation: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = RefreshLoop(world.store, log=LOG)
    refresh = Refresher.refresh

    async def lost_meanwhile(self: Refresher, **which: str | None) -> Report:
        report = await refresh(self, **which)
        if new_generation:
            await world.open(2)
        else:
            await world.store.restore.set_progress(RestoreProgress("jobs", 1, 0, 1, 0, 0))
        return report

    monkeypatch.setattr(Refresher, "refresh", lost_meanwhile)
    await loop.step()
    assert (loop.waits, await world.store.refreshes.get_tzdata()) == (True, None)
