"""What people may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def meant(name: str, known: Iterable[str]) -> str:
    """Returns ` (did you mean ...?)` with the known name that is closest, or nothing where none is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""
