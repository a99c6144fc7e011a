"""Loads lua/: one file per verb, its header parsed into a typed calling convention, its includes resolved, its codes folded in.

A header is the leading comment block. Its ARGV line names the scalars and at most one trailing list of groups, e.g.
`ARGV worker:text slots:int runs:[run:text fence:int]`; from it come the Lua locals of those names (prefixed `a_`, ints
through tonumber) and the keyword arguments of the Python call, so that neither side ever counts positions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

_CODES = "codes"  # the generated part of names that are replaced by their values
_CODE_TABLE = re.compile(r"^local (\w+) = \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_CODE_ROW = re.compile(r"^  (\w+) = ('[^']*'|\d+),$", re.MULTILINE)
_INCLUDE = re.compile(r"^--include (\w+)$", re.MULTILINE)
_ARGUMENT = re.compile(r"(\w+):(int|text|\[([^\]]*)\])")
SECTIONS = ("MOVES", "KEYS", "ARGV", "REPLY", "COST")

Value = str | bytes | int
_LIBRARY = "lib"


class Header(NamedTuple):
    """What the leading comment of a script says, as types.

    Attributes:
        verb: the name of the script.
        promise: what it does, the comment up to its first section.
        moves: (source or `none`, target) of each move of a run that it makes, names of states.
        keys: the kinds of keys that it uses.
        scalars: (name, `int` or `text`) of the arguments that stand once.
        group_name: the name of the list that follows them, None without one.
        group: (name, `int` or `text`) of the values that an item of the list has.
        tags: what the first element of a reply may be.
        allow_oom: whether it may run when Redis is out of memory.
    """

    verb: str
    promise: str
    moves: frozenset[tuple[str, str]]
    keys: tuple[str, ...]
    scalars: tuple[tuple[str, str], ...]
    group_name: str | None
    group: tuple[tuple[str, str], ...]
    tags: tuple[str, ...]
    allow_oom: bool


class Script(NamedTuple):
    """A verb as Redis runs it, with the SHA-1 by which it is called."""

    header: Header
    source: str
    sha: str

    def argv(self, scalars: Mapping[str, Value], group: Iterable[Sequence[Value]] = ()) -> list[Value]:
        """Returns the positional ARGV of a call with named arguments.

        Args:
            scalars: the value of each scalar of the header, by name.
            group: the items of the list, each with its values in the header's order.

        Raises:
            TypeError: a name is missing or unknown, or an item has not as many values as the header says.
        """
        names = [name for name, _ in self.header.scalars]
        if scalars.keys() != set(names):
            raise TypeError(f"{self.header.verb} takes {names}, not {sorted(scalars)}")
        out: list[Value] = [scalars[name] for name in names]
        width = len(self.header.group)
        for item in group:
            if len(item) != width:
                raise TypeError(f"{self.header.verb}: a group has {width} values, not {len(item)}")
            out.extend(item)
        return out


def lua_folder() -> Path:
    """Returns the folder lua/ of the package if it has one, else of the checkout."""
    package = Path(__file__).parents[1]
    packaged = package / "lua"
    return packaged if packaged.is_dir() else package.parent / "lua"


def parse_header(verb: str, text: str) -> Header:
    """Reads the header of a script.

    Args:
        verb: its name.
        text: the whole text of its file.

    Raises:
        ValueError: the header lacks a section, or a scalar follows the list.
    """
    sections: dict[str, str] = {}
    current = "PROMISE"
    for line in text.split("\n"):
        if not line.startswith("--"):
            break
        words = line[2:].strip()
        first = words.split(" ", 1)[0]
        if first in SECTIONS or first == "FLAGS":
            current, words = first, words[len(first) :].strip()
        if words.startswith("include "):
            continue
        sections[current] = f"{sections.get(current, '')} {words}".strip()
    missing = [s for s in SECTIONS if s not in sections]
    if missing:
        raise ValueError(f"lua/{verb}.lua: header lacks {', '.join(missing)}")
    scalars: list[tuple[str, str]] = []
    group_name: str | None = None
    group: tuple[tuple[str, str], ...] = ()
    for name, kind, inner in _ARGUMENT.findall(sections["ARGV"]):
        if kind.startswith("["):
            group_name = name
            group = tuple((n, k) for n, k, _ in _ARGUMENT.findall(inner))
        elif group_name is None:
            scalars.append((name, kind))
        else:
            raise ValueError(f"lua/{verb}.lua: {name} follows the list {group_name}")
    moves = re.findall(r"(\w+) -> (\w+)", sections["MOVES"])
    tags = tuple(part.split()[0] for part in sections["REPLY"].split(" | "))
    return Header(
        verb,
        sections.get("PROMISE", ""),
        frozenset(moves),
        tuple(sections["KEYS"].split()),
        tuple(scalars),
        group_name,
        group,
        tags,
        "allow-oom" in sections.get("FLAGS", ""),
    )


def _prelude(header: Header) -> str:
    lines = []
    for i, (name, kind) in enumerate(header.scalars, 1):
        lines.append(f"local a_{name} = " + (f"tonumber(ARGV[{i}])" if kind == "int" else f"ARGV[{i}]"))
    if header.group_name:
        lines.append(f"local group_at, group_width = {len(header.scalars) + 1}, {len(header.group)}")
    return "\n".join(lines)


def _includes(folder: Path, text: str, seen: list[str], path: tuple[str, ...]) -> list[str]:
    out = []
    for name in _INCLUDE.findall(text):
        if name in path:
            raise ValueError(f"lua/lib: include cycle {' -> '.join((*path, name))}")
        if name in seen:
            continue
        body = (folder / _LIBRARY / f"{name}.lua").read_text()
        out += _includes(folder, body, seen, (*path, name))
        seen.append(name)
        if name != _CODES:
            out.append(_strip(body))
    return out


def _strip(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("--"))


@cache
def _codes(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Returns the tables of lua/lib/codes.lua: table -> name -> Lua literal."""
    text = (folder / _LIBRARY / f"{_CODES}.lua").read_text()
    return {name: dict(_CODE_ROW.findall(rows)) for name, rows in _CODE_TABLE.findall(text)}


def _fold(folder: Path, source: str) -> str:
    """Puts the value in the place of each name of a code, `'Q'` for `STATE.QUEUED`: what Lua would look up in each call."""
    codes = _codes(folder)

    def value(match: re.Match[str]) -> str:
        table, name = match.groups()
        if name not in codes[table]:
            raise ValueError(f"lua/lib/{_CODES}.lua has no {table}.{name}")
        return codes[table][name]

    return re.sub(rf"(?<![\w.])({'|'.join(codes)})\.(\w+)", value, source)


def source_of(folder: Path, text: str, *, prelude: str = "") -> str:
    """Returns the source of a piece of Lua with all that it includes in front of it, and codes in place of their names.

    Args:
        folder: the folder lua/.
        text: the piece, with its `--include` lines.
        prelude: Lua between what is included and the piece.

    Raises:
        ValueError: includes go in a circle, or a code has no such name.
    """
    parts = [*_includes(folder, text, [], ()), prelude, _strip(text)]
    return _fold(folder, "\n".join(p for p in parts if p) + "\n")


@cache
def _files(folder: Path) -> dict[str, Path]:
    """Returns the file of each verb; folders only say what a verb is for, so that a name stands once."""
    files: dict[str, Path] = {}
    for file in sorted(folder.rglob("*.lua")):
        if file.parent.name != _LIBRARY and files.setdefault(file.stem, file) != file:
            raise ValueError(f"{file}: there is a verb of this name in {files[file.stem].parent.name}, too")
    return files


def verb_file(verb: str) -> Path:
    """Returns the file of a verb.

    Raises:
        KeyError: there is no such verb.
    """
    return _files(lua_folder())[verb]


def compose(folder: Path, verb: str, *, shebang: bool = True) -> Script:
    """Reads a verb and puts its whole source together.

    Args:
        folder: the folder lua/.
        verb: the name of the verb.
        shebang: whether the source begins with the line `#!lua`, which fakeredis does not know.

    Raises:
        KeyError: there is no such verb.
        ValueError: its header is incomplete, its includes go in a circle, or it names a code that is not declared.
    """
    text = _files(folder)[verb].read_text()
    header = parse_header(verb, text)
    source = source_of(folder, text, prelude=_prelude(header))
    if shebang:
        source = "#!lua" + (" flags=allow-oom" if header.allow_oom else "") + "\n" + source
    return Script(header, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


@cache
def load(verb: str, *, shebang: bool = True) -> Script:
    """Returns a verb of the packaged folder, read once in a process; see `compose`."""
    return compose(lua_folder(), verb, shebang=shebang)


def verbs() -> list[str]:
    """Returns the names of all verbs, in alphabetical order."""
    return sorted(_files(lua_folder()))
