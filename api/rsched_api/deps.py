"""What handlers work with, and the waits that make a success durable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request

from rsched.core.errors import DurabilityUnknown, ShardClosed, Unavailable
from rsched.core.ids import JobId, RunId
from rsched.core.settings import ApiSettings
from rsched.ledger import Ledger, Waiter
from rsched.runtime.clock import Clock
from rsched.store.store import Store

SHARD = "s0"
_POLL_MS = 20.0
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Deps:
    settings: ApiSettings
    clock: Clock
    store: Store
    ledger: Ledger
    waiter: Waiter


def deps_of(request: Request) -> Deps:
    deps: Deps = request.app.state.deps
    return deps


async def write(call: Awaitable[T], *, job_id: JobId | None = None, run_id: RunId | None = None) -> T:
    """A verb's reply. DurabilityUnknown where the link broke: the verb may have run all the same."""
    try:
        return await call
    except ShardClosed:
        raise
    except Unavailable as error:
        raise DurabilityUnknown(f"{error.detail}; repeat the request", job_id=job_id, run_id=run_id) from error


async def recorded(deps: Deps, journal_id: str, *, job_id: JobId | None = None, run_id: RunId | None = None) -> None:
    """Returns once the journal entry is in Postgres. DurabilityUnknown after ack_timeout_s."""
    timeout = deps.settings.ack_timeout_s
    try:
        if await deps.waiter.wait_recorded(SHARD, "definitions", journal_id, timeout):
            return
    except Unavailable as error:
        raise _unknown(error.detail, job_id, run_id) from error
    raise _unknown(f"its record was not seen within {timeout:g} s", job_id, run_id)


async def settled(
    deps: Deps,
    look: Callable[[], Awaitable[T | None]],
    *,
    job_id: JobId | None = None,
    run_id: RunId | None = None,
) -> T:
    """What `look` finds in the ledger, as soon as it finds it: for repeats, whose own entry is an earlier one."""
    deadline = deps.clock.boot_ms() + deps.settings.ack_timeout_s * 1000
    while True:
        try:
            found = await look()
        except Unavailable as error:
            raise _unknown(error.detail, job_id, run_id) from error
        if found is not None:
            return found
        if deps.clock.boot_ms() >= deadline:
            raise _unknown("its record was not seen in time", job_id, run_id)
        await deps.clock.sleep(_POLL_MS)


async def version_recorded(deps: Deps, job_id: JobId, version: int) -> None:
    """Returns once the ledger has this version of the job, or a later one."""

    async def look() -> bool | None:
        found = await deps.ledger.job(job_id)
        return True if found is not None and found.head.version >= version else None

    await settled(deps, look, job_id=job_id)


def _unknown(why: str, job_id: JobId | None, run_id: RunId | None) -> DurabilityUnknown:
    return DurabilityUnknown(
        f"the change was made, but {why}; repeat the request with the same key to settle it",
        job_id=job_id,
        run_id=run_id,
    )
