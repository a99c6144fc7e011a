"""What schedules were computed with, and which of them are to be computed anew.

Authority: notes that any scheduler may act on and take away; acting twice changes nothing. Errors: Unavailable.
"""

from __future__ import annotations

from rsched.store.connection import Part


class Refreshes(Part):
    """Keeps the tzdata release in use and the calendars that changed."""

    async def list_pending(self) -> list[tuple[str, str, str]]:
        """Returns (team, name, version) of calendars that changed and whose jobs are still to be refreshed."""
        fields = await self._redis.ask(self._redis.client.hkeys(self._redis.keys.refreshes))
        return [(team, name, version) for team, name, version in (field.decode().split("/") for field in fields)]

    async def finish(self, team: str, name: str, version: str) -> None:
        """Takes the note away that the jobs of this version of a calendar are to be refreshed."""
        await self._redis.ask(self._redis.client.hdel(self._redis.keys.refreshes, f"{team}/{name}/{version}"))

    async def get_tzdata(self) -> str | None:
        """Returns the tzdata release that the stored schedules were computed with, None where that is not known."""
        release = await self._redis.ask(self._redis.client.hget(self._redis.keys.marker, "tzdata"))
        return release.decode() if release else None

    async def set_tzdata(self, release: str) -> None:
        """Notes that the stored schedules are computed with this tzdata release."""
        await self._redis.ask(self._redis.client.hset(self._redis.keys.marker, "tzdata", release))
