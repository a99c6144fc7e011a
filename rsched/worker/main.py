"""Builds a worker process from its settings and runs it until it is asked to stop."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack, closing

import anyio

from rsched.core.ids import WorkerId, short_hash
from rsched.core.jobs.targets import TARGET_KINDS
from rsched.core.settings import WorkerSettings
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.metrics import Metrics
from rsched.runtime.metrics_server import served
from rsched.store.keys import Keys
from rsched.store.renewer import SyncRenewer
from rsched.store.store import Store, shard_tags
from rsched.worker.app import App, load_app
from rsched.worker.runtime import Limits, Runtime
from rsched.worker.targets.calls import Calls

_log = get_logger("rsched.worker")


def new_worker_id() -> WorkerId:
    """Returns a new id for each process, so that no request is taken for a repeat of another process' one."""
    return WorkerId("w_" + short_hash(secrets.token_hex(16), 8))


def queues_of(settings: WorkerSettings, app: App) -> tuple[str, ...]:
    """Returns the queues to serve: as set; by default those of whole kinds of targets, and of the app's functions."""
    if settings.queues:
        return settings.queues
    return tuple(sorted({*TARGET_KINDS.own_queues(), *app.queues}))


async def run_worker(settings: WorkerSettings, stop: anyio.Event, *, clock: Clock) -> None:
    """Runs until stop is set and the drain is over.

    Args:
        settings: The worker's settings; several shards share its concurrency.
        stop: Set when the process is asked to stop.
        clock: This machine's clock.

    Raises:
        Misconfigured: The app cannot be loaded, or the metrics port is taken.
    """
    app = load_app(settings.app) if settings.app is not None else App()
    worker, queues = new_worker_id(), queues_of(settings, app)
    share = max(1, settings.concurrency // settings.shards)
    limits = Limits(
        concurrency=share,
        lease_ms=settings.lease_ms,
        renew_ms=settings.renew_ms,
        margin_ms=settings.stop_margin_ms,
        drain_ms=int(settings.drain_s * 1000),
        poll_ms=settings.poll_ms,
    )
    metrics = Metrics("worker")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(served(metrics, settings))
        callers = stack.enter_context(closing(Calls(app.functions, threads=settings.threads, clock=clock)))
        runtimes = []
        for tag in shard_tags(settings.shards):
            store = Store.open(settings.redis_url, prefix=settings.prefix, shard=tag, clock=clock)
            stack.push_async_callback(store.aclose)
            store.connection.metrics = metrics
            renewer = stack.enter_context(closing(SyncRenewer(settings.redis_url, Keys(settings.prefix, tag))))
            runtimes.append(
                Runtime(
                    store,
                    renewer,
                    worker=worker,
                    queues=queues,
                    callers=callers,
                    limits=limits,
                    clock=clock,
                    log=_log,
                    metrics=metrics,
                )
            )
        _log.info(
            "worker ready",
            extra={"fields": {"worker": worker, "queues": ",".join(queues), "functions": len(app.functions)}},
        )
        async with anyio.create_task_group() as group:
            for runtime in runtimes:
                group.start_soon(runtime.run, stop)
    _log.info("worker stopped", extra={"fields": {"worker": worker}})
