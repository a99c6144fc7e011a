"""Every setting, declared once, with its unit in the name and the reason beside the default.

One frozen struct for each kind of process.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

_Ms = Annotated[int, Meta(ge=1, le=86_400_000)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that all kinds of processes share."""

    redis_url: Annotated[str, Meta(description="The Redis that schedules; redis://, rediss:// (TLS) or unix://")] = (
        "redis://127.0.0.1:6379/0"
    )
    database_url: Annotated[
        str, Meta(description="The Postgres that remembers; sslmode and the like as parameters")
    ] = "postgresql://127.0.0.1:5432/rsched"
    prefix: Annotated[
        str, Meta(description="First part of every Redis key, so that deployments can share a server")
    ] = "rs"
    shards: Annotated[
        int, Meta(ge=1, le=1024, description="Hash tags the keys spread over; fixed when first started")
    ] = 1
    log_format: Annotated[Literal["console", "json"], Meta(description="console for people, json for collectors")] = (
        "console"
    )
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        Meta(description="INFO says starts, stops, outages and their ends"),
    ] = "INFO"


class ApiSettings(Settings, frozen=True, kw_only=True):
    """Settings of an API process."""

    host: Annotated[str, Meta(description="Loopback, because nobody who reaches the API has to say who they are")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Meta(ge=0, le=65535, description="0 lets the system choose")] = 8080
    allow_insecure_bind: Annotated[
        bool, Meta(description="Lets host be another address than loopback; put your own access control before it")
    ] = False
    ack_timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            le=300,
            description="How long a write waits to be in Postgres before it answers 503; a commit takes ms",
        ),
    ] = 5.0


class Measured(Settings, frozen=True, kw_only=True):
    """Settings that the kinds share which have no HTTP server of their own."""

    metrics_host: Annotated[
        str, Meta(description="Where /metrics is served; loopback, because nobody has to say who they are to read it")
    ] = "127.0.0.1"
    metrics_port: Annotated[int, Meta(ge=0, le=65535, description="Of /metrics; 0: not served")] = 0


class SchedulerSettings(Measured, frozen=True, kw_only=True):
    """Settings of a scheduler."""

    ownership: Annotated[
        bool, Meta(description="Share partitions out instead of racing for them; saves work, no promise rests on it")
    ] = True
    partition_lease_ms: Annotated[
        _Ms, Meta(description="The longest that a dead scheduler's partitions stand still")
    ] = 2500
    partition_renew_ms: Annotated[_Ms, Meta(description="A lease survives two lost renewals")] = 750
    lookahead_ms: Annotated[
        int, Meta(ge=0, le=60_000, description="Claimed this far ahead, so that the instant itself costs little")
    ] = 5000
    batch: Annotated[
        int, Meta(ge=1, le=2000, description="Runs a script handles: about 3 ms of Redis at 300, which others wait for")
    ] = 300
    reap_after_ms: Annotated[
        _Ms, Meta(description="Past a lease's end, so that its worker has stopped even if its clock runs a little slow")
    ] = 1000
    catchup_per_s: Annotated[
        int, Meta(ge=1, le=10_000, description="Late occurrences that one job gets in a second when it catches up")
    ] = 10
    catchup_share: Annotated[
        float, Meta(gt=0, le=1, description="Part of a queue's starts that catching up takes while other runs wait")
    ] = 0.2
    poll_ms: Annotated[_Ms, Meta(description="The longest sleep; wake-ups make it shorter, this is for a lost one")] = (
        1000
    )


class WorkerSettings(Measured, frozen=True, kw_only=True):
    """Settings of a worker."""

    concurrency: Annotated[int, Meta(ge=1, le=10_000, description="Attempts at once; HTTP calls mostly wait")] = 100
    queues: Annotated[
        tuple[str, ...], Meta(description="Queues to serve; empty: http and, with an app, the queues of its functions")
    ] = ()
    app: Annotated[
        str | None, Meta(description="package.module:app with the Python functions; none: http targets only")
    ] = None
    lease_ms: Annotated[
        int,
        # At most what a shard that lost all of Redis is held for, since it knows no worker's lease then.
        Meta(ge=1, le=60_000, description="How long a run stands still when its worker dies; 60 s at most"),
    ] = 60_000
    renew_ms: Annotated[_Ms, Meta(description="A third of the lease: it survives two lost renewals")] = 20_000
    stop_margin_ms: Annotated[
        _Ms, Meta(description="An attempt that cannot be renewed is stopped this long before its lease ends")
    ] = 5000
    drain_s: Annotated[
        float,
        Meta(ge=0, le=3600, description="Running attempts get this long at SIGTERM; a supervisor kills after 10 s"),
    ] = 8
    poll_ms: Annotated[_Ms, Meta(description="The longest wait between fetches; wake-ups make it shorter")] = 1000
    threads: Annotated[
        int, Meta(ge=0, le=1000, description="Threads for sync functions; 0: as the concurrency, at most 32")
    ] = 0

    def __post_init__(self) -> None:
        """Puts the number in the place of a default that follows from another setting."""
        if self.threads == 0:
            msgspec.structs.force_setattr(self, "threads", min(self.concurrency, 32))


class RecorderSettings(Measured, frozen=True, kw_only=True):
    """Settings of a recorder."""

    batch: Annotated[
        int, Meta(ge=1, le=50_000, description="Events in a transaction; more is faster to copy and later to be seen")
    ] = 5000
    block_ms: Annotated[
        int, Meta(ge=1, le=8000, description="How long a read waits for events; under the socket's timeout of 10 s")
    ] = 2000
    keep_ms: Annotated[
        int,
        Meta(ge=0, le=86_400_000, description="Journal kept behind the position, for a Postgres that loses its tail"),
    ] = 60_000
    lease_ms: Annotated[
        int,
        Meta(
            ge=1, le=60_000, description="The longest lease of any worker: so long are runs held when Redis lost writes"
        ),
    ] = 60_000
    forget_after_s: Annotated[
        float, Meta(ge=0, le=604_800, description="Completed jobs leave Redis this long after they are recorded")
    ] = 600
    retention_days: Annotated[
        int,
        Meta(
            ge=0, le=36_500, description="History of older days leaves Postgres for the archive; 0: it stays for ever"
        ),
    ] = 30
    archive_dir: Annotated[
        str,
        Meta(description="Folder that old history is exported to as Parquet (absolute); empty: it stays in Postgres"),
    ] = ""
    reconcile_every_s: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="Rest between two passes over all that a shard holds; 0: none but the one after a restoration",
        ),
    ] = 600
    reconcile_pace_ms: Annotated[
        int,
        Meta(
            ge=0, le=10_000, description="Pause after each page of a pass; more spares Redis, and a pass takes longer"
        ),
    ] = 50


KINDS: dict[str, type[Settings]] = {
    "api": ApiSettings,
    "scheduler": SchedulerSettings,
    "worker": WorkerSettings,
    "recorder": RecorderSettings,
}
