import hashlib
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.support.release_window import offset_ms, release_at

ids = st.integers(0, 10**15).map(lambda t: f"j_0123456789abc:{t}")
lengths = st.integers(1, 86_400_000)


@given(ids, st.integers(-(10**6), 86_400_000))
def test_an_offset_lies_in_its_span_and_is_the_same_each_time(run: str, span: int) -> None:
    offset = offset_ms(run, span)
    assert offset == offset_ms(run, span)
    assert 0 <= offset < max(span, 1)


def test_the_offset_is_what_the_scripts_compute() -> None:
    run = "j_0123456789abc:1793000000000"
    assert offset_ms(run, 300_000) == int(hashlib.sha1(run.encode()).hexdigest()[:8], 16) % 300_000


def test_runs_of_one_instant_are_spread_evenly() -> None:
    span, buckets, n = 300_000, 50, 10_000
    jobs = (hashlib.sha1(str(i).encode()).hexdigest()[:13] for i in range(n))
    counts = Counter(offset_ms(f"j_{job}:1793000000000", span) * buckets // span for job in jobs)
    want = n / buckets
    chi_square = sum((counts[b] - want) ** 2 / want for b in range(buckets))
    assert chi_square < 95  # 49 degrees of freedom: beyond it once in 10,000


def test_the_occurrences_of_one_job_get_offsets_of_their_own() -> None:
    offsets = {offset_ms(f"j_0123456789abc:{1_793_000_000_000 + i * 86_400_000}", 3_600_000) for i in range(1000)}
    assert len(offsets) > 990


@given(ids, st.integers(0, 10**13), lengths, st.none() | lengths, st.none() | lengths)
def test_a_release_is_never_early_nor_past_the_next_occurrence_or_the_end(
    run: str, due: int, window: int, following: int | None, end: int | None
) -> None:
    next_at, end_at = following and due + following, end and due + end
    at = release_at(run, due, window_ms=window, following=next_at, end_ms=end_at)
    assert due <= at < due + window
    assert next_at is None or at < next_at
    assert end_at is None or at < end_at


def test_without_a_window_a_run_is_released_at_its_instant() -> None:
    assert release_at("j_0123456789abc:5", 5, window_ms=0, following=None, end_ms=None) == 5
    assert release_at("j_0123456789abc:5", 5, window_ms=1000, following=9, end_ms=5) == 5
