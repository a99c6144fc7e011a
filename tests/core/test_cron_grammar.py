"""What the parser accepts, and what it refuses with which words."""

import os
import subprocess
import sys

import pytest

from rsched.core.cron.parser import MAX_LENGTH, CronError, Expression, parse

ALL_MINUTES, ALL_HOURS = tuple(range(60)), tuple(range(24))
ALL_DAYS, ALL_MONTHS = tuple(range(1, 32)), tuple(range(1, 13))


def expression(**parts: object) -> Expression:
    base = Expression(minutes=(0,), hours=(0,), days=ALL_DAYS, months=ALL_MONTHS)
    return base._replace(**parts)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("* * * * *", expression(minutes=ALL_MINUTES, hours=ALL_HOURS)),
        ("*/1 */1 */1 */1 *", expression(minutes=ALL_MINUTES, hours=ALL_HOURS)),
        ("59/15 0 * * *", expression(minutes=(59,))),
        ("5/20 0 * * *", expression(minutes=(5, 25, 45))),
        ("*/7 0 * * *", expression(minutes=(0, 7, 14, 21, 28, 35, 42, 49, 56))),
        ("10-30/10 0 * * *", expression(minutes=(10, 20, 30))),
        ("5,1,5,3-4 0 * * *", expression(minutes=(1, 3, 4, 5))),
        ("00 00 * * *", expression()),
        ("0\t0   * *  *", expression()),
        ("0 0 */10 * *", expression(days=(1, 11, 21, 31))),
        ("0 0 * jan-Mar,DEC *", expression(months=(1, 2, 3, 12))),
        ("0 0 * * 7", expression(days=(), weekdays=(0,))),
        ("0 0 * * FRI-SUN", expression(days=(), weekdays=(0, 5, 6))),
        ("0 0 * * 5-7", expression(days=(), weekdays=(0, 5, 6))),
        ("0 0 * * SUN-TUE", expression(days=(), weekdays=(0, 1, 2))),
        ("0 0 * * 0-7", expression()),
        ("0 0 * * 1-7", expression()),
        ("0 0 13 * 5", expression(days=(13,), weekdays=(5,))),
        ("0 0 L * *", expression(days=(), days_from_end=(0,))),
        ("0 0 L-3,L * *", expression(days=(), days_from_end=(0, 3))),
        ("0 0 15W * *", expression(days=(), workdays=(15,))),
        ("0 0 1,LW * *", expression(days=(1,), last_workday=True)),
        ("0 0 * * 5#3", expression(days=(), nth=((5, 3),))),
        ("0 0 * * FRI#3,7#1", expression(days=(), nth=((0, 1), (5, 3)))),
        ("0 0 * * L5,LMON", expression(days=(), last_weekdays=(1, 5))),
        ("@yearly", expression(days=(1,), months=(1,))),
        ("@annually", expression(days=(1,), months=(1,))),
        ("@monthly", expression(days=(1,))),
        ("@weekly", expression(days=(), weekdays=(0,))),
        ("@daily", expression()),
        ("@midnight", expression()),
        ("@hourly", expression(hours=ALL_HOURS)),
    ],
)
def test_an_expression_means_the_lists(text: str, meaning: Expression) -> None:
    assert parse(text) == meaning


REFUSALS = [
    ("0 22-2 * * *", "hour: '22-2': range runs backwards; write '22-23,0-2'"),
    (
        "*/90 * * * *",
        "minute: '*/90': a step of 90 is larger than the field (0-59), so it would not mean every 90 minutes",
    ),
    ("*/60 * * * *", "larger than the field"),
    ("0 */24 * * *", "hour: '*/24': a step of 24 is larger than the field (0-23)"),
    ("*/0 * * * *", "minute: '*/0': a step of 0 never moves on"),
    ("5-5 * * * *", "minute: '5-5': both ends are equal; write '5'"),
    ("0 9-9 * * *", "hour: '9-9': both ends are equal; write '9'"),
    ("50-10/7 * * * *", "write '4,50,57'"),
    ("0 0 * NOV-FEB *", "month: 'NOV-FEB': range runs backwards; write 'NOV-DEC,JAN-FEB'"),
    ("0 0 * * fri-mon", "day-of-week: 'fri-mon': range runs backwards; write 'FRI-SAT,SUN-MON'"),
    ("0 0 * * 6-1", "write '6,0-1'"),
    ("0 0 * * 7-2", "write '0-2'"),
    ("1,,2 * * * *", "minute: '1,,2': a stray comma; write '1,2'"),
    (",1 * * * *", "minute: ',1': a stray comma; write '1'"),
    ("1, * * * *", "a stray comma"),
    ("*,5 * * * *", "write '*' alone"),
    ("¹ * * * *", "minute: '¹': only ASCII"),
    ("１ * * * *", "minute: '１': only ASCII"),
    ("0 0 * * ſun", "only ASCII"),
    ("0\u00a02 * * *", "ASCII spaces"),
    ("0\u30002 * * *", "ASCII spaces"),
    ("0 2 * * *\n", "ASCII spaces"),
    ("0 2 * * *\x00", "holds"),
    ("@wee\u212aly", "unknown macro"),
    ("? * * * *", "minute: '?': ? is not part of this grammar; write '*'"),
    ("0 0 ? * 1", "day-of-month: '?'"),
    ("R * * * *", "write 'H'"),
    ("R(0-9) * * * *", "write 'H(0-9)'"),
    ("H/15 * * * *", "write 'H'"),
    ("H(9-5) * * * *", "write 'H(5-9)'"),
    ("H(5-5) * * * *", "write '5'"),
    ("H(0-70) * * * *", "70 is outside the field"),
    ("0 0 * january *", "month: 'january': write the three letters 'JAN'"),
    ("0 0 * * Monday", "day-of-week: 'Monday': write the three letters 'MON'"),
    ("TZ=Europe/Berlin 0 2 * * *", "schedule.timezone"),
    ("CRON_TZ=UTC 0 2 * * *", "schedule.timezone"),
    ("0 0 2 * * *", 'seconds and years by name, as "second" and "year" beside "cron"'),
    ("0 0 2 * * * 2027", "found 7 fields"),
    ("0 2 * *", "found 4 fields; write five"),
    ("", "is empty"),
    ("   ", "is empty"),
    ("@reboot", "'@reboot' has no time"),
    ("@dayly", "did you mean '@daily'?"),
    ("0 0 */2 * 1", "day-of-month: '*/2': crons disagree on '*/n' while day-of-week is set too"),
    ("0 0 1 * */2", "day-of-week: '*/2': crons disagree"),
    ("0 0 L * 1", "day-of-month: 'L': crons disagree on 'L', 'W' or '#' while day-of-week is set too"),
    ("0 0 15W * MON", "crons disagree"),
    ("0 0 1 * 5#3", "day-of-week: '5#3': crons disagree"),
    ("0 0 1 * L5", "crons disagree"),
    ("0 0 30 2 *", "day-of-month: '30' never comes in month '2'"),
    ("0 0 31 4,6,9,11 *", "never comes"),
    ("0 0 L-30 2 *", "never comes"),
    ("60 * * * *", "minute: '60': 60 is outside the field; write a value of 0-59"),
    ("0 24 * * *", "hour: '24'"),
    ("0 0 0 * *", "day-of-month: '0'"),
    ("0 0 1 13 *", "month: '13'"),
    ("0 0 * * 8", "day-of-week: '8'"),
    ("-5 * * * *", "without signs"),
    ("+5 * * * *", "without signs"),
    ("1_0 * * * *", "not a value of the field"),
    ("007 * * * *", "outside the field"),
    ("*/5/2 * * * *", "the step after / must be a whole number"),
    ("5/ * * * *", "the step after /"),
    ("0 0 * * 5L", "the L goes first; write 'L5'"),
    ("0 0 * * L", "needs a day"),
    ("0 0 * * FRI#6", "the week, 1 to 5"),
    ("0 0 L-0 * *", "write 'L'"),
    ("0 0 L-31 * *", "'L-1' to 'L-30'"),
    ("L * * * *", "day-of-month field"),
    ("0 " * 150 + "0", f"at most {MAX_LENGTH}"),
]


@pytest.mark.parametrize(("text", "words"), REFUSALS)
def test_a_refusal_says_what_was_found_and_the_fix(text: str, words: str) -> None:
    with pytest.raises(CronError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_every_wrong_field_is_named_at_once() -> None:
    with pytest.raises(CronError) as caught:
        parse("61 25 0 13 9")
    assert [m.split(":")[0] for m in caught.value.messages] == [
        "minute",
        "hour",
        "day-of-month",
        "month",
        "day-of-week",
    ]


def test_h_spreads_by_team_and_name() -> None:
    minutes = {parse("H H * * *", team="a", name=f"job {i}").minutes for i in range(500)}
    assert len(minutes) == 60
    assert parse("H H * * *", team="a", name="x") != parse("H H * * *", team="b", name="x")
    assert all(10 <= parse("H(10-12) * * * *", team="a", name=str(i)).minutes[0] <= 12 for i in range(50))
    assert max(parse("0 0 H * *", team="a", name=str(i)).days[0] for i in range(200)) == 28


def test_h_is_the_same_in_every_process_whatever_its_hash_seed() -> None:
    code = "from rsched.core.cron.parser import parse; print(parse('H H H H *', team='a', name='x').canonical())"
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert said == {parse("H H H H *", team="a", name="x").canonical()}


def test_h_has_not_moved_since_the_first_release() -> None:
    e = parse("H H H H *", team="default", name="nightly")
    assert (e.minutes, e.hours, e.days, e.months) == ((17,), (14,), (18,), (2,))


def test_spellings_of_one_meaning_are_one_expression() -> None:
    assert parse("0,30 0-23 1-31 * *").canonical() == parse("*/30 * * JAN-DEC 0-6").canonical()
    assert parse("0 0 1-31 * 1") == parse("0 0 * * *")


@pytest.mark.parametrize(
    ("second", "year", "meaning"),
    [
        (None, None, expression()),
        ("0", "*", expression()),
        (0, None, expression()),
        (30, 2027, expression(seconds=(30,), years=(2027,))),
        ("*", None, expression(seconds=tuple(range(60)))),
        ("*/20", None, expression(seconds=(0, 20, 40))),
        ("5/20,59", None, expression(seconds=(5, 25, 45, 59))),
        ("10-12", None, expression(seconds=(10, 11, 12))),
        (None, "2027,2029-2033/2", expression(years=(2027, 2029, 2031, 2033))),
        (None, "9995/2", expression(years=(9995, 9997, 9999))),
        (None, "1970-9999", expression()),
    ],
)
def test_seconds_and_years_are_given_by_name(
    second: str | int | None, year: str | int | None, meaning: Expression
) -> None:
    assert parse("0 0 * * *", second=second, year=year) == meaning


def test_without_seconds_and_years_the_canonical_text_is_that_of_the_first_release() -> None:
    plain = parse("5 4 1,2 3 *")
    assert plain.canonical() == "((5,), (4,), (1, 2), (3,), (), (), (), False, (), ())"
    others = {parse("5 4 1,2 3 *", second=s, year=y).canonical() for s, y in ((1, None), (None, 2030), (1, 2030))}
    assert len(others | {plain.canonical()}) == 4


@pytest.mark.parametrize(
    ("second", "year", "words"),
    [
        (60, None, "second: '60': 60 is outside the field; write a value of 0-59"),
        (
            "*/60",
            None,
            "second: '*/60': a step of 60 is larger than the field (0-59), so it would not mean every 60 seconds",
        ),
        ("50-10", None, "second: '50-10': range runs backwards; write '50-59,0-10'"),
        (-5, None, "second: '-5': a range needs both ends, without signs"),
        ("", None, "second: '': is empty; write a value of 0-59, or '*' for all"),
        ("¹", None, "second: '¹': only ASCII"),
        ("1 2", None, "second: '1 2': is not a value of the field"),
        ("R", None, "second: 'R': R would differ from node to node; write 'H'"),
        ("L", None, "second: 'L':"),
        ("0," * 150 + "0", None, "second: is 301 characters long; write at most 200"),
        (None, 1969, "year: '1969': 1969 is outside the field; write a value of 1970-9999"),
        (None, "10000", "year: '10000': is outside the field"),
        (None, "27", "year: '27': 27 is outside the field; write a value of 1970-9999"),
        (None, "2030-2027", "year: '2030-2027': range runs backwards; write '2027-2030'"),
        (None, "2030-2020/3", "write '2020-2030/3'"),
        (None, "2030-2030", "year: '2030-2030': both ends are equal; write '2030'"),
        (None, "2030,", "year: '2030,': a stray comma; write '2030'"),
        (None, "H", "year: 'H': H does not spread over years; write '*', or years such as '2027-2030'"),
        (None, "H(2027-2030)", "H does not spread over years"),
        (None, "?", "year: '?': ? is not part of this grammar; write '*'"),
    ],
)
def test_a_refused_second_or_year_is_named(second: str | int | None, year: str | int | None, words: str) -> None:
    with pytest.raises(CronError) as caught:
        parse("0 0 * * *", second=second, year=year)
    assert words in str(caught.value)
    assert str(caught.value).startswith("second: " if year is None else "year: ")


def test_days_that_never_come_in_the_years_are_refused() -> None:
    with pytest.raises(CronError, match=r"^year: '2025-2027': .*February 29 needs a leap year"):
        parse("0 0 29 2 *", year="2025-2027")
    with pytest.raises(CronError, match=r"^year: '2100'"):
        parse("0 0 29 2 *", year=2100)
    with pytest.raises(CronError, match=r"^year: '2027'"):
        parse("0 0 * 2 MON#5", year=2027)
    with pytest.raises(CronError, match=r"^day-of-month: '30' never comes in month '2'"):
        parse("0 0 30 2 *", year=2027)
    assert parse("0 0 29 2 *", year="2025-2028").years == (2025, 2026, 2027, 2028)


def test_a_wrong_second_and_year_are_named_with_the_other_fields() -> None:
    with pytest.raises(CronError) as caught:
        parse("61 0 * * *", second="x", year="y")
    assert [m.split(":")[0] for m in caught.value.messages] == ["minute", "second", "year"]


def test_h_spreads_seconds_apart_from_minutes() -> None:
    found = [parse("H * * * *", second="H", team="a", name=f"job {i}") for i in range(500)]
    assert len({e.seconds for e in found}) == 60
    assert len({(e.minutes, e.seconds) for e in found}) > 300
    assert parse("0 * * * *", second="H", team="a", name="x") == parse("0 * * * *", second="h", team="a", name="x")
