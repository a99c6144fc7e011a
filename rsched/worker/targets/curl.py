"""libcurl's multi interface driven by the asyncio event loop: many transfers, one thread, connections reused."""

from __future__ import annotations

import asyncio
from typing import Any

import pycurl

IDLE_CONNECTIONS = 256
_SPARE_HANDLES = 256


class CurlLoop:
    """perform() runs one transfer. To be used in the loop it was made in; cancelling perform() aborts its transfer."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, IDLE_CONNECTIONS)
        self._timer: asyncio.TimerHandle | None = None
        self._watched: dict[int, int] = {}
        self._waiting: dict[Any, asyncio.Future[tuple[int, str]]] = {}
        self._spare: list[Any] = []

    def handle(self) -> Any:
        """A pycurl.Curl with default options."""
        return self._spare.pop() if self._spare else pycurl.Curl()

    async def perform(self, handle: Any) -> tuple[int, str]:
        """(curl's result code, 0 for success; its text). Read the handle's facts before giving it to done()."""
        waiter: asyncio.Future[tuple[int, str]] = self._loop.create_future()
        self._waiting[handle] = waiter
        self._multi.add_handle(handle)
        try:
            return await waiter
        finally:
            if self._waiting.pop(handle, None) is not None:
                self._multi.remove_handle(handle)

    def done(self, handle: Any) -> None:
        """The handle may be used for another transfer."""
        handle.reset()
        if len(self._spare) < _SPARE_HANDLES:
            self._spare.append(handle)
        else:
            handle.close()

    def close(self) -> None:
        for handle in list(self._waiting):
            self._multi.remove_handle(handle)
            self._waiting.pop(handle).cancel()
        for fd in list(self._watched):
            self._unwatch(fd)
        if self._timer is not None:
            self._timer.cancel()
        for handle in self._spare:
            handle.close()
        self._spare.clear()
        self._multi.close()

    def _on_timer(self, timeout_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if timeout_ms >= 0:
            # Never at once: curl must not be entered again from its own callback.
            self._timer = self._loop.call_later(timeout_ms / 1000, self._on_timeout)

    def _on_timeout(self) -> None:
        self._timer = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _on_socket(self, what: int, fd: int, _multi: Any, _data: Any) -> None:
        before = self._watched.get(fd, 0)
        now = 0 if what == pycurl.POLL_REMOVE else what
        if now == 0:
            self._unwatch(fd)
            return
        self._watched[fd] = now
        for bit, add, remove, select in (
            (pycurl.POLL_IN, self._loop.add_reader, self._loop.remove_reader, pycurl.CSELECT_IN),
            (pycurl.POLL_OUT, self._loop.add_writer, self._loop.remove_writer, pycurl.CSELECT_OUT),
        ):
            if now & bit and not before & bit:
                add(fd, self._act, fd, select)
            elif before & bit and not now & bit:
                remove(fd)

    def _unwatch(self, fd: int) -> None:
        what = self._watched.pop(fd, 0)
        if what & pycurl.POLL_IN:
            self._loop.remove_reader(fd)
        if what & pycurl.POLL_OUT:
            self._loop.remove_writer(fd)

    def _act(self, fd: int, events: int) -> None:
        self._multi.socket_action(fd, events)
        more = 1
        while more:
            more, good, bad = self._multi.info_read()
            for handle in good:
                self._settle(handle, 0, "")
            for handle, code, text in bad:
                self._settle(handle, code, text)

    def _settle(self, handle: Any, code: int, text: str) -> None:
        waiter = self._waiting.pop(handle, None)
        self._multi.remove_handle(handle)
        if waiter is not None and not waiter.done():
            waiter.set_result((code, text))
