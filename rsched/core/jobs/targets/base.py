"""What a kind of target declares, and the registry of kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from rsched.core.errors import FieldError
from rsched.core.ids import SLUG

T = TypeVar("T", bound=msgspec.Struct)

# Queues that belong to a kind of target, also those of kinds that are planned.
_PLANNED_QUEUES = ("container",)
SLUG_FIX = "write 1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit"


def check_slug(value: str, field: str) -> Iterator[FieldError]:
    """Yields what is wrong with the name of a team, a queue or a tag.

    Args:
        value: The name.
        field: The field that it stands in, such as `target.queue`.
    """
    if not SLUG.fullmatch(value):
        yield FieldError(field, f"{value[:70]!r} is not allowed; {SLUG_FIX}")


def _as_it_is(target: Any) -> Any:
    return target


@dataclass(frozen=True, kw_only=True)
class TargetKind(Generic[T]):
    """All that the system asks of one kind of target; workers have the way to call it.

    Attributes:
        struct: The struct with the kind's fields; its tag is the `type` in JSON.
        check: Yields each wrong field of a target, named as in a job (`target.url`).
        queue: Returns the queue whose workers can call the target.
        summary: Returns the target as a few words for a list.
        own_queue: The queue that targets of this kind alone go through, if they all go through one.
        for_payload: Returns the target as a run with a payload of its own calls it.
    """

    struct: type[T]
    check: Callable[[T], Iterator[FieldError]]
    queue: Callable[[T], str]
    summary: Callable[[T], str]
    own_queue: str | None = None
    for_payload: Callable[[T], T] = field(default=_as_it_is)

    @property
    def tag(self) -> str:
        """The `type` in JSON."""
        return str(self.struct.__struct_config__.tag)


class TargetKinds:
    """The kinds of targets that there are, by their types."""

    def __init__(self, kinds: Iterable[TargetKind[Any]]) -> None:
        """Takes the kinds, in the order in which they are named to people."""
        self._kinds: Mapping[type, TargetKind[Any]] = {kind.struct: kind for kind in kinds}
        self._own_queues = {k.own_queue: k.tag for k in self if k.own_queue is not None}
        self._own_queues |= {queue: queue for queue in _PLANNED_QUEUES}

    def __iter__(self) -> Iterator[TargetKind[Any]]:
        """Iterates over the kinds."""
        return iter(self._kinds.values())

    def own_queues(self) -> tuple[str, ...]:
        """Returns the queues that belong to one kind each, such as `http`."""
        return tuple(kind.own_queue for kind in self if kind.own_queue is not None)

    def of(self, target: msgspec.Struct) -> TargetKind[Any]:
        """Returns the kind of a target. KeyError where its type is not registered."""
        return self._kinds[type(target)]

    def tagged(self, tag: str) -> TargetKind[Any] | None:
        """Returns the kind whose `type` in JSON is tag."""
        return next((kind for kind in self if kind.tag == tag), None)

    def check(self, target: msgspec.Struct) -> Iterator[FieldError]:
        """Yields each wrong field of a target: what its kind finds, and a queue that belongs to another kind."""
        kind = self.of(target)
        yield from kind.check(target)
        if kind.own_queue is None and (queue := kind.queue(target)) in self._own_queues:
            yield FieldError(
                "target.queue", f"{queue!r} is kept for {self._own_queues[queue]} targets; choose another queue"
            )
