"""Runs one pass of the reconciler, or shows what is being restored and reconciled (`rsched reconcile`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rsched.cli.options import ConfigFile, DataDir, Json
from rsched.cli.output import print_fields, print_json, print_table

if TYPE_CHECKING:
    from collections import Counter

    from rsched.core.settings import RecorderSettings
    from rsched.store.reconciliation import ReconcileProgress
    from rsched.store.restore import RestoreProgress

_REFRESH_MS = 1000


def reconcile(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only find; repair nothing.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow a restoration and the recorder's own passes instead, until Ctrl-C.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="With --watch: print one line for each shard and exit.")] = False,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Find and repair what is inconsistent in Redis and between Redis and the ledger, while everything goes on.

    Prints how many of each kind there were. Exit code 0: nothing was found; 1: something was (and is repaired, without
    --dry-run); 2: something could not be judged, because no recorder keeps up or a restoration is at work.
    """
    import anyio

    from rsched.cli.options import environment, quiet, read_toml
    from rsched.core.settings import RecorderSettings, load

    quiet()
    settings = load(RecorderSettings, env=environment(data_dir), toml=read_toml(config))
    if watch:
        anyio.run(_watch, settings, once, as_json)
        return
    found, unsure, waiting = anyio.run(_passes, settings, not dry_run)
    if as_json:
        print_json(
            {"found": dict(sorted(found.items())), "repaired": not dry_run, "unsure": unsure, "restoring": waiting}
        )
    elif found:
        print_table(("KIND", "FOUND" if dry_run else "REPAIRED"), [(k, str(n)) for k, n in sorted(found.items())])
    elif not (waiting or unsure):
        typer.echo("nothing to repair")
    for shard in waiting:
        typer.echo(f"shard {shard} is being restored: follow it with `rsched reconcile --watch`, then repeat", err=True)
    if unsure:
        typer.echo(
            f"{unsure} could not be judged: the ledger is behind, or there is an error above; "
            "see that a recorder runs, then repeat",
            err=True,
        )
    if unsure or waiting:
        raise typer.Exit(2)
    if found:
        raise typer.Exit(1)


async def _passes(settings: RecorderSettings, write: bool) -> tuple[Counter[str], int, list[str]]:
    """Returns what was found, how much could not be judged, and the shards that are being restored."""
    from collections import Counter

    from rsched.ledger import Ledger
    from rsched.recorder.reconcile.reconciler import Reconciler
    from rsched.runtime.clock import SystemClock
    from rsched.store.store import Store, shard_tags

    clock = SystemClock()
    found: Counter[str] = Counter()
    unsure, waiting = 0, []
    async with Ledger(settings.database_url, pool_max=2, clock=clock) as ledger:
        await ledger.database.check_schema()
        for tag in shard_tags(settings.shards):
            store = Store.open(settings.redis_url, prefix=settings.prefix, shard=tag, clock=clock)
            try:
                one = Reconciler(store, ledger, shard=tag, clock=clock, lease_ms=settings.lease_ms, write=write)
                if (counts := await one.run_pass()) is None:
                    waiting.append(tag)
                else:
                    found.update(counts)
                unsure += one.unsure
            finally:
                await store.aclose()
    return found, unsure, waiting


async def _watch(settings: RecorderSettings, once: bool, as_json: bool) -> None:
    from rsched.runtime.clock import SystemClock
    from rsched.store.store import Store, shard_tags

    clock = SystemClock()
    tags = shard_tags(settings.shards)
    stores = {t: Store.open(settings.redis_url, prefix=settings.prefix, shard=t, clock=clock) for t in tags}
    try:
        while True:
            for tag, store in stores.items():
                repair, progress, now = (
                    await store.restore.get_progress(),
                    await store.reconciliation.get_progress(),
                    await store.clock.read(),
                )
                if as_json:
                    print_json({"shard": tag, "now": now, "restore": _plain(repair), "reconcile": _plain(progress)})
                else:
                    print_fields([(tag, f"{_restoration(repair, now=now)}; {_passing(progress, now=now)}")])
            if once:
                return
            await clock.sleep(_REFRESH_MS)
    finally:
        for store in stores.values():
            await store.aclose()


def _plain(value: RestoreProgress | ReconcileProgress | None) -> dict[str, Any] | None:
    return None if value is None else value._asdict()


def _restoration(repair: RestoreProgress | None, *, now: int) -> str:
    if repair is None:
        return "never restored"
    took = f"{max(0, now - repair.started_at) / 1000:.1f} s"
    if repair.phase == "done":
        return f"all restored: {repair.jobs_done} jobs, {repair.runs_done} runs"
    if repair.phase == "runs":
        return f"closed, restoring runs: {repair.runs_done} so far, for {took}"
    share = f" ({100 * repair.jobs_done // repair.jobs_total} %)" if repair.jobs_total else ""
    return f"open, restoring definitions: {repair.jobs_done} of {repair.jobs_total}{share}, for {took}"


def _passing(progress: ReconcileProgress, *, now: int) -> str:
    if progress.phase:
        took = f"{max(0, now - progress.started_at) / 1000:.0f} s"
        return f"reconciling {progress.phase} for {took}, {progress.found} found"
    if not progress.passes:
        return "not reconciled yet"
    ago = f"{max(0, now - progress.ended_at) / 1000:.0f} s"
    passes = "1 pass" if progress.passes == 1 else f"{progress.passes} passes"
    return f"{passes}, the last one {ago} ago found {progress.found}"
