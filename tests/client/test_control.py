from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio
import pytest

from rsched.client import AsyncClient, Client
from rsched.core.errors import Invalid
from tests.client.fake_api import JOB, RUN, Reply, serving

CALENDAR = {"team": "ops", "name": "days", "version": 2, "total": 1, "dates": ["2026-12-25"]}


def test_a_pause_takes_an_instant_or_a_length_and_nothing_where_nothing_is_said() -> None:
    with serving(Reply(200, JOB)) as api, Client(api.url) as client:
        client.pause_job("n", until=datetime(2026, 12, 1, tzinfo=UTC), note="x")
        client.pause_job("n", until=timedelta(hours=2), missed="run_all")
        client.pause_job("n", team="ops")
    assert [s.body for s in api.seen] == [
        {"note": "x", "until": "2026-12-01T00:00:00+00:00"},
        {"until": 7200.0, "missed": "run_all"},
        None,
    ]
    assert api.seen[2].path == "/v1/jobs/n/pause?team=ops"


def test_a_naive_datetime_is_refused_before_anything_is_sent() -> None:
    with serving(Reply(200, JOB)) as api, Client(api.url) as client, pytest.raises(Invalid, match="aware"):
        client.backfill("n", datetime(2026, 12, 1))
    assert api.seen == []


def test_a_calendar_is_put_under_the_version_that_was_seen() -> None:
    with serving(Reply(200, CALENDAR)) as api, Client(api.url) as client:
        assert client.put_calendar("ops", "days", ["2026-12-25"], if_match=1).version == 2
        client.delete_calendar("ops", "days", if_match=2)
    assert [(s.method, s.path, s.headers["if-match"]) for s in api.seen] == [
        ("PUT", "/v1/teams/ops/calendars/days", '"1"'),
        ("DELETE", "/v1/teams/ops/calendars/days", '"2"'),
    ]


def test_the_async_client_asks_for_the_same() -> None:
    async def calls(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.pause_job("n", note="x")
            await client.resume_job("n", missed="skip")
            await client.trigger_job("n", payload=None, overlap="allow", idempotency_key="k")
            assert [s.total async for s in client.skips("n")] == [2]

    skip = {"first_at": "a", "last_at": "b", "total": 2, "reason": "r", "at": "c"}
    page = Reply(200, {"items": [skip], "next_cursor": None})
    with serving(Reply(200, JOB), Reply(200, JOB), Reply(202, RUN), page) as api:
        anyio.run(calls, api.url)
    assert [s.body for s in api.seen] == [
        {"note": "x"},
        {"missed": "skip"},
        {"overlap": "allow", "payload": None},
        None,
    ]
