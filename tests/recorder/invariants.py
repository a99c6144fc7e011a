"""What must hold in a shard at any instant, told of a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from rsched.core.jobs.packed import RunRecord, unpack_head, unpack_run
from rsched.core.states import JobState, RunState
from tests.support.store_world import Snapshot

HOUR = 3_600_000


def problems(at: Snapshot) -> list[str]:
    """What is inconsistent in a snapshot of a shard."""
    runs = {k.decode(): unpack_run(v.decode()) for k, v in at.get("runs", {}).items()}
    streams = {
        name[2:]: [e[1][b"r"].decode() for e in entries] for name, entries in at.items() if name.startswith("q:")
    }
    return [
        *_of_runs(at, runs, streams),
        *_of_sets(at, runs, streams),
        *_of_jobs(at),
        *_of_what_is_kept(at, runs),
    ]


def _members(at: Snapshot, name: str) -> set[str]:
    return {member.decode() for member, _ in at.get(name, [])}


def _of_runs(at: Snapshot, runs: Mapping[str, RunRecord], streams: Mapping[str, list[str]]) -> Iterator[str]:
    """Each run is in the set of its state."""
    staged, retries, leases = (_members(at, name) for name in ("staged", "retries", "leases"))
    queued = {run for entries in streams.values() for run in entries}
    for run, record in runs.items():
        letter = next((c for c in record.flags if c.islower()), "")
        active = {m.decode(): s for m, s in at.get(f"active:{run[:15]}", [])}
        own = f"{run}|{record.queue_key}" + (f"|{letter}" if letter else "")
        waits = letter and active.get(run, 0) > 0 and min(active.values()) == 0
        if record.state is RunState.QUEUED and own not in staged and run not in queued and not waits:
            yield f"{run} is QUEUED and in no set"
        if record.state is RunState.RETRYING and f"{run}|{record.queue_key}" not in retries and run not in queued:
            yield f"{run} is RETRYING and in no set"
        if record.state is RunState.RUNNING and run not in leases:
            yield f"{run} is RUNNING without a lease"
        if letter and record.state is not RunState.QUEUED and active.get(run) != 0:
            yield f"{run} is live and not active"


def _of_sets(at: Snapshot, runs: Mapping[str, RunRecord], streams: Mapping[str, list[str]]) -> Iterator[str]:
    """Each entry of a set belongs to a run, and teams with work are ready."""
    queued = {run for entries in streams.values() for run in entries}
    yield from (f"{m} is staged and no run" for m in _members(at, "staged") if m.split("|")[0] not in runs)
    yield from (f"{m} retries and is no run" for m in _members(at, "retries") if m.split("|")[0] not in runs)
    for member in _members(at, "leases"):
        if member not in runs or runs[member].state is not RunState.RUNNING:
            yield f"{member} has a lease and is not RUNNING"
    yield from (f"{run} is queued and no run" for run in queued if run not in runs)
    ready, teams = _members(at, "ready:default"), {queue_key.split(":")[1] for queue_key in streams}
    if ready != teams:
        yield f"ready {ready}, with work {teams}"


def _of_jobs(at: Snapshot) -> Iterator[str]:
    """Active jobs are due, others are not, heads tell the earliest and pauses end."""
    heads = {m.decode(): s for m, s in at.get("heads", [])}
    dues = {k.split(":")[1]: dict(v) for k, v in at.items() if k.startswith("due:")}
    if heads != {p: min(d.values()) for p, d in dues.items()}:
        yield f"heads {heads}, due {dues}"
    jobs = {j.decode(): v for k, values in at.items() if k.startswith("jobs:") for j, v in values.items()}
    due = {j.decode() for d in dues.values() for j in d}
    ends = {j.decode(): end for j, end in at.get("pauses", [])}
    yield from (f"{job} is due and no job" for job in due if job not in jobs)
    for job, value in jobs.items():
        head = unpack_head(value)
        if head.kind != "o" and head.state is JobState.ACTIVE and job not in due:
            yield f"{job} is active and not due"
        if head.state is not JobState.ACTIVE and job in due:
            yield f"{job} is due and not active"
        if head.state is JobState.PAUSED and head.until and ends.get(job) != head.until:
            yield f"the pause of {job} does not end when it should"


def _of_what_is_kept(at: Snapshot, runs: Mapping[str, RunRecord]) -> Iterator[str]:
    """What is kept beside runs and workers belongs to some, and occurrence caches have no gap."""
    for name, members in at.items():
        if name.startswith("active:"):
            yield from (f"{m.decode()} is active and no run" for m, _ in members if m.decode() not in runs)
        if name.startswith("occurrences:"):
            instants = [s for m, s in members if m not in (b"from", b"end")]
            if any(b - a != HOUR for a, b in pairwise(instants)):
                yield f"{name} lacks an occurrence"
    yield from (f"payload of no run {run.decode()}" for run in at.get("payloads", {}) if run.decode() not in runs)
    workers = at.get("workers", {})
    for name in ("requests", "finishes"):
        yield from (f"{name} of no worker {w.decode()}" for w in at.get(name, {}) if w not in workers)
