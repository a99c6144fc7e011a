"""Both servers keep their data and leave nothing behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psycopg
import pytest
import redis
from rsched.embedded.folder import lock_soon

from rsched.core.errors import Unavailable
from rsched.embedded.postgres_server import PostgresServer
from rsched.embedded.redis_server import RedisServer
from rsched.runtime.clock import SystemClock


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_redis_keeps_its_data_over_a_restart(tmp_path: Path, number: int) -> None:
    server = RedisServer(tmp_path / "redis", log=tmp_path / "log", clock=SystemClock())
    server.start()
    assert server.process is not None
    with redis.Redis.from_url(server.url) as client:
        client.set("a", "1")
        client.waitaof(1, 0, 2000)
    server.process.send_signal(number)
    server.process.wait()
    again = RedisServer(tmp_path / "redis", log=tmp_path / "log", clock=SystemClock())
    again.start()
    with redis.Redis.from_url(again.url) as client:
        assert client.get("a") == b"1"
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    again.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_postgres_keeps_its_data_over_a_restart(tmp_path: Path, number: int) -> None:
    server = PostgresServer(tmp_path / "postgres", log=tmp_path / "log", clock=SystemClock())
    server.start()
    assert server.process is not None
    with psycopg.connect(server.url) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    server.process.send_signal(number)
    server.process.wait()
    again = PostgresServer(tmp_path / "postgres", log=tmp_path / "log", clock=SystemClock())
    again.start()
    with psycopg.connect(again.url) as connection:
        assert connection.execute("SELECT a FROM t").fetchone() == (1,)
    again.stop()


def test_a_second_server_on_a_folder_is_refused(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis", log=tmp_path / "log", clock=SystemClock())
    server.start()
    with pytest.raises(Unavailable, match="still runs"):
        lock_soon(tmp_path / "redis" / "lock", clock=SystemClock(), within_ms=100)
    server.stop()
    os.close(lock_soon(tmp_path / "redis" / "lock", clock=SystemClock(), within_ms=100))


def test_passwords_are_for_their_owner_alone(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis", log=tmp_path / "log", clock=SystemClock())
    server.start()
    server.stop()
    for name in ("password", "server.conf"):
        assert (tmp_path / "redis" / name).stat().st_mode & 0o777 == 0o600
