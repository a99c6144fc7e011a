"""A policy is one row of a table: everything in Python that depends on it follows from there."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from pathlib import Path
from typing import Any, get_args

import pytest

import rsched
from rsched.cli import job_options
from rsched.core.jobs import packed, policies
from rsched.core.jobs.model import JobFields, JobSpec
from rsched.core.jobs.packed import head
from rsched.core.jobs.policies import MISFIRE_POLICIES, OVERLAP_POLICIES, PRIORITIES, Policy, names_of
from rsched.core.jobs.shapes import choices_at

TABLES: dict[str, tuple[Policy, ...]] = {
    "Overlap": OVERLAP_POLICIES,
    "MisfirePolicy": MISFIRE_POLICIES,
    "Priority": PRIORITIES,
}
ROUND_ROBIN = Policy("round_robin", "y", "runs take turns")


@pytest.mark.parametrize("name", TABLES)
def test_the_names_that_people_may_write_are_the_rows_of_the_table(name: str) -> None:
    assert get_args(getattr(policies, name)) == tuple(row.name for row in TABLES[name])
    assert len({row.code for row in TABLES[name]}) == len(TABLES[name])


@pytest.mark.parametrize(
    ("field", "table"),
    [("overlap", OVERLAP_POLICIES), ("misfire_policy", MISFIRE_POLICIES), ("priority", PRIORITIES)],
)
def test_requests_and_help_name_what_the_table_has(field: str, table: tuple[Policy, ...]) -> None:
    assert sorted(choices_at(JobSpec, field)) == sorted(row.name for row in table)
    (one,) = [o for o in job_options.options_of(JobFields) if o.path == (field,)]
    assert all(row.name in one.option.help for row in table)


def test_letters_in_records_are_the_codes_of_the_table() -> None:
    assert [packed.overlap_code(row.name) for row in OVERLAP_POLICIES] == ["", "s", "q", "w", "k"]  # type: ignore[arg-type]
    for row in MISFIRE_POLICIES:
        code = packed.misfire_code(row.name, windowed=True)  # type: ignore[arg-type]
        assert (code, packed.misfire_policy_of(code)) == (row.code.upper(), row.name)


def test_letters_of_overlap_policies_can_stand_among_the_flags_of_a_run() -> None:
    flags = {value for name, value in vars(packed).items() if name.startswith("FLAG_")}
    letters = [row.code for row in OVERLAP_POLICIES if row.code] + [packed.OVERLAP_ANYWAY]
    assert len({*letters, *flags}) == len(letters) + len(flags) == 10
    assert all(len(one) == 1 and one.islower() for one in letters)
    assert all(len(one) == 1 and one.isupper() for one in flags)


def test_a_made_up_policy_has_its_letter_and_its_place_in_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "OVERLAP_POLICIES", (*OVERLAP_POLICIES, ROUND_ROBIN))
    # A copy of the module that reads the table, so that nobody else sees the policy.
    spec = importlib.util.spec_from_file_location("head_with_one_more", head.__file__)
    assert spec is not None
    assert spec.loader is not None
    copy: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(copy)
    assert copy.overlap_code("round_robin") == "y"
    assert names_of(policies.OVERLAP_POLICIES, "allow").endswith("cancel_running or round_robin")


def test_no_other_file_lists_the_policies() -> None:
    """Else a new one would have to be added there, too: files that name two of them are lists."""
    names = {"queue_one", "queue_all", "cancel_running"}
    roots = [Path(rsched.__file__).parent, Path(inspect.getfile(importlib.import_module("rsched_api"))).parent]
    files = [path for root in roots for path in root.rglob("*.py")]
    assert len(files) > 100
    listing = [path.name for path in files if sum(f'"{name}"' in path.read_text() for name in names) > 1]
    assert listing == ["policies.py"]
