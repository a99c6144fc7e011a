"""Servers that neither answer nor hang up: every change is answered at its deadline, or at once where it can be decided."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
import requests

from rsched.core.ids import is_job_id
from rsched.core.settings import ApiSettings
from rsched.embedded.process import free_port
from rsched.embedded.servers import Servers
from tests.api.changing_verbs import OF_NONE, Verb, each_verb, put_job_there
from tests.api.served import Served
from tests.api.world import job

pytestmark = pytest.mark.usefixtures("anyio_backend")

ACK_S = 0.6
# What an answer may take beyond it: the margin, and a busy machine.
MARGIN_S = 1.0


@pytest.fixture
def options(redis_url: str, database_url: str, redis_prefix: str) -> ApiSettings:
    return ApiSettings(
        redis_url=redis_url, database_url=database_url, prefix=redis_prefix, port=free_port(), ack_timeout_s=ACK_S
    )


@pytest.fixture
def served(options: ApiSettings) -> Iterator[Served]:
    with Served(options) as it:
        yield it


@pytest.fixture
def patient(options: ApiSettings) -> Iterator[Served]:
    """With time enough for a look-up to wait as long as it ever does, a second."""
    with Served(msgspec.structs.replace(options, ack_timeout_s=3)) as it:
        yield it


@contextmanager
def hanging(servers: Servers, name: str) -> Iterator[None]:
    """The server, with all its processes, is stopped: its kernel goes on taking what is sent to it."""
    pid = dict(servers.processes)[name]
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    pids = [pid, *map(int, children)]
    for p in pids:
        os.kill(p, signal.SIGSTOP)
    try:
        yield
    finally:
        for p in pids:
            os.kill(p, signal.SIGCONT)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    began = time.monotonic()  # noqa: TID251
    yield
    assert time.monotonic() - began < seconds  # noqa: TID251


@pytest.mark.parametrize("server", ["redis", "postgres"])
@each_verb
def test_every_change_is_answered_at_its_deadline_while_a_server_hangs(
    served: Served, servers: Servers, verb: Verb, server: str
) -> None:
    job_id = put_job_there(served, verb)
    method, path, body = verb.request(served, job_id)
    with hanging(servers, server), within(ACK_S + MARGIN_S):
        answer = served(method, path, body, Idempotency_Key="k")
    problem = answer.json()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1"), answer.text
    assert problem["durability"] == "unknown"
    # Whose a name is, is known by Postgres.
    if verb.handler not in OF_NONE and (server == "redis" or job_id in path):
        assert problem.get("job_id") or problem.get("run_id")
    settled = served(method, path, body, Idempotency_Key="k")
    assert settled.status_code // 100 == 2 or (method, settled.status_code) == ("DELETE", 404), settled.text


def test_with_ack_redis_a_key_alone_is_enough_while_postgres_hangs(patient: Served, servers: Servers) -> None:
    def at_once(path: str, body: Any, key: str) -> requests.Response:
        """Whoever comes after the first need not wait to find out again."""
        with within(0.5):
            return patient("POST", f"/v1/{path}?ack=redis", body, Idempotency_Key=key)

    with hanging(servers, "postgres"):
        with within(1 + MARGIN_S):
            first = patient("POST", "/v1/jobs?ack=redis", job(), Idempotency_Key="k")
        assert (first.status_code, first.headers["Rsched-Durability"]) == (201, "redis"), first.text
        again = at_once("jobs", job(), "k")
        assert (again.status_code, again.json()) == (201, first.json())
        other = at_once("jobs", job(timeout_s=7), "k")
        assert (other.status_code, other.json()["errors"][0]["field"]) == (422, "Idempotency-Key")
        named = at_once("jobs", job(name="n"), "n")
        assert (named.status_code, named.headers["retry-after"], named.json()["code"]) == (503, "1", "unavailable")
        assert "without a name" in named.json()["detail"]
        batch = {"jobs": [job(), job(timeout_s=7)]}
        several = at_once("jobs:batch", batch, "b")
        assert several.status_code == 201, several.text
        assert at_once("jobs:batch", batch, "b").json() == several.json()
        named = at_once("jobs:batch", {"jobs": [job(name="n")]}, "n")
        assert (named.status_code, "without a name" in named.json()["detail"]) == (503, True)
    for path, body, key, made in (("jobs", job(), "k", first), ("jobs:batch", batch, "b", several)):
        deadline = time.monotonic() + 15  # noqa: TID251
        while (durable := patient("POST", f"/v1/{path}", body, Idempotency_Key=key)).status_code == 503:
            assert time.monotonic() < deadline  # noqa: TID251
        assert (durable.status_code, durable.headers["Rsched-Durability"]) == (201, "postgres")
        assert durable.json() == made.json()


def test_with_ack_redis_what_postgres_knows_is_asked_for_as_long_as_it_answers(served: Served) -> None:
    made = served("POST", "/v1/jobs", job(), Idempotency_Key="k").json()
    assert is_job_id(made["job_id"])
    assert served("DELETE", f"/v1/jobs/{made['job_id']}").status_code == 204
    anew = served("POST", "/v1/jobs?ack=redis", job(), Idempotency_Key="k").json()
    assert anew["job_id"] != made["job_id"]
    assert served("POST", "/v1/jobs?ack=redis", job(), Idempotency_Key="k").json() == anew
