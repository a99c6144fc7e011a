"""What the supervisor needs of the system: a process in a session of its own, its end, private files, ports."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rsched.embedded.process import die_with_parent


def spawn(argv: Sequence[str], *, log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Call from the main thread. SIGKILL at our death: a worker would otherwise drain against servers that are gone."""
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
