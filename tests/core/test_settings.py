from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rsched.core.errors import Misconfigured
from rsched.core.settings import (
    KINDS,
    ApiSettings,
    RecorderSettings,
    SchedulerSettings,
    Settings,
    WorkerSettings,
    effective,
    load,
    mask,
    unknown_variables,
    variable,
)


@pytest.mark.parametrize("kind", KINDS)
def test_defaults_are_valid_and_every_setting_has_its_reason(kind: str) -> None:
    settings = load(KINDS[kind], env={}, toml={})
    assert settings == KINDS[kind]()
    for setting in effective(settings):
        assert setting.reason, setting.name
        assert setting.source == "default"


def test_an_option_beats_a_variable_beats_the_file_beats_the_default() -> None:
    toml = {"worker": {"concurrency": 3, "drain_s": 5, "poll_ms": 7}}
    env = {"RSCHED_WORKER_CONCURRENCY": "4", "RSCHED_WORKER_DRAIN_S": "6.5", "RSCHED_WORKER_APP": ""}
    found = load(WorkerSettings, env=env, toml=toml, options={"concurrency": 5, "app": None})
    assert (found.concurrency, found.drain_s, found.poll_ms, found.lease_ms, found.app) == (5, 6.5, 7, 60_000, None)
    shown = {e.name: e for e in effective(found, env=env, toml=toml, options={"concurrency": 5})}
    assert shown["concurrency"].source == "option --concurrency"
    assert shown["drain_s"].source == "RSCHED_WORKER_DRAIN_S"
    assert shown["poll_ms"].source == "[worker] poll_ms"
    assert shown["lease_ms"].source == "default"


def test_shared_settings_reach_every_kind_and_a_kind_may_differ() -> None:
    env = {"RSCHED_LOG_LEVEL": "debug", "RSCHED_API_LOG_LEVEL": "error"}
    toml = {"redis_url": "redis://a/0", "recorder": {"redis_url": "redis://b/0"}}
    assert load(ApiSettings, env=env, toml=toml).log_level == "ERROR"
    assert load(WorkerSettings, env=env, toml=toml).log_level == "DEBUG"
    assert load(WorkerSettings, env=env, toml=toml).redis_url == "redis://a/0"
    assert load(RecorderSettings, env=env, toml=toml).redis_url == "redis://b/0"


def test_threads_follow_the_concurrency_up_to_32() -> None:
    assert WorkerSettings(concurrency=8).threads == 8
    assert WorkerSettings(concurrency=100).threads == 32
    assert WorkerSettings(concurrency=8, threads=64).threads == 64


def test_queues_are_a_list_in_the_file_and_comma_separated_in_a_variable() -> None:
    assert load(WorkerSettings, env={"RSCHED_WORKER_QUEUES": "a, b,"}, toml={}).queues == ("a", "b")
    assert load(WorkerSettings, env={}, toml={"worker": {"queues": ["a"]}}).queues == ("a",)


@pytest.mark.parametrize(
    ("cls", "env", "toml", "says"),
    [
        (ApiSettings, {"RSCHED_API_PORT": "x"}, {}, "RSCHED_API_PORT: expected int"),
        (ApiSettings, {"RSCHED_API_PORT": "70000"}, {}, "expected int <= 65535"),
        (ApiSettings, {"RSCHED_API_ALLOW_INSECURE_BIND": "maybe"}, {}, "write true or false"),
        (ApiSettings, {"RSCHED_LOG_FORMAT": "xml"}, {}, "write one of console, json"),
        (ApiSettings, {"RSCHED_API_HOST": "0.0.0.0"}, {}, "RSCHED_API_ALLOW_INSECURE_BIND=true"),
        (ApiSettings, {}, {"api": {"prot": 1}}, r"\[api\] prot: unknown setting \(did you mean port\?\)"),
        (ApiSettings, {}, {"worker": {"prot": 1}}, r"\[worker\] prot: unknown setting"),
        (ApiSettings, {}, {"port": 1}, r"port: unknown setting; it belongs below \[api\]"),
        (ApiSettings, {}, {"redis_ulr": "x"}, "did you mean redis_url"),
        (ApiSettings, {}, {"api": 1}, r"write \[api\]"),
        (WorkerSettings, {}, {"worker": {"concurrency": "3"}}, r"\[worker\] concurrency: expected int"),
        (WorkerSettings, {"RSCHED_WORKER_CONCURRENCY": "0"}, {}, "expected int >= 1"),
        (WorkerSettings, {"RSCHED_WORKER_RENEW_MS": "20001"}, {}, "RSCHED_WORKER_RENEW_MS must be at most a third"),
        (WorkerSettings, {"RSCHED_WORKER_STOP_MARGIN_MS": "40000"}, {}, "STOP_MARGIN_MS must leave room"),
        (WorkerSettings, {"RSCHED_WORKER_QUEUES": "A"}, {}, "RSCHED_WORKER_QUEUES: 'A'"),
        (WorkerSettings, {"RSCHED_WORKER_APP": "jobs"}, {}, "package.module:worker"),
        (SchedulerSettings, {"RSCHED_SCHEDULER_PARTITION_LEASE_MS": "2000"}, {}, "set it to 666 or less"),
        (Settings, {"RSCHED_REDIS_URL": "http://u:secret@x"}, {}, r"write redis://.*not 'http://u:\*\*\*@x'"),
        (Settings, {"RSCHED_DATABASE_URL": "mysql://x"}, {}, "write postgresql://"),
        (Settings, {"RSCHED_PREFIX": "A:b"}, {}, "RSCHED_PREFIX"),
        (Settings, {"RSCHED_SHARDS": "2"}, {}, "one shard"),
    ],
)
def test_a_wrong_setting_is_refused_by_name_with_the_fix(
    cls: type[Settings], env: dict[str, str], toml: dict[str, Any], says: str
) -> None:
    with pytest.raises(Misconfigured, match=says):
        load(cls, env=env, toml=toml)


def test_an_insecure_bind_is_possible_when_said_twice() -> None:
    env = {"RSCHED_API_HOST": "0.0.0.0", "RSCHED_API_ALLOW_INSECURE_BIND": "true"}
    assert load(ApiSettings, env=env, toml={}).host == "0.0.0.0"
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        assert load(ApiSettings, env={"RSCHED_API_HOST": host}, toml={}).host == host


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://u:p:w@h:6379/0", "redis://u:***@h:6379/0"),
        ("rediss://:pw@h/0", "rediss://:***@h/0"),
        ("redis://h/0?password=pw&db=1", "redis://h/0?password=***&db=1"),
        ("postgresql://u@h/db?sslpassword=pw", "postgresql://u@h/db?sslpassword=***"),
        ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=1"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
    ],
)
def test_passwords_never_show(url: str, shown: str) -> None:
    assert mask(url) == shown


def test_a_misspelt_variable_is_found() -> None:
    env = {"RSCHED_WORKR_APP": "x", "RSCHED_URL": "x", "RSCHED_CONFIG": "x", "RSCHED_API_LOG_LEVEL": "x", "PATH": "x"}
    assert unknown_variables(env) == ["RSCHED_WORKR_APP (did you mean RSCHED_WORKER_APP?)"]


def test_variables_are_named_by_kind_unless_all_kinds_share_the_setting() -> None:
    assert variable(ApiSettings, "port") == "RSCHED_API_PORT"
    assert variable(ApiSettings, "redis_url") == "RSCHED_REDIS_URL"
    for setting in Settings.__struct_fields__:
        assert {variable(cls, setting) for cls in KINDS.values()} == {f"RSCHED_{setting.upper()}"}


def test_the_page_of_operations_lists_every_setting_as_it_is() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    for cls in (Settings, *KINDS.values()):
        for setting in effective(cls()):
            default = "0" if setting.name == "threads" else setting.value
            shown = f"`{default}`" if default else "none"
            assert f"| `{variable(cls, setting.name)}` | {shown} | {setting.reason} |" in page
