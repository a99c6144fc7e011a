"""Settings as people see them: as text, with passwords masked, and why they have their defaults."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from msgspec import Meta


def mask(url: str) -> str:
    """Returns the URL with its passwords hidden; any text that is not a URL comes back as it is."""
    try:
        netloc, query = urlsplit(url).netloc, urlsplit(url).query
    except ValueError:
        return "***"
    user, at, host = netloc.rpartition("@")
    if at and ":" in user:
        url = url.replace(netloc, f"{user.partition(':')[0]}:***@{host}", 1)
    for pair in query.split("&"):
        name, equals, _ = pair.partition("=")
        if equals and "password" in name.lower():
            url = url.replace(pair, f"{name}=***")
    return url


def reason_of(type_: Any) -> str:
    """Returns the reason beside the default of a setting, from its annotation."""
    metas = [m for m in getattr(type_, "__metadata__", ()) if isinstance(m, Meta)]
    return next((m.description for m in reversed(metas) if m.description), "")


def text_of(setting: str, value: Any) -> str:
    """Returns the value of a setting as text, passwords masked."""
    if setting.endswith("_url"):
        return mask(value)
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
