"""Every setting, once: one frozen struct for each kind of process, units in the names, the reason beside each default.

A value comes from a command's option, else `RSCHED_<KIND>_<KNOB>`, else `RSCHED_<KNOB>` (settings that all kinds share), else
the TOML file's `[kind]` table, else its top level, else the default. Nothing is read at import.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from rsched.core.errors import Misconfigured
from rsched.core.ids import SLUG

ENV_PREFIX = "RSCHED_"
# Read by the commands themselves, not by a kind of process.
OTHER_VARIABLES = frozenset({"RSCHED_CONFIG", "RSCHED_FAULTS", "RSCHED_URL"})

_Ms = Annotated[int, Meta(ge=1, le=86_400_000)]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What all kinds of processes share."""

    redis_url: Annotated[str, Meta(description="The Redis that schedules; redis://, rediss:// (TLS) or unix://")] = (
        "redis://127.0.0.1:6379/0"
    )
    database_url: Annotated[
        str, Meta(description="The Postgres that remembers; sslmode and the like as parameters")
    ] = "postgresql://127.0.0.1:5432/rsched"
    prefix: Annotated[
        str, Meta(description="First part of every Redis key, so that deployments can share a server")
    ] = "rs"
    shards: Annotated[
        int, Meta(ge=1, le=1024, description="Hash tags the keys spread over; fixed when first started")
    ] = 1
    log_format: Annotated[Literal["console", "json"], Meta(description="console for people, json for collectors")] = (
        "console"
    )
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        Meta(description="INFO says starts, stops, outages and their ends"),
    ] = "INFO"


class ApiSettings(Settings, frozen=True, kw_only=True):
    host: Annotated[str, Meta(description="Loopback, because nobody who reaches the API has to say who they are")] = (
        "127.0.0.1"
    )
    port: Annotated[int, Meta(ge=0, le=65535, description="0 lets the system choose")] = 8080
    allow_insecure_bind: Annotated[
        bool, Meta(description="Lets host be another address than loopback; put your own access control before it")
    ] = False
    ack_timeout_s: Annotated[
        float,
        Meta(
            gt=0,
            le=300,
            description="How long a write waits to be in Postgres before it answers 503; a commit takes ms",
        ),
    ] = 5.0


class Measured(Settings, frozen=True, kw_only=True):
    """What the kinds share that have no HTTP server of their own."""

    metrics_host: Annotated[
        str, Meta(description="Where /metrics is served; loopback, because nobody has to say who they are to read it")
    ] = "127.0.0.1"
    metrics_port: Annotated[int, Meta(ge=0, le=65535, description="Of /metrics; 0: not served")] = 0


class SchedulerSettings(Measured, frozen=True, kw_only=True):
    ownership: Annotated[
        bool, Meta(description="Share partitions out instead of racing for them; saves work, no promise rests on it")
    ] = True
    partition_lease_ms: Annotated[
        _Ms, Meta(description="The longest that a dead scheduler's partitions stand still")
    ] = 2500
    partition_renew_ms: Annotated[_Ms, Meta(description="A lease survives two lost renewals")] = 750
    lookahead_ms: Annotated[
        int, Meta(ge=0, le=60_000, description="Claimed this far ahead, so that the instant itself costs little")
    ] = 5000
    batch: Annotated[
        int, Meta(ge=1, le=2000, description="Runs a script handles: about 3 ms of Redis at 300, which others wait for")
    ] = 300
    reap_after_ms: Annotated[
        _Ms, Meta(description="Past a lease's end, so that its worker has stopped even if its clock runs a little slow")
    ] = 1000
    catchup_per_s: Annotated[
        int, Meta(ge=1, le=10_000, description="Late occurrences that one job gets in a second when it catches up")
    ] = 10
    catchup_share: Annotated[
        float, Meta(gt=0, le=1, description="Part of a queue's starts that catching up takes while other runs wait")
    ] = 0.2
    poll_ms: Annotated[_Ms, Meta(description="The longest sleep; wake-ups make it shorter, this is for a lost one")] = (
        1000
    )


class WorkerSettings(Measured, frozen=True, kw_only=True):
    concurrency: Annotated[int, Meta(ge=1, le=10_000, description="Attempts at once; HTTP calls mostly wait")] = 100
    queues: Annotated[
        tuple[str, ...], Meta(description="Queues to serve; empty: http and, with an app, the queues of its functions")
    ] = ()
    app: Annotated[
        str | None, Meta(description="package.module:app with the Python functions; none: http targets only")
    ] = None
    lease_ms: Annotated[
        int,
        # At most what a shard that lost all of Redis is held for, since it knows no worker's lease then.
        Meta(ge=1, le=60_000, description="How long a run stands still when its worker dies; 60 s at most"),
    ] = 60_000
    renew_ms: Annotated[_Ms, Meta(description="A third of the lease: it survives two lost renewals")] = 20_000
    stop_margin_ms: Annotated[
        _Ms, Meta(description="An attempt that cannot be renewed is stopped this long before its lease ends")
    ] = 5000
    drain_s: Annotated[
        float,
        Meta(ge=0, le=3600, description="Running attempts get this long at SIGTERM; a supervisor kills after 10 s"),
    ] = 8
    poll_ms: Annotated[_Ms, Meta(description="The longest wait between fetches; wake-ups make it shorter")] = 1000
    threads: Annotated[
        int, Meta(ge=0, le=1000, description="Threads for sync functions; 0: as the concurrency, at most 32")
    ] = 0

    def __post_init__(self) -> None:
        if self.threads == 0:
            msgspec.structs.force_setattr(self, "threads", min(self.concurrency, 32))


class RecorderSettings(Measured, frozen=True, kw_only=True):
    batch: Annotated[
        int, Meta(ge=1, le=50_000, description="Events in a transaction; more is faster to copy and later to be seen")
    ] = 5000
    block_ms: Annotated[
        int, Meta(ge=1, le=8000, description="How long a read waits for events; under the socket's timeout of 10 s")
    ] = 2000
    keep_ms: Annotated[
        int,
        Meta(ge=0, le=86_400_000, description="Journal kept behind the position, for a Postgres that loses its tail"),
    ] = 60_000
    lease_ms: Annotated[
        int,
        Meta(
            ge=1, le=60_000, description="The longest lease of any worker: so long are runs held when Redis lost writes"
        ),
    ] = 60_000
    forget_after_s: Annotated[
        float, Meta(ge=0, le=604_800, description="Completed jobs leave Redis this long after they are recorded")
    ] = 600
    retention_days: Annotated[
        int,
        Meta(
            ge=0, le=36_500, description="History of older days leaves Postgres for the archive; 0: it stays for ever"
        ),
    ] = 30
    archive_dir: Annotated[
        str,
        Meta(description="Folder that old history is exported to as Parquet (absolute); empty: it stays in Postgres"),
    ] = ""
    reconcile_every_s: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="Rest between two passes over all that a shard holds; 0: none but the one after a restoration",
        ),
    ] = 600
    reconcile_pace_ms: Annotated[
        int,
        Meta(
            ge=0, le=10_000, description="Pause after each page of a pass; more spares Redis, and a pass takes longer"
        ),
    ] = 50


KINDS: dict[str, type[Settings]] = {
    "api": ApiSettings,
    "scheduler": SchedulerSettings,
    "worker": WorkerSettings,
    "recorder": RecorderSettings,
}
S = TypeVar("S", bound=Settings)


class Effective(NamedTuple):
    """One setting as it is in force. value is text with passwords masked; source: option, a variable, the file, or default."""

    name: str
    value: str
    source: str
    reason: str


def kind_of(cls: type[Settings]) -> str | None:
    """api, scheduler, worker, recorder; None for what they share."""
    return next((kind for kind, found in KINDS.items() if found is cls), None)


def variable(cls: type[Settings], setting: str) -> str:
    """The environment variable that people set for a setting."""
    kind = kind_of(cls)
    if kind is None or setting in Settings.__struct_fields__:
        return ENV_PREFIX + setting.upper()
    return f"{ENV_PREFIX}{kind.upper()}_{setting.upper()}"


def load(
    cls: type[S], *, env: Mapping[str, str], toml: Mapping[str, Any], options: Mapping[str, Any] | None = None
) -> S:
    """The settings of one kind of process. options: what a command line said, None entries ignored. Misconfigured."""
    _refuse_unknown(toml)
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(cls):
        source, raw = _find(cls, field.name, env=env, toml=toml, options=options or {})
        if source != "default":
            values[field.name] = _convert(raw, field.type, source)
    settings = cls(**values)
    problems = list(_relations(settings))
    if problems:
        raise Misconfigured("; ".join(problems))
    return settings


def effective(
    settings: Settings,
    *,
    env: Mapping[str, str] | None = None,
    toml: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Effective]:
    """Every setting as it is in force and, given what load() was given, where it comes from."""
    cls = type(settings)
    found = []
    for field in msgspec.structs.fields(cls):
        source, _ = _find(cls, field.name, env=env or {}, toml=toml or {}, options=options or {})
        found.append(
            Effective(field.name, _show(field.name, getattr(settings, field.name)), source, _reason(field.type))
        )
    return found


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """RSCHED_ variables that set nothing: each is likely a slip of the pen. With the likeliest one meant."""
    known = set(OTHER_VARIABLES)
    for kind, cls in KINDS.items():
        for setting in cls.__struct_fields__:
            known |= {variable(cls, setting), f"{ENV_PREFIX}{kind.upper()}_{setting.upper()}"}
    return [f"{name}{_meant(name, known)}" for name in sorted(env) if name.startswith(ENV_PREFIX) and name not in known]


def mask(url: str) -> str:
    """The URL with its passwords hidden; any text that is no URL comes back as it is."""
    try:
        netloc, query = urlsplit(url).netloc, urlsplit(url).query
    except ValueError:
        return "***"
    user, at, host = netloc.rpartition("@")
    if at and ":" in user:
        url = url.replace(netloc, f"{user.partition(':')[0]}:***@{host}", 1)
    for pair in query.split("&"):
        name, equals, _ = pair.partition("=")
        if equals and "password" in name.lower():
            url = url.replace(pair, f"{name}=***")
    return url


def _find(
    cls: type[Settings], setting: str, *, env: Mapping[str, str], toml: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[str, Any]:
    """(where a setting's value comes from, that value). An empty variable counts as none."""
    kind = kind_of(cls)
    if options.get(setting) is not None:
        return f"option --{setting.replace('_', '-')}", options[setting]
    names = [f"{ENV_PREFIX}{kind.upper()}_{setting.upper()}"] if kind else []
    for name in [*names, variable(cls, setting)]:
        if env.get(name, "") != "":
            return name, env[name]
    table = toml.get(kind, {}) if kind else {}
    if setting in table:
        return f"[{kind}] {setting}", table[setting]
    if setting in Settings.__struct_fields__ and setting in toml:
        return setting, toml[setting]
    return "default", None


def _convert(raw: Any, type_: Any, source: str) -> Any:
    # Variables are text for all types; in the file a number in quotes is a slip.
    text = isinstance(raw, str) and source.startswith(ENV_PREFIX)
    if text and "tuple" in str(type_):
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    if isinstance(raw, str) and "'ERROR'" in str(type_):
        raw = raw.upper()
    try:
        return msgspec.convert(raw, type_, strict=not text)
    except msgspec.ValidationError as error:
        found = str(error).replace("`", "").partition(" - at")[0].partition(", got")[0]
        told = "" if found.startswith("Invalid") else f"{found[0].lower()}{found[1:]}, "
        raise Misconfigured(f"{source}: {told}not {raw!r}; {_fix(type_)}") from None


def _fix(type_: Any) -> str:
    text = str(type_)
    if "Literal" in text:
        return "write one of " + ", ".join(re.findall(r"'([A-Za-z]+)'", text.partition("Meta")[0]))
    if "bool" in text:
        return "write true or false"
    return f"it is: {_reason(type_)}"


def _reason(type_: Any) -> str:
    metas = [m for m in getattr(type_, "__metadata__", ()) if isinstance(m, Meta)]
    return next((m.description for m in reversed(metas) if m.description), "")


def _show(setting: str, value: Any) -> str:
    if setting.endswith("_url"):
        return mask(value)
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _refuse_unknown(toml: Mapping[str, Any]) -> None:
    for key, value in toml.items():
        if key in KINDS:
            if not isinstance(value, Mapping):
                raise Misconfigured(f"{key} is a table in the settings file; write [{key}] and its settings below")
            for setting in value:
                if setting not in KINDS[key].__struct_fields__:
                    raise Misconfigured(
                        f"[{key}] {setting}: unknown setting{_meant(setting, KINDS[key].__struct_fields__)}; correct it or take it out"
                    )
        elif key not in Settings.__struct_fields__:
            owners = [k for k, cls in KINDS.items() if key in cls.__struct_fields__]
            hint = f"; it belongs below [{owners[0]}]" if owners else "; correct it or take it out"
            raise Misconfigured(
                f"{key}: unknown setting{_meant(key, [*Settings.__struct_fields__, *KINDS]) if not owners else ''}{hint}"
            )


def _meant(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _relations(s: Settings) -> list[str]:
    """What each setting alone cannot say."""
    found = []
    if urlsplit(s.redis_url).scheme not in ("redis", "rediss", "unix"):
        found.append(
            f"{variable(Settings, 'redis_url')}: write redis://, rediss:// or unix://, not {mask(s.redis_url)!r}"
        )
    if urlsplit(s.database_url).scheme not in ("postgresql", "postgres"):
        found.append(
            f"{variable(Settings, 'database_url')}: write postgresql://user@host:5432/name, not {mask(s.database_url)!r}"
        )
    if not SLUG.fullmatch(s.prefix):
        found.append(
            f"{variable(Settings, 'prefix')}: {s.prefix!r} must be lower-case letters, digits, - and _, up to 63"
        )
    if s.shards != 1:
        found.append(f"{variable(Settings, 'shards')}: this release serves one shard; set it to 1")
    if isinstance(s, ApiSettings):
        found += _api_relations(s)
    elif isinstance(s, SchedulerSettings):
        if s.partition_renew_ms * 3 > s.partition_lease_ms:
            found.append(_thrice(SchedulerSettings, "partition_renew_ms", "partition_lease_ms", s.partition_lease_ms))
    elif isinstance(s, WorkerSettings):
        found += _worker_relations(s)
    return found


def _thrice(cls: type[Settings], renew: str, lease: str, lease_ms: int) -> str:
    return (
        f"{variable(cls, renew)} must be at most a third of {variable(cls, lease)}, so that a lost renewal or two do no harm; "
        f"set it to {lease_ms // 3} or less"
    )


def _api_relations(s: ApiSettings) -> list[str]:
    loopback = s.host in ("localhost", "::1") or re.fullmatch(r"127(\.[0-9]{1,3}){3}", s.host)
    if loopback or s.allow_insecure_bind:
        return []
    return [
        f"RSCHED_API_HOST: {s.host} is reachable from other machines and the API has no keys yet; keep it on 127.0.0.1, or "
        f"put your own access control before it and set RSCHED_API_ALLOW_INSECURE_BIND=true"
    ]


def _worker_relations(s: WorkerSettings) -> list[str]:
    found = []
    if s.renew_ms * 3 > s.lease_ms:
        found.append(_thrice(WorkerSettings, "renew_ms", "lease_ms", s.lease_ms))
    elif s.renew_ms + s.stop_margin_ms >= s.lease_ms:
        found.append(
            f"RSCHED_WORKER_STOP_MARGIN_MS must leave room for a renewal; set it below {s.lease_ms - s.renew_ms}"
        )
    for queue in s.queues:
        if not SLUG.fullmatch(queue):
            found.append(f"RSCHED_WORKER_QUEUES: {queue!r} must be lower-case letters, digits, - and _, up to 63")
    if s.app is not None and not re.fullmatch(r"[\w.]+:[\w.]+", s.app):
        found.append(f"RSCHED_WORKER_APP: {s.app!r} must be package.module:app")
    return found


def config_path(env: Mapping[str, str], option: str | None) -> str | None:
    """The settings file in force: --config, else RSCHED_CONFIG; None without one."""
    return option or env.get("RSCHED_CONFIG") or None
