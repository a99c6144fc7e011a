"""How a field of a job is given as an option of a command line: declared beside the field, read by the CLI."""

from __future__ import annotations

from typing import Literal, NamedTuple

# What a command makes of the text that was typed.
#   text: as it is; upper: in capitals; integer; texts: a list, the option stands any number of times;
#   headers: a mapping, `Name: value` any number of times; json: JSON, or @file; length: a duration, digits alone are
#   seconds; seconds: a duration, sent as a number of seconds.
Reads = Literal["text", "upper", "integer", "texts", "headers", "json", "length", "seconds"]


class Option(NamedTuple):
    """An option of the command line, as an annotation of the field that it gives.

    Attributes:
        help: A sentence for `--help`.
        flags: The option and other spellings of it, such as `--tz`.
        reads: What is made of its text.
    """

    help: str
    flags: tuple[str, ...]
    reads: Reads = "text"


def option(*flags: str, text: str, reads: Reads = "text") -> Option:
    """Returns the annotation of a field that a command line can give.

    Args:
        flags: The option, such as `--tz`, and other spellings of it.
        text: A sentence for `--help`.
        reads: What is made of the text that was typed.
    """
    return Option(text, flags, reads)
