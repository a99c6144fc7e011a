"""What the API answers beside jobs and runs."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One page of a list. next_cursor asks for the one that follows; None: this is the last."""

    items: list[T]
    next_cursor: str | None = None


class Occurrence(msgspec.Struct, frozen=True, kw_only=True):
    """One nominal instant, in UTC and in the schedule's own zone. note: what is special about it, such as a DST shift."""

    utc: str
    local: str
    note: str | None = None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    occurrences: list[Occurrence]
    description: str = ""
    warnings: list[str] = []
