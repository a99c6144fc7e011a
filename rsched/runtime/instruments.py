"""Counts in counters, gauges and histograms that cost a fraction of a microsecond; prometheus_client renders them.

They belong to one event loop, so nothing here is locked. The client's own instruments lock and cost 0.5 to 2 us an
observation, which is too much for what is done once a run. Values of the capped label beyond the limit are counted together
as `_other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

Kind = Literal["counter", "gauge", "histogram"]
OTHER = "_other"
# Teams that have series of their own, in each family.
LIMIT = 200
# A team that had nothing for so many scrapes gives its series up when others need the room: 10 min at 15 s a scrape.
IDLE_SCRAPES = 40
# What `_other` stands for is remembered up to so many label sets, so that a flood of names takes no memory either.
_ALIASES = 20_000

Labels = tuple[str, ...]


class Declared(NamedTuple):
    """Declares a metric.

    Attributes:
        name: The name that Prometheus sees.
        kind: What kind of instrument it is.
        help: One sentence that says what it measures.
        of: The kinds of processes that have it.
        labels: The names of its labels, in order.
        capped: The label whose number of values is limited; "" for none.
        buckets: The upper bounds of a histogram's buckets.
    """

    name: str
    kind: Kind
    help: str
    of: tuple[str, ...]
    labels: tuple[str, ...] = ()
    capped: str = ""
    buckets: tuple[float, ...] = ()


class Number:
    """A counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, by: float = 1) -> None:
        """Adds to the value."""
        self.value += by

    def set(self, value: float) -> None:
        """Replaces the value."""
        self.value = value

    def seen(self) -> float:
        """Returns a number that differs after every change."""
        return self.value

    def fold(self, other: Number) -> None:
        """Adds another one's value to this one."""
        self.value += other.value


class Histogram:
    """Counts observations by bucket.

    Attributes:
        bounds: The upper bounds of the buckets, ascending.
        counts: How many fell into each bucket, not cumulative; the last bucket is above all bounds.
        total: The sum of all observations.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Counts one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def seen(self) -> float:
        """Returns a number that differs after every change."""
        return float(sum(self.counts))

    def fold(self, other: Histogram) -> None:
        """Adds another one's observations to this one."""
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def cumulative(self) -> list[tuple[str, float]]:
        """Returns (upper bound, number of observations up to it) for each bucket, as Prometheus wants them."""
        out, below = [], 0
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            below += count
            out.append((bound, float(below)))
        return out


C = TypeVar("C", Number, Histogram)


class Family(Generic[C]):
    """All series of one metric.

    Args:
        declared: What the metric is.
        make: Makes the instrument of a new series.
        limit: How many values the capped label may have; further ones are counted together as `_other`.
    """

    def __init__(self, declared: Declared, make: Callable[[], C], *, limit: int = LIMIT) -> None:
        self.declared, self._limit = declared, limit
        self._make: Callable[[], C] = make
        self._at = declared.labels.index(declared.capped) if declared.capped else -1
        # What is asked for; some of them are `_other` under another name.
        self._by_key: dict[Labels, C] = {}
        self._shown: dict[Labels, C] = {}
        self._values: dict[str, tuple[float, int]] = {}

    def child(self, *labels: str) -> C:
        """Returns the series of these label values, in the declared order; keep it no longer than a call."""
        child = self._by_key.get(labels)
        return self._add(labels) if child is None else child

    def _add(self, labels: Labels) -> C:
        key = labels
        if self._at >= 0:
            value = labels[self._at]
            if value not in self._values and value != OTHER:
                if len(self._values) >= self._limit:
                    key = self._other(labels)
                else:
                    self._values[value] = (-1.0, 0)
        child = self._shown.get(key)
        if child is None:
            child = self._shown[key] = self._make()
        if len(self._by_key) > len(self._shown) + _ALIASES:
            self._by_key = dict(self._shown)
        self._by_key[labels] = child
        return child

    def _other(self, labels: Labels) -> Labels:
        return (*labels[: self._at], OTHER, *labels[self._at + 1 :])

    def age(self) -> None:
        """Folds values that had nothing for long into `_other` where there is no room for more; call it once a scrape."""
        if self._at < 0 or len(self._values) < self._limit:
            return
        sums: dict[str, float] = dict.fromkeys(self._values, 0.0)
        for labels, child in self._shown.items():
            if labels[self._at] in sums:
                sums[labels[self._at]] += child.seen()
        idle: set[str] = set()
        for value, total in sums.items():
            before, scrapes = self._values[value]
            scrapes = scrapes + 1 if total == before else 0
            self._values[value] = (total, scrapes)
            if scrapes >= IDLE_SCRAPES:
                idle.add(value)
        if idle:
            self._fold(idle)

    def _fold(self, idle: set[str]) -> None:
        # Their sums go on in `_other`, so that a sum over all series never falls.
        for labels in [k for k in self._shown if k[self._at] in idle]:
            gone, key = self._shown.pop(labels), self._other(labels)
            if key in self._shown:
                self._shown[key].fold(gone)
            else:
                self._shown[key] = gone
        for value in idle:
            del self._values[value]
        self._by_key = dict(self._shown)

    def __len__(self) -> int:
        return len(self._shown)

    def series(self) -> Iterator[tuple[Labels, C]]:
        """Yields (label values, instrument) of each series that is shown."""
        yield from self._shown.items()


class Numbers(Family[Number]):
    """All series of one counter or gauge."""

    def __init__(self, declared: Declared, *, limit: int = LIMIT) -> None:
        super().__init__(declared, Number, limit=limit)

    def replace(self, values: Iterable[tuple[Labels, float]]) -> None:
        """Replaces all series, for gauges that are read as a whole; a series that is not among them is gone."""
        self._by_key, self._shown, self._values = {}, {}, {}
        for labels, value in values:
            self.child(*labels).set(value)

    def metric(self) -> Metric:
        """Returns the metric as prometheus_client renders it."""
        d = self.declared
        family = (CounterMetricFamily if d.kind == "counter" else GaugeMetricFamily)(d.name, d.help, labels=d.labels)
        for labels, number in self.series():
            family.add_metric(labels, number.value)
        return family


class Histograms(Family[Histogram]):
    """All series of one histogram."""

    def __init__(self, declared: Declared, *, limit: int = LIMIT) -> None:
        super().__init__(declared, lambda: Histogram(declared.buckets), limit=limit)

    def metric(self) -> Metric:
        """Returns the metric as prometheus_client renders it."""
        d = self.declared
        family = HistogramMetricFamily(d.name, d.help, labels=d.labels)
        for labels, histogram in self.series():
            family.add_metric(labels, buckets=histogram.cumulative(), sum_value=histogram.total)
        return family
