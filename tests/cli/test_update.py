from __future__ import annotations

from pathlib import Path

from tests.cli.test_commands import rsched
from tests.client.fake_api import JOB, Reply, problem, serving


def test_update_sends_a_merge_patch_under_the_version_that_was_seen(tmp_path: Path) -> None:
    (tmp_path / "changes.json").write_text('{"tags": null}')
    with serving(Reply(200, JOB)) as api:
        typed = ("jobs", "update", "nightly", '{"schedule": {"cron": "0 3 * * *"}}', "--team", "ops", "--if-match", "3")
        done = rsched(*typed, "--api", api.url)
        from_file = rsched("jobs", "update", "nightly", f"@{tmp_path}/changes.json", "--json", "--api", api.url)
    assert (done.exit_code, from_file.exit_code) == (0, 0), done.output + from_file.output
    assert JOB["job_id"] in done.stdout
    assert [(s.method, s.path, s.body) for s in api.seen] == [
        ("PATCH", "/v1/jobs/nightly?team=ops", {"schedule": {"cron": "0 3 * * *"}}),
        ("PATCH", "/v1/jobs/nightly", {"tags": None}),
    ]
    assert [s.headers.get("if-match") for s in api.seen] == ['"3"', None]


def test_what_is_no_patch_is_a_usage_error() -> None:
    for text in ("[]", "cron"):
        assert rsched("jobs", "update", "nightly", text).exit_code == 2


def test_a_refused_change_is_told_by_its_field() -> None:
    fields = [{"field": "schedule.cron", "message": "minute: no"}]
    with serving(problem(422, "invalid", errors=fields)) as api:
        done = rsched("jobs", "update", "nightly", '{"schedule": {"cron": "x"}}', "--api", api.url)
    assert done.exit_code == 1
    assert done.stderr == "error: schedule.cron: minute: no\n"
