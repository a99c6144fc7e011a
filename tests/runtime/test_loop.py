from __future__ import annotations

import logging

import pytest

from rsched.core.errors import NeedsFixing, Unavailable
from rsched.runtime.loop import Outage


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records]


def test_an_outage_is_said_once_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    outage = Outage("claim", logging.getLogger("t"))
    for n in range(50):
        outage.failed(Unavailable(f"Redis is away: {n}"))
    outage.over()
    outage.over()
    assert said(caplog) == ["claim: waiting: Redis is away: 0", "claim: goes on after 50 tries"]


def test_what_people_have_to_fix_is_said_once_even_where_it_follows_another_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outage = Outage("claim", logging.getLogger("t"))
    errors = [
        Unavailable("Redis is away: refused"),
        NeedsFixing("Redis refuses the user or password (WRONGPASS): fix it"),
        Unavailable("Redis is away: reset"),
        NeedsFixing("Redis does not permit it (NOPERM): by TIME"),
        NeedsFixing("Redis does not permit it (NOPERM): by EVALSHA"),
        NeedsFixing("Redis refuses the user or password (WRONGPASS): fix it"),
    ]
    for error in errors * 2:
        outage.failed(error)
    expected = [f"claim: waiting: {errors[n]}" for n in (0, 1, 3)]
    assert said(caplog) == expected
    outage.over()
    outage.failed(errors[1])
    assert said(caplog)[-1] == expected[1]


def test_pauses_grow_to_five_seconds() -> None:
    outage = Outage("claim", logging.getLogger("t"))
    pauses = [outage.failed(Unavailable("away")) for _ in range(40)]
    assert pauses[0] <= 50
    assert all(2500 <= p <= 5000 for p in pauses[10:])
