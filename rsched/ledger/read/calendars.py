"""Holiday calendars of teams."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rsched.ledger.base import Database, Row
from rsched.ledger.read.cursors import Page, decode_cursor, next_cursor
from rsched.ledger.read.stored import StoredCalendar


class Calendars:
    """Reads of calendars. Every method raises Unavailable while Postgres is away."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], StoredCalendar]:
        """Returns the calendars of these (team, name) that there are, deleted ones too."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        rows = await self._database.rows(
            "SELECT team, name, version, updated_at, body FROM calendars"
            " WHERE (team, name) IN (SELECT * FROM unnest(%s::text[], %s::text[]))",
            ([team for team, _ in wanted], [name for _, name in wanted]),
        )
        return {(row[0], row[1]): _calendar_of(row) for row in rows}

    async def list(self, team: str, *, cursor: str | None = None, limit: int = 100) -> Page[StoredCalendar]:
        """Lists a team's calendars by name, deleted ones left out.

        Returns:
            The page, and the cursor of the next one; None where there is none.

        Raises:
            Invalid: No page gave this cursor.
        """
        after = "" if cursor is None else decode_cursor(cursor)[1]
        rows = await self._database.rows(
            "SELECT team, name, version, updated_at, body FROM calendars"
            " WHERE team = %s AND name > %s AND body <> '' ORDER BY name LIMIT %s",
            (team, after, limit + 1),
        )
        return [_calendar_of(r) for r in rows[:limit]], next_cursor(rows, limit=limit, at=2, key=1)


def _calendar_of(row: Row) -> StoredCalendar:
    team, name, version, updated_at, body = row
    entries = msgspec.msgpack.decode(body, type=list[str]) if len(body) else None
    return StoredCalendar(team, name, version, updated_at, entries)
