"""What the verbs on runs take and answer. Instants are ms by Redis' clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from rsched.core.ids import JobId, RunId
from rsched.core.jobs.model import Definition, with_payload
from rsched.core.jobs.packed import FLAG_MANUAL, JobHead, JobRecord, RunRecord, unpack_job, unpack_run
from rsched.core.states import RunState

T = TypeVar("T")


class MissingOccurrences(NamedTuple):
    """A job whose schedule's occurrence cache must reach past `after` (ms) before it can be claimed."""

    schedule: str
    after: int
    job: JobId


class Claimed(NamedTuple):
    """What a claim did.

    Attributes:
        now: Redis' time (ms).
        total: How many runs it made.
        more: Whether there is more to claim.
        needs: Jobs that were left, as the occurrence cache does not reach far enough.
        late: Jobs whose occurrence, with its instant (ms), is past the grace: a misfire to resolve.
        stale: Partitions that the scheduler does not own under the epoch that it gave.
        full: Too little memory is left, nothing was claimed.
    """

    now: int
    total: int
    more: bool
    needs: list[MissingOccurrences]
    late: list[tuple[JobId, int]]
    stale: list[int]
    full: bool = False


class MisfireItem(NamedTuple):
    """How a late job goes on; see lua/runs/resolve_misfires.lua. Instants in ms, None for none.

    Attributes:
        job: Its id.
        schedule_version: The version of the schedule that this was computed from.
        due: The late occurrence at which the job stands.
        following: When it is due next.
        run_at: The one occurrence to run at once.
        first: The first occurrence that is skipped.
        last: The last one that is skipped.
        skipped: How many are skipped.
        catch_up: First and last occurrence of the catch-up range to make.
    """

    job: JobId
    schedule_version: int
    due: int
    following: int | None
    run_at: int | None
    first: int
    last: int
    skipped: int
    catch_up: tuple[int, int] | None = None


class Released(NamedTuple):
    """What a release did: how many runs, whether there are more, and when (ms) the next is due, None for none known."""

    now: int
    total: int
    more: bool
    next_at: int | None


class ExpiredRun(NamedTuple):
    """A run whose lease has ended; record and job are None where Redis has no such run or no definition of its job."""

    run: RunId
    record: RunRecord | None
    job: JobRecord | None


class ReapItem(NamedTuple):
    """What becomes of a run whose lease has ended.

    Attributes:
        run: Its id.
        fence: The fence of the attempt that was lost.
        outcome: T to retry after delay_ms, D for dead, N where there was no definition to tell.
        delay_ms: See `outcome`.
    """

    run: RunId
    fence: int
    outcome: str
    delay_ms: int


class FetchedRun(NamedTuple):
    """One attempt to make.

    Attributes:
        run: The run's id.
        attempt: The attempt's number, from 1.
        fence: What every write of the attempt must present.
        due_at: When (ms) it was due: the run's own instant for the first attempt, the end of the backoff for those after.
        manual: Whether somebody triggered it.
        head: The job's head.
        definition: The job's definition, with the run's own payload where it has one.
    """

    run: RunId
    attempt: int
    fence: int
    due_at: int
    manual: bool
    head: JobHead
    definition: Definition


class FetchReply(NamedTuple):
    """Attempts to make, the end of their leases (ms by Redis' clock, like now), and whether more runs wait."""

    now: int
    lease_end: int
    runs: list[FetchedRun]
    more: bool


class FinishItem(NamedTuple):
    """How an attempt ended.

    Attributes:
        run: The run's id.
        fence: The attempt's fence.
        outcome: SUCCEEDED, RETRYING (after delay_ms), DEAD or CANCELLED.
        delay_ms: See `outcome`.
        started_at: When (ms by Redis' clock) the target was called.
        error: What went wrong, "" for nothing.
    """

    run: RunId
    fence: int
    outcome: RunState
    delay_ms: int
    started_at: int
    error: str


class RenewReply(NamedTuple):
    """What a renewal did.

    Attributes:
        now: Redis' time (ms).
        lease_end: When the renewed leases end (ms).
        tags: One an item: ok, cancel (renewed, and a cancel was asked for), stale_fence, missing.
    """

    now: int
    lease_end: int
    tags: list[str]


def read_claimed(
    reply: Sequence[Sequence[bytes]],
) -> tuple[list[MissingOccurrences], list[tuple[JobId, int]], list[int]]:
    """Returns the needs, the late and the stale of a claim's reply, given from the first of them on."""
    needs, late, stale = reply
    return (
        [
            MissingOccurrences(schedule.decode(), int(after), JobId(job.decode()))
            for schedule, after, job in zip(needs[::3], needs[1::3], needs[2::3], strict=True)
        ],
        [(JobId(job.decode()), int(due)) for job, due in zip(late[::2], late[1::2], strict=True)],
        [int(partition) for partition in stale],
    )


def read_fetched(flat: Sequence[bytes]) -> list[FetchedRun]:
    """Returns the attempts of a fetch's reply. One that nobody can call is left out: its lease ends and reap decides."""
    attempts = []
    for i in range(0, len(flat), 7):
        run, attempt, fence, due, flags, value, payload = flat[i : i + 7]
        try:
            job = unpack_job(value)
            definition = with_payload(job.definition, payload) if payload else job.definition
        except (ValueError, KeyError):
            continue
        manual = FLAG_MANUAL in flags.decode()
        attempts.append(
            FetchedRun(RunId(run.decode()), int(attempt), int(fence), int(due), manual, job.head, definition)
        )
    return attempts


def read_expired(flat: Sequence[bytes]) -> list[ExpiredRun]:
    """Returns the runs of a reply of expired_leases."""
    return [
        ExpiredRun(RunId(run.decode()), _or_none(_unpack_run, record), _or_none(unpack_job, value))
        for run, record, value in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    ]


def _unpack_run(raw: bytes) -> RunRecord:
    return unpack_run(raw.decode())


def _or_none(unpack: Callable[[bytes], T], value: bytes) -> T | None:
    try:
        return unpack(value)
    except (ValueError, KeyError):
        return None
