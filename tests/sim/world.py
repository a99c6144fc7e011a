"""A shard in virtual time: the real scripts on a real server, which take their clock from a key of the test."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from functools import cache
from typing import Any

import pytest

from rsched.core.ids import RunId, WorkerId
from rsched.core.jobs.packed import RunEvent, SkipEvent, unpack_event
from rsched.core.states import RunState
from rsched.scheduler.catch_up import CatchUp
from rsched.scheduler.claim import WITHIN_MS, Claimer
from rsched.scheduler.release import Releaser
from rsched.scheduler.resume import Resumer
from rsched.store import connection, scripts
from rsched.store.connection import Connection, connect
from rsched.store.keys import Keys
from rsched.store.run_values import FinishItem
from rsched.store.store import Store

LOG = logging.getLogger("sim")
LOOKAHEAD_MS = 5000
_TIME = "local t = redis.call('TIME')\n  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)"
_W = WorkerId("w")


class SimClock:
    """Stands still until it is set. stepped: how far the wall clock has stepped against the boot clock."""

    def __init__(self, ms: int) -> None:
        self.ms = ms
        self.stepped = 0

    def wall_ms(self) -> int:
        return self.ms

    def boot_ms(self) -> int:
        return self.ms - self.stepped

    def perf_s(self) -> float:
        return self.ms / 1000

    async def sleep(self, ms: float) -> None:
        raise AssertionError("nothing waits in virtual time")

    def sleep_sync(self, ms: float) -> None:
        raise AssertionError("nothing waits in virtual time")


@cache
def _load(verb: str, *, shebang: bool = True) -> scripts.Script:
    script = scripts.load(verb, shebang=shebang)
    assert _TIME in script.source or "now_ms" not in script.source
    source = script.source.replace(_TIME, "return tonumber(redis.call('GET', string.sub(KEYS[1], 1, -6) .. 'sim'))")
    return script._replace(source=source, sha=hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


class SimConnection(Connection):
    async def server_time(self) -> int:
        return self.process_clock.wall_ms()


class Sim:
    """One scheduler and one worker, stepped by hand. What became of every run and occurrence is collected."""

    def __init__(self, url: str, *, prefix: str, start_ms: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(connection, "load", _load)
        self.clock = SimClock(start_ms)
        self.store = Store(SimConnection(connect(url), Keys(prefix, "s0"), self.clock))
        self.ended: dict[str, RunState] = {}
        self.succeeded: Counter[str] = Counter()
        self.skips: list[SkipEvent] = []
        self.due_at: dict[str, int] = {}
        self._positions = {"definitions": "0-0", "journal": "0-0"}
        self._request = 0
        self.claimer = Claimer(
            self.store, "", epochs=None, lookahead_ms=LOOKAHEAD_MS, batch=1000, lost=lambda _: None,
            claimed=lambda: None, clock=self.clock, log=LOG,
        )  # fmt: skip
        self.releaser = Releaser(self.store, batch=1000)
        self.resumer = Resumer(self.store, log=LOG)
        self.catch_up = CatchUp(self.store, per_s=10, share=0.2, schedulers=lambda: 1, clock=self.clock, log=LOG)

    async def open(self) -> None:
        await self._set()
        assert await self.store.recovery.begin(1, fence=2**36)
        await self.store.recovery.finish(recovery_grace_ms=0)

    async def _set(self) -> None:
        await self.store.connection.client.set(self.store.keys._key("sim"), self.clock.ms)

    async def at(self, ms: int) -> None:
        """It is that instant now; nothing runs meanwhile."""
        self.clock.ms = ms
        await self._set()

    async def step_clock(self, ms: int) -> None:
        """Redis' clock steps by that much, in no time."""
        self.clock.stepped += ms
        await self.at(self.clock.ms + ms)

    async def run_until(self, ms: int) -> None:
        """Everything that scheduler and worker do up to that instant, at the instants at which there is something to do."""
        while True:
            following = await self._work()
            if following is None or following >= ms:
                break
            await self.at(following)
        await self.at(ms)
        await self._work()

    async def drain(self) -> None:
        """Lets end what was claimed by now; nothing else is claimed."""
        while self.unfinished_runs() or await self._earliest("catchup") is not None:
            moved = True
            while moved:
                moved = await self.releaser.step()
                moved |= await self.catch_up.step()
                moved |= await self._finish()
            soon = [t for t in (self.releaser.next_at, await self._earliest("catchup")) if t is not None]
            if not soon:
                break
            await self.at(max(min(soon), self.clock.ms + 1))

    async def _work(self) -> int | None:
        """All that is to be done now; the next instant at which there is something to do."""
        moved = True
        while moved:
            moved = await self.claimer.step()
            moved |= await self.resumer.step()
            moved |= await self.releaser.step()
            moved |= await self.catch_up.step()
            moved |= await self._finish()
        waits = (self.releaser.next_at, await self._earliest("catchup"), await self._earliest("pauses"))
        soon = [t for t in waits if t is not None]
        if self.claimer.next_head is not None:
            soon.append(max(self.claimer.next_head - WITHIN_MS, self.clock.ms + 1))
        return max(min(soon), self.clock.ms + 1) if soon else None

    async def _earliest(self, kind: str) -> int | None:
        found = await self.store.connection.client.zrange(getattr(self.store.keys, kind), 0, 0, withscores=True)
        return int(found[0][1]) if found else None

    async def _finish(self) -> bool:
        self._request += 1
        reply = await self.store.runs.fetch(_W, request=self._request, slots=1000, lease_ms=60_000, queues=["default"])
        if reply.runs:
            items = [FinishItem(r.run, r.fence, RunState.SUCCEEDED, 0, self.clock.ms, "") for r in reply.runs]
            self.due_at |= {r.run: r.due_at for r in reply.runs}
            assert set(await self.store.runs.finish(_W, request=self._request, items=items)) == {"ok"}
        await self._collect()
        return reply.more

    async def _collect(self) -> None:
        for stream in self._positions:
            while entries := await self.store.journal.read({stream: self._positions[stream]}, block_ms=0, count=500):
                for _, entry, pairs in entries:
                    self._positions[stream] = entry
                    for event in (unpack_event(k, p) for k, p in pairs):
                        self._event(event)
                await self.store.journal.trim(stream, self._positions[stream])

    def _event(self, event: Any) -> None:
        if isinstance(event, SkipEvent):
            self.skips.append(event)
        elif isinstance(event, RunEvent):
            state = event.record.state
            self.ended[event.run] = state
            self.succeeded[event.run] += state is RunState.SUCCEEDED

    def unfinished_runs(self) -> list[RunId]:
        return [RunId(r) for r, s in self.ended.items() if not s.final]
