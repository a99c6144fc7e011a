"""Ends child processes with their parent, whatever ends it; waits for them, stops them, and picks free ports."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rsched.core.errors import Misconfigured
from rsched.runtime.clock import Clock

_PR_SET_PDEATHSIG = 1
_CHECK_MS = 10.0


def die_with_parent(number: signal.Signals) -> Callable[[], None]:
    """Returns a preexec_fn by which the kernel signals the child when the thread that started it is gone, even by SIGKILL.

    Start children from the main thread only: the signal comes at the end of the starting thread. Elsewhere than on Linux
    there is no such thing, and the function does nothing.

    Args:
        number: The signal that the child gets.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    parent = os.getpid()

    def preexec() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
            if os.getppid() != parent:  # it died before we asked
                os.kill(os.getpid(), number)

    return preexec


def free_port() -> int:
    """Returns a port of the loopback that nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_until(
    ready: Callable[[], bool], *, child: subprocess.Popen[bytes], name: str, log: Path, clock: Clock
) -> None:
    """Blocks until a server is ready.

    Args:
        ready: Returns whether it is.
        child: The server's process.
        name: The server's name in the error.
        log: The server's log.
        clock: This machine's clock.

    Raises:
        Misconfigured: The child ended first or is not ready after 30 s; with the end of its log.
    """
    deadline = clock.boot_ms() + 30_000
    while not ready():
        ended = child.poll()
        if ended is not None or clock.boot_ms() > deadline:
            tail = log.read_text(errors="replace")[-600:].strip() if log.exists() else ""
            how = f"ended with code {ended}" if ended is not None else "is not ready after 30 s"
            raise Misconfigured(f"the embedded {name} {how}; its log {log} ends with:\n{tail}")
        clock.sleep_sync(_CHECK_MS)


def stop_child(child: subprocess.Popen[bytes], number: signal.Signals, *, patience_s: float) -> None:
    """Asks the child to end by a signal, and kills it when it does not within patience_s seconds."""
    if child.poll() is None:
        child.send_signal(number)
        try:
            child.wait(patience_s)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
