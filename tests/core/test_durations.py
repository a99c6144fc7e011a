import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.durations import MAX_MS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("90s", 90_000), ("5m", 300_000), ("1h30m", 5_400_000), ("2d", 172_800_000), ("1w", 604_800_000),
        ("250ms", 250), ("1.5s", 1500), ("PT5M", 300_000), ("P1DT2H", 93_600_000), ("PT0.5S", 500),
        (0, 0), (1, 1000), (0.25, 250), (MAX_MS / 1000, MAX_MS),
    ],
)  # fmt: skip
def test_a_duration_is_so_many_ms(value: str | float, ms: int) -> None:
    assert parse_duration(value) == ms


@pytest.mark.parametrize(
    "value",
    ["", "5", "5 m", "m", "-5m", "1m1h", "PT", "P", "P1DT", "１s", "1e3s", "5m\n", "5M", "9" * 100 + "s", "101w" * 30,
     -1, float("nan"), float("inf"), 1e300, True, "36601d", MAX_MS / 1000 + 1],
)  # fmt: skip
def test_what_is_none_is_refused_in_words(value: str | float) -> None:
    with pytest.raises(ValueError, match=r"write|must"):
        parse_duration(value)


@settings(deadline=None)
@given(st.integers(0, MAX_MS))
def test_what_is_written_reads_back(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms
