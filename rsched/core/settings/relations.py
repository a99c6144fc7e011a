"""What each setting alone cannot say: whether it goes with the others."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from rsched.core.ids import SLUG
from rsched.core.settings.kinds import ApiSettings, SchedulerSettings, Settings, WorkerSettings
from rsched.core.settings.shown import mask
from rsched.core.settings.variables import variable


def relations(settings: Settings) -> list[str]:
    """Returns what is wrong with settings beside one another, each with the fix; nothing where they can stand."""
    problems = []
    if urlsplit(settings.redis_url).scheme not in ("redis", "rediss", "unix"):
        problems.append(
            f"{variable(Settings, 'redis_url')}: write redis://, rediss:// or unix://, not {mask(settings.redis_url)!r}"
        )
    if urlsplit(settings.database_url).scheme not in ("postgresql", "postgres"):
        problems.append(
            f"{variable(Settings, 'database_url')}: write postgresql://user@host:5432/name, not {mask(settings.database_url)!r}"
        )
    if not SLUG.fullmatch(settings.prefix):
        problems.append(
            f"{variable(Settings, 'prefix')}: {settings.prefix!r} must be lower-case letters, digits, - and _, up to 63"
        )
    if settings.shards != 1:
        problems.append(f"{variable(Settings, 'shards')}: this release serves one shard; set it to 1")
    if isinstance(settings, ApiSettings):
        problems += _api_relations(settings)
    elif isinstance(settings, SchedulerSettings):
        if settings.partition_renew_ms * 3 > settings.partition_lease_ms:
            problems.append(
                _thrice(SchedulerSettings, "partition_renew_ms", "partition_lease_ms", settings.partition_lease_ms)
            )
    elif isinstance(settings, WorkerSettings):
        problems += _worker_relations(settings)
    return problems


def _thrice(cls: type[Settings], renew: str, lease: str, lease_ms: int) -> str:
    return (
        f"{variable(cls, renew)} must be at most a third of {variable(cls, lease)}, so that a lost renewal or two do no harm; "
        f"set it to {lease_ms // 3} or less"
    )


def _api_relations(settings: ApiSettings) -> list[str]:
    loopback = settings.host in ("localhost", "::1") or re.fullmatch(r"127(\.[0-9]{1,3}){3}", settings.host)
    if loopback or settings.allow_insecure_bind:
        return []
    return [
        f"RSCHED_API_HOST: {settings.host} is reachable from other machines and the API has no keys yet; keep it on "
        "127.0.0.1, or put your own access control before it and set RSCHED_API_ALLOW_INSECURE_BIND=true"
    ]


def _worker_relations(settings: WorkerSettings) -> list[str]:
    problems = []
    if settings.renew_ms * 3 > settings.lease_ms:
        problems.append(_thrice(WorkerSettings, "renew_ms", "lease_ms", settings.lease_ms))
    elif settings.renew_ms + settings.stop_margin_ms >= settings.lease_ms:
        problems.append(
            f"RSCHED_WORKER_STOP_MARGIN_MS must leave room for a renewal; set it below {settings.lease_ms - settings.renew_ms}"
        )
    for queue in settings.queues:
        if not SLUG.fullmatch(queue):
            problems.append(f"RSCHED_WORKER_QUEUES: {queue!r} must be lower-case letters, digits, - and _, up to 63")
    if settings.app is not None and not re.fullmatch(r"[\w.]+:[\w.]+", settings.app):
        problems.append(f"RSCHED_WORKER_APP: {settings.app!r} must be package.module:app")
    return problems
