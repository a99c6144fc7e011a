"""Asks both servers for what the checks judge."""

from __future__ import annotations

import anyio

from rsched.cli.checks import Check, away, clock_check, durability_checks, redis_checks, schema_check
from rsched.core.errors import Misconfigured, NeedsFixing, Unavailable
from rsched.core.settings import Settings, mask
from rsched.ledger.facts import durability_facts
from rsched.ledger.migrate import database_version, schema_version
from rsched.runtime.clock import Clock
from rsched.store.store import Store, shard_tags

_PATIENCE_S = 10


async def ask_redis(settings: Settings, *, clock: Clock) -> list[Check]:
    """Returns the checks of Redis, its clock among them.

    Raises:
        Unavailable: Redis does not answer, or refuses.
        Misconfigured: The URL is not valid.
    """
    try:
        tag = shard_tags(settings.shards)[0]
        store = Store.open(settings.redis_url, prefix=settings.prefix, shard=tag, clock=clock)
    except ValueError as error:
        raise Misconfigured(f"RSCHED_REDIS_URL: {error}") from None
    try:
        facts = await store.server.get_facts()
        before = clock.wall_ms()
        redis_ms = await store.clock.read()
        offset = redis_ms - (before + clock.wall_ms()) // 2
        return [*redis_checks(facts), clock_check(offset)]
    finally:
        await store.aclose()


async def ask_postgres(settings: Settings) -> list[Check]:
    """Returns the checks of Postgres.

    Raises:
        Unavailable: Postgres does not answer, or refuses.
        Misconfigured: The database is of before the first release.
    """
    try:
        with anyio.fail_after(_PATIENCE_S):
            version = await database_version(settings.database_url)
            facts = await durability_facts(settings.database_url)
    except TimeoutError:
        raise Unavailable("Postgres does not answer in time") from None
    return [schema_check(version, known=schema_version()), *durability_checks(facts)]


async def ask_both(settings: Settings, *, clock: Clock) -> list[Check]:
    """Returns all checks; a server that is away is a check that fails."""
    checks = []
    address = mask(settings.redis_url)
    try:
        results = await ask_redis(settings, clock=clock)
        checks += [Check(name="redis", status="ok", message=address), *results]
    except Unavailable as error:
        checks.append(_away("redis", address, error, variable="RSCHED_REDIS_URL"))
    address = mask(settings.database_url)
    try:
        results = await ask_postgres(settings)
        checks += [Check(name="postgres", status="ok", message=address), *results]
    except Unavailable as error:
        checks.append(_away("postgres", address, error, variable="RSCHED_DATABASE_URL"))
    except Misconfigured as error:
        checks.append(Check(name="postgres", status="fail", message=address, fix=str(error)))
    return checks


def _away(name: str, address: str, error: Unavailable, *, variable: str) -> Check:
    return away(name, f"{address}: {error}", variable=variable, refuses=isinstance(error, NeedsFixing))
