"""A schedule as people write it: the text of its fields, which nobody has checked yet."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from rsched.core.durations import Duration
from rsched.core.options import option

# Exactly one of these says when.
KINDS = ("cron", "every", "at", "delay")


class DstPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What cron does where the clocks change.

    What is left out: a job of every hour follows elapsed time (skip, both), any other fires each wall slot once (shift,
    first), as vixie cron does.

    Attributes:
        gap: Slots that the clock jumps over have one run at the first instant after it (shift), or none (skip).
        overlap: Slots that come twice fire on the first pass, or on both.
    """

    gap: Annotated[
        Literal["shift", "skip"] | None,
        option("--gap", "--dst-gap", text="Of slots that the clock jumps over: shift or skip."),
    ] = None
    overlap: Annotated[
        Literal["first", "both"] | None,
        option("--dst-overlap", text="Of slots that come twice when clocks go back: first or both."),
    ] = None


class ScheduleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of {cron, timezone}, {every, anchor}, {at}, {delay}. Instants are RFC 3339 with offset.

    Attributes:
        cron: Five fields, or a macro such as @daily.
        timezone: The IANA name of the zone whose wall clock cron and exclude go by, by default UTC.
        every: The length of an interval.
        anchor: An instant that sets the phase of an interval, by default its start, or the creation.
        at: The one instant of a one-off.
        delay: How long from now a one-off is due.
        second: The cron field of seconds.
        year: The cron field of years.
        dst: What cron does where the clocks change.
        exclude: Dates, date ranges (`2026-12-24/2027-01-02`, both included) and names of the team's holiday calendars.
        start: Occurrences lie in start <= t < end.
        end: The first instant that may not be one.
        max_runs: The first so many from start (by default the creation); one that is skipped uses one up, one that is
            excluded does not.
        window: Each run starts at a fixed point in so long after its occurrence, before the next one and the end.
    """

    cron: Annotated[str | None, option("--cron", text="Five fields, such as '0 2 * * *', or @daily.")] = None
    timezone: Annotated[
        str | None, option("--tz", text="The zone of the wall's clock, such as Asia/Kolkata; by default UTC.")
    ] = None
    every: Annotated[
        Duration | None, option("--every", text="An interval, such as 90s, 5m or 1h30m.", reads="length")
    ] = None
    anchor: Annotated[str | None, option("--anchor", text="An instant that sets the phase of --every.")] = None
    at: Annotated[str | None, option("--at", text="One instant with offset, such as 2026-10-25T20:30:00Z.")] = None
    delay: Annotated[
        Duration | None, option("--delay", text="Once, this long from now, such as 90s.", reads="length")
    ] = None
    second: Annotated[str | int | None, option("--second", text="The cron field of seconds, such as 0,30.")] = None
    year: Annotated[str | int | None, option("--year", text="The cron field of years, such as 2027-2028.")] = None
    dst: DstPolicy | None = None
    exclude: Annotated[
        list[str] | str,
        option(
            "--exclude",
            text="A date, a range such as 2026-12-24/2027-01-02, or a calendar of the team; any number of times.",
            reads="texts",
        ),
    ] = []
    start: Annotated[str | None, option("--start", text="The first instant that may be one.")] = None
    end: Annotated[str | None, option("--end", text="The first instant that may not.")] = None
    max_runs: Annotated[
        int | None, option("--max-runs", text="The first so many, then it is completed.", reads="integer")
    ] = None
    window: Annotated[
        Duration | None,
        option(
            "--window",
            text="Start each run at a fixed point in so long after its occurrence, such as 5m.",
            reads="length",
        ),
    ] = None
