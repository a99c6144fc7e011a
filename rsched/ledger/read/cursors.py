"""Opaque cursors of keyset pages: the sort key of a page's last row."""

from __future__ import annotations

import base64
import binascii
from typing import Any, TypeVar

import msgspec

from rsched.core.errors import invalid

T = TypeVar("T")
# What a page has, and the cursor of the next one.
Page = tuple[list[T], str | None]


def encode_cursor(at: int, key: str) -> str:
    """Returns the cursor of the page after a row whose sort key is (at, key)."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode((at, key))).decode().rstrip("=")


def decode_cursor(text: str) -> tuple[int, str]:
    """Returns the sort key in a cursor.

    Raises:
        Invalid: No page gave this text.
    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        at, key = msgspec.msgpack.decode(raw, type=tuple[int, str])
    except (ValueError, binascii.Error) as error:
        raise invalid("cursor", "is none that a list gave; leave it out to start at the first page") from error
    # Past it Postgres has no timestamps.
    if "\0" in key or abs(at) > 9_000_000_000_000_000:
        raise invalid("cursor", "is none that a list gave; leave it out to start at the first page")
    return at, key


def decode_number_cursor(text: str) -> tuple[int, int]:
    """Returns the sort key in a cursor whose second part is a number.

    Raises:
        Invalid: No page gave this text.
    """
    at, key = decode_cursor(text)
    if not (key.isascii() and key.isdecimal() and len(key) < 10):
        raise invalid("cursor", "is none that a list gave; leave it out to start at the first page")
    return at, int(key)


def next_cursor(rows: list[tuple[Any, ...]], *, limit: int, at: int, key: int) -> str | None:
    """Returns the cursor after a page.

    Args:
        rows: The page, and one row more where there is one.
        limit: How long a page is.
        at: The column of the sort key's first part.
        key: The column of its second part.

    Returns:
        The cursor, None where there is no more.
    """
    if len(rows) <= limit:
        return None
    last = rows[limit - 1]
    return encode_cursor(last[at], str(last[key]))
