"""Timetables against the brute-force oracle: 12 zones, 30 expressions, each policy, across every change of 2024-2030.

The sample runs always; RSCHED_LONG=1 runs every change, and the end of every month.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import pytest

from rsched.core.cron.parser import parse
from rsched.core.cron.timetable import Gap, Missed, Overlap, Timetable, timetable
from rsched.core.schedule.zones import Zone, load_zone, zone_info
from tests.support.cron_oracle import EPOCH, Matcher, Walk, wall_in

LONG = os.environ.get("RSCHED_LONG") == "1"
ZONES = [
    "Europe/Berlin", "America/New_York", "Africa/Casablanca", "Antarctica/Troll", "Australia/Lord_Howe", "Asia/Kathmandu",
    "America/Havana", "Pacific/Apia", "Asia/Gaza", "America/St_Johns", "Europe/Dublin", "America/Sao_Paulo",
]  # fmt: skip
EXPRESSIONS = [
    "0 2 * * *", "30 2 * * *", "*/15 2 * * *", "0 2,3 * * *", "*/15 1 * * *", "30 1 * * *", "45 1 * * *", "0 0 * * *",
    "30 23 * * *", "15 0 * * *", "*/15 * * * *", "0 * * * *", "7 * * * *", "* * * * *", "0 */2 * * *", "0 1-23/2 * * *",
    "0 3 * * SUN", "*/20 1-3 * * 6,0", "0 0-22 * * *", "59 1,2 * * *", "30 2 1 * *", "0 0 L * *", "30 2 LW * *",
    "15 1 L-3 * *", "0 12 15W * *", "30 2 * * SUN#5", "0 1 * * L0,L5", "10 2 28-31 * MON", "*/10 0-3 31 MAR,10 7",
    "5/20 * * 3,10,11 FRI-SUN",
]  # fmt: skip
# (cron, second, year): what is watched second by second, over short spans.
BY_SECOND = [
    ("30 2 * * *", "0,30", "*"), ("59 1 * * *", "59", "*"), ("0 3 * * *", "0", "2024-2030/2"), ("*/15 * * * *", "7/20", "*"),
    ("* 1-2 * * *", "*/17", "2025,2027-2029"), ("0 * * * *", "10-12", "*"),
]  # fmt: skip
BY_YEAR = [("30 2 * * *", "2025-2030/2"), ("0 0 L * *", "2024,2026"), ("*/30 * 1,31 12,1 *", "2026-2028")]
# Changes before 2024, of zones that have none since, and of a whole day.
OLDER = {
    "Pacific/Apia": ["2011-12-30T10:00Z", "2021-04-03T14:00Z"],
    "America/Sao_Paulo": ["2018-11-04T03:00Z", "2018-02-18T02:00Z"],
    "Asia/Kathmandu": ["1985-12-31T18:30Z"],
}
POLICIES: list[tuple[Gap | None, Overlap | None]] = [
    (None, None), ("shift", "first"), ("shift", "both"), ("skip", "first"), ("skip", "both"),
]  # fmt: skip


class Rule(NamedTuple):
    text: str
    second: str = "0"
    year: str = "*"


RULES = [*map(Rule, EXPRESSIONS), *(Rule(text, year=year) for text, year in BY_YEAR)]


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


@lru_cache(maxsize=len(ZONES))
def changes(zone: str) -> list[int]:
    """Every change of the offset in 2024-2030, and the older ones, by the standard library."""
    info = zone_info(zone)

    def offset(t: int) -> timedelta:
        return (EPOCH + timedelta(seconds=t)).replace(tzinfo=UTC).astimezone(info).utcoffset() or timedelta()

    found = [at(text) for text in OLDER.get(zone, [])]
    for t in range(at("2024-01-01T00:00Z"), at("2031-01-01T00:00Z"), 6 * 3600):
        low, high = t, t + 6 * 3600
        if offset(low) != offset(high):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
            found.append(high)
    return found


def month_ends() -> list[int]:
    return [at(f"{year}-{month:02}-01T00:00Z") for year in range(2024, 2031) for month in range(1, 13)]


def tables(rule: Rule, zone: str | Zone) -> Iterator[tuple[Timetable, str, str]]:
    """A timetable for each policy, with what the policy is in full."""
    expression = parse(rule.text, second=rule.second, year=rule.year)
    table = load_zone(zone) if isinstance(zone, str) else zone
    usual = ("skip", "both") if Matcher(rule.text).every_hour else ("shift", "first")
    for gap, overlap in POLICIES:
        yield Timetable(expression, table, gap=gap, overlap=overlap), gap or usual[0], overlap or usual[1]


def check(table: Timetable, want: list[int], walk: Walk, *, points: int, rng: random.Random) -> int:
    """The chain, next from points before, on, between and after, and counts of ranges. How many answers were compared."""
    low, high = walk.low * 1000, walk.high * 1000
    got: list[int] = []
    t = low
    while (found := table.next_after(t)) is not None and found <= high:
        assert found > t
        got.append(t := found)
    assert got == want
    starts = [rng.randrange(low, high) for _ in range(points)]
    for near in (
        rng.sample(want, min(points, len(want))),
        [t * 1000 for t in (*walk.jumped, *sorted(walk.repeated)[:1])],
    ):
        starts += [t + shift for t in near for shift in (-1000, -1, 0, 1, 999)]
    answers = []
    for t in starts:
        if not low <= t < high:
            continue
        found = table.next_after(t)
        i = bisect_right(want, t)
        assert found is None or found > t
        assert (found if found is not None and found <= high else None) == (want[i] if i < len(want) else None), t
        answers.append((t, found or 1 << 60))
    assert [f for _, f in sorted(answers)] == sorted(f for _, f in answers)
    starts = [t for t in starts if low <= t <= high] + [low, high]
    for _ in range(points):
        a, b = sorted(rng.choices(starts, k=2))
        part = want[bisect_right(want, a) : bisect_right(want, b)]
        assert table.missed(a, b) == Missed(len(part), part[0] if part else None, part[-1] if part else None)
    assert table.missed(low, high).count == len(want)
    return len(want) + len(answers) + points


def check_notes(table: Timetable, want: list[int], walk: Walk, matcher: Matcher, policy: tuple[str, str]) -> None:
    """A note where the change touched an occurrence, and nowhere else."""
    gap, overlap = policy
    walls = dict(walk.steps)
    again = {walls[t] for t in walk.repeated}
    for t_ms in want:
        t = t_ms // 1000
        note = table.note(t_ms)
        if gap == "shift" and t in walk.jumped and any(map(matcher.matches, walk.jumped[t])):
            assert note is not None
            assert "not exist" in note
            assert "clocks go forward" in note
        elif t in walk.repeated:
            assert overlap == "both"
            assert note is not None
            assert note.endswith("second pass")
        elif walls[t] in again:
            assert note == f"{walls[t].time().isoformat('seconds' if walls[t].second else 'minutes')} comes twice that day; " \
                           "this is the first pass"  # fmt: skip
        else:
            assert note is None


def compare(walk: Walk, zone: str | Zone, rules: list[Rule], *, points: int, notes: bool = True) -> int:
    compared = 0
    rng = random.Random(f"{zone} {walk.low}")
    for rule in rules:
        matcher = Matcher(rule.text, second=rule.second, year=rule.year)
        for table, gap, overlap in tables(rule, zone):
            want = walk.fired(matcher, gap=gap, overlap=overlap)
            try:
                compared += check(table, want, walk, points=points, rng=rng)
                if notes:
                    check_notes(table, want, walk, matcher, (gap, overlap))
            except AssertionError as error:
                error.add_note(f"{rule} in {zone}, gap {gap}, overlap {overlap}, from {walk.low}")
                raise
    return compared


def around(t: int, *, hours: int) -> tuple[int, int]:
    minute = t // 60 * 60
    return minute - hours * 3600, minute + hours * 3600


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.timeout(1800 if LONG else 60)
def test_every_policy_is_the_oracles_around_changes(zone: str) -> None:
    wall_of, compared = wall_in(zone_info(zone)), 0
    chosen, rules = changes(zone), RULES
    if not LONG:  # a spring and an autumn one, or what there is, and half of the expressions
        rng = random.Random(zone)
        i = rng.randrange(max(len(chosen) - 1, 1))
        chosen, rules = chosen[i : i + 2], rng.sample(RULES, 16)
    for change in chosen:
        compared += compare(Walk(wall_of, *around(change, hours=36)), zone, rules, points=12 if LONG else 5)
    assert compared > 1000
    print(f"{zone}: {compared} answers compared")  # shown by -rP


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.timeout(1800 if LONG else 60)
def test_month_ends_are_the_oracles(zone: str) -> None:
    wall_of, compared = wall_in(zone_info(zone)), 0
    ends, rules = month_ends(), [rule for rule in RULES if rule.text.split()[2:] != ["*", "*", "*"] or rule.year != "*"]
    if not LONG:
        rng = random.Random(zone)
        ends = rng.sample(ends, 2)
    for end in ends:
        compared += compare(Walk(wall_of, *around(end, hours=36)), zone, rules, points=3)
    assert compared > 100
    print(f"{zone}: {compared} answers compared")  # shown by -rP


@pytest.mark.parametrize("zone", ZONES if LONG else ["Europe/Berlin", "Antarctica/Troll", "Australia/Lord_Howe"])
@pytest.mark.timeout(1800 if LONG else 60)
def test_seconds_and_years_are_the_oracles_around_changes(zone: str) -> None:
    wall_of, compared = wall_in(zone_info(zone)), 0
    chosen = changes(zone) if LONG else changes(zone)[4:6]
    for change in chosen:
        walk = Walk(wall_of, *around(change, hours=4 if LONG else 3), step=1)
        compared += compare(walk, zone, [Rule(*rule) for rule in BY_SECOND], points=10)
    assert compared > 100
    print(f"{zone}: {compared} answers compared")  # shown by -rP


@pytest.mark.parametrize("seed", range(60 if LONG else 12))
def test_made_up_zones_are_the_oracles_however_close_their_changes(seed: int) -> None:
    """Changes of any size, some within hours of another, around the turn of a year that ends or begins the schedule."""
    rng = random.Random(seed)
    start = at("2026-12-30T00:00Z")
    moments = sorted(rng.sample(range(start + 1800, start + 3 * 86_400, 1800), rng.randrange(2, 9)))
    # Two changes of which both put the wall forward, or back, are among them.
    offsets = [rng.randrange(-12, 13) * 1800 for _ in range(len(moments) + 1)]
    table = list(zip([-(1 << 60), *moments], offsets, strict=True))
    kept = table[:1] + [c for before, c in pairwise(table) if c[1] != before[1]]
    zone = Zone(f"made up {seed}", changes=kept, base=1 << 60)
    starts = [start for start, _ in kept]

    def wall_of(t: int) -> datetime:
        return EPOCH + timedelta(seconds=t + kept[bisect_right(starts, t) - 1][1])

    rules = [Rule(text) for text in rng.sample(EXPRESSIONS, 6)]
    rules += [
        Rule("*/30 * * * *", year="2026"),
        Rule("15 22-23,0-2 * * *", year="2026"),
        Rule("0 */2 * * *", year="2027"),
    ]
    # Watched from before the first change on, so that nothing that came is forgotten.
    walk = Walk(wall_of, start, start + 4 * 86_400, context=86_400)
    compare(walk, zone, rules, points=8, notes=False)


def test_the_policies_differ_only_where_the_clock_changes() -> None:
    """Else the comparison above could pass with one policy for all."""
    walk = Walk(wall_in(zone_info("Europe/Berlin")), at("2026-10-24T12:00Z"), at("2026-10-25T12:00Z"))
    counts = {p: len(walk.fired(Matcher("*/15 2 * * *"), gap=p[0], overlap=p[1])) for p in POLICIES if p[0] and p[1]}
    assert counts == {("shift", "first"): 4, ("shift", "both"): 8, ("skip", "first"): 4, ("skip", "both"): 8}
    walk = Walk(wall_in(zone_info("Europe/Berlin")), at("2026-03-28T12:00Z"), at("2026-03-29T12:00Z"))
    counts = {p: len(walk.fired(Matcher("*/15 2 * * *"), gap=p[0], overlap=p[1])) for p in POLICIES if p[0] and p[1]}
    assert counts == {("shift", "first"): 1, ("shift", "both"): 1, ("skip", "first"): 0, ("skip", "both"): 0}


def test_equal_meanings_share_a_timetable_and_other_policies_do_not() -> None:
    daily, hourly = parse("30 2 * * *"), parse("0 * * * *")
    assert timetable(daily, "Europe/Berlin") is timetable(daily, "Europe/Berlin", gap="shift", overlap="first")
    assert timetable(hourly, "Europe/Berlin") is timetable(hourly, "Europe/Berlin", gap="skip")
    assert timetable(daily, "Europe/Berlin") is not timetable(daily, "Europe/Berlin", overlap="both")


def test_the_hosts_zone_changes_no_policy_note_second_or_digest() -> None:
    code = (
        "from rsched.core.cron.parser import parse\n"
        "from rsched.core.cron.timetable import timetable\n"
        "from rsched.core.schedule.zones import zone_digest\n"
        "print(zone_digest('Europe/Berlin'))\n"
        "for gap in ('shift', 'skip'):\n"
        "    for overlap in ('first', 'both'):\n"
        "        for cron in ('30 2 * * *', '*/20 * * * *'):\n"
        "            e = parse(cron, second='0,30', year='2026-2027')\n"
        "            t, table = 1774656000000, timetable(e, 'Europe/Berlin', gap=gap, overlap=overlap)\n"
        "            print(table.missed(t, t + 40_000_000_000))\n"
        "            for start in (t, 1792800000000):\n"
        "                t = start\n"
        "                for _ in range(80):\n"
        "                    t = table.next_after(t)\n"
        "                    print(t, table.note(t))\n"
    )
    outputs = set()
    for env in ({"TZ": "Asia/Kathmandu"}, {"TZ": "America/New_York", "PYTHONTZPATH": "/nowhere"}, {}):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd(), **env},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert "second pass" in outputs.pop()
