from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rsched.core.forecast import MINUTE_MS, Forecast, interval_counts


@given(st.integers(0, 10**7), st.integers(1000, 200_000), st.integers(1, 10**6))
def test_an_intervals_occurrences_are_counted_by_the_minute(first: int, every: int, length: int) -> None:
    counted: Counter[int] = Counter()
    for at, n in interval_counts(first, every, first + length):
        counted[at // MINUTE_MS] += round(n)
    assert counted == Counter(t // MINUTE_MS for t in range(first, first + length, every))


@given(st.integers(0, 9 * MINUTE_MS), st.integers(1, 5 * MINUTE_MS), st.integers(1, 1000))
def test_a_window_moves_runs_and_loses_none(at: int, window_ms: int, runs: int) -> None:
    forecast = Forecast(0, 20)
    forecast.add("a", [(at, runs)], window_ms=window_ms)
    total = forecast.total()
    assert abs(sum(total) - runs) < 1e-6
    touched = [m for m, n in enumerate(total) if n > 0]
    assert touched[0] == at // MINUTE_MS
    assert touched[-1] <= (at + window_ms) // MINUTE_MS


def test_spikes_stand_out_with_the_teams_that_make_them() -> None:
    forecast = Forecast(0, 60)
    forecast.add("calm", [(m * MINUTE_MS, 2) for m in range(60)], movable=False)
    forecast.add("loud", [(30 * MINUTE_MS, 600)])
    (spike,) = forecast.spikes()
    assert (spike.minute, spike.runs, spike.teams) == (30, 602, [("loud", 600), ("calm", 2)])
    assert forecast.total()[29] == 2


def test_windows_flatten_what_is_due_at_once_and_leave_intervals_alone() -> None:
    forecast = Forecast(0, 60)
    forecast.add("calm", [(m * MINUTE_MS, 2) for m in range(60)], movable=False)
    forecast.add("loud", [(30 * MINUTE_MS, 600)])
    forecast.add("spread", [(10 * MINUTE_MS, 100)], window_ms=10 * MINUTE_MS)
    assert forecast.flattened() == [(1, 602), (5, 122), (15, 42), (30, 22)]


def test_nothing_due_is_no_spike() -> None:
    forecast = Forecast(0, 60)
    assert forecast.spikes() == []
    assert forecast.flattened() == [(1, 0), (5, 0), (15, 0), (30, 0)]
