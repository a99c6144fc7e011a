"""What must hold in a shard at any instant, told of a snapshot."""

from __future__ import annotations

from itertools import pairwise

from rsched.core.jobs.packed import unpack_head, unpack_run
from rsched.core.states import JobState, RunState
from tests.store.world import Snapshot

HOUR = 3_600_000


def problems(at: Snapshot) -> list[str]:
    """What is inconsistent in a snapshot of a shard."""
    out: list[str] = []
    runs = {k.decode(): unpack_run(v.decode()) for k, v in at.get("runs", {}).items()}
    staged = {m.decode() for m, _ in at.get("staged", [])}
    retries = {m.decode() for m, _ in at.get("retries", [])}
    leases = {m.decode() for m, _ in at.get("leases", [])}
    streams: dict[str, list[str]] = {}
    for name, entries in at.items():
        if name.startswith("q:"):
            streams[name[2:]] = [e[1][b"r"].decode() for e in entries]
    queued = {run for entries in streams.values() for run in entries}
    for run, r in runs.items():
        letter = next((c for c in r.flags if c.islower()), "")
        active = {m.decode(): s for m, s in at.get(f"active:{run[:15]}", [])}
        own = f"{run}|{r.queue_key}" + (f"|{letter}" if letter else "")
        waits = letter and active.get(run, 0) > 0 and min(active.values()) == 0
        if r.state is RunState.QUEUED and own not in staged and run not in queued and not waits:
            out.append(f"{run} is QUEUED and in no set")
        if r.state is RunState.RETRYING and f"{run}|{r.queue_key}" not in retries and run not in queued:
            out.append(f"{run} is RETRYING and in no set")
        if r.state is RunState.RUNNING and run not in leases:
            out.append(f"{run} is RUNNING without a lease")
        if letter and r.state is not RunState.QUEUED and active.get(run) != 0:
            out.append(f"{run} is live and not open")
    out += [f"{m} is staged and no run" for m in staged if m.split("|")[0] not in runs]
    out += [f"{m} retries and is no run" for m in retries if m.split("|")[0] not in runs]
    out += [
        f"{m} has a lease and is not RUNNING" for m in leases if m not in runs or runs[m].state is not RunState.RUNNING
    ]
    out += [f"{r} is queued and no run" for r in queued if r not in runs]
    ready = {m.decode() for m, _ in at.get("ready:default", [])}
    teams = {queue_key.split(":")[1] for queue_key in streams}
    if ready != teams:
        out.append(f"ready {ready}, with work {teams}")
    heads = {m.decode(): s for m, s in at.get("heads", [])}
    dues = {k.split(":")[1]: dict(v) for k, v in at.items() if k.startswith("due:")}
    if heads != {p: min(d.values()) for p, d in dues.items()}:
        out.append(f"heads {heads}, due {dues}")
    jobs = {j.decode(): v for k, values in at.items() if k.startswith("jobs:") for j, v in values.items()}
    due = {j.decode() for d in dues.values() for j in d}
    ends = {j.decode(): end for j, end in at.get("pauses", [])}
    out += [f"{j} is due and no job" for j in due if j not in jobs]
    for job, value in jobs.items():
        head = unpack_head(value)
        goes_on = head.kind != "o" and head.state is JobState.ACTIVE
        if goes_on and job not in due:
            out.append(f"{job} is active and not due")
        if head.state is not JobState.ACTIVE and job in due:
            out.append(f"{job} is due and not active")
        if head.state is JobState.PAUSED and head.until and ends.get(job) != head.until:
            out.append(f"the pause of {job} does not end when it should")
    for name, members in at.items():
        if name.startswith("active:"):
            out += [f"{m.decode()} is open and no run" for m, _ in members if m.decode() not in runs]
        if name.startswith("occurrences:"):
            at_ = [s for m, s in members if m not in (b"from", b"end")]
            if any(b - a != HOUR for a, b in pairwise(at_)):
                out.append(f"{name} lacks an occurrence")
    out += [f"payload of no run {r.decode()}" for r in at.get("payloads", {}) if r.decode() not in runs]
    workers = at.get("workers", {})
    out += [
        f"{k} of no worker {w.decode()}" for k in ("requests", "finishes") for w in at.get(k, {}) if w not in workers
    ]
    return out
