"""POST /v1/jobs:batch: many jobs in one request, all or none."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import Conflict, DurabilityUnknown, Invalid, RschedError, TooLarge, Unavailable
from rsched.core.ids import JobId
from rsched.core.jobs import records
from rsched.core.jobs.model import Definition, JobSpec
from rsched.core.jobs.packed import JobHead, JobRecord
from rsched.core.schedule.schedule import Calendars, calendar_names
from rsched.ledger import StoredJob
from rsched.ledger.positions import parse_position
from rsched_api.http.batch_body import MAX_BATCH_BYTES, Errors, Pace, Parsed, at_index, batch_too_large, parsed
from rsched_api.http.deadline import restart
from rsched_api.http.deps import Deps, deps_of, wait_recorded, wait_until_readable, write
from rsched_api.http.requests import body, idempotency_key, query
from rsched_api.routes.calendars import calendars_of
from rsched_api.routes.create import Made, Plan, full, handle_of, known, plan, repeat
from rsched_api.views import job_view

# A put takes Redis about 25 us a job; while its script runs, nothing else does.
PUT_JOBS = 1000
# What a job takes the API at most from here on, on a machine with other things to do.
_WORK_S = 0.0002
_TRIES = 8
_REMOVES = 16

_encode = msgspec.json.Encoder().encode


class _Wanted(NamedTuple):
    """key: what the item's idempotency key is, None without one; handle: what its id derives from."""

    at: int
    job: Parsed
    key: str | None
    handle: str
    request_hash: str

    @property
    def owner(self) -> tuple[str, str]:
        return self.job.spec.team, self.handle

    def plan(self, incarnation: int, now: int) -> Plan:
        return plan(
            self.job.spec,
            self.job.resolved,
            self.job.schedule,
            handle=self.handle,
            incarnation=incarnation,
            key=self.key,
            request_hash=self.request_hash,
            now=now,
        )


async def post_jobs(request: Request) -> Response:
    """POST /v1/jobs:batch: creates all jobs of the body, or none of them.

    Raises:
        Invalid: A field or parameter cannot stand (422).
        Conflict: A name is taken.
        TooLarge: The body or a definition is too large.
        Unavailable: Redis or Postgres does not answer, or the job is being restored (503).
        DurabilityUnknown: The change may have been made, but its record was not seen in time (503).
    """
    deps = deps_of(request)
    query(request)
    key = idempotency_key(request)
    raw = await body(request, most=MAX_BATCH_BYTES, refused=batch_too_large)
    pace = Pace(deps.clock)
    now = deps.store.clock.now_ms()
    calendars = _Calendars(deps)
    jobs = await parsed(raw, now=now, pace=pace, calendars_of=calendars.of)
    wanted = await _wanted(jobs, key, pace)
    restart(work_s=_WORK_S * len(wanted))
    creation = _Creation(deps, wanted, now=now, pace=pace)
    made = await creation.made()
    # While the recorder is at it.
    now, parts = deps.store.clock.now_ms(), []
    for one in made:
        parts.append(_encode(job_view(one.job_id, one.record, now, await calendars.of(one.record.definition))))
        await pace.breathe()
    await creation.acknowledged()
    return Response(b'{"items":[' + b",".join(parts) + b"]}", 201, media_type="application/json")


class _Calendars:
    """Those that the jobs of one batch name, each asked for once: once all is put, nothing may fail any more."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._known: dict[tuple[str, frozenset[str]], Calendars] = {}

    async def of(self, job: JobSpec | Definition) -> Calendars:
        which = job.team, calendar_names(job)
        if which not in self._known:
            self._known[which] = await calendars_of(self._deps, job)
        return self._known[which]


async def _wanted(jobs: Sequence[Parsed], key: str | None, pace: Pace) -> list[_Wanted]:
    hashes = []
    for job in jobs:
        hashes.append(records.body_hash(job.spec))
        await pace.breathe()
    # In each item's hash, so that its key is not good for another batch that has the same item.
    whole = _hash("".join(hashes))
    found = []
    for at, job in enumerate(jobs):
        # A header has no control character: no request's own key is taken for an item's.
        own = None if key is None else f"{key}\x01{at}"
        request_hash = hashes[at] if key is None else _hash(whole + hashes[at])
        found.append(_Wanted(at, job, own, handle_of(job.spec.name, own), request_hash))
        await pace.breathe()
    return found


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


class _Creation:
    """Creates the jobs of one batch, in slices, because one script for all would hold up everybody.

    Each slice is atomic. What makes them one is that names are checked before the first, that a slice which is refused undoes
    those before it, and that after an unknown outcome a repeat with the same key finishes what is there
    (docs/decisions/0005-batches-in-slices.md).
    """

    def __init__(self, deps: Deps, wanted: Sequence[_Wanted], *, now: int, pace: Pace) -> None:
        self._deps, self._wanted, self._now, self._pace = deps, wanted, now, pace
        self._made: dict[int, Made] = {}
        self._put: list[JobId] = []
        self._unseen: list[_Wanted] = []  # repeats whose record is not seen in the ledger yet
        self._journal_id: str | None = None

    async def made(self) -> list[Made]:
        """All of them, in order. Invalid, Conflict, TooLarge, Unavailable: none was made. DurabilityUnknown."""
        plans = await self._plans()
        for at in range(0, len(plans), PUT_JOBS):
            try:
                await self._put_slice(plans[at : at + PUT_JOBS])
            except DurabilityUnknown:
                raise  # the slice may be there: a repeat goes on from what it finds
            except RschedError:
                await self._undo()
                raise
        return [self._made[w.at] for w in self._wanted]

    async def _plans(self) -> list[tuple[_Wanted, Plan]]:
        """What is to be put: all but what an earlier try of this request has made."""
        last = await self._last()
        errors, taken, plans = Errors(), Errors(), []
        there = await self._present([job.job_id for job in last.values() if not job.deleted])
        for wanted in self._wanted:
            found = last.get(wanted.owner)
            incarnation = 1
            try:
                if found is not None:
                    present = there.get(found.job_id)
                    if isinstance(present, Exception):
                        raise Unavailable(f"job {found.job_id} cannot be read; try again")
                    if found.deleted or isinstance(present, JobHead):
                        incarnation = found.definition.incarnation + 1
                    else:
                        # Not in Redis: completed and forgotten by it; a put would bring it to life again.
                        self._repeated(wanted, found.job_id, present or JobRecord(found.head, found.definition))
                        continue
                plans.append((wanted, wanted.plan(incarnation, self._now)))
            except Invalid as error:
                errors.add(wanted.at, error)
            except Conflict as error:
                taken.add(wanted.at, error)
            except TooLarge as error:
                raise at_index(wanted.at, error) from None
            if errors.enough:
                break
            await self._pace.breathe()
        if errors.found:
            raise Invalid(errors=errors.found)
        if taken.found:
            raise Conflict(errors=taken.found)
        return plans

    async def _last(self) -> dict[tuple[str, str], StoredJob]:
        owners = [w.owner for w in self._wanted if w.job.spec.name is not None or w.key is not None]
        found: dict[tuple[str, str], StoredJob] = {}
        for at in range(0, len(owners), PUT_JOBS):
            some = owners[at : at + PUT_JOBS]
            look = partial(self._deps.ledger.jobs.last_incarnations, some)
            there = await known(self._deps, look, named=any(w.job.spec.name is not None for w in self._wanted))
            if there is None:
                return {}
            found |= there
            await self._pace.breathe()
        return found

    async def _present(self, jobs: Sequence[JobId]) -> dict[JobId, JobRecord | JobHead | Exception]:
        found: dict[JobId, JobRecord | JobHead | Exception] = {}
        for at in range(0, len(jobs), PUT_JOBS):
            found |= await self._deps.store.jobs.get_many(jobs[at : at + PUT_JOBS])
            await self._pace.breathe()
        return found

    def _repeated(self, wanted: _Wanted, job_id: JobId, record: JobRecord) -> None:
        made = Made(job_id, record, created=True)
        self._made[wanted.at] = repeat(wanted.job.spec, wanted.key, wanted.request_hash, made)

    async def _put_slice(self, plans: list[tuple[_Wanted, Plan]]) -> None:
        for _ in range(_TRIES):
            if not plans:
                return
            reply = await write(self._deps.store.jobs.put([planned.item for _, planned in plans], atomic=True))
            if reply.ok:
                self._journal_id = reply.journal_id
                for wanted, planned in plans:
                    self._made[wanted.at] = Made(planned.job_id, planned.record, created=True)
                    self._put.append(planned.job_id)
                return
            plans = await self._without_those_there(plans, reply.tags)
        raise Unavailable("names of the batch are being created and deleted at once; try again")

    async def _without_those_there(
        self, plans: list[tuple[_Wanted, Plan]], tags: Sequence[str]
    ) -> list[tuple[_Wanted, Plan]]:
        """What is still to be put after a refusal: the ledger did not know of these jobs yet. Conflict, Unavailable."""
        if "full" in tags:
            raise full()
        there = await self._present(
            [planned.job_id for (_, planned), tag in zip(plans, tags, strict=True) if tag == "exists"]
        )
        left, taken = [], Errors()
        for (wanted, planned), tag in zip(plans, tags, strict=True):
            present = there.get(planned.job_id)
            if isinstance(present, JobRecord):
                try:
                    self._repeated(wanted, planned.job_id, present)
                    self._unseen.append(wanted)
                except (Conflict, Invalid) as error:
                    taken.add(wanted.at, error)
            elif tag == "deleted" or isinstance(present, JobHead):
                incarnation = planned.record.definition.incarnation + 1
                left.append((wanted, wanted.plan(incarnation, self._now)))
            else:
                left.append((wanted, planned))
        if taken.found:
            raise Conflict(errors=taken.found)
        return left

    async def _undo(self) -> None:
        """Deletes what this request has put. What others have changed meanwhile is theirs and stays. DurabilityUnknown."""
        if not self._put:
            return
        limiter, journal_ids = anyio.Semaphore(_REMOVES), [self._journal_id or "0-0"]

        async def remove(job: JobId) -> None:
            async with limiter:
                reply = await self._deps.store.jobs.remove(job, expect=1)
                journal_ids.append(reply.journal_id or "0-0")

        try:
            async with anyio.create_task_group() as group:
                for job in self._put:
                    group.start_soon(remove, job)
        except* Unavailable as errors:
            why = errors.exceptions[0]
            raise DurabilityUnknown(f"the batch was refused and a part is left ({why}); repeat the request") from errors
        await wait_recorded(self._deps, max(journal_ids, key=parse_position))

    async def acknowledged(self) -> None:
        """Returns once all of them are where the request wants them. DurabilityUnknown."""
        if self._unseen and self._deps.ack != "redis":
            await wait_until_readable(self._deps, self._seen)
        if self._journal_id is not None:
            await wait_recorded(self._deps, self._journal_id)

    async def _seen(self) -> bool | None:
        """True once the ledger has each repeat that is not seen yet: the very job of the answer, or a later one of its name."""
        while self._unseen:
            some = self._unseen[:PUT_JOBS]
            found = await self._deps.ledger.jobs.last_incarnations([w.owner for w in some])
            left = [w for w in some if not self._is_recorded(w, found.get(w.owner))]
            self._unseen[: len(some)] = left
            if left:
                return None
        return True

    def _is_recorded(self, wanted: _Wanted, last: StoredJob | None) -> bool:
        made = self._made[wanted.at].record.definition
        return last is not None and last.definition.incarnation >= made.incarnation
