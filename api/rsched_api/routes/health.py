"""GET /healthz: the process answers. GET /readyz: everything that a run needs is there, or what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import RschedError
from rsched.core.ids import PARTITIONS
from rsched_api.http.deps import SHARD, Deps, deps_of
from rsched_api.views import respond

# A worker fetches at least once a second; one that was silent for this long is gone or stuck.
WORKER_SILENCE_MS = 10_000
# Probes give up after a few seconds themselves; a hanging server is a reason, too.
CHECK_S = 2.0


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the process answers."""

    status: str


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """reasons: what is missing, with the fix; empty when ready."""

    ready: bool
    reasons: list[str]


async def healthz(request: Request) -> Response:
    """GET /healthz: answers 200 as long as the process answers at all."""
    return respond(Health(status="ok"))


async def readyz(request: Request) -> Response:
    """GET /readyz: answers 200 when everything that a run needs is there, else 503 with what is missing."""
    reasons = await reasons_not_ready(deps_of(request))
    return respond(Readiness(ready=not reasons, reasons=reasons), 503 if reasons else 200)


async def reasons_not_ready(deps: Deps) -> list[str]:
    """Returns what is missing for a run, each with its fix; nothing when all is there."""
    reasons: list[str] = []
    for server, check in (("Postgres", _ledger), ("Redis", _shard), ("Redis", _processes)):
        reasons += await _try(check, deps, server)
    return list(dict.fromkeys(reasons))


async def _try(check: Callable[[Deps], Awaitable[list[str]]], deps: Deps, server: str) -> list[str]:
    try:
        async with asyncio.timeout(CHECK_S):
            return await check(deps)
    except TimeoutError:
        return [f"{server} did not answer within {CHECK_S:g} s"]
    except RschedError as error:
        return [error.detail]


async def _ledger(deps: Deps) -> list[str]:
    await deps.ledger.database.ping()
    await deps.ledger.database.check_schema()
    return (
        []
        if await deps.ledger.recovery.generations.recorder_alive(SHARD)
        else ["no recorder is alive; start rsched recorder"]
    )


async def _shard(deps: Deps) -> list[str]:
    if not await deps.store.recovery.is_open():
        return [f"shard {SHARD} is not open; a recorder opens it"]
    return []


async def _processes(deps: Deps) -> list[str]:
    schedulers, workers = await deps.store.processes.list_live()
    reasons = []
    owned = await deps.store.partitions.count_owned()
    if not schedulers:
        reasons.append("no scheduler is alive; start rsched scheduler")
    elif 0 < owned < PARTITIONS:
        # None owned by live schedulers: they run with ownership off.
        reasons.append(f"{PARTITIONS - owned} of {PARTITIONS} partitions have no owner yet")
    now = deps.store.clock.now_ms()
    if not any(now - heard <= WORKER_SILENCE_MS for heard in workers.values()):
        reasons.append("no worker is alive; start rsched worker")
    return reasons
