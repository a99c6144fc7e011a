"""What handlers work with, and the waits that make a success durable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from starlette.requests import Request

from rsched.core.errors import DurabilityUnknown, ShardClosed, Unavailable
from rsched.core.ids import JobId, RunId
from rsched.core.jobs.model import Ack
from rsched.core.settings import ApiSettings
from rsched.ledger import Ledger, StoredJob, Waiter
from rsched.ledger.positions import START, parse_position
from rsched.runtime.clock import Clock
from rsched_api.http.ack import ack_of
from rsched_api.http.call_batcher import Together
from rsched_api.http.deadline import about, apart, left_s
from rsched_api.http.ports import ApiStore

SHARD = "s0"
_POLL_MS = 20.0
# Creates of one moment look their names up in one query.
_LOOK_UPS = 500
# With ack=redis. A look-up takes ms; of a server that is away nothing is heard for seconds, and whoever asks next need not find
# that out again.
_SOON_S = 1.0
_QUIET_MS = 5000
T = TypeVar("T")
Owner = tuple[str, str]


class LookUps:
    """Finds the newest job, deleted or not, of a (team, handle) in the ledger; look-ups of one moment share a query."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        async def call(owners: Sequence[Owner]) -> list[StoredJob | None]:
            found = await ledger.jobs.last_incarnations(owners)
            return [found.get(owner) for owner in owners]

        self._one, self._clock = Together(call, most=_LOOK_UPS), clock
        self._quiet_until = 0

    async def one(self, owner: Owner) -> StoredJob | None:
        """Returns the newest job of the owner (team, handle); None where there never was one.

        Raises:
            Unavailable: Postgres does not answer.
        """
        return await self._one(owner)

    async def soon(self, call: Callable[[], Awaitable[T]]) -> T:
        """Returns what a look-up finds, for a request with ack=redis.

        Raises:
            Unavailable: There was no answer within a second; for some seconds after that it is raised at once.
        """
        if self._clock.boot_ms() < self._quiet_until:
            raise Unavailable("Postgres gave no answer a moment ago")

        async def heard() -> T:
            found = await call()
            self._quiet_until = 0
            return found

        try:
            # With a short deadline there must be time left for the change itself.
            return await apart(heard, within_s=left_s(2 * _SOON_S) / 2)
        except Unavailable:
            self._quiet_until = self._clock.boot_ms() + _QUIET_MS
            raise


class Restoration:
    """Knows whether definitions that Redis had lost are still coming back.

    Once they are there it is asked anew only after the next recovery, of which the first verb that follows learns before it
    is carried out.
    """

    def __init__(self, store: ApiStore) -> None:
        self._store, self._done = store, ""
        store.connection.on_new_generation = self._new_generation

    async def is_in_progress(self) -> bool:
        """Returns whether some definitions may still be missing in Redis."""
        generation = self._store.connection.generation
        if generation == self._done:
            return False
        if await self._store.restore.is_in_progress():
            return True
        # Before the first verb no generation is known.
        self._done = generation if int(generation) else ""
        return False

    async def _new_generation(self) -> None:
        if await self.is_in_progress():
            raise ShardClosed("Redis lost writes, and definitions are being restored; try again")


@dataclass(frozen=True, kw_only=True)
class Deps:
    """What handlers work with. `ack` says where a change has to be before its request is answered."""

    settings: ApiSettings
    clock: Clock
    store: ApiStore
    ledger: Ledger
    waiter: Waiter
    look_up: LookUps
    restoration: Restoration
    ack: Ack = "postgres"


def deps_of(request: Request) -> Deps:
    """Returns what the app opened at its start, with the acknowledgement that this request asks for."""
    deps: Deps = request.app.state.deps
    ack = ack_of(request)
    return deps if ack == deps.ack else replace(deps, ack=ack)


async def write(call: Awaitable[T], *, job_id: JobId | None = None, run_id: RunId | None = None) -> T:
    """Returns the reply of a verb that changes something.

    Raises:
        ShardClosed: The shard did not take the verb; nothing was changed.
        DurabilityUnknown: The link broke; the verb may have run all the same.
    """
    about(job_id=job_id, run_id=run_id)
    try:
        return await call
    except ShardClosed:
        raise
    except Unavailable as error:
        raise DurabilityUnknown(f"{error.detail}; repeat the request", job_id=job_id, run_id=run_id) from error


async def wait_recorded(
    deps: Deps, journal_id: str, *, job_id: JobId | None = None, run_id: RunId | None = None
) -> None:
    """Waits until the journal entry is in Postgres; with ack=redis it does not wait.

    Raises:
        DurabilityUnknown: The record was not seen in time, or Postgres does not answer.
    """
    if deps.ack == "redis":
        return
    timeout = deps.settings.ack_timeout_s
    try:
        if await deps.waiter.wait_recorded(SHARD, "definitions", journal_id, left_s(timeout)):
            return
    except Unavailable as error:
        raise _unknown(error.detail, job_id, run_id) from error
    raise _unknown("its record was not seen in time", job_id, run_id)


async def wait_until_readable(
    deps: Deps,
    look: Callable[[], Awaitable[T | None]],
    *,
    job_id: JobId | None = None,
    run_id: RunId | None = None,
    timeout_s: float | None = None,
) -> T:
    """Waits until `look` finds something in the ledger, and returns it: for repeats, whose own entry is an earlier one.

    Args:
        deps: What the API works with.
        look: Asks the ledger; None as long as it has no answer.
        job_id: The job that an error names.
        run_id: The run that an error names.
        timeout_s: Seconds, by default ack_timeout_s; never past the deadline of the request.

    Raises:
        DurabilityUnknown: The record was not seen in time, or Postgres does not answer.
    """
    deadline = deps.clock.boot_ms() + left_s(deps.settings.ack_timeout_s if timeout_s is None else timeout_s) * 1000
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


async def wait_definitions_recorded(deps: Deps, *, timeout_s: float | None = None) -> None:
    """Waits until every definition that was changed before this call is in the ledger.

    Nothing has been changed by then. `timeout_s` is by default ack_timeout_s; the wait ends at the deadline of the request.

    Raises:
        Unavailable: That took too long, or a server does not answer.
    """
    await wait_stream_recorded(deps, "definitions", timeout_s=timeout_s)


async def wait_stream_recorded(deps: Deps, stream: str, *, timeout_s: float | None = None) -> None:
    """Waits until the ledger has all that the journal stream has now.

    Raises:
        Unavailable: That took too long, or a server does not answer.
    """
    last = await deps.store.journal.get_last_id(stream)
    if parse_position(last) <= START:
        return
    timeout = left_s(deps.settings.ack_timeout_s if timeout_s is None else timeout_s)
    if not await deps.waiter.wait_recorded(SHARD, stream, last, timeout):
        raise Unavailable(
            "what was changed before this request is not all recorded in Postgres yet, so it cannot be decided; try again"
        )


async def wait_version_recorded(deps: Deps, job_id: JobId, version: int) -> None:
    """Waits until the ledger has this version of the job, or a later one; with ack=redis it does not wait.

    Raises:
        DurabilityUnknown: The record was not seen in time, or Postgres does not answer.
    """
    if deps.ack == "redis":
        return

    async def look() -> bool | None:
        found = await deps.ledger.jobs.get(job_id)
        return True if found is not None and found.head.version >= version else None

    await wait_until_readable(deps, look, job_id=job_id)


def _unknown(why: str, job_id: JobId | None, run_id: RunId | None) -> DurabilityUnknown:
    return DurabilityUnknown(
        f"the change was made, but {why}; repeat the request with the same key to learn its outcome",
        job_id=job_id,
        run_id=run_id,
    )
