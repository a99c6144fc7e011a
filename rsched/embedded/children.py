"""What the supervisor needs of the system: a process in a session of its own, its end, private files, ports."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rsched.embedded.process import die_with_parent


def spawn(argv: Sequence[str], *, log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Call from the main thread, whose end is the child's.

    By SIGKILL: the servers end at the same moment, so that there is nothing a drain could be told to, and a function
    in a thread could hold a polite end up for ever.
    """
    with log.open("ab") as target:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=subprocess.STDOUT,
            env=dict(env),
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )


def sweep(process: subprocess.Popen[bytes]) -> None:
    """Kills what is left of a process' group, such as children of its own, and reaps it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def alive(pid: int) -> bool:
    """Whether there is such a process, of whatever user, that has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if sys.platform != "linux":
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def write_private(path: Path, text: str) -> None:
    """Replaces the file in one step; only its owner can read it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)
    os.replace(new, path)


def port_taken(host: str, port: int) -> bool:
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError:
            return True
    return False
