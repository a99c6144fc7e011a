"""A program of a user, which type checkers read and nobody runs. What must be an error is marked so, and checked to be one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import assert_type
from zoneinfo import ZoneInfo

from rsched import (
    App,
    AsyncClient,
    Client,
    Conflict,
    FieldError,
    Invalid,
    JobContext,
    JobSpec,
    JobView,
    NotFound,
    Page,
    RschedError,
    RunView,
    ScheduleSpec,
    Unavailable,
    Worker,
)
from rsched import FunctionTarget as Target

app = App()


@app.function("reports.nightly", queue="reports")
def nightly(day: date, context: JobContext, *, region: str = "emea") -> int:
    assert_type(context.run_id.upper(), str)
    assert_type(context.scheduled_at, datetime)
    assert_type(context.attempt + context.fence, int)
    return day.toordinal()


@app.function
async def own_name(context: JobContext | None = None) -> None: ...


same: App = Worker()
assert_type(nightly(date(2026, 1, 1), context=None, region="apac"), int)  # type: ignore[arg-type]  # pyright: ignore


def use(client: Client) -> None:
    job = client.create_job(
        "nightly",
        cron="0 2 * * *",
        timezone=ZoneInfo("Asia/Kolkata"),
        start=datetime(2026, 12, 1, tzinfo=UTC),
        window=timedelta(minutes=5),
        exclude=[date(2026, 12, 25), "holidays"],
        function="reports.nightly",
        kwargs={"region": "emea"},
        overlap="skip",
        idempotency_key="once",
    )
    assert_type(job, JobView)
    spec = JobSpec(schedule=ScheduleSpec(every="5m"), target=Target(function="f"))
    assert_type(client.create_jobs([spec, {"schedule": {"at": "..."}}]), list[JobView])
    assert_type(client.replace_job("nightly", spec=spec, if_match=job.version), JobView)
    assert_type(client.update_job("nightly", every=timedelta(hours=1), timezone=None), JobView)
    assert_type(client.list_jobs(team="ops"), Iterator[JobView])
    assert_type(client.list_jobs_page(team="ops", limit=10), Page[JobView])
    run = client.trigger_job(job.job_id, payload={"x": 1})
    assert_type(run, RunView)
    assert_type(client.get_run(run.run_id).lateness_ms, int | None)
    client.pause_job("nightly", until=timedelta(hours=2), missed="skip", if_match=3)
    client.backfill_job("nightly", start=datetime(2026, 1, 1, tzinfo=UTC))
    client.pause_jobs(tag="nightly", until=timedelta(hours=2))
    client.put_calendar("ops", "holidays", dates=[date(2026, 12, 25)])
    client.create_job("n", crom="@daily", url="http://x/")  # type: ignore[call-arg]  # pyright: ignore
    client.create_job("n", every=timedelta(1), overlap="never")  # type: ignore[arg-type]  # pyright: ignore


async def use_async(client: AsyncClient) -> None:
    assert_type(await client.create_job("nightly", cron="@daily", url="http://x/"), JobView)
    jobs = client.list_jobs(tag="nightly")
    assert_type(jobs, AsyncIterator[JobView])
    async for job in jobs:
        assert_type(job, JobView)
    assert_type(await client.list_runs_page("nightly", status="DEAD"), Page[RunView])
    assert_type(await client.update_job("nightly", changes={"tags": None}), JobView)
    await client.delete_job("nightly", if_match=1)


def errors(client: Client) -> FieldError | None:
    try:
        client.get_job("nightly")
    except (NotFound, Conflict) as error:
        assert_type(error.code, str)
        assert_type(error.retryable, bool)
    except Invalid as error:
        return error.errors[0]
    except Unavailable:
        raise
    except RschedError as error:
        print(error.detail)
    return None


async def main() -> None:
    with Client("http://127.0.0.1:8080", ca_file="ca.pem") as client:
        use(client)
    async with AsyncClient(timeout_s=2, retry_for_s=0) as client_of_loop:
        await use_async(client_of_loop)


if __name__ == "__main__":
    asyncio.run(main())
