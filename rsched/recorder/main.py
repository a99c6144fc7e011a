"""The recorder process: one recorder a shard."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio

from rsched.core.errors import Unavailable
from rsched.core.settings import RecorderSettings
from rsched.ledger import Ledger
from rsched.recorder.gauges import ShardWatch
from rsched.recorder.housekeeping import Retention
from rsched.recorder.shard import ShardRecorder
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Outage, Wake, run_steps
from rsched.runtime.metrics import Metrics
from rsched.runtime.metrics_server import served
from rsched.store.load_shedding import EVERY_MS, LoadShedding
from rsched.store.store import Store, shard_tags

_log = get_logger("rsched.recorder")


async def run_recorder(settings: RecorderSettings, stop: anyio.Event, *, clock: Clock) -> None:
    """Runs the recorder of every shard until it is asked to stop.

    Args:
        settings: The recorder's settings.
        stop: Is set to ask for the end; the call returns soon after.
        clock: This machine's clock.

    Raises:
        Misconfigured: The database has another schema than this release, or history cannot be archived as it is set.
    """
    metrics = Metrics("recorder")
    tags = shard_tags(settings.shards)
    # Of each shard: two streams, housekeeping, a recovery or a partition made.
    ledger = Ledger(settings.database_url, pool_max=2 + 3 * len(tags), clock=clock)
    retention = Retention(ledger, archive_dir=settings.archive_dir, retention_days=settings.retention_days, clock=clock)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(served(metrics, settings))
        await stack.enter_async_context(ledger)
        recorders, watches, shedders = [], [], []
        for shard in tags:
            store = Store.open(settings.redis_url, prefix=settings.prefix, shard=shard, clock=clock)
            stack.push_async_callback(_closed, store)
            store.connection.metrics = metrics
            watches.append(ShardWatch(store, ledger, shard=shard, metrics=metrics, clock=clock))
            shedders.append(LoadShedding(store.recovery, store.server, log=_log))
            recorders.append(ShardRecorder(store, ledger, shard=shard, settings=settings, clock=clock))
        # Last in, first out: the loops end before what they use is closed.
        group = await stack.enter_async_context(anyio.create_task_group())
        group.start_soon(_stopped, stop, group.cancel_scope)
        for watch in watches:
            group.start_soon(watch.run)
        # Whether or not there is a Postgres: while there is none, Redis fills.
        for shedder in shedders:
            group.start_soon(_measured, shedder, clock)
        await _schema_checked(ledger, clock)
        for recorder in recorders:
            group.start_soon(recorder.run)
        group.start_soon(retention.run)
        await stop.wait()


async def _stopped(stop: anyio.Event, scope: anyio.CancelScope) -> None:
    await stop.wait()
    scope.cancel()


async def _measured(shedder: LoadShedding, clock: Clock) -> None:
    await run_steps(shedder.step, name="load shedding", clock=clock, wake=Wake(), idle_ms=EVERY_MS, log=_log)


async def _closed(store: Store) -> None:
    with anyio.CancelScope(shield=True):
        await store.aclose()


async def _schema_checked(ledger: Ledger, clock: Clock) -> None:
    outage = Outage("recorder", _log)
    while True:
        try:
            await ledger.database.check_schema()
        except Unavailable as error:
            await clock.sleep(outage.failed(error))
        else:
            outage.over()
            return
