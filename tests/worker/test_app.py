from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rsched.core.errors import Misconfigured
from rsched.core.ids import JobId, RunId
from rsched.worker.app import App, BadArguments, Function, load_app
from rsched.worker.context import JobContext


class Point(msgspec.Struct):
    x: int


def context() -> JobContext:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return JobContext(
        job_id=JobId("j"), run_id=RunId("r"), scheduled_at=moment, attempt=1, fence=1, deadline=moment,
        idempotency_key="r", team="default", name=None, payload=None, traceparent="",
    )  # fmt: skip


def call(function: Any, *args: Any, **kwargs: Any) -> Any:
    given, named = Function("f", function).bind(args, kwargs, context)
    return function(*given, **named)


def nightly(day: date, points: list[Point], ctx: JobContext, *, limit: int = 3) -> tuple[Any, ...]:
    return day, points, ctx.attempt, limit


def test_arguments_become_what_the_annotations_say_and_the_context_finds_its_place() -> None:
    expected = (date(2026, 1, 2), [Point(1)], 1, 3)
    assert call(nightly, "2026-01-02", [{"x": 1}]) == expected
    assert call(nightly, day="2026-01-02", points=[{"x": 1}], limit=3) == expected


def test_a_context_before_the_arguments_does_not_shift_them() -> None:
    def f(ctx: JobContext | None, a: int, b: int = 2, *rest: int, **more: str) -> Any:
        return ctx is not None, a, b, rest, more

    assert call(f, 1) == (True, 1, 2, (), {})
    assert call(f, 1, 3, 4, 5, z="q") == (True, 1, 3, (4, 5), {"z": "q"})
    assert call(f, b=7, a=1) == (True, 1, 7, (), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [
        ([], {}, "argument 'a' is missing"),
        (["x"], {}, "argument 'a': Expected `int`"),
        ([1, 2], {}, "1 more positional"),
        ([1], {"a": 1}, "'a' is in args and in kwargs"),
        ([1], {"z": 1}, "takes no argument 'z'"),
    ],
)
def test_arguments_that_do_not_fit_are_named(args: list[Any], kwargs: dict[str, Any], told: str) -> None:
    def f(a: int) -> None: ...

    with pytest.raises(BadArguments, match=told):
        Function("f", f).bind(args, kwargs, context)


def test_functions_are_registered_by_a_given_or_their_own_name_and_once_only() -> None:
    app = App()

    @app.function
    def one() -> int:
        return 1

    @app.function("two")
    async def second() -> None: ...

    assert one() == 1
    assert sorted(app.functions) == [f"{__name__}.{one.__qualname__}", "two"]
    assert app.functions["two"].is_async
    assert app.queues == ("default",)
    app.function("three", queue="reports")(one)
    assert app.queues == ("default", "reports")
    with pytest.raises(Misconfigured, match="queue 'No good'"):
        app.function("four", queue="No good")(one)
    with pytest.raises(Misconfigured, match="two functions are named 'two'"):
        app.function("two")(one)


def test_an_app_is_found_by_module_and_attribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "an_app_of_tests.py").write_text("from rsched import App\napp = App()\nother = 1\n")
    (tmp_path / "a_broken_app.py").write_text("1 / 0\n")
    (tmp_path / "a_needy_app.py").write_text("import nothing_of_that_name\n")
    assert isinstance(load_app("an_app_of_tests:app", folder=tmp_path), App)
    for path, told in [
        ("an_app_of_tests", "package.module:attribute"),
        ("no_such_app:app", "no module 'no_such_app'"),
        ("an_app_of_tests:other", "it has app"),
        ("a_broken_app:app", "ZeroDivisionError"),
        ("a_needy_app:app", "not installed: nothing_of_that_name"),
    ]:
        with pytest.raises(Misconfigured, match=told):
            load_app(path, folder=tmp_path)


def test_importing_rsched_loads_neither_servers_nor_the_worker() -> None:
    code = (
        "import sys, rsched; heavy = {'redis', 'psycopg', 'pycurl', 'pyreqwest', 'msgspec', 'anyio', 'asyncio', 'rsched.worker'};"
        "print(sorted(heavy & set(sys.modules))); rsched.App;"
        "print(sorted({'redis', 'psycopg', 'pyreqwest', 'anyio'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n[]\n"


def test_the_name_that_app_had_still_works() -> None:
    import rsched

    assert rsched.Worker is rsched.App
