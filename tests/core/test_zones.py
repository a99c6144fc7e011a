"""Integer zone tables against the standard library's reading of the same files."""

import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.schedule.zones import (
    CYCLE_S,
    FOREVER,
    UnknownZone,
    load_zone,
    parse_tzif,
    table_digest,
    tzdata_version,
    zone_digest,
    zone_info,
    zone_names,
)

EPOCH = datetime(1970, 1, 1)


def offset(zone: ZoneInfo, t: int) -> int:
    wall = (EPOCH + timedelta(seconds=t)).replace(tzinfo=UTC).astimezone(zone).utcoffset()
    assert wall is not None
    return wall // timedelta(seconds=1)


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def test_every_zone_has_the_standard_librarys_offsets_up_to_the_year_9999() -> None:
    rng = random.Random(1)
    for name in sorted(zone_names()):
        zone, twin = load_zone(name), zone_info(name)
        for low, high, n in ((1850, 2038, 20), (2038, 2100, 10), (2100, 9998, 10)):
            for _ in range(n):
                t = rng.randrange(at(f"{low}-01-01T00:00Z"), at(f"{high}-12-31T00:00Z"))
                assert zone.segment(t).offset == offset(twin, t), (name, t)


@pytest.mark.parametrize("name", ["Europe/Berlin", "Africa/Casablanca", "Antarctica/Troll", "Australia/Lord_Howe"])
def test_each_change_is_exact_to_the_second(name: str) -> None:
    zone, twin = load_zone(name), zone_info(name)
    t = at("2000-01-01T00:00Z")
    for _ in range(150):
        segment = zone.segment(t)
        assert segment.start <= t < segment.end
        if segment.end >= FOREVER:
            return
        assert offset(twin, segment.end - 1) == segment.offset
        assert offset(twin, segment.end) != segment.offset
        t = segment.end


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(zone_names())),
    st.integers(at("1900-01-01T00:00Z"), at("2500-01-01T00:00Z")),
    st.integers(0, 200_000),
    st.integers(0, 19),
)
def test_a_wall_time_comes_once_and_in_order(name: str, t: int, step: int, cycles: int) -> None:
    zone = load_zone(name)
    t += cycles * CYCLE_S if t > at("2040-01-01T00:00Z") else 0
    wall = zone.unseen_after(t)
    assert zone.instant_of(wall) > t
    assert zone.instant_of(wall - 1) <= t
    assert zone.instant_of(wall + step) >= zone.instant_of(wall)


def test_a_gap_ends_at_its_first_instant_and_an_overlap_counts_once() -> None:
    berlin = load_zone("Europe/Berlin")
    assert berlin.instant_of(at("2026-03-29T02:30Z")) == at("2026-03-29T01:00Z")
    assert berlin.instant_of(at("2026-10-25T02:30Z")) == at("2026-10-25T00:30Z")
    apia = load_zone("Pacific/Apia")  # it left out the whole of 2011-12-30
    assert apia.instant_of(at("2011-12-30T12:00Z")) == at("2011-12-30T10:00Z")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("America/New York", "America/New_York"),
        ("utc", "UTC"),
        ("Berlin", "Europe/Berlin"),
        ("Asia/Calcuta", "Asia/Calcutta"),
        ("Europe/Kolkata", "Asia/Kolkata"),
    ],
)
def test_an_unknown_zone_is_refused_with_the_likeliest_name(wrong: str, right: str) -> None:
    with pytest.raises(UnknownZone) as caught:
        load_zone(wrong)
    assert str(caught.value) == f"unknown time zone {wrong!r}; did you mean {right}?"


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../zones", "Europe", "Europe/", "Zürich", "x" * 5000, "a\0b", "posixrules"]
)
def test_what_is_no_zone_is_refused_and_no_path_is_opened(name: str) -> None:
    with pytest.raises(UnknownZone, match="unknown time zone"):
        zone_info(name)


def test_a_footer_with_day_numbers_is_followed() -> None:
    data = b"TZif2" + bytes(15) + bytes(24)
    block = b"TZif2" + bytes(15) + (0).to_bytes(4) * 4 + (1).to_bytes(4) + (4).to_bytes(4)
    zone = parse_tzif("X", data + block + bytes(6) + b"STD\0" + b"\nSTD-1DST,J60/2,300/3\n")
    assert zone.segment(at("2028-03-01T00:59:59Z")).offset == 3600
    assert zone.segment(at("2028-03-01T01:00:00Z")).offset == 7200
    assert zone.segment(at("2027-10-28T00:59:59Z")).offset == 7200
    assert zone.segment(at("2027-10-28T01:00:00Z")).offset == 3600


def test_a_file_that_is_no_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no zone file"):
        parse_tzif("X", bytes(100))


def test_the_hosts_zone_and_zone_files_do_not_matter() -> None:
    code = (
        "from rsched.core.schedule.schedule import Draft, load\n"
        "from rsched.core.jobs.model import ScheduleSpec\n"
        "from rsched.core.instants import *\n"
        "for cron, zone in (('0 2 * * *', 'Africa/Casablanca'), ('30 * * * *', 'America/Vancouver')):\n"
        "    s = load(Draft(ScheduleSpec(cron=cron, timezone=zone)))\n"
        "    for t in s.upcoming(parse_instant('2026-10-24T00:00:00Z'), 200): print(t, format_local(t, s.zone))\n"
    )
    outputs = set()
    for env in ({"TZ": "Asia/Kathmandu"}, {"TZ": "America/New_York", "PYTHONTZPATH": "/nowhere"}, {}):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd(), **env},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop().splitlines()) == 400


def test_the_data_is_that_of_the_pinned_package() -> None:
    assert tzdata_version() >= "2026f"


def compiled(changes: list[tuple[int, int]], footer: str, *, names: str = "STD") -> bytes:
    """A zone file: (instant, offset), the first offset being 0."""
    offsets = [0, *(offset for _, offset in changes)]
    head = b"TZif2" + bytes(15)
    counts = [0, 0, 0, len(changes), len(offsets), len(names) + 1]
    body = b"".join(t.to_bytes(8, signed=True) for t, _ in changes) + bytes(range(1, len(offsets)))
    body += b"".join(offset.to_bytes(4, signed=True) + bytes(2) for offset in offsets) + names.encode() + b"\0"
    first = head + bytes(24)
    return first + head + b"".join(n.to_bytes(4) for n in counts) + body + f"\n{footer}\n".encode()


def test_a_digest_changes_with_the_offsets_of_the_zone_and_with_nothing_else() -> None:
    rules = "STD-1DST,M3.5.0,M10.5.0/3"
    base = table_digest(compiled([(1000, 3600), (2000, 7200)], rules))
    assert base == table_digest(compiled([(1000, 3600), (2000, 7200)], "XYZ-1XYZT,M3.5.0,M10.5.0/3"))  # names only
    assert base == table_digest(compiled([(1000, 3600), (1500, 3600), (2000, 7200)], rules))  # no change of the offset
    others = [
        compiled([(1000, 3600), (2001, 7200)], rules),
        compiled([(1000, 3600), (2000, 3600)], rules),
        compiled([(1000, 3600), (2000, 7200), (3000, 3600)], rules),
        compiled([(1000, 3600), (2000, 7200)], "STD-1DST,M3.5.0,M10.4.0/3"),
        compiled([(1000, 3600), (2000, 7200)], "STD-1"),
    ]
    assert len({base, *map(table_digest, others)}) == 6


def test_zones_of_the_same_data_have_one_digest_and_others_do_not() -> None:
    assert zone_digest("Asia/Calcutta") == zone_digest("Asia/Kolkata")
    assert zone_digest("Europe/Berlin") != zone_digest("Europe/Paris")
    assert len({zone_digest(name) for name in zone_names()}) > 300
    assert zone_digest("UTC") == "zhjsjt9qb1qf"  # the same on every node and in every process
    with pytest.raises(UnknownZone):
        zone_digest("Europe/Berln")
