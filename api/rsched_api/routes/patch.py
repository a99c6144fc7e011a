"""PATCH /v1/jobs/{id or name}: some fields of a definition anew, by a JSON merge patch (RFC 7396).

The patch is merged into the definition as GET shows it, and what comes out replaces the job like a PUT, under the version that it
was merged into: so it is checked alike, is as durable, and loses no change of somebody else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from rsched.core.errors import FieldError, Invalid, Unavailable, VersionConflict, invalid
from rsched.core.jobs import records
from rsched.core.jobs.model import Definition, JobSpec, Target
from rsched.core.jobs.packed import JobRecord
from rsched.core.jobs.shapes import fields_at
from rsched.core.jobs.validate import check_value, decode, parse_job
from rsched_api.http import lookup
from rsched_api.http.deadline import about
from rsched_api.http.deps import Deps, deps_of, wait_version_recorded
from rsched_api.http.requests import body, if_match
from rsched_api.routes.create import Made
from rsched_api.routes.jobs import made_response
from rsched_api.routes.replace import replace

MEDIA_TYPES = ("application/json", "application/merge-patch+json")
# Whoever changes a job at the same time makes the patch be merged once more.
_TRIES = 50
# What a job is found by; not a part of its definition that can change.
_FIXED = ("team", "name")
_TARGET_FIELDS = ["type", *dict.fromkeys(name for kind in get_args(Target) for name in kind.__struct_fields__)]
_encode = msgspec.json.Encoder(order="sorted").encode


async def patch_job(request: Request) -> Response:
    """PATCH /v1/jobs/{ref}: changes the fields that the patch has; null takes an optional one away, or sets its default.

    Raises:
        Invalid: A field of the patch, or of what comes out, cannot stand.
        VersionConflict: If-Match names another version.
        NotFound: There is no such job.
    """
    deps = deps_of(request)
    ref, version = lookup.reference_of(request), if_match(request)
    _check_media_type(request)
    patch = read(await body(request))
    made = await update(deps, ref, patch, version=version)
    return await made_response(deps, made, status=200)


def read(raw: bytes) -> dict[str, Any]:
    """Reads a patch of a job.

    Raises:
        Invalid: It is not a JSON object, has a text or number that cannot be kept, or a field that jobs do not have.
    """
    patch = decode(raw, dict[str, Any])
    errors = [error for name, value in patch.items() for error in check_value(value, name)]
    errors = errors or list(_unknown(patch))
    if errors:
        raise Invalid(errors=errors)
    return patch


async def update(deps: Deps, ref: lookup.Reference, patch: Mapping[str, Any], *, version: int | None) -> Made:
    """Merges the patch into the job, and gives it as it is recorded then.

    Args:
        deps: What the API works with.
        ref: Which job.
        patch: As `read` gives it.
        version: The version that the caller has seen; None where it does not matter.
    """
    request_hash = hashlib.blake2b(b"patch" + _encode(patch), digest_size=12).hexdigest()
    for _ in range(_TRIES):
        before = await lookup.require_job(deps, ref)
        about(job_id=before.job_id)
        there, definition = before.head.version, before.definition
        # A repeat of the request that made this version still names the one before; merged again, a delay would begin anew.
        repeated = records.is_last_put_by(definition, request_hash) and version in (None, there, there - 1)
        if not repeated and version not in (None, there):
            raise VersionConflict(f"the job has version {there}, not {version}; read it again")
        spec = None if repeated else _patched(definition, patch)
        if spec is None or spec == _spec_of(definition):
            await wait_version_recorded(deps, before.job_id, there)
            return Made(before.job_id, JobRecord(before.head, definition), created=False)
        try:
            return await replace(deps, before.job_id, spec, if_match=there, request_hash=request_hash)
        except VersionConflict:
            if version is not None:
                raise
    raise Unavailable("the job is being changed by others; try again")


def merge(target: Any, patch: Any) -> Any:
    """Applies a JSON merge patch to a JSON value, as RFC 7396 has it: null removes, objects are merged, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def _patched(definition: Definition, patch: Mapping[str, Any]) -> JobSpec:
    fixed = {"team": definition.team, "name": definition.name}
    for name in _FIXED:
        if name in patch and patch[name] != fixed[name]:
            raise invalid(name, f"is {fixed[name]!r} for this job and cannot change; leave it out or write it so")
    now = {k: v for k, v in msgspec.to_builtins(_spec_of(definition)).items() if k not in _FIXED}
    if definition.schedules:
        del now["schedule"]
    else:
        del now["schedules"]
    spec = parse_job(msgspec.json.encode(merge(now, {k: v for k, v in patch.items() if k not in _FIXED})))
    return msgspec.structs.replace(spec, **fixed)


def _spec_of(definition: Definition) -> JobSpec:
    return JobSpec(**{name: getattr(definition, name) for name in JobSpec.__struct_fields__})


def _unknown(patch: Mapping[str, Any]) -> Iterator[FieldError]:
    """Misspelt fields that null would take away: merged, they would leave no trace to refuse."""
    for path, part in (("", patch), *((name, patch.get(name)) for name in ("schedule", "target", "retry", "misfire"))):
        known = _TARGET_FIELDS if path == "target" else fields_at(JobSpec, path)
        for name in part if isinstance(part, Mapping) else ():
            if name not in known:
                field = f"{path}.{name}" if path else name
                shown = field[:60].encode(errors="replace").decode()
                yield FieldError(shown, f"unknown field; leave it out; known here: {', '.join(known)}")


def _check_media_type(request: Request) -> None:
    given = request.headers.get("content-type", MEDIA_TYPES[0]).partition(";")[0].strip().lower()
    if given not in MEDIA_TYPES:
        raise invalid("Content-Type", f"must be {' or '.join(MEDIA_TYPES)}")
