"""Backoff, factor, cap and jitter: what holds for every policy that may be given."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rsched.core.jobs.model import RetryPolicy
from rsched.core.retry import backoff_ms

LONGEST_MS = 7 * 86_400_000
attempts = st.integers(1, 1000)
seeds = st.integers()
delays_ms = st.integers(1, LONGEST_MS)


def _policy(base_ms: int, cap_ms: int, **changes: Any) -> RetryPolicy:
    return RetryPolicy(base=f"{base_ms}ms", cap=f"{cap_ms}ms", **changes)


policies = st.builds(
    _policy, delays_ms, delays_ms, backoff=st.sampled_from(["exponential", "fixed"]), jitter=st.just("none"),
    factor=st.floats(1, 100),
)  # fmt: skip


def delay_of(policy: RetryPolicy, attempt: int, seed: int = 0) -> int:
    return backoff_ms(policy, attempt, random.Random(seed))


@given(policies, attempts)
def test_without_jitter_the_delay_is_the_power_of_the_factor_up_to_the_cap(policy: RetryPolicy, attempt: int) -> None:
    # Exact, so that neither rounding nor overflow of the formula under test is repeated here.
    factor = Fraction(1 if policy.backoff == "fixed" else policy.factor)
    wanted = min(policy.base_ms * factor ** (attempt - 1), policy.cap_ms)
    # A double's relative error of the power grows with the exponent, and what is left of a ms is cut off.
    assert abs(delay_of(policy, attempt) - wanted) <= 1 + wanted * attempt * 2.0**-52


@given(policies, attempts)
def test_no_delay_is_shorter_than_that_of_the_attempt_before(policy: RetryPolicy, attempt: int) -> None:
    assert delay_of(policy, attempt) <= delay_of(policy, attempt + 1)


@given(policies, attempts, seeds)
def test_with_full_jitter_the_delay_lies_between_none_and_that_without_jitter(
    policy: RetryPolicy, attempt: int, seed: int
) -> None:
    jittered = msgspec.structs.replace(policy, jitter="full")
    assert 0 <= delay_of(jittered, attempt, seed) <= delay_of(policy, attempt)


@given(policies, attempts, seeds)
def test_without_jitter_chance_has_no_part_in_the_delay(policy: RetryPolicy, attempt: int, seed: int) -> None:
    assert delay_of(policy, attempt, seed) == delay_of(policy, attempt, seed + 1)


def test_full_jitter_spreads_a_crowd_evenly_over_the_whole_delay() -> None:
    policy, rng = _policy(1000, LONGEST_MS, factor=2, jitter="full"), random.Random(7)
    delays = [backoff_ms(policy, 4, rng) for _ in range(8000)]
    by_second = Counter(delay // 1000 for delay in delays)
    # 1,000 in each of the eight seconds: 900 and 1,100 are more than three standard deviations (30) away.
    assert set(by_second) == set(range(8))
    assert all(900 < count < 1100 for count in by_second.values())


@pytest.mark.parametrize(
    ("changes", "delays"),
    [
        ({}, [1000, 2000, 4000, 8000, 16_000]),
        ({"factor": 1}, [1000] * 5),
        ({"factor": 1.5}, [1000, 1500, 2250, 3375, 5062]),
        ({"backoff": "fixed", "factor": 100}, [1000] * 5),
        ({"factor": 100}, [1000, 100_000, 600_000, 600_000, 600_000]),
    ],
)
def test_the_first_delays_of_a_policy(changes: dict[str, Any], delays: list[int]) -> None:
    policy = _policy(1000, 600_000, jitter="none", **changes)
    assert [delay_of(policy, attempt) for attempt in range(1, 6)] == delays


def test_a_factor_close_to_one_reaches_the_cap_too_however_many_attempts_it_takes() -> None:
    policy = _policy(1000, 600_000, jitter="none", factor=1.1)
    assert [delay_of(policy, attempt) // 1000 for attempt in (66, 67, 68, 69)] == [490, 539, 593, 600]
