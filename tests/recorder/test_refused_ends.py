"""A run of which Postgres refuses an event: what has ended does not run again, what has not is still expected."""

from __future__ import annotations

import pytest

from rsched.core.states import RunState
from rsched.runtime.metrics import ALERTS
from tests.recorder.one_offs import (
    emptied,
    fetched,
    finished,
    put_once,
    rows,
)
from tests.recorder.rollback import stale_generation
from tests.recorder.stepped_shard import InShard, Shard

REFUSED = "ALTER TABLE finished_runs ADD CHECK (status NOT IN ('DEAD', 'CANCELLED'))"


@pytest.mark.parametrize("end", [RunState.DEAD, RunState.CANCELLED], ids=str)
def test_a_run_whose_end_postgres_refuses_does_not_run_again(shard: InShard, end: RunState) -> None:
    async def body(s: Shard) -> None:
        await s.ledger.database.execute(REFUSED, ())
        run, other = await put_once(s, "a"), await put_once(s, "b")
        await s.schedule()
        active = await fetched(s)
        await s.record()
        older = await s.redis.dump(s.keys.runs)
        if end is RunState.CANCELLED:
            await s.store.runs.cancel(run)
        await finished(s, active[run], end)
        await s.record()
        assert (await rows(s))[run] == ("RUNNING", None)
        assert await s.ledger.database.rows("SELECT kind, key FROM quarantine", ()) == [("run", run)]
        assert s.store.connection.metrics.number(ALERTS).child("quarantined_event").value == 1
        assert await s.reconcile() == {}
        await emptied(s)
        assert list(await s.redis.hkeys(s.keys.runs)) == [other.encode()]
        # A Redis that comes back in an older state has it itself.
        await s.redis.restore(s.keys.runs, 0, older, replace=True)
        await s.redis.hset(s.keys.marker, mapping={"run_id": "another"})
        await s.redis.xtrim(s.keys.journal, maxlen=0)
        assert run.encode() in await s.redis.hkeys(s.keys.runs)
        await s.redis.hset(s.keys.restore, "phase", "jobs")
        await stale_generation(s)
        assert list(await s.redis.hkeys(s.keys.runs)) == [other.encode()]

    shard(body)


def test_a_run_of_which_another_event_was_refused_is_still_owed(shard: InShard) -> None:
    async def body(s: Shard) -> None:
        await s.ledger.database.execute("ALTER TABLE unfinished_runs ADD CHECK (status <> 'RUNNING')", ())
        run = await put_once(s, "a")
        await s.schedule()
        await s.record()
        await fetched(s)
        await s.record()
        assert (await rows(s))[run] == ("QUEUED", None)
        await emptied(s)
        assert [(r, record.state.value) for r, record in (await s.store.resync.read_runs(cursor=0, count=9))[1]] == [
            (run, "QUEUED")
        ]

    shard(body)
