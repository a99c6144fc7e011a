import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.instants import MAX_INSTANT_MS, MIN_INSTANT_MS, format_local, format_utc, parse_instant
from rsched.core.schedule.zones import zone_info, zone_names


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-10-25T20:30:00Z", 1_792_960_200_000),
        ("2026-10-26T02:00:00+05:30", 1_792_960_200_000),
        ("2026-10-25t20:30:00.1239z", 1_792_960_200_123),
        ("2026-10-25 13:30:00.5-07:00", 1_792_960_200_500),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2028-02-29T00:00:00-00:00", 1_835_395_200_000),
        ("9999-12-31T23:59:59.999999999Z", MAX_INSTANT_MS),
        ("0001-01-01T00:00:00Z", MIN_INSTANT_MS),
    ],
)
def test_rfc_3339_text_is_one_instant(text: str, ms: int) -> None:
    assert parse_instant(text) == ms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("2026-10-25T20:30:00", "has no offset"),
        ("2026-10-25", "is not an RFC 3339 instant"),
        ("2026-10-25T20:30Z", "is not an RFC 3339 instant"),
        ("2026-02-30T00:00:00Z", "write a date and time that exist"),
        ("2026-10-25T24:00:00Z", "write a date and time that exist"),
        ("2026-12-31T23:59:60Z", "write a date and time that exist"),
        ("2026-10-25T20:30:00+25:00", "the offset +25:00 is out of range"),
        ("9999-12-31T23:59:59-01:00", "outside the years 1 to 9999"),
        ("0001-01-01T00:00:00+01:00", "outside the years 1 to 9999"),
        ("0000-01-01T00:00:00Z", "write a date and time that exist"),
        ("２026-10-25T20:30:00Z", "is not an RFC 3339 instant"),
        ("2026-10-25T20:30:00Z\n", "is not an RFC 3339 instant"),
        ("1792960200", "is not an RFC 3339 instant"),
        ("", "is not an RFC 3339 instant"),
        ("tomorrow" * 1000, "is not an RFC 3339 instant"),
    ],
)
def test_other_text_is_refused_with_the_fix(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"instant|offset|years|write") as caught:
        parse_instant(text)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 200


def test_utc_has_ms_unless_short() -> None:
    assert format_utc(1_792_960_200_000) == "2026-10-25T20:30:00.000Z"
    assert format_utc(1_792_960_200_007) == "2026-10-25T20:30:00.007Z"
    assert format_utc(1_792_960_200_000, short=True) == "2026-10-25T20:30:00Z"


def test_local_time_carries_its_offset_and_ms_only_where_there_are_some() -> None:
    kolkata = zone_info("Asia/Kolkata")
    assert format_local(1_792_960_200_000, kolkata) == "2026-10-26T02:00:00+05:30"
    assert format_local(1_792_960_200_120, kolkata) == "2026-10-26T02:00:00.120+05:30"
    assert format_local(0, zone_info("UTC")) == "1970-01-01T00:00:00+00:00"


def test_the_last_instant_can_be_shown_in_every_zone() -> None:
    for name in zone_names():
        assert parse_instant(format_local(MAX_INSTANT_MS, zone_info(name))) == MAX_INSTANT_MS


@settings(deadline=None)
@given(st.integers(MIN_INSTANT_MS, MAX_INSTANT_MS))
def test_what_is_written_reads_back(ms: int) -> None:
    assert parse_instant(format_utc(ms)) == ms


@settings(deadline=None)
@given(st.integers(0, MAX_INSTANT_MS), st.sampled_from(["Europe/Berlin", "Asia/Kathmandu", "America/Nuuk"]))
def test_local_text_names_the_same_instant(ms: int, zone: str) -> None:
    assert parse_instant(format_local(ms, zone_info(zone))) == ms


@pytest.mark.parametrize("ms", [MIN_INSTANT_MS - 1, MAX_INSTANT_MS + 1])
def test_what_cannot_be_written_is_refused(ms: int) -> None:
    with pytest.raises(ValueError, match="outside the years"):
        format_utc(ms)
