"""The way to the server: many calls at once, calls that are given up, certificates, and what is closed."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rsched.client import AsyncClient, Client
from rsched.core.errors import Misconfigured, Unavailable
from tests.client.both import public
from tests.client.fake_api import JOB, Reply, Seen, SteppedClock, serving

Connect = Callable[..., Any]
TLS = Path(__file__).parent / "tls"


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    ways = {"aclose": "close"}
    of_async = {ways.get(name, name): signature for name, signature in public(AsyncClient).items()}
    assert of_async == public(Client)
    assert len(of_async) > 30


@pytest.mark.anyio
async def test_calls_of_one_event_loop_are_under_way_at_the_same_time() -> None:
    all_there = threading.Barrier(20, timeout=30)

    def answer(seen: Seen) -> Reply:
        all_there.wait()
        return Reply(200, JOB)

    with serving(Reply(200, JOB)) as api:
        api.answer = answer
        async with AsyncClient(api.url) as client, asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(client.get_job("n"))
    assert len(api.seen) == 20


@pytest.mark.anyio
async def test_more_calls_than_connections_wait_for_one_and_all_are_answered() -> None:
    with serving(Reply(200, JOB)) as api:
        async with AsyncClient(api.url, max_connections=2) as client:
            jobs = await asyncio.gather(*[client.get_job("n") for _ in range(20)])
        ports = {seen.port for seen in api.seen}
    assert len(jobs) == 20
    assert len(ports) <= 2


@pytest.mark.anyio
async def test_a_call_that_is_cancelled_ends_at_once_and_the_client_goes_on() -> None:
    arrived, go_on = threading.Event(), threading.Event()

    def answer(seen: Seen) -> Reply:
        if seen.path.endswith("slow"):
            arrived.set()
            go_on.wait(30)
        return Reply(200, JOB)

    with serving(Reply(200, JOB)) as api:
        api.answer = answer
        async with AsyncClient(api.url) as client:
            call = asyncio.create_task(client.get_job("slow"))
            assert await asyncio.to_thread(arrived.wait, 30)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await client.get_job("n")).name == "nightly"
        go_on.set()


def test_threads_share_a_client() -> None:
    with serving(Reply(200, JOB)) as api, Client(api.url) as client:
        names: list[str | None] = []
        threads = [threading.Thread(target=lambda: names.append(client.get_job("n").name)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert names == ["nightly"] * 20


def test_a_server_that_says_nothing_is_unavailable_after_the_timeout(connect: Connect) -> None:
    go_on = threading.Event()

    def answer(seen: Seen) -> Reply:
        go_on.wait(30)
        return Reply(200, JOB)

    with serving(Reply(200, JOB)) as api:
        api.answer = answer
        try:
            with (
                connect(api.url, timeout_s=0.05, retry_for_s=0) as client,
                pytest.raises(Unavailable, match=r"no answer in 0\.05 s"),
            ):
                client.get_job("n")
        finally:
            go_on.set()


def test_a_connection_that_is_broken_off_twice_is_an_error_that_may_pass(connect: Connect) -> None:
    with (
        serving(Reply(0, None, hang_up=True)) as api,
        connect(api.url, retry_for_s=0) as client,
        pytest.raises(Unavailable, match="connection closed") as caught,
    ):
        client.get_job("n")
    assert len(api.seen) == 2
    assert caught.value.code == "unavailable"


def test_a_closed_client_says_so(connect: Connect) -> None:
    with serving(Reply(200, JOB)) as api, connect(api.url, clock=SteppedClock()) as client:
        assert client.is_ready()
        client.close() if isinstance(client, Client) else client.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            client.get_job("n")


def test_a_certificate_is_checked_and_a_ca_file_makes_it_trusted(connect: Connect) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
    with serving(Reply(200, JOB)) as api:
        api.server.socket = context.wrap_socket(api.server.socket, server_side=True)
        url = api.url.replace("http:", "https:")
        with connect(url) as client, pytest.raises(Misconfigured, match=r"certificate.*ca_file"):
            client.get_job("n")
        with connect(url, ca_file=TLS / "ca.pem") as client:
            assert client.get_job("n").name == "nightly"


def test_a_ca_file_that_is_none_is_refused_at_once(connect: Connect, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="No such file"):
        connect("https://x", ca_file=tmp_path / "none.pem")
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(Misconfigured, match="no certificate in PEM"):
        connect("https://x", ca_file=tmp_path / "empty.pem")
