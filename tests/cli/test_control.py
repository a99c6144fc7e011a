from __future__ import annotations

from typing import Any

import pytest

from tests.cli.test_commands import rsched
from tests.client.fake_api import JOB, RUN, Reply, serving

BULK: dict[str, Any] = {
    "matched": 1,
    "changed": 1,
    "unchanged": 0,
    "failed": [],
    "dry_run": False,
    "items": [{"job_id": JOB["job_id"], "name": "nightly", "team": "x"}],
    "next_cursor": None,
}


def test_pause_and_resume_say_why_until_when_and_what_then() -> None:
    pause = {"note": "n", "until": "2026-10-26T00:00:00.000Z", "missed": "skip"}
    with serving(Reply(200, {**JOB, "state": "paused", "pause": pause}), Reply(200, JOB)) as api:
        paused = rsched(
            *("jobs", "pause", "nightly", "--note", "n", "--until", "2h", "--missed", "skip", "--api", api.url)
        )
        resumed = rsched("jobs", "resume", "nightly", "--missed", "run_once", "--api", api.url)
    assert (paused.exit_code, resumed.exit_code) == (0, 0), paused.output + resumed.output
    assert paused.stdout == f"{JOB['job_id']} is paused until 2026-10-26T00:00:00.000Z\n"
    assert [s.body for s in api.seen] == [{"note": "n", "until": "2h", "missed": "skip"}, {"missed": "run_once"}]


def test_trigger_sends_its_own_payload_even_null() -> None:
    with serving(Reply(202, RUN)) as api:
        one = rsched("jobs", "trigger", "n", "--payload", "null", "--overlap", "allow", "--api", api.url)
        two = rsched("jobs", "trigger", "n", "--api", api.url)
    assert (one.exit_code, two.exit_code) == (0, 0), one.output
    assert [s.body for s in api.seen] == [{"overlap": "allow", "payload": None}, None]


def test_backfill_says_how_many_runs_it_owes() -> None:
    answer = {
        "job_id": JOB["job_id"],
        "occurrences": 5,
        "already": 1,
        "ranges": 2,
        "pace_per_s": 10,
        "dry_run": True,
        "first": "2026-10-25T00:00:00.000Z",
        "last": "2026-10-25T05:00:00.000Z",
    }
    with serving(Reply(202, answer)) as api:
        result = rsched("jobs", "backfill", "n", "--from", "2026-10-25T00:00:00Z", "--dry-run", "--api", api.url)
    assert result.stdout.startswith(f"5 runs of {JOB['job_id']} would be pending, ")
    assert api.seen[0].body == {"from": "2026-10-25T00:00:00Z", "dry_run": True}


def test_skips_are_listed_with_their_reasons() -> None:
    skip = {"first_at": "a", "last_at": "b", "total": 3, "reason": "paused", "at": "c"}
    with serving(Reply(200, {"items": [skip], "next_cursor": None})) as api:
        result = rsched("jobs", "skips", "n", "--api", api.url)
    assert result.stdout.splitlines()[1] == "a\tb\t3\tpaused\tc"


def test_many_jobs_are_changed_page_by_page() -> None:
    more = Reply(200, {**BULK, "next_cursor": "c"})
    with serving(more, Reply(200, BULK)) as api:
        result = rsched("jobs", "pause", "--all", "--team", "x", "--tag", "y", "--name", "n*", "--api", api.url)
    assert result.exit_code == 0, result.output
    assert "changed    2" in result.stdout
    matching = {"filter": {"team": "x", "tag": "y", "name": "n*"}, "all": True, "dry_run": False}
    assert [(s.path, s.body) for s in api.seen] == [
        ("/v1/jobs:pause", matching),
        ("/v1/jobs:pause", {**matching, "cursor": "c"}),
    ]


@pytest.mark.parametrize(("typed", "deleted"), [("y\n", True), ("n\n", False)])
def test_many_jobs_are_deleted_only_after_a_yes(typed: str, deleted: bool) -> None:
    with serving(Reply(200, BULK)) as api:
        result = rsched("jobs", "delete", "--all", "--team", "x", "--api", api.url, text=typed)
    assert "delete 1 jobs?" in result.stderr
    assert ([s.body["dry_run"] for s in api.seen], result.exit_code == 0) == ([True, False][: 1 + deleted], deleted)


def test_a_job_that_could_not_be_changed_is_named_and_ends_with_1() -> None:
    failed = {**BULK, "changed": 0, "failed": [{"job_id": "j_x", "code": "conflict", "detail": "no"}]}
    with serving(Reply(200, failed)) as api:
        result = rsched("jobs", "resume", "--all", "--api", api.url)
    assert (result.exit_code, result.stderr) == (1, "error: j_x: no\n")


@pytest.mark.parametrize(
    "args",
    [
        ["pause"],
        ["pause", "--team", "x"],
        ["delete"],
        ["delete", "n", "--all"],
        ["pause", "n", "--tag", "t"],
        ["backfill", "n"],
        ["trigger", "n", "--payload", "{a}"],
    ],
)
def test_what_may_not_be_meant_ends_with_2(args: list[str]) -> None:
    result = rsched("jobs", *args)
    assert (result.exit_code, result.stdout) == (2, "")
