"""What is kept of a job: its durable definition, as msgpack."""

from __future__ import annotations

import msgspec

from rsched.core.jobs.model.fields import JobFields
from rsched.core.jobs.policies import PRIORITY_CODE
from rsched.core.jobs.targets import queue_of, target_for_payload

MAX_DEFINITION_BYTES = 65_536


class Definition(JobFields, frozen=True, array_like=True):
    """What Redis and the ledger keep of a job (msgpack, positional).

    The order is the record-keeping fields below, then those of JobFields (which are keyword-only, so that msgspec puts them
    behind). It only ever grows at the end: a new field of JobFields is its last and has a default; the fields below stay
    these five, since what else is kept about a job belongs into the optional fields of its head (rsched.core.jobs.packed).

    schedule is resolved: a delay has become `at`, an interval has its anchor.

    Attributes:
        incarnation: Which job of this name it is, from 1.
        created_at: Instant (ms).
        updated_at: Instant (ms) of the last create or replace.
        key: The idempotency handle of the Idempotency-Key that it was created with.
        body_hash: Of the request that made this version, to tell a repeat from a conflict.
    """

    incarnation: int
    created_at: int
    updated_at: int
    key: str | None
    body_hash: str

    @property
    def queue_key(self) -> str:
        """queue:team:priority, which names the queue stream its runs go through."""
        return f"{queue_of(self.target)}:{self.team}:{PRIORITY_CODE[self.priority]}"


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Definition)


def encode_definition(definition: Definition) -> bytes:
    """Returns the definition as msgpack."""
    return _encoder.encode(definition)


def decode_definition(body: bytes) -> Definition:
    """Reads a definition from msgpack. Raises msgspec.DecodeError where body holds none."""
    return _decoder.decode(body)


def with_payload(definition: Definition, payload: bytes) -> Definition:
    """Returns the definition as a run with a payload of its own is called by.

    Args:
        definition: Of the run's job.
        payload: The run's own payload, as msgpack.
    """
    value = msgspec.msgpack.decode(payload)
    target = target_for_payload(definition.target)
    return msgspec.structs.replace(definition, payload=value, target=target)
