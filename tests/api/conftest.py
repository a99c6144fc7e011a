from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from rsched_api.app import create_app

from rsched.core.settings import ApiSettings
from tests.api.calls import Caller
from tests.api.fakes import FakeClock, FakeLedger, FakeStore, FakeWaiter


@dataclass
class World:
    """The app on fakes that a test can look into."""

    call: Caller
    clock: FakeClock
    store: FakeStore
    ledger: FakeLedger
    waiter: FakeWaiter

    def create(self, **changes: Any) -> Any:
        answer = self.call("POST", "/v1/jobs", job(**changes))
        assert answer.status == 201, answer.body
        return answer.json


def job(**changes: Any) -> dict[str, Any]:
    return {
        "schedule": {"cron": "0 2 * * *", "timezone": "Asia/Kolkata"},
        "target": {"type": "http", "url": "https://billing.internal/run"},
    } | changes


@pytest.fixture
def world() -> Iterator[World]:
    clock = FakeClock()
    store = FakeStore(clock)
    ledger, waiter = FakeLedger(store), FakeWaiter()
    app = create_app(ApiSettings(), clock=clock, store=store.parts, ledger=ledger, waiter=waiter)  # type: ignore[arg-type]
    with Caller(app) as call:
        yield World(call, clock, store, ledger, waiter)
