"""What a Redis that is there and does not serve answers, as the client hands it on."""

from __future__ import annotations

import asyncio

import pytest
from redis._parsers.base import BaseParser
from redis.exceptions import ResponseError

from rsched.core.errors import Unavailable
from rsched.runtime.clock import SystemClock
from rsched.store.store import Store

PASSING = [
    "LOADING Redis is loading the dataset in memory",
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
    "READONLY You can't write against a read only replica. script: 0, on @user_script:1.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "NOREPLICAS Not enough good replicas to write.",
    "MISCONF Errors writing to the AOF file: No space left on device",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "CLUSTERDOWN Hash slot not served",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "MOVED 3999 127.0.0.1:6381",
    "ASK 3999 127.0.0.1:6381",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "ERR max number of clients reached",
    "NOAUTH Authentication required.",
]


def answered(reply: str) -> None:
    async def main() -> None:
        store = Store.open("redis://127.0.0.1:1/0", prefix="t", shard="s0", clock=SystemClock())

        async def command() -> None:
            raise BaseParser.parse_error(reply)

        try:
            await store.connection.ask(command())
        finally:
            await store.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("reply", PASSING, ids=lambda reply: reply.partition(" ")[0])
def test_what_passes_is_unavailable_and_says_what_redis_said(reply: str) -> None:
    with pytest.raises(Unavailable) as raised:
        answered(reply)
    assert reply.split(" ", 2)[1] in str(raised.value)


def test_an_error_of_a_command_stays_one() -> None:
    for reply in ("ERR wrong number of arguments for 'get' command", "ERR unknown command 'X'"):
        with pytest.raises(ResponseError):
            answered(reply)
