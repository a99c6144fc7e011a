"""What the API answers beside jobs and runs."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from rsched.core.answers import (
    BackfillView,
    BulkAnswer,
    CalendarView,
    ForecastView,
    JobView,
    Occurrence,
    Preview,
    SkipView,
)

__all__ = [
    "BackfillView",
    "BulkAnswer",
    "CalendarView",
    "Created",
    "ForecastView",
    "Occurrence",
    "Page",
    "Preview",
    "SkipView",
]

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One page of a list. next_cursor asks for the one that follows; None: this is the last."""

    items: list[T]
    next_cursor: str | None = None


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a batch, in its order."""

    items: list[JobView]
