"""One address for whichever Redis is the primary, as a failover gives it: connections to the one before break."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rsched.embedded.process import free_port


class Proxy:
    """Runs in a thread of its own, so that a test that blocks does not hold up the traffic."""

    def __init__(self) -> None:
        self.port = free_port()
        self._target: int | None = None
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def point_to(self, port: int | None) -> None:
        """None: connections are taken and broken."""

        def moved() -> None:
            self._target = port
            for writer in self._writers:
                writer.transport.abort()

        self._loop.call_soon_threadsafe(moved)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)
        async with server:
            await self._stopped.wait()
            for writer in self._writers:
                writer.transport.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(others, timeout=2) if others else None

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self._target is None:
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(far_writer)
            try:
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
            finally:
                self._writers.discard(far_writer)
                far_writer.transport.abort()
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    def run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.transport.abort()


@contextmanager
def proxy() -> Iterator[Proxy]:
    made = Proxy()
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.stop()
        thread.join(5)
