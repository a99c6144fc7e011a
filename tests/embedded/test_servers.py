"""Both servers keep their data and leave nothing behind."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest
import redis

from rsched.core.errors import Misconfigured
from rsched.embedded.postgres_server import PostgresServer
from rsched.embedded.redis_server import RedisServer
from rsched.embedded.servers import folder_lock
from rsched.runtime.clock import SystemClock


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_redis_keeps_its_data_over_a_restart(tmp_path: Path, number: int) -> None:
    server = RedisServer(tmp_path / "redis", log=tmp_path / "log", clock=SystemClock())
    server.start()
    assert server.child is not None
    with redis.Redis.from_url(server.url) as client:
        client.set("a", "1")
        client.waitaof(1, 0, 2000)
    server.child.send_signal(number)
    server.child.wait()
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
    assert server.child is not None
    with psycopg.connect(server.url("postgres")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    server.child.send_signal(number)
    server.child.wait()
    again = PostgresServer(tmp_path / "postgres", log=tmp_path / "log", clock=SystemClock())
    again.start()
    with psycopg.connect(again.url("postgres")) as connection:
        assert connection.execute("SELECT a FROM t").fetchone() == (1,)
    again.stop()


def test_a_second_holder_of_a_folder_is_refused(tmp_path: Path) -> None:
    with folder_lock(tmp_path), pytest.raises(Misconfigured, match="is running on"), folder_lock(tmp_path):
        pass
    with folder_lock(tmp_path):
        pass
