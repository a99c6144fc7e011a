"""Updates due times after new time-zone data (`rsched tz`)."""

from __future__ import annotations

from typing import Annotated

import typer

from rsched.cli.options import ConfigFile, DataDir, Json
from rsched.cli.output import print_fields, print_json

app = typer.Typer(help="Manage time-zone data.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command()
def refresh(
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    redis_url: Annotated[
        str | None,
        typer.Option("--redis-url", help="The URL of Redis, by default RSCHED_REDIS_URL.", show_default=False),
    ] = None,
) -> None:
    """Compute the due times of all jobs that new time-zone data changes, and report them.

    Schedulers do the same when they start with newer data; this command shows it, and repeating it is harmless.
    """
    import anyio

    from rsched.cli.options import environment, quiet, read_toml
    from rsched.core.schedule import zones
    from rsched.core.settings import SchedulerSettings, load
    from rsched.runtime.clock import SystemClock
    from rsched.runtime.log import get_logger
    from rsched.scheduler.refresh import Refresher, Report
    from rsched.store.store import Store, shard_tags

    quiet()
    settings = load(
        SchedulerSettings, env=environment(data_dir), toml=read_toml(config), options={"redis_url": redis_url}
    )

    async def run() -> list[Report]:
        reports = []
        for tag in shard_tags(settings.shards):
            store = Store.open(settings.redis_url, prefix=settings.prefix, shard=tag, clock=SystemClock())
            try:
                report = await Refresher(store, log=get_logger("rsched.tz")).refresh()
                if not report.late:
                    await store.refreshes.set_tzdata(zones.tzdata_version())
                reports.append(report)
            finally:
                await store.aclose()
        return reports

    for report in anyio.run(run):
        if as_json:
            print_json({"tzdata": zones.tzdata_version(), "report": report})
            continue
        pairs = [("tzdata", zones.tzdata_version())]
        names = ("looked_at", "changed", "moved", "completed", "invalid", "late")
        pairs += [(name, str(getattr(report, name))) for name in names]
        pairs += [(f"  {zone}", str(n)) for zone, n in report.zones.items()]
        print_fields(pairs)
        if report.late:
            typer.echo(
                "late jobs must first apply their misfire policy to what they missed; run this again in a moment",
                err=True,
            )
