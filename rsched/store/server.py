"""Facts about the server that a shard is on.

Authority: the server's own INFO and CONFIG. Errors: Unavailable; a managed server that forbids CONFIG is no error.
"""

from __future__ import annotations

from typing import Any

from redis.exceptions import ResponseError

from rsched.store.connection import Part

_SETTINGS = (
    "maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "min-replicas-to-write", "min-replicas-max-lag",
)  # fmt: skip


class Server(Part):
    """Reads facts about the server."""

    async def get_facts(self) -> dict[str, Any]:
        """Returns INFO, and the settings that promises rest on as "config:<name>", "" where the server does not tell."""
        facts: dict[str, Any] = dict(await self._redis.ask(self._redis.client.info()))
        for name in _SETTINGS:
            settings = await self._redis.ask(self._get_setting(name))
            values = [v.decode() if isinstance(v, bytes) else str(v) for v in settings.values()]
            facts[f"config:{name}"] = values[0] if values else ""
        return facts

    async def _get_setting(self, name: str) -> dict[Any, Any]:
        try:
            return dict(await self._redis.client.config_get(name))
        except ResponseError:
            return {}  # managed servers forbid it, or have another name for it

    async def get_memory(self) -> tuple[int, int]:
        """Returns the bytes in use, and the limit, 0 for none."""
        info = await self._redis.ask(self._redis.client.info("memory"))
        return int(info["used_memory"]), int(info["maxmemory"])
