"""A kind of target that there is none of goes the whole way, from a request to a worker's call, through the registry alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Annotated, Any, get_args

import msgspec
import pytest
from rsched_api import openapi, views

from rsched.cli import job_options, shown
from rsched.core import answers
from rsched.core.errors import FieldError, Invalid
from rsched.core.ids import JobId, derive_job_id
from rsched.core.jobs import records, targets
from rsched.core.jobs.model import Definition, JobSpec, with_payload
from rsched.core.jobs.targets import FUNCTION, HTTP, FunctionTarget, HttpTarget, Target, TargetKind, TargetKinds
from rsched.core.jobs.validate import check_job, decode
from rsched.core.options import option
from rsched.core.states import JobState, RunState
from rsched.runtime.clock import SystemClock
from rsched.store.run_values import FetchReply
from rsched.worker.app import App
from rsched.worker.attempt import Attempt
from rsched.worker.targets.base import Begin
from rsched.worker.targets.calls import Calls
from rsched.worker.targets.function import FunctionCalls
from rsched.worker.targets.http import HttpCalls
from tests.worker.running_worker import definition as worker_definition
from tests.worker.running_worker import running

NOW = 1_793_000_000_000
LOFT = {"target_pigeon_loft": "dover"}


class PigeonTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="pigeon"):
    """A message by carrier pigeon.

    Attributes:
        loft: Where the pigeon flies to.
        message: What it carries.
    """

    loft: Annotated[str, option("--loft", text="Send a pigeon to this loft.")]
    message: str | None = None


def _check(target: PigeonTarget) -> Iterator[FieldError]:
    if not target.loft.isalpha():
        yield FieldError("target.loft", "write the name of a loft, in letters")


PIGEON = TargetKind(
    struct=PigeonTarget,
    check=_check,
    queue=lambda _target: "pigeons",
    summary=lambda target: f"pigeon to {target.loft}",
    own_queue="pigeons",
    for_payload=lambda target: msgspec.structs.replace(target, message=None),
)


class PigeonSpec(JobSpec, frozen=True, kw_only=True):
    target: HttpTarget | FunctionTarget | PigeonTarget  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "TARGET_KINDS", TargetKinds((*targets.TARGET_KINDS, PIGEON)))


def parsed(**target: Any) -> PigeonSpec:
    body = {"schedule": {"delay": "5m"}, "target": {"type": "pigeon", **target}}
    return decode(json.dumps(body).encode(), PigeonSpec)


def wrong(spec: JobSpec) -> dict[str, str]:
    try:
        check_job(spec)
    except Invalid as error:
        return dict(error.errors)
    return {}


def definition(spec: JobSpec) -> Definition:
    resolved, _ = records.resolve(spec, NOW)
    return records.definition_of(
        spec, resolved, incarnation=1, created_at=NOW, updated_at=NOW, key=None, request_hash="h"
    )


def test_the_union_of_targets_is_what_is_registered() -> None:
    registered = TargetKinds((HTTP, FUNCTION))
    assert {kind.struct for kind in registered} == set(get_args(Target))
    assert [kind.tag for kind in registered] == ["http", "function"]


def test_its_fields_are_checked_and_errors_name_them() -> None:
    assert wrong(parsed(loft="dover")) == {}
    assert wrong(parsed(loft="4")).keys() == {"target.loft"}
    with pytest.raises(Invalid) as caught:
        parsed(loft="dover", wings=2)
    assert [e.field for e in caught.value.errors] == ["target.wings"]


def test_its_queue_is_its_own() -> None:
    assert definition(parsed(loft="dover")).queue_key == "pigeons:default:1"
    taken = JobSpec(target=FunctionTarget(function="f", queue="pigeons"), schedule=parsed(loft="a").schedule)
    assert "is kept for pigeon targets" in wrong(taken)["target.queue"]


def test_a_run_with_a_payload_of_its_own_carries_that() -> None:
    kept = definition(parsed(loft="dover", message="hello"))
    assert with_payload(kept, msgspec.msgpack.encode([1])).target == PigeonTarget(loft="dover")


def test_it_is_shown_by_the_api_and_by_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    spec = parsed(loft="dover", message="hello")
    kept = definition(spec)
    _, schedule = records.resolve(spec, NOW)
    record = records.record_of(
        kept, schedule, state=JobState.ACTIVE, version=1, schedule_version=1, schedule_changed_at=NOW
    )
    job_id = JobId(derive_job_id("default", "n", 1))
    seen = json.loads(views.job_response(job_id, record, now=NOW).body)
    assert seen["target"] == {"type": "pigeon", "loft": "dover", "message": "hello"}

    class View(answers.JobView, frozen=True, kw_only=True):
        target: PigeonTarget  # type: ignore[assignment]

    shown.job(msgspec.convert(seen, View))
    assert "pigeon to dover" in capsys.readouterr().out


def test_it_is_in_the_openapi_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi, "_TYPES", (*openapi._TYPES, PigeonSpec))
    schemas = openapi.document()["components"]["schemas"]
    assert schemas["PigeonSpec"]["properties"]["target"]["discriminator"]["mapping"]["pigeon"].endswith("/PigeonTarget")
    assert schemas["PigeonTarget"]["properties"]["loft"]["description"] == "Where the pigeon flies to."


def test_its_fields_are_options_of_the_command_line() -> None:
    declared = {one.path: one.option.flags for one in job_options.options_of(PigeonSpec)}
    assert declared["target", "pigeon", "loft"] == ("--loft",)
    assert ("target", "http", "url") in declared
    seen: list[dict[str, Any]] = []
    command = job_options.takes(PigeonSpec)(lambda given: seen.append(given))
    command(**dict.fromkeys((one.parameter for one in job_options.options_of(PigeonSpec)), None) | LOFT)
    assert seen == [{"target": {"pigeon": {"loft": "dover"}}}]


class _Pigeons:
    """Calls pigeons alone."""

    def __init__(self) -> None:
        self.flown: list[str] = []

    def caller_of(self, target: Any) -> _Pigeons:
        assert isinstance(target, PigeonTarget)
        return self

    async def call(self, attempt: Attempt, begin: Begin) -> None:
        begin(attempt)
        target: Any = attempt.definition.target
        self.flown.append(target.loft)


def test_a_worker_calls_it_and_its_run_ends_well() -> None:
    pigeons = _Pigeons()
    target: Any = PigeonTarget(loft="dover")

    async def test() -> None:
        async with running(App(), callers=pigeons) as worker:
            fetch = worker.store.runs.fetch

            async def with_pigeons(*given: Any, **named: Any) -> FetchReply:
                """As fetch, but that what is stored of the kind is a made-up one, which no decoder knows."""
                reply = await fetch(*given, **named)
                runs = [r._replace(definition=msgspec.structs.replace(r.definition, target=target)) for r in reply.runs]
                return reply._replace(runs=runs)

            worker.store.runs.fetch = with_pigeons  # type: ignore[method-assign]
            await worker.shard.owe(worker_definition(HttpTarget(url="http://x/")))
            await worker.until(lambda: worker.store.finished)
            assert worker.outcomes() == [RunState.SUCCEEDED]

    asyncio.run(test())
    assert pigeons.flown == ["dover"]


def test_a_worker_has_a_caller_for_each_kind_that_is_registered() -> None:
    examples = {"http": HttpTarget(url="http://x/"), "function": FunctionTarget(function="f")}
    assert {kind.tag for kind in TargetKinds((HTTP, FUNCTION))} == set(examples)

    async def test() -> None:
        with closing(Calls({}, threads=1, clock=SystemClock())) as calls:
            callers = [calls.caller_of(target) for target in examples.values()]
            assert [type(caller) for caller in callers] == [HttpCalls, FunctionCalls]
            with pytest.raises(AssertionError, match="unreachable"):
                calls.caller_of(PigeonTarget(loft="dover"))  # type: ignore[arg-type]

    asyncio.run(test())
