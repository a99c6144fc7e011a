"""Faults of Redis that end only when people fix them: rights that are taken away, keys of another type."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
import redis
from redis._parsers.base import BaseParser
from redis.exceptions import ResponseError

from rsched.core.errors import NeedsFixing, Unavailable
from rsched.core.ids import WorkerId
from rsched.runtime.clock import SystemClock
from rsched.store.keys import Keys
from rsched.store.renewer import SyncRenewer
from rsched.store.store import Store
from tests.support.store_world import World

pytestmark = pytest.mark.anyio

W = WorkerId("w1")


class User:
    """A user of the server with all rights, which the test takes and gives back."""

    def __init__(self, url: str) -> None:
        self._admin = redis.Redis.from_url(url)
        self._url, self.name = url, f"u{secrets.token_hex(4)}"
        self.set("on", ">first", "~*", "&*", "+@all")

    @property
    def url(self) -> str:
        parts = urlsplit(self._url)
        return urlunsplit(parts._replace(netloc=f"{self.name}:first@{parts.hostname}:{parts.port}"))

    def set(self, *rules: str) -> None:
        self._admin.execute_command("ACL", "SETUSER", self.name, *rules)

    def close(self) -> None:
        self._admin.execute_command("ACL", "DELUSER", self.name)
        self._admin.close()


@pytest.fixture
def user(redis_url: str) -> Iterator[User]:
    found = User(redis_url)
    yield found
    found.close()


async def told(call: Callable[[], Awaitable[Any]]) -> str:
    with pytest.raises(NeedsFixing) as raised:
        await call()
    return str(raised.value)


async def test_a_right_that_is_taken_away_is_named_with_its_fix_and_comes_back(world: World, user: User) -> None:
    store = Store.open(user.url, prefix=world.keys.prefix, shard="s0", clock=SystemClock())
    pipeline = lambda: store.partitions.list_due(within_ms=0)  # noqa: E731
    calls: list[tuple[Callable[[], Awaitable[Any]], str]] = [
        (store.clock.read, "-time"),
        (pipeline, "-zrange"),
        (lambda: store.runs.expired_leases(after_ms=0, limit=1), "-evalsha"),
        (lambda: store.runs.expired_leases(after_ms=0, limit=1), "-hmget"),
        (lambda: store.runs.release(limit=1), "resetkeys"),
        (lambda: anext(store.signals.listen()), "resetchannels"),
    ]
    try:
        await store.runs.expired_leases(after_ms=0, limit=1)
        for call, rule in calls:
            user.set(rule)
            text = await told(call)
            assert "does not permit" in text, rule
            assert "ACL SETUSER" in text
            if rule == "-zrange":
                assert f"{world.keys.prefix}:{{s0}}:heads" in text
            if rule == "-hmget":
                assert "expired_leases.lua: local marker = redis.call('HMGET', KEYS[1]" in text
            user.set("~*", "&*", "+@all")
        await pipeline()
        await store.runs.expired_leases(after_ms=0, limit=1)
    finally:
        await store.aclose()


async def test_a_user_that_may_not_ask_for_settings_is_no_outage(world: World, user: User) -> None:
    user.set("-config")
    store = Store.open(user.url, prefix=world.keys.prefix, shard="s0", clock=SystemClock())
    try:
        facts = await store.server.get_facts()
        assert facts["config:maxmemory"] == ""
        assert facts["maxmemory_policy"] == "noeviction"
        user.set("-info")
        assert "INFO" in (await told(store.server.get_facts)).upper()
    finally:
        await store.aclose()


async def test_a_changed_password_is_told_apart_from_a_server_that_is_away(world: World, user: User) -> None:
    store = Store.open(user.url, prefix=world.keys.prefix, shard="s0", clock=SystemClock())
    renewer = SyncRenewer(user.url, Keys(world.keys.prefix, "s0"))
    try:
        for rules in (("resetpass", ">second"), ("off",)):
            user.set(*rules)
            assert "refuses the user or password (WRONGPASS)" in await told(store.clock.read)
            assert "refuses the user or password (WRONGPASS)" in await told(lambda: anext(store.signals.listen()))
            with pytest.raises(NeedsFixing, match="ACL SETUSER"):
                renewer.renew(W, lease_ms=1000, items=[])
        user.set("on", "resetpass", ">first")
        await store.clock.read()
        renewer.renew(W, lease_ms=1000, items=[])
    finally:
        await store.aclose()
        renewer.close()


async def test_a_key_of_another_type_is_named_with_its_fix_and_verbs_go_on_once_it_is_gone(world: World) -> None:
    job = await world.put("a", kind="e", due_in=0)
    store, keys = world.store, world.keys
    calls: list[tuple[str, Callable[[], Awaitable[Any]], str]] = [
        (keys.staged, lambda: world.claim(job), "claim.lua: "),
        (keys.due(job.p), lambda: world.claim(job), "'due'"),
        (keys.heads, lambda: store.partitions.list_due(within_ms=0), keys.heads),
        (keys.pauses, lambda: store.pauses.list_ended(limit=1), keys.pauses),
        (
            keys.leases,
            lambda: store.runs.expired_leases(after_ms=0, limit=1),
            "expired_leases.lua: local runs = redis.call('ZRANGE'",
        ),
    ]
    for key, call, named in calls:
        kept = await world.client.dump(key)
        await world.client.delete(key)
        await world.client.set(key, "by hand")
        text = await told(call)
        assert "of another type" in text
        assert named in text
        assert f"delete {keys.marker}" in text
        await world.client.delete(key)
        if kept:
            await world.client.restore(key, 0, kept)
        await call()


async def test_a_key_with_content_that_no_script_wrote_is_told_by_the_line_that_met_it(world: World) -> None:
    await world.queued()
    kept = await world.client.getset(world.keys.fence, "by hand")
    text = await told(world.fetch)
    assert "holds what it should not" in text
    assert "by fetch.lua: " in text
    assert "fence" in text.partition("fetch.lua")[2]
    await world.client.set(world.keys.fence, kept)
    assert len((await world.fetch()).runs) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "MISCONF Errors writing to the AOF file: No space left on device",
        "NOREPLICAS Not enough good replicas to write.",
        "BUSY Redis is busy running a script.",
        "READONLY You can't write against a read only replica.",
        "UNBLOCKED force unblock from blocking operation",
    ],
)
async def test_what_passes_is_known_in_a_pipeline_too(redis_url: str, reply: str) -> None:
    store = Store.open(redis_url, prefix="t", shard="s0", clock=SystemClock())
    try:
        pipe = store.connection.client.pipeline(transaction=False)
        error = BaseParser.parse_error(reply)
        pipe.annotate_exception(error, 1, ("ZRANGE", 'it\'s a "key"', 0, -1))

        async def command() -> None:
            raise error

        with pytest.raises(Unavailable, match=reply.split(" ", 1)[1][:20].replace("'", ".")):
            await store.connection.ask(command())
    finally:
        await store.aclose()


async def test_errors_of_our_own_making_are_raised_as_they_are(world: World) -> None:
    client, store = world.client, world.store
    for call in (
        lambda: client.execute_command("GET"),
        lambda: client.execute_command("NOSUCH"),
        lambda: client.eval("#!lua\nlocal a = nil +", 0),
        lambda: client.eval("#!lua\nreturn redis.call('GET')", 0),
        lambda: client.eval("#!lua\nreturn redis.call('NOSUCH')", 0),
        lambda: client.eval("#!lua\nreturn redis.error_reply('put: no job record')", 0),
    ):
        with pytest.raises(ResponseError):
            await store.connection.ask(call())
