from typing import Any

import pytest

from rsched.core.instants import parse_instant
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.schedule.regrid import keep_grid
from rsched.core.schedule.schedule import Draft, Schedule, resolve

NOW = parse_instant("2026-10-25T20:30:00Z")
LATER = NOW + 7_777_777


def put(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> tuple[Schedule, Schedule]:
    def draft(entries: list[dict[str, Any]]) -> Draft:
        specs = [ScheduleSpec(**fields) for fields in entries]
        return Draft(specs[0]) if len(specs) == 1 else Draft(None, specs)

    found, before = resolve(draft(old), now_ms=NOW)
    kept = keep_grid(draft(new), Draft(found.schedule, found.schedules))
    return before, resolve(Draft(*kept), now_ms=LATER)[1]


EVERY: dict[str, Any] = {"every": "1h"}
THRICE: dict[str, Any] = {"cron": "0 2 * * *", "max_runs": 3}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([EVERY], [EVERY]),
        ([EVERY], [{"every": 3600}]),
        ([THRICE], [THRICE | {"timezone": "UTC"}]),
        ([EVERY | {"max_runs": 9}], [{"every": "60m", "max_runs": 9}]),
        ([EVERY, THRICE], [THRICE, EVERY]),
        ([EVERY | {"start": "2026-11-01T00:00:00Z"}], [EVERY | {"start": "2026-11-01T00:00:00Z"}]),
    ],
)
def test_a_schedule_put_again_stays_where_it_is(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    before, after = put(old, new)
    assert (after.kind, after.arg) == (before.kind, before.arg)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([EVERY], [{"every": "2h"}]),
        ([EVERY], [EVERY | {"anchor": "2026-10-01T00:01:00Z"}]),
        ([EVERY], [{"every": "x y"}]),
        ([EVERY | {"start": "2026-11-01T00:00:00Z"}], [EVERY | {"start": "2026-11-01T00:10:00Z"}]),
        ([THRICE], [THRICE | {"timezone": "Asia/Tokyo"}]),
        ([THRICE], [{"cron": "0 3 * * *", "max_runs": 3}]),
        ([{"at": "2026-11-01T00:00:00Z"}], [EVERY]),
    ],
)
def test_what_is_another_schedule_takes_nothing_from_the_old_one(
    old: list[dict[str, Any]], new: list[dict[str, Any]]
) -> None:
    found, _ = resolve(Draft(ScheduleSpec(**old[0])), now_ms=NOW)
    spec = ScheduleSpec(**new[0])
    assert keep_grid(Draft(spec), Draft(found.schedule)) == (spec, [])


def test_more_runs_are_counted_from_the_same_start() -> None:
    _, after = put([THRICE], [THRICE | {"max_runs": 5}])
    assert after.missed(NOW, 1 << 60).count == 5
    assert after.missed(NOW, 1 << 60).last == parse_instant("2026-10-30T02:00:00Z")
