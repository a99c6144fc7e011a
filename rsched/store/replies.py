"""The reply that verbs on one job, run or calendar have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rsched.store.connection import Connection
from rsched.store.scripts import Value


class VerbReply(NamedTuple):
    """What a verb answered.

    Attributes:
        tag: Its outcome.
        now: Redis' time (ms).
        journal_id: The entry of the definitions stream that records the change, None where nothing changed.
        version: The version that there is now, 0 where the verb does not say.
    """

    tag: str
    now: int
    journal_id: str | None
    version: int


async def call_verb(redis: Connection, verb: str, group: Sequence[Sequence[Value]] = (), **scalars: Value) -> VerbReply:
    """Calls a verb whose reply has this shape; arguments as `Connection.call` has them."""
    reply = await redis.call(verb, group, **scalars)
    tag, now = reply[0], reply[1]
    if tag in ("ok", "cancelling"):
        return VerbReply(tag, now, reply[2].decode(), int(reply[3]) if len(reply) > 3 else 0)
    return VerbReply(tag, now, None, int(reply[2]) if len(reply) > 2 else 0)
