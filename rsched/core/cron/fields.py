"""One field of a cron expression, strictly: every refusal names the field, what was found, and what to write instead."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import NamedTuple

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_NUMBER = re.compile(r"[0-9]{1,2}", re.ASCII)
_YEAR_NUMBER = re.compile(r"[0-9]{1,4}", re.ASCII)
_SPREAD = re.compile(r"H(?:\(([0-9]{1,2})-([0-9]{1,2})\))?", re.ASCII)
_FROM_END = re.compile(r"L-([0-9]{1,2})", re.ASCII)
_WORKDAY = re.compile(r"([0-9]{1,2})W", re.ASCII)


class Kind(NamedTuple):
    """A field's name, bounds, names of values (from `low` on), and the greatest value that `H` spreads to."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    spread_high: int = 0

    @property
    def bounds(self) -> str:
        """The first and the last value, such as `0-59`."""
        return f"{self.low}-{self.high}"


SECOND = Kind("second", 0, 59, spread_high=59)
MINUTE = Kind("minute", 0, 59, spread_high=59)
HOUR = Kind("hour", 0, 23, spread_high=23)
# H stays off the 29th to 31st, so that every month has its day.
DAY = Kind("day-of-month", 1, 31, spread_high=28)
MONTH = Kind("month", 1, 12, _MONTHS, 12)
WEEKDAY = Kind("day-of-week", 0, 6, _WEEKDAYS, 6)
YEAR = Kind("year", 1970, 9999)


class FieldRefused(ValueError):
    """Text of the form `hour: '22-2': range runs backwards; write '22-23,0-2'`."""

    def __init__(self, kind: Kind, text: str, why: str) -> None:
        """Takes the field, its text, and why that cannot stand."""
        super().__init__(f"{kind.name}: {text!r}: {why}")
        self.why = why


@dataclass(slots=True)
class Parsed:
    """What a field names. star: it is `*`; starred: `*` or `*/n` is part of it; special: it uses L, W or #."""

    values: set[int] = field(default_factory=set)
    from_end: set[int] = field(default_factory=set)
    workdays: set[int] = field(default_factory=set)
    last_workday: bool = False
    nth: set[tuple[int, int]] = field(default_factory=set)
    last_weekdays: set[int] = field(default_factory=set)
    star: bool = False
    starred: bool = False
    special: bool = False


def parse_field(kind: Kind, text: str, *, seed: str) -> Parsed:
    """The field's meaning; `H` is drawn from seed and the field's name. FieldRefused."""
    out = Parsed()
    if text == "*":
        out.values.update(range(kind.low, kind.high + 1))
        out.star = out.starred = True
        return out
    # Before any change of case: some letters outside ASCII have an upper case within it.
    if not text.isascii():
        raise FieldRefused(kind, text, f"only ASCII digits and letters count; write a value of {kind.bounds}")
    if not text:
        raise FieldRefused(kind, text, f"is empty; write a value of {kind.bounds}, or '*' for all")
    items = text.upper().split(",")
    if "" in items:
        kept = ",".join(item for item in text.split(",") if item)
        raise FieldRefused(kind, text, f"a stray comma; write {kept!r}" if kept else "a stray comma; write '*'")
    for written, item in zip(text.split(","), items, strict=True):
        try:
            if not (_special(kind, item, out) or _spread(kind, item, out, seed=seed)):
                _plain(kind, item, out)
        except FieldRefused as e:
            raise FieldRefused(kind, written, e.why) from None
    return out


def _special(kind: Kind, item: str, out: Parsed) -> bool:
    """L, L-n, nW, LW (day-of-month) and d#n, Ld (day-of-week); False where the item is none of them."""
    if kind is DAY:
        if item == "LW":
            out.last_workday = True
        elif item == "L":
            out.from_end.add(0)
        elif m := _FROM_END.fullmatch(item):
            if not 1 <= int(m[1]) <= 30:
                raise FieldRefused(kind, item, "counts back from the last day; write 'L', or 'L-1' to 'L-30'")
            out.from_end.add(int(m[1]))
        elif m := _WORKDAY.fullmatch(item):
            out.workdays.add(_value(kind, m[1], item))
        else:
            return False
    elif kind is WEEKDAY:
        day, hash_sign, n = item.partition("#")
        if hash_sign:
            if n not in ("1", "2", "3", "4", "5"):
                raise FieldRefused(kind, item, f"the part after # is the week, 1 to 5; write '{day or 'FRI'}#1', or"
                                   f" 'L{day or 'FRI'}' for the last of the month")  # fmt: skip
            out.nth.add((_value(kind, day, item) % 7, int(n)))
        elif item == "L":
            raise FieldRefused(kind, item, "needs a day; write 'LFRI' for the month's last Friday, 'SAT' for Saturdays")
        elif item.endswith("L") and len(item) > 1 and (_NUMBER.fullmatch(item[:-1]) or item[:-1] in _WEEKDAYS):
            raise FieldRefused(kind, item, f"the L goes first; write 'L{item[:-1]}'")
        elif item.startswith("L"):
            out.last_weekdays.add(_value(kind, item[1:], item) % 7)
        else:
            return False
    else:
        return False
    out.special = True
    return True


def _spread(kind: Kind, item: str, out: Parsed, *, seed: str) -> bool:
    if not item.startswith("H"):
        return False
    m = _SPREAD.fullmatch(item)
    if kind is YEAR:
        raise FieldRefused(kind, item, "H does not spread over years; write '*', or years such as '2027-2030'")
    if m is None:
        raise FieldRefused(kind, item, f"write 'H', or 'H({kind.low}-{kind.spread_high})' with a range of this field")
    low, high = kind.low, kind.spread_high
    if m[1] is not None:
        low, high = _value(kind, m[1], item), _value(kind, m[2], item)
        if low >= high:
            raise FieldRefused(kind, item, "the range must ascend; write "
                               + (f"'{low}'" if low == high else f"'H({high}-{low})'"))  # fmt: skip
    digest = hashlib.blake2b(f"{kind.name}\0{seed}".encode(), digest_size=8).digest()
    value = low + int.from_bytes(digest) % (high - low + 1)
    out.values.add(value % 7 if kind is WEEKDAY else value)
    return True


def _plain(kind: Kind, item: str, out: Parsed) -> None:
    body, slash, step_text = item.partition("/")
    step = _step(kind, item, step_text) if slash else 1
    first, dash, last = body.partition("-")
    if body.startswith("R"):
        raise FieldRefused(
            kind, item, f"R would differ from node to node; write 'H{body[1:]}', which spreads jobs and stays the same"
        )
    if body == "*":
        if not slash:
            raise FieldRefused(kind, item, "covers the whole field, so nothing can stand beside it; write '*' alone")
        low, high = kind.low, kind.high
        out.starred = True
    elif dash:
        if not first or not last:
            raise FieldRefused(kind, item, f"a range needs both ends, without signs; write one within {kind.bounds}")
        low, high = _value(kind, first, item), _value(kind, last, item)
        if kind is WEEKDAY and last == "SUN" and low:
            high = 7  # FRI-SUN runs up to the Sunday that ends the week
        if low == high:
            raise FieldRefused(kind, item, f"both ends are equal; write '{first}' for that value alone, '*' for all")
        if low > high:
            raise FieldRefused(kind, item, f"range runs backwards; write '{_wrapped(kind, first, last, step)}'")
    else:
        low = _value(kind, body, item)
        if kind is WEEKDAY and slash:
            low %= 7
        high = kind.high if slash else low
    values = range(low, high + 1, step)
    out.values.update((v % 7 for v in values) if kind is WEEKDAY else values)


def _step(kind: Kind, item: str, text: str) -> int:
    if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) is None:
        raise FieldRefused(kind, item, f"the step after / must be a whole number; write {item.partition('/')[0]}/2")
    step = int(text)
    if step == 0:
        raise FieldRefused(kind, item, f"a step of 0 never moves on; write a step of 1 to {kind.high - kind.low}")
    if step > kind.high - kind.low:
        raise FieldRefused(
            kind,
            item,
            f"a step of {step} is larger than the field ({kind.bounds}), so it would not mean every {step} "
            f"{_PLURAL[kind.name]}; write a step of at most {kind.high - kind.low}, one value such as '{kind.low}', "
            "or an interval ('every') instead of cron",
        )
    return step


_PLURAL = {"second": "seconds", "minute": "minutes", "hour": "hours", "day-of-month": "days", "month": "months",
           "day-of-week": "days", "year": "years"}  # fmt: skip


def _wrapped(kind: Kind, first: str, last: str, step: int) -> str:
    """The list that a range over the field's end means; for years the range in order."""
    if kind is YEAR:  # years do not come round again
        return f"{last}-{first}" if step == 1 else f"{last}-{first}/{step}"
    low, high = _value(kind, first, first), _value(kind, last, last)
    if kind is WEEKDAY and low == 7:
        return f"0-{high}" if step == 1 else f"0-{high}/{step}"
    if step > 1:
        size = kind.high - kind.low + 1
        wrapped = {(v - kind.low) % size + kind.low for v in range(low, high + size + 1, step)}
        return ",".join(str(v) for v in sorted(wrapped))
    top = kind.names[-1] if kind.names and not first.isdigit() else str(kind.high)
    bottom = kind.names[0] if kind.names and not last.isdigit() else str(kind.low)
    head = first if low == kind.high else f"{first}-{top}"
    return f"{head},{last if high == kind.low else f'{bottom}-{last}'}"


def _value(kind: Kind, text: str, item: str) -> int:
    if (_YEAR_NUMBER if kind is YEAR else _NUMBER).fullmatch(text):
        value = int(text)
        if value == 7 and kind is WEEKDAY:
            return 7
        if not kind.low <= value <= kind.high:
            sunday = " (7 is Sunday too)" if kind is WEEKDAY else ""
            raise FieldRefused(kind, item, f"{value} is outside the field; write a value of {kind.bounds}{sunday}")
        return value
    if text in kind.names:
        return kind.names.index(text) + kind.low
    raise FieldRefused(kind, item, _fix(kind, text))


def _fix(kind: Kind, text: str) -> str:
    """Why text is not a value of the field, and what to write."""
    if "?" in text:
        return "? is not part of this grammar; write '*'"
    if len(text) > 3 and text.isalpha() and text[:3] in kind.names:
        return f"write the three letters '{text[:3]}'"
    if text in ("L", "LW") or re.fullmatch(r"L-?[0-9]+|[0-9]+[LW]|W", text, re.ASCII):
        return "L and W count days of a month; write " + (
            "'L', 'L-3', '15W' or 'LW'" if kind is DAY else "them in the day-of-month field, or 'LFRI' in day-of-week"
        )
    if "#" in text:
        return "# counts weekdays; write it in the day-of-week field, such as 'FRI#3'"
    if text.isdigit() or (text[:1] in "+-" and text[1:].isdigit()):
        return f"is outside the field; write a value of {kind.bounds} without signs"
    names = f", or a name of {kind.names[0]} to {kind.names[-1]}" if kind.names else ""
    return f"is not a value of the field; write one of {kind.bounds}{names}"
