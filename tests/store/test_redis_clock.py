"""Steps of Redis' clock against the process' own: noticed however replies come, and never where there was none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rsched.store.redis_clock import STEP_MS, UNSURE_MS, RedisClock

AHEAD = 1_793_000_000_000


class TwoClocks:
    """This machine's boot clock, and Redis' some way ahead of it."""

    def __init__(self) -> None:
        self.boot, self.ahead = 1000, AHEAD
        self.known = RedisClock(self)

    def boot_ms(self) -> int:
        return self.boot

    def wall_ms(self) -> int:
        return self.boot

    def perf_s(self) -> float:
        return self.boot / 1000

    async def sleep(self, ms: float) -> None:
        self.boot += int(ms)

    def sleep_sync(self, ms: float) -> None:
        self.boot += int(ms)

    def call(self, there_ms: int = 0, back_ms: int = 0) -> int:
        sent_at = self.boot
        self.boot += there_ms
        made_at = self.boot + self.ahead
        self.boot += back_ms
        return self.known.saw(made_at, sent_at=sent_at)


slow = st.tuples(st.integers(0, 20_000), st.integers(0, 20_000))


@given(st.lists(st.tuples(slow, st.integers(0, 10**7), st.integers(-STEP_MS, STEP_MS))))
def test_slow_replies_long_silences_and_drift_are_no_step(calls: list[tuple[tuple[int, int], int, int]]) -> None:
    clocks = TwoClocks()
    clocks.call()
    for (there, back), silence, drift in calls:
        clocks.boot += silence
        clocks.ahead += drift
        assert clocks.call() == 0
        assert clocks.call(there, back) == 0
        assert not clocks.known.unsure


def test_a_step_just_above_the_limit_is_noticed() -> None:
    for step in (STEP_MS + 1, -STEP_MS - 1):
        clocks = TwoClocks()
        clocks.call()
        clocks.ahead += step
        assert clocks.call() == step
        assert clocks.known.unsure


@given(slow, slow, st.integers(2 * STEP_MS + 1, 10**9), st.booleans())
def test_a_step_that_a_slow_reply_hides_is_noticed_by_the_next_quick_one(
    before: tuple[int, int], after: tuple[int, int], step: int, back: bool
) -> None:
    clocks = TwoClocks()
    clocks.call()
    clocks.call(*before)
    clocks.ahead += -step if back else step
    noticed = clocks.call(*after)
    if not noticed:
        assert step <= sum(after) + STEP_MS, "hidden by nothing"
        noticed = clocks.call()
    assert noticed * (-1 if back else 1) > 0
    assert abs(noticed) <= step
    assert clocks.known.unsure
    # A reply as slow as that one leaves open how far it was; a quick one does not, and may show more of it.
    clocks.call()
    assert clocks.call() == 0


def test_one_lease_after_the_last_step_the_clock_is_trusted_again() -> None:
    clocks = TwoClocks()
    clocks.call()
    clocks.ahead += 3_600_000
    assert clocks.call() == 3_600_000
    clocks.boot += UNSURE_MS - 1
    assert clocks.known.unsure
    clocks.ahead -= 3_600_000
    assert clocks.call() == -3_600_000
    clocks.boot += UNSURE_MS - 1
    assert clocks.known.unsure
    clocks.boot += 1
    assert not clocks.known.unsure


def test_a_reply_that_was_overtaken_by_a_step_is_not_taken_for_one_back() -> None:
    clocks = TwoClocks()
    clocks.call()
    sent_at, made_at = clocks.boot, clocks.boot + clocks.ahead
    clocks.boot += 5
    clocks.ahead += 10_000
    assert clocks.call() == 10_000
    assert clocks.known.saw(made_at, sent_at=sent_at) == 0
    assert clocks.known.now_ms() == clocks.boot + clocks.ahead
    assert clocks.call() == 0


def test_the_estimate_follows_a_clock_that_was_set_back() -> None:
    clocks = TwoClocks()
    clocks.call()
    clocks.ahead -= 10_000
    clocks.call()
    clocks.boot += 70
    assert clocks.known.now_ms() == clocks.boot + clocks.ahead
