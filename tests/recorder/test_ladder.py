from __future__ import annotations

import asyncio

import pytest

from rsched.runtime.log import get_logger
from rsched.store.load_shedding import LoadShedding, next_level


class FakeStore:
    def __init__(self, *, used: int = 0, limit: int = 100, step: int | None = 0) -> None:
        self.used, self.limit, self.present = used, limit, step

    async def get_memory(self) -> tuple[int, int]:
        return self.used, self.limit

    async def get_load_level(self) -> int | None:
        return self.present

    async def set_load_level(self, step: int) -> None:
        self.present = step


@pytest.mark.parametrize(
    ("present", "part", "expected"),
    [
        (0, 0.69, 0), (0, 0.70, 1), (0, 0.85, 2), (0, 1.1, 2),
        (1, 0.66, 1), (1, 0.65, 1), (1, 0.64, 0), (1, 0.85, 2),
        (2, 0.84, 2), (2, 0.80, 2), (2, 0.79, 1), (2, 0.66, 1), (2, 0.5, 0),
    ],
)  # fmt: skip
def test_a_step_begins_at_its_part_of_the_memory_and_ends_some_way_below_it(
    present: int, part: float, expected: int
) -> None:
    assert next_level(present, part) == expected


def test_a_change_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore()
    load_level = LoadShedding(store, store, log=get_logger("test"))  # type: ignore[arg-type]
    said = []
    for used in (10, 72, 73, 90, 91, 75, 20, 20):
        caplog.clear()
        store.used = used
        assert asyncio.run(load_level.step()) is False
        said.append((store.present, [r.levelname for r in caplog.records]))
    assert said == [
        (0, []), (1, ["ERROR"]), (1, []), (2, ["ERROR"]), (2, []), (1, ["WARNING"]), (0, ["WARNING"]), (0, []),
    ]  # fmt: skip


@pytest.mark.parametrize(("limit", "step"), [(0, 0), (100, None)], ids=["no limit", "no marker"])
def test_nothing_is_set_where_there_is_nothing_to_measure_or_nowhere_to_say_it(limit: int, step: int | None) -> None:
    store = FakeStore(used=99, limit=limit, step=step)
    asyncio.run(LoadShedding(store, store, log=get_logger("test")).step())  # type: ignore[arg-type]
    assert store.present == step
