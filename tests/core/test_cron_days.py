"""The bit-set evaluator on naive time, against croniter and against the calendar itself."""

from datetime import date, datetime, timedelta

import pytest
from croniter import CroniterBadDateError, croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.cron.days import NaiveCron
from rsched.core.cron.parser import parse

EPOCH = datetime(1970, 1, 1)


def second_of(at: datetime) -> int:
    return (at - EPOCH) // timedelta(seconds=1)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    step = st.integers(1, high - low)
    pair = st.tuples(value, value).filter(lambda p: p[0] < p[1])
    item = st.one_of(
        value.map(str),
        pair.map(lambda p: f"{p[0]}-{p[1]}"),
        st.tuples(pair, st.integers(1, 5)).map(lambda p: f"{p[0][0]}-{p[0][1]}/{p[1]}"),
        st.tuples(value, step).filter(lambda p: p[0] + p[1] <= high).map(lambda p: f"{p[0]}/{p[1]}"),
        step.map(lambda n: f"*/{n}"),
    )
    return st.one_of(st.just("*"), st.lists(item, min_size=1, max_size=3).map(",".join))


# The day fields stay plain and one of them open: where both are set, croniter reads a full list as `*`.
days = st.one_of(st.tuples(field(1, 31), st.just("*")), st.tuples(st.just("*"), field(0, 6)))
plain = st.tuples(field(0, 59), field(0, 23), days, field(1, 12)).map(
    lambda f: f"{f[0]} {f[1]} {f[2][0]} {f[3]} {f[2][1]}"
)
starts = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2150, 1, 1))


@settings(max_examples=400, deadline=None)
@given(plain, starts)
def test_the_next_match_is_croniters_on_naive_time(text: str, start: datetime) -> None:
    try:
        cron = NaiveCron(parse(text))
    except ValueError:
        return
    twin = croniter(text, start, max_years_between_matches=60)
    at = second_of(start)
    for _ in range(4):
        found = cron.first(at + 1)
        assert found is not None
        assert EPOCH + timedelta(seconds=found) == twin.get_next(datetime)
        at = found


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 30), st.integers(0, 5), starts)
def test_two_plain_day_fields_combine_by_or_as_in_croniter(day: int, weekday: int, start: datetime) -> None:
    text = f"30 4 {day},{day + 1} * {weekday},{weekday + 1}"
    found = NaiveCron(parse(text)).first(second_of(start) + 1)
    assert found is not None
    assert EPOCH + timedelta(seconds=found) == croniter(text, start).get_next(datetime)


@settings(max_examples=200, deadline=None)
@given(plain, starts, st.integers(0, 86_400 * 40))
def test_count_and_last_agree_with_stepping(text: str, start: datetime, width: int) -> None:
    try:
        cron = NaiveCron(parse(text))
    except ValueError:
        return
    low = second_of(start)
    found: list[int] = []
    at = cron.first(low)
    while at is not None and at < low + width and len(found) < 3000:
        found.append(at)
        at = cron.first(at + 1)
    high = found[-1] + 1 if found else low + width
    if len(found) == 3000 or found:
        assert cron.last(high) == found[-1]
    assert cron.count(low, high) == len(found)


@settings(max_examples=200, deadline=None)
@given(field(0, 59), plain, starts)
def test_the_next_match_with_seconds_is_croniters(second: str, text: str, start: datetime) -> None:
    try:
        cron = NaiveCron(parse(text, second=second))
    except ValueError:
        return
    twin = croniter(f"{text} {second}", start, max_years_between_matches=60)
    at = second_of(start)
    for _ in range(4):
        found = cron.first(at + 1)
        assert found is not None
        assert EPOCH + timedelta(seconds=found) == twin.get_next(datetime)
        at = found


@settings(max_examples=200, deadline=None)
@given(field(0, 59), plain, st.lists(st.integers(1970, 2099), min_size=1, max_size=4), starts)
def test_the_next_match_within_years_is_croniters(second: str, text: str, years: list[int], start: datetime) -> None:
    """Up to 2099, where croniter's years end. It raises past the last year: there None is due."""
    named = ",".join(map(str, years))
    try:
        cron = NaiveCron(parse(text, second=second, year=named))
    except ValueError:
        return
    twin = croniter(f"{text} {second} {named}", start, max_years_between_matches=140)
    at = second_of(start)
    for _ in range(4):
        found = cron.first(at + 1)
        try:
            want = twin.get_next(datetime)
        except CroniterBadDateError:
            assert found is None
            return
        assert found is not None
        assert EPOCH + timedelta(seconds=found) == want
        at = found


@settings(max_examples=300, deadline=None)
@given(field(0, 59), plain, st.sampled_from(["*", "2025", "2024-2030/2", "1999,2026"]), starts, st.integers(2, 5000))
def test_count_and_last_agree_with_stepping_by_seconds(
    second: str, text: str, year: str, start: datetime, width: int
) -> None:
    try:
        cron = NaiveCron(parse(text, second=second, year=year))
    except ValueError:
        return
    low = cron.first(second_of(start))
    if low is None:
        return
    high, found, at = low + width, [], cron.first(low)
    while at is not None and at < high:
        found.append(at)
        at = cron.first(at + 1)
    for cut in (0, 1, width // 2, width):
        part = [f for f in found if f < low + cut]
        assert cron.count(low, low + cut) == len(part)
        assert cron.count(low + cut, high) == len(found) - len(part)
        if part:
            assert cron.last(low + cut) == part[-1]


def test_years_begin_and_end_the_search_however_far_they_are() -> None:
    cron = NaiveCron(parse("0 0 1 1 *", year="1975,9000"))
    assert cron.first(second_of(datetime(1975, 1, 1, 0, 0, 1))) == second_of(datetime(9000, 1, 1))
    assert cron.first(second_of(datetime(9000, 1, 1, 0, 0, 1))) is None
    assert cron.first(second_of(datetime(1, 1, 1))) == second_of(datetime(1975, 1, 1))
    assert cron.last(second_of(datetime(9999, 1, 1))) == second_of(datetime(9000, 1, 1))
    assert cron.last(second_of(datetime(9000, 1, 1))) == second_of(datetime(1975, 1, 1))
    assert cron.last(second_of(datetime(1975, 1, 1))) is None
    assert cron.count(0, second_of(datetime(9999, 1, 1))) == 2


def brute(text: str, year: int) -> list[date]:
    cron = NaiveCron(parse(text))
    out, at = [], second_of(datetime(year, 1, 1))
    while (found := cron.first(at)) is not None and (day := (EPOCH + timedelta(seconds=found)).date()).year == year:
        out.append(day)
        at = found + 1
    return out


def month_days(year: int, month: int) -> list[date]:
    first = date(year, month, 1)
    return [first + timedelta(days=n) for n in range(31) if (first + timedelta(days=n)).month == month]


@pytest.mark.parametrize("year", range(2020, 2034))
def test_the_special_days_are_those_of_the_calendar(year: int) -> None:
    months = [month_days(year, m) for m in range(1, 13)]
    assert brute("0 0 L * *", year) == [m[-1] for m in months]
    assert brute("0 0 L-3 * *", year) == [m[-4] for m in months]
    assert brute("0 0 LW * *", year) == [max(d for d in m if d.weekday() < 5) for m in months]
    assert brute("0 0 * * L5", year) == [max(d for d in m if d.weekday() == 4) for m in months]
    assert brute("0 0 * * 5#3", year) == [[d for d in m if d.weekday() == 4][2] for m in months]
    fifths = [[d for d in m if d.weekday() == 6] for m in months]
    assert brute("0 0 * * SUN#5", year) == [s[4] for s in fifths if len(s) == 5]
    for n in (1, 15, 29, 31):
        want = [min((d for d in m if d.weekday() < 5), key=lambda d: abs(d.day - n)) for m in months if len(m) >= n]
        assert brute(f"0 0 {n}W * *", year) == want


def test_steps_restart_each_month_and_rare_days_are_found() -> None:
    first = NaiveCron(parse("0 0 */10 * *")).first(second_of(datetime(2021, 2, 28)))
    assert first == second_of(datetime(2021, 3, 1))
    # February 29 on a Monday, over the year 2100 that has none: 40 years.
    cron = NaiveCron(parse("0 0 * 2 MON#5"))
    assert cron.first(second_of(datetime(2072, 3, 1))) == second_of(datetime(2112, 2, 29))
    assert NaiveCron(parse("0 0 29 2 *")).last(second_of(datetime(2024, 3, 1))) == second_of(datetime(2024, 2, 29))


def test_the_search_ends_with_the_year_9999() -> None:
    cron = NaiveCron(parse("0 0 1 1 *"))
    assert cron.first(second_of(datetime(9999, 1, 1, 0, 1))) is None
    assert cron.first(10**12) is None
    assert cron.last(-(10**12)) is None
