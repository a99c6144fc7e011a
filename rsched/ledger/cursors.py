"""Opaque cursors of keyset pages: the sort key of a page's last row."""

from __future__ import annotations

import base64
import binascii

import msgspec

from rsched.core.errors import invalid


def encode_cursor(at: int, key: str) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode((at, key))).decode().rstrip("=")


def decode_cursor(text: str) -> tuple[int, str]:
    """Invalid for text that no page gave."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        at, key = msgspec.msgpack.decode(raw, type=tuple[int, str])
    except (ValueError, binascii.Error) as error:
        raise invalid("cursor", "is none that a list gave; leave it out to start at the first page") from error
    if "\0" in key or abs(at) >= 2**63:
        raise invalid("cursor", "is none that a list gave; leave it out to start at the first page")
    return at, key
