from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rsched.core.errors import Invalid
from tests.client.fake_api import JOB, RUN, Reply, serving

Connect = Callable[..., Any]
CALENDAR = {"team": "ops", "name": "days", "version": 2, "total": 1, "dates": ["2026-12-25"]}


def test_a_pause_takes_an_instant_or_a_length_and_nothing_where_nothing_is_said(connect: Connect) -> None:
    with serving(Reply(200, JOB)) as api, connect(api.url) as client:
        client.pause_job("n", until=datetime(2026, 12, 1, tzinfo=UTC), note="x")
        client.pause_job("n", until=timedelta(hours=2), missed="run_all")
        client.pause_job("n", team="ops")
    assert [s.body for s in api.seen] == [
        {"note": "x", "until": "2026-12-01T00:00:00+00:00"},
        {"until": 7200.0, "missed": "run_all"},
        None,
    ]
    assert api.seen[2].path == "/v1/jobs/n/pause?team=ops"


def test_a_naive_datetime_is_refused_before_anything_is_sent(connect: Connect) -> None:
    with serving(Reply(200, JOB)) as api, connect(api.url) as client, pytest.raises(Invalid, match="aware"):
        client.backfill_job("n", start=datetime(2026, 12, 1))
    assert api.seen == []


def test_a_calendar_is_put_under_the_version_that_was_seen(connect: Connect) -> None:
    with serving(Reply(200, CALENDAR)) as api, connect(api.url) as client:
        assert client.put_calendar("ops", "days", dates=["2026-12-25"], if_match=1).version == 2
        client.delete_calendar("ops", "days", if_match=2)
    assert [(s.method, s.path, s.headers["if-match"]) for s in api.seen] == [
        ("PUT", "/v1/teams/ops/calendars/days", '"1"'),
        ("DELETE", "/v1/teams/ops/calendars/days", '"2"'),
    ]


def test_a_run_is_triggered_with_what_is_its_own_alone(connect: Connect) -> None:
    with serving(Reply(202, RUN)) as api, connect(api.url) as client:
        client.trigger_job("n", payload=None, overlap="allow", idempotency_key="k")
        client.trigger_job("n")
    assert [s.body for s in api.seen] == [{"overlap": "allow", "payload": None}, None]
    assert api.seen[0].headers["idempotency-key"] == "k"


def test_pause_and_resume_may_ask_for_the_version_that_was_seen(connect: Connect) -> None:
    with serving(Reply(200, JOB)) as api, connect(api.url) as client:
        client.pause_job("n", if_match=3)
        client.resume_job("n", missed="skip", if_match=4)
        client.resume_job("n")
    assert [s.headers.get("if-match") for s in api.seen] == ['"3"', '"4"', None]
    assert [s.body for s in api.seen] == [None, {"missed": "skip"}, None]


def test_many_jobs_are_asked_for_by_what_they_have_in_common(connect: Connect) -> None:
    answer = {
        "matched": 2,
        "changed": 2,
        "unchanged": 0,
        "failed": [],
        "dry_run": False,
        "items": [],
        "next_cursor": None,
    }
    with serving(Reply(200, answer)) as api, connect(api.url) as client:
        assert client.pause_jobs(team="ops", tag="x", until=timedelta(hours=1), note="why").changed == 2
        client.resume_jobs(all_jobs=True, missed="run_once", cursor="c1", ack="redis")
        client.delete_jobs(name="old-*", dry_run=True)
    assert [s.path for s in api.seen] == ["/v1/jobs:pause", "/v1/jobs:resume?ack=redis", "/v1/jobs:delete"]
    assert [s.body for s in api.seen] == [
        {"note": "why", "until": 3600.0, "filter": {"team": "ops", "tag": "x"}, "all": False, "dry_run": False},
        {"missed": "run_once", "cursor": "c1", "filter": {}, "all": True, "dry_run": False},
        {"filter": {"name": "old-*"}, "all": False, "dry_run": True},
    ]


def test_all_that_is_listed_goes_on_over_pages(connect: Connect) -> None:
    skip = {"first_at": "a", "last_at": "b", "total": 2, "reason": "r", "at": "c"}
    short = {k: v for k, v in CALENDAR.items() if k != "dates"}
    for call, item, path in [
        (lambda client: client.list_skips("n", team="ops"), skip, "/v1/jobs/n/skips?team=ops&limit=100"),
        (lambda client: client.list_dead_letters(team="ops"), RUN, "/v1/dead-letters?team=ops&limit=100"),
        (lambda client: client.list_calendars("ops"), short, "/v1/teams/ops/calendars?limit=100"),
    ]:
        first = Reply(200, {"items": [item], "next_cursor": "c1"})
        with serving(first, Reply(200, {"items": [item], "next_cursor": None})) as api, connect(api.url) as client:
            assert len(list(call(client))) == 2
        assert api.seen[0].path == path
        assert api.seen[1].path == path.replace("limit=", "cursor=c1&limit=")
