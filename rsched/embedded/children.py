"""Starts and ends processes in sessions of their own, writes private files and checks ports, for the supervisor."""

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
    """Starts a process that ends with this one; call it from the main thread, since the child ends with its thread.

    The child ends by SIGKILL: the servers end at the same moment, so that a drain could report to nobody, and a function
    in a thread could delay a polite end for ever.

    Args:
        argv: The command line.
        log: The file that its output is appended to.
        env: Its environment variables.

    Returns:
        The process.
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
    """Kills what is left of a process' group, such as its children, and reaps it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def alive(pid: int) -> bool:
    """Returns whether a process of this id, of whatever user, has not ended."""
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
    """Replaces a file in one step; only its owner can read it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(text)
    os.replace(new, path)


def port_taken(host: str, port: int) -> bool:
    """Returns whether this port of the address cannot be listened on."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind((host, port))
        except OSError:
            return True
    return False
