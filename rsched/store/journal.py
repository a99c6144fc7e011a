"""The two streams that every change is written to in the step that makes it: `definitions` and `journal`.

Authority: the scripts write them, the recorder alone reads and trims them. An id is `<generation>-<sequence>`, so that ids rise
across recoveries. Errors: Unavailable.
"""

from __future__ import annotations

from collections.abc import Mapping

from redis.exceptions import ResponseError

from rsched.store.connection import Part

Entry = tuple[str, str, list[tuple[bytes, bytes]]]


class Journal(Part):
    """Reads and trims the streams. `stream` is always `definitions` or `journal`."""

    def _key(self, stream: str) -> str:
        return self._redis.keys.definitions if stream == "definitions" else self._redis.keys.journal

    async def read(self, positions: Mapping[str, str], *, block_ms: int, count: int) -> list[Entry]:
        """Reads entries after given ids.

        Args:
            positions: Stream -> the id after which to read.
            block_ms: How long to wait for one, 0 for not at all.
            count: The most entries of each stream.

        Returns:
            (stream, id, [(kind, payload), ...]) of each entry.
        """
        names = {self._key(stream).encode(): stream for stream in positions}
        # Raw: the client would make a dict of an entry's fields, and events repeat field names.
        block = ("BLOCK", block_ms) if block_ms else ()
        reply = await self._redis.ask(
            self._redis.client.execute_command(  # type: ignore[no-untyped-call]
                "XREAD", "COUNT", count, *block, "STREAMS", *map(self._key, positions), *positions.values()
            )
        )
        return [
            (names[key], entry_id.decode(), list(zip(fields[::2], fields[1::2], strict=True)))
            for key, entries in (reply or [])
            for entry_id, fields in entries
        ]

    async def trim(self, stream: str, min_id: str) -> int:
        """Drops entries before min_id and returns how many; the server may keep some for longer."""
        return int(await self._redis.ask(self._redis.client.xtrim(self._key(stream), minid=min_id, approximate=True)))

    async def get_last_id(self, stream: str) -> str:
        """Returns the last id ever added, "0-0" for none."""
        try:
            info = await self._redis.ask(self._redis.client.xinfo_stream(self._key(stream)))
        except ResponseError as error:
            if "no such key" in str(error):
                return "0-0"
            raise
        return str(info["last-generated-id"].decode())

    async def get_first_id(self, stream: str) -> str | None:
        """Returns the id of the oldest entry that there still is, None for none."""
        entries = await self._redis.ask(self._redis.client.xrange(self._key(stream), count=1))
        return entries[0][0].decode() if entries else None
