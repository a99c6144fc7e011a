"""Waits until journal entries are recorded: one listening connection for all waits of a process."""

from __future__ import annotations

import asyncio
import heapq
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio

from rsched.core.errors import Unavailable
from rsched.ledger.base import Connection, connect
from rsched.ledger.failures import translated
from rsched.ledger.positions import CHANNEL, START, Position, parse_position
from rsched.runtime.clock import Clock
from rsched.runtime.log import get_logger
from rsched.runtime.loop import Outage

_log = get_logger("rsched.ledger")
_Wait = tuple[Position, int, "asyncio.Future[bool]"]


class Waiter:
    """Waits for journal entries to be recorded.

    Authority: the positions table. Notifications only say when to look; a new connection reads the table first, and keeps
    nothing of what one before it knew: a server that was put back from a backup has less.
    """

    def __init__(self, url: str, *, clock: Clock) -> None:
        self._url, self._clock = url, clock
        self._stack = AsyncExitStack()
        self._reached: dict[tuple[str, str], Position] = {}
        self._ends: dict[tuple[str, str, int], int] = {}
        self._waits: dict[tuple[str, str], list[_Wait]] = {}
        self._count = 0

    async def __aenter__(self) -> Self:
        group = await self._stack.enter_async_context(anyio.create_task_group())
        group.start_soon(self._listen)
        self._stack.callback(group.cancel_scope.cancel)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def wait_recorded(self, shard: str, stream: str, journal_id: str, timeout_s: float) -> bool:
        """Waits until an entry is in Postgres.

        Args:
            shard: The shard.
            stream: `journal` or `definitions`.
            journal_id: The entry.
            timeout_s: How long to wait at most (seconds).

        Returns:
            True once it is recorded; False after timeout_s, or when it is known to be lost.
        """
        key, wanted = (shard, stream), parse_position(journal_id)
        if self._reached.get(key, START) >= wanted:
            return self._answer(key, wanted)
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._waits.setdefault(key, []), (wanted, self._count, future))
        try:
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError:
            # While the recorder is away nothing else would take it out.
            waits = self._waits[key]
            waits[:] = [w for w in waits if w[2] is not future]
            heapq.heapify(waits)
            return False

    def _answer(self, key: tuple[str, str], wanted: Position) -> bool:
        """The position is past the entry: in its own generation it is in; past that, if the generation reached it."""
        if self._reached[key].generation == wanted.generation:
            return True
        return self._ends.get((*key, wanted.generation), -1) >= wanted.sequence

    async def _listen(self) -> None:
        outage = Outage("ledger waiter", _log)
        while True:
            try:
                connection = await connect(self._url)
                try:
                    await self._follow(connection, outage)
                finally:
                    # Before anything is awaited: no wait that begins from here on is answered by it.
                    self._reached, self._ends = {}, {}
                    await connection.close()
            except Unavailable as error:
                await self._clock.sleep(outage.failed(error))

    async def _follow(self, connection: Connection, outage: Outage) -> None:
        with translated():
            await connection.execute(f"LISTEN {CHANNEL}".encode())
            await self._read_all(connection)
            outage.over()
            while True:
                # In rounds: the generator holds the connection's lock, so nothing can be asked inside its loop.
                notes = [note async for note in connection.notifies(stop_after=1)]
                if not notes:
                    break
                for note in notes:
                    shard, stream, new = note.payload.split(" ")
                    key, position = (shard, stream), parse_position(new)
                    if position.generation != self._reached.get(key, START).generation:
                        await self._read_ends(connection)
                    self._reach(key, position)
        raise Unavailable("the listening connection ended")

    async def _read_all(self, connection: Connection) -> None:
        # Ends last: those of all generations before the positions read are there then.
        found = await (await connection.execute("SELECT shard, stream, generation, sequence FROM positions")).fetchall()
        await self._read_ends(connection)
        for shard, stream, generation, sequence in found:
            self._reach((shard, stream), Position(generation, sequence))

    async def _read_ends(self, connection: Connection) -> None:
        # Past ends are few: one row a generation.
        found = await connection.execute("SELECT shard, stream, generation, sequence FROM position_ends")
        for shard, stream, generation, sequence in await found.fetchall():
            self._ends[shard, stream, generation] = sequence

    def _reach(self, key: tuple[str, str], position: Position) -> None:
        self._reached[key] = max(position, self._reached.get(key, START))
        waits = self._waits.get(key, [])
        while waits and waits[0][0] <= self._reached[key]:
            wanted, _, future = heapq.heappop(waits)
            if not future.done():
                future.set_result(self._answer(key, wanted))
