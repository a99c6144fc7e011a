"""Rendezvous hashing: everyone agrees on whose partition it is, and a change moves only what it must."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rsched.core.ids import PARTITIONS
from rsched.scheduler.ownership import fair_share

names = st.lists(st.text("abcdef0123456789", min_size=1, max_size=8), min_size=1, max_size=5, unique=True)


@given(names)
def test_every_partition_falls_to_exactly_one_scheduler(live: list[str]) -> None:
    shares = [fair_share(name, live) for name in live]
    assert sum(map(len, shares)) == PARTITIONS
    assert frozenset().union(*shares) == frozenset(range(PARTITIONS))


@given(names)
def test_a_scheduler_that_joins_takes_partitions_and_moves_no_others(live: list[str]) -> None:
    joined = [*live, "joiner"]
    for name in live:
        assert fair_share(name, joined) <= fair_share(name, live)


def test_two_schedulers_have_about_half_each() -> None:
    share = len(fair_share("one", ["one", "two"]))
    assert PARTITIONS * 0.4 < share < PARTITIONS * 0.6


def test_a_scheduler_counts_itself_before_the_others_know_it() -> None:
    assert fair_share("new", ["old"]) == fair_share("new", ["old", "new"])
