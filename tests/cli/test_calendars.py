from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import rsched
from tests.client.fake_api import Reply, problem, serving

DATES = ["2026-12-25", "2026-12-31/2027-01-02"]
CALENDAR: dict[str, Any] = {"team": "ops", "name": "holidays", "version": 2, "total": 2, "dates": DATES}
PATH = "/v1/teams/ops/calendars/holidays"


def test_calendars_are_listed() -> None:
    one = {k: v for k, v in CALENDAR.items() if k != "dates"}
    page = {"items": [one], "next_cursor": "c"}
    with serving(Reply(200, page)) as api:
        result = rsched("calendars", "list", "--team", "ops", "--limit", "1", "--api", api.url)
    assert result.stdout.splitlines() == ["CALENDAR\tVERSION\tDATES", "holidays\t2\t2"]
    assert "--cursor c" in result.stderr
    assert api.seen[0].path == "/v1/teams/ops/calendars?limit=1"


def test_dates_come_as_arguments_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("# days off\n2026-12-25\n\n 2026-12-26 # second day\n")
    (tmp_path / "array").write_text(json.dumps(DATES))
    (tmp_path / "whole").write_text(json.dumps(CALENDAR))
    files = [f"@{tmp_path / name}" for name in ("lines", "array", "whole")]
    with serving(Reply(200, CALENDAR)) as api:
        result = rsched(
            *("calendars", "put", "holidays", "2026-01-01", *files),
            *("--team", "ops", "--if-match", "1", "--ack", "redis", "--api", api.url),
        )
    assert result.exit_code == 0, result.output
    assert (api.seen[0].method, api.seen[0].path) == ("PUT", f"{PATH}?ack=redis")
    assert api.seen[0].headers["if-match"] == '"1"'
    assert api.seen[0].body == {"dates": ["2026-01-01", "2026-12-25", "2026-12-26", *DATES, *DATES]}


def test_what_show_writes_can_be_put_again() -> None:
    for flags in ([], ["--json"]):
        with serving(Reply(200, CALENDAR)) as api:
            shown = rsched("calendars", "show", "holidays", "--team", "ops", "--api", api.url, *flags)
            done = rsched("calendars", "put", "other", "@-", "--api", api.url, text=shown.stdout)
        assert done.exit_code == 0, done.output
        assert api.seen[1].body == {"dates": DATES}


def test_a_calendar_that_is_used_is_not_deleted() -> None:
    with serving(problem(409, "conflict"), Reply(204, None)) as api:
        used = rsched("calendars", "delete", "holidays", "--team", "ops", "--api", api.url)
        free = rsched("calendars", "delete", "holidays", "--team", "ops", "--api", api.url)
    assert (used.exit_code, used.stderr) == (1, "error: about conflict\n")
    assert (free.exit_code, free.stdout) == (0, "deleted holidays\n")
    assert [(s.method, s.path) for s in api.seen] == [("DELETE", PATH)] * 2


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["put", "x"], None),
        (["put", "x", "@/nowhere"], None),
        (["put", "x", "@-"], "[1]"),
        (["put", "x", "@-"], '{"days": []}'),
        (["put", "x", "@-"], "[2026"),
        (["show"], None),
    ],
)
def test_what_holds_no_dates_ends_with_2(args: list[str], text: str | None) -> None:
    result = rsched("calendars", *args, text=text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr
