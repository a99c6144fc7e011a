"""The gauges of a shard: read from Redis every 5 s and kept between scrapes; and how far the ledger is behind the journal.

Every recorder reads them, one that stands by too, so that they are there when the one at work is not. Two loops, because
Postgres may hang while Redis does not.
"""

from __future__ import annotations

from collections import deque

import anyio

from rsched.core.errors import Unavailable
from rsched.ledger import Ledger
from rsched.ledger.positions import START, Position, parse_position
from rsched.recorder.recovery.recovery import STREAMS
from rsched.runtime import metrics as m
from rsched.runtime.clock import Clock
from rsched.runtime.instruments import OTHER, Declared
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Step, Wake, run_steps
from rsched.store.gauges import ShardGauges
from rsched.store.store import Store

EVERY_MS = 5000.0
_QUEUE_KEYS = 200
_PRIORITY = {"0": "high", "1": "normal", "2": "low"}
# An hour of samples; a lag that is older shows as an hour more than it was when last seen.
_SAMPLES = 720


class Lag:
    """How far a position is behind a stream. Ids don't tell the time, so what is old is known from samples."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, Position]] = deque(maxlen=_SAMPLES)
        self.last: Position = START
        self.position: Position | None = None

    def sample(self, last: Position, *, now_ms: int) -> None:
        """The stream's last entry at now_ms of the boot clock."""
        if last < self.last:
            self._samples.clear()  # the stream has lost its tail
        if not self._samples or last != self._samples[-1][1]:
            self._samples.append((now_ms, last))
        self.last = last

    @property
    def entries(self) -> int:
        """Of the last generation alone where the position is in an earlier one: how long that was is not known here."""
        if self.position is None or self.last <= self.position or self.last == START:
            return 0
        return (
            self.last.sequence - self.position.sequence
            if self.last.generation == self.position.generation
            else self.last.sequence + 1
        )

    def age_ms(self, now_ms: int) -> int:
        """How long at least the oldest entry that is not recorded has waited."""
        if self.entries == 0:
            return 0
        assert self.position is not None
        while self._samples and self._samples[0][1] <= self.position:
            self._samples.popleft()
        return now_ms - self._samples[0][0] if self._samples else 0


class ShardWatch:
    """Reads the gauges of one shard every 5 s, and how far the ledger is behind its journal."""

    def __init__(self, store: Store, ledger: Ledger, *, shard: str, metrics: m.Metrics, clock: Clock) -> None:
        self._ledger, self._shard, self._metrics, self._clock = ledger, shard, metrics, clock
        self._reader = store.gauges
        self._lags = {stream: Lag() for stream in STREAMS}
        self._log = get_logger("rsched.recorder")
        metrics.before_scrape.append(self._put_lags)

    async def run(self) -> None:
        """Until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._loop, self.redis_step, f"gauges of {self._shard}")
            group.start_soon(self._loop, self.ledger_step, f"positions of {self._shard}")

    async def _loop(self, step: Step, name: str) -> None:
        async def guarded() -> bool:
            try:
                return await step()
            except Unavailable:
                raise
            except Exception:  # noqa: BLE001 - whatever a gauge finds must not end the recorder
                self._log.exception("%s can't be read", name)
                return False

        await run_steps(guarded, name=name, clock=self._clock, wake=Wake(), idle_ms=EVERY_MS, log=self._log)

    async def redis_step(self) -> bool:
        """Unavailable: then all that was known of the shard is gone from the metrics, but that it is away."""
        try:
            found = await self._reader.read()
        except Unavailable:
            for declared in m.METRICS:
                if declared.labels == ("shard",) and declared.of == ("recorder",):
                    self._metrics.number(declared).replace(())
            self._metrics.number(m.DEPTH).replace(())
            self._metrics.put(m.REDIS_UP, self._shard, value=0)
            raise
        now = self._clock.boot_ms()
        for stream, lag in self._lags.items():
            lag.sample(parse_position(found.last[stream]), now_ms=now)
        self._put(found)
        return False

    async def ledger_step(self) -> bool:
        """Unavailable: the positions stay as they were, so that the lag grows."""
        try:
            for stream, lag in self._lags.items():
                lag.position = parse_position(await self._ledger.write.position(self._shard, stream))
        except Unavailable:
            self._metrics.put(m.LEDGER_UP, value=0)
            raise
        self._metrics.put(m.LEDGER_UP, value=1)
        return False

    def _put(self, g: ShardGauges) -> None:
        values: dict[Declared, float] = {
            m.REDIS_UP: 1,
            m.CLOSED: not g.open,
            m.GENERATION: g.generation,
            m.LOAD_LEVEL: g.load_level,
            m.IN_RECOVERY_GRACE: g.in_recovery_grace,
            m.UNCONFIRMED: g.unconfirmed,
            m.CLAIM_LAG: g.claim_lag_ms / 1000,
            m.STAGED: g.staged,
            m.RETRIES: g.retries,
            m.UNFINISHED_RUNS: g.unfinished_runs,
            m.LEASES: g.leases,
            m.CATCHUP: g.catchup,
            m.CATCHUP_LAG: g.catchup_lag_ms / 1000,
            m.QUARANTINE: g.quarantine,
            m.WORKERS: g.workers,
            m.SCHEDULERS: g.schedulers,
            m.OWNED: g.owned,
            m.RESTORE_LEFT: g.restore_left,
            m.MEMORY: g.memory,
            m.MEMORY_MAX: g.memory_max,
            m.SCRIPTS_TIME: g.scripts_s,
            m.READ_AT: self._clock.wall_ms() / 1000,
        }
        if g.due is not None:
            values[m.DUE] = g.due
        for declared, value in values.items():
            self._metrics.put(declared, self._shard, value=value)
        # One object a process and one depth a shard: this release has one shard.
        self._metrics.number(m.DEPTH).replace(depth_series(self._shard, g.depth).items())

    def _put_lags(self) -> None:
        now = self._clock.boot_ms()
        for stream, lag in self._lags.items():
            if lag.position is None:
                continue
            self._metrics.put(m.LAG_ENTRIES, self._shard, stream, value=lag.entries)
            self._metrics.put(m.LAG_SECONDS, self._shard, stream, value=lag.age_ms(now) / 1000)
            self._metrics.put(m.POSITION, self._shard, stream, value=lag.position.sequence)


def depth_series(shard: str, depth: dict[str, int]) -> dict[tuple[str, ...], float]:
    """The longest queue_keys by themselves, the rest by queue and priority."""
    out: dict[tuple[str, ...], float] = {}
    for place, queue_key in enumerate(sorted(depth, key=lambda name: -depth[name])):
        queue, team, priority = queue_key.split(":")
        labels = (shard, queue, team if place < _QUEUE_KEYS else OTHER, _PRIORITY.get(priority, priority))
        out[labels] = out.get(labels, 0) + depth[queue_key]
    return out
