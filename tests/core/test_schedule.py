import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rsched.core.cron import parser as cron
from rsched.core.errors import Invalid
from rsched.core.instants import MAX_INSTANT_MS, format_utc, parse_instant
from rsched.core.jobs.model import ScheduleSpec
from rsched.core.schedule import zones
from rsched.core.schedule.schedule import Cron, Draft, Interval, Missed, OneOff, Schedule, load, resolve

NOW = parse_instant("2026-10-25T20:30:00.123Z")


def resolved(**fields: object) -> tuple[ScheduleSpec, Schedule]:
    found, schedule = resolve(Draft(ScheduleSpec(**fields), name="job"), now_ms=NOW)  # type: ignore[arg-type]
    assert found.schedule is not None
    return found.schedule, schedule


def refused(**fields: object) -> dict[str, str]:
    with pytest.raises(Invalid) as caught:
        resolved(**fields)
    return dict(caught.value.errors)


def test_a_delay_becomes_an_instant() -> None:
    spec, schedule = resolved(delay="90s")
    assert spec == ScheduleSpec(at="2026-10-25T20:31:30.123Z")
    assert isinstance(schedule, OneOff)
    assert (schedule.kind, schedule.arg) == ("o", str(NOW + 90_000))
    assert resolved(delay=0)[1].upcoming(NOW - 1, 5) == [NOW]


def test_an_interval_without_anchor_counts_from_now() -> None:
    spec, schedule = resolved(every="5s")
    assert spec == ScheduleSpec(every="5s", anchor="2026-10-25T20:30:00.123Z")
    assert (schedule.kind, schedule.arg) == ("e", f"{NOW},5000")
    assert schedule.upcoming(NOW, 2) == [NOW + 5000, NOW + 10_000]


def test_an_anchor_sets_the_phase_from_either_side() -> None:
    schedule = Interval(anchor_ms=NOW, every_ms=7000)
    assert schedule.next_after(NOW - 1) == NOW
    assert schedule.next_after(NOW) == NOW + 7000
    assert schedule.next_after(NOW - 7001) == NOW - 7000


def test_cron_gets_its_zone_and_a_schedule_id_by_meaning() -> None:
    spec, schedule = resolved(cron="0 2 * * *")
    assert spec == ScheduleSpec(cron="0 2 * * *", timezone="UTC")
    assert isinstance(schedule, Cron)
    assert schedule.kind == "c"
    assert len(schedule.arg) == 16
    assert resolved(cron="00 2 1-31 * *", timezone="UTC")[1].arg == schedule.arg
    assert resolved(cron="@daily")[1].arg != schedule.arg
    kolkata = resolved(cron="0 2 * * *", timezone="Asia/Kolkata")[1]
    assert kolkata.arg != schedule.arg
    assert str(kolkata.zone) == "Asia/Kolkata"
    assert kolkata.next_after(NOW - 1000) == parse_instant("2026-10-25T20:30:00Z")


@pytest.mark.parametrize(
    "fields",
    [
        {"delay": "1m"},
        {"every": 5},
        {"cron": "H H * * *"},
        {"at": "2026-10-25T22:00:00+01:00"},
        {"every": "1h", "anchor": "2020-01-01T00:00:00Z"},
    ],
)
def test_a_resolved_spec_resolves_to_itself_and_loads_later(fields: dict[str, object]) -> None:
    spec, schedule = resolved(**fields)
    again, same = resolve(Draft(spec, name="job"), now_ms=NOW + 30_000)
    assert again.schedule == spec
    loaded = load(Draft(spec, name="job"))
    assert (schedule.kind, schedule.arg) == (same.kind, same.arg) == (loaded.kind, loaded.arg)


def test_an_instant_up_to_a_minute_ago_runs_and_an_older_one_is_refused() -> None:
    assert resolved(at=format_utc(NOW - 60_000))[1].arg == str(NOW - 60_000)
    old = format_utc(NOW - 60_001)
    assert "more than 60 s ago" in refused(at=old)["schedule.at"]
    assert load(Draft(ScheduleSpec(at=old))).arg == str(NOW - 60_001)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({}, "schedule", "write exactly one of cron, every, at, delay"),
        ({"cron": "0 2 * * *", "every": "5s"}, "schedule", "found cron and every"),
        ({"at": "2026-10-26T00:00:00Z", "delay": 5}, "schedule", "found at and delay"),
        ({"at": "2026-10-26T00:00:00"}, "schedule.at", "has no offset"),
        ({"delay": "5 minutes"}, "schedule.delay", "is not a duration"),
        ({"delay": -1}, "schedule.delay", "negative"),
        ({"delay": "200000w"}, "schedule.delay", "century"),
        ({"every": "500ms"}, "schedule.every", "write '1s' or more"),
        ({"every": 0}, "schedule.every", "write '1s' or more"),
        ({"every": "x"}, "schedule.every", "is not a duration"),
        ({"every": "5s", "anchor": "2026-10-26"}, "schedule.anchor", "RFC 3339"),
        ({"at": "2026-10-26T00:00:00Z", "anchor": "2026-10-26T00:00:00Z"}, "schedule.anchor", "goes with every only"),
        ({"every": "5s", "timezone": "UTC"}, "schedule.timezone", "goes with cron only"),
        ({"cron": "0 2 * * *", "timezone": "Europe/Berln"}, "schedule.timezone", "did you mean Europe/Berlin?"),
        ({"cron": "0 22-2 * * *"}, "schedule.cron", "hour: '22-2': range runs backwards; write '22-23,0-2'"),
        ({"cron": ""}, "schedule.cron", "is empty"),
    ],
)
def test_bad_input_names_its_field_and_the_fix(fields: dict[str, object], field: str, words: str) -> None:
    assert words in refused(**fields)[field]


def test_expression_and_zone_are_both_named_when_both_are_wrong() -> None:
    assert set(refused(cron="61 * * * *", timezone="Mars/Base")) == {"schedule.cron", "schedule.timezone"}


def test_h_depends_on_the_owner_and_nothing_else_does() -> None:
    h = ScheduleSpec(cron="H H * * *", timezone="UTC")
    assert load(Draft(h, (), "a", "x")).arg == load(Draft(h, (), "a", "x")).arg != load(Draft(h, (), "b", "x")).arg
    plain = ScheduleSpec(cron="0 2 * * *", timezone="UTC")
    assert load(Draft(plain, (), "a", "x")) is load(Draft(plain, (), "b", "y"))


@settings(deadline=None)
@given(st.integers(-(10**13), 10**14), st.integers(1000, 10**10), st.integers(-(10**13), 10**14), st.integers(0, 10**7))
def test_an_interval_counts_what_it_missed_by_arithmetic(anchor: int, every: int, low: int, width: int) -> None:
    schedule = Interval(anchor_ms=anchor, every_ms=every)
    missed = schedule.missed(low, low + width)
    want = [t for t in schedule.upcoming(low, width // every + 2) if t <= low + width]
    assert missed == Missed(len(want), want[0] if want else None, want[-1] if want else None)


def test_nothing_comes_after_the_year_9999() -> None:
    assert Interval(anchor_ms=0, every_ms=1000).next_after(MAX_INSTANT_MS) is None
    assert Interval(anchor_ms=0, every_ms=1000).missed(MAX_INSTANT_MS - 1500, 1 << 62).count == 1
    assert OneOff(5).next_after(5) is None
    assert OneOff(5).missed(4, 5) == Missed(1, 5, 5)
    assert OneOff(5).missed(5, 9) == Missed(0, None, None)


def test_the_schedule_id_follows_the_rules_of_the_zone_and_not_its_name_or_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def arg(zone: str) -> str:
        return Cron(cron.parse("0 2 * * *"), zone_name=zone).arg

    berlin, tokyo = arg("Europe/Berlin"), arg("Asia/Tokyo")
    assert arg("Asia/Calcutta") == arg("Asia/Kolkata") != tokyo
    true_digest = zones.zone_digest
    monkeypatch.setattr(zones, "tzdata_version", lambda: "2099z")
    monkeypatch.setattr(
        zones, "zone_digest", lambda name: "new rules" if name == "Europe/Berlin" else true_digest(name)
    )
    assert arg("Asia/Tokyo") == tokyo
    assert arg("Europe/Berlin") != berlin


def test_what_the_clocks_did_to_an_occurrence_is_noted() -> None:
    daily = {"cron": "30 2 * * *", "timezone": "Europe/Berlin"}
    gap, usual = parse_instant("2027-03-28T01:00:00Z"), parse_instant("2027-03-29T00:30:00Z")
    plain = resolved(**daily)[1]
    bounded = resolved(**daily, exclude="2027-01-01")[1]
    union = load(Draft(None, [ScheduleSpec(cron="0 0 * * *"), ScheduleSpec(**daily)]))  # type: ignore[arg-type]
    for schedule in (plain, bounded, union):
        assert gap in schedule.upcoming(gap - 1, 1)
        assert "not exist" in (schedule.note(gap) or "")
        assert schedule.note(usual) is None
    assert resolved(every="1h")[1].note(gap) is None
    assert resolved(delay=5)[1].note(gap) is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"delay": 5}, "schedule.delay"),
        ({"every": "5s"}, "schedule.anchor"),
        ({"every": "500ms", "anchor": "2026-10-26T00:00:00Z"}, "schedule.every"),
        ({"every": "5s", "anchor": "soon"}, "schedule.anchor"),
        ({"at": "soon"}, "schedule.at"),
        ({"cron": "0 2 * * *", "timezone": "Mars/Base"}, "schedule.timezone"),
        ({"cron": "0 2 * * *", "exclude": "gone"}, "schedule.exclude"),
    ],
)
def test_a_stored_schedule_that_makes_none_is_refused_when_loaded(fields: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        load(Draft(ScheduleSpec(**fields)))  # type: ignore[arg-type]
    assert [e.field for e in caught.value.errors] == [field]
