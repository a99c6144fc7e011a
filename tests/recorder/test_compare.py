"""A restoration is followed by a full compare of Redis with the ledger."""

from __future__ import annotations

import anyio

from rsched.core.settings import RecorderSettings
from rsched.recorder.main import run_recorder
from tests.recorder.rollback import back_to, snapshot
from tests.recorder.stepped_shard import CLOCK, HOUR, InShard, Shard


def test_what_an_older_redis_has_of_a_job_that_was_deleted_and_forgotten_ends_soon_after_the_restoration(
    shard: InShard, redis_url: str, database_url: str
) -> None:
    async def body(s: Shard) -> None:
        job = await s.put("a", due_in=HOUR)
        await s.record()
        then = await snapshot(s)
        assert (await s.store.jobs.remove(job)).tag == "ok"
        await s.record()
        await s.ledger.recovery.unfinished.mark_forgotten([(job, 2)])
        await back_to(s, then)
        settings = RecorderSettings(
            database_url=database_url, redis_url=redis_url, prefix=s.keys.prefix, block_ms=20, reconcile_every_s=0,
            reconcile_pace_ms=0, forget_after_s=0.001,
        )  # fmt: skip
        stop = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: run_recorder(settings, stop, clock=CLOCK))
            with anyio.fail_after(20):
                while await s.store.jobs.get_due_times([job]):
                    await CLOCK.sleep(20)
                # And is forgotten once more.
                while (await s.ledger.recovery.compare.jobs([job]))[job].forgotten is False or await s.store.jobs.get(
                    job
                ) is not None:
                    await CLOCK.sleep(20)
            stop.set()

    shard(body)
