"""What every fault run ends with beside the checker: each acknowledged job as it was acknowledged, both servers of one mind."""

from __future__ import annotations

from collections.abc import Mapping

from rsched.core.ids import JobId
from rsched.core.jobs.packed import unpack_job
from rsched.ledger import Ledger
from rsched.recorder.reconcile.reconciler import Reconciler
from tests.support.deployment import Deployment


async def disagreements(w: Deployment, acknowledged: Mapping[JobId, bytes], *, shard: str = "s0") -> list[str]:
    """acknowledged: the value that each job was put with. Nothing may be under way; an unfinished restoration is waited for."""
    found = []
    async with Ledger(w.database_url, clock=w.clock) as ledger:
        for job, value in acknowledged.items():
            stored = await ledger.jobs.get(job)
            if stored is None:
                found.append(f"{job} was acknowledged and is not in the ledger")
            elif stored.definition != unpack_job(value).definition:
                found.append(f"{job} is not as it was acknowledged")
        reconciler = Reconciler(w.store, ledger, shard=shard, clock=w.clock, lease_ms=60_000, write=False)

        async def looked() -> bool:
            return await reconciler.run_pass() is not None and not reconciler.unsure

        await w.fleet.until(looked, what="a comparison of Redis and the ledger", within_s=30)
        found += [f"Redis and the ledger disagree: {kind}, {n} times" for kind, n in reconciler.found.items()]
    return found
