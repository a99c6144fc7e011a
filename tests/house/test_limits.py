"""How large things may be: files of 400 lines, functions of 60 lines, 8 parameters.

What is over a limit today stands below with its size. These lists only shrink: an entry that is not over its limit any more
fails as well, and so does one that has grown.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_LINES, MAX_FUNCTION_LINES, MAX_PARAMETERS = 400, 60, 8
_SUFFIXES = {".py", ".lua", ".sql"}
_BUILT = {"build", "dist", "__pycache__", "node_modules"}
_GENERATED = re.compile(r'(#|--|""")\s*Generated\b')
_LUA_FUNCTION = re.compile(r"(\s*)(?:local\s+)?function\s+([\w.:]+)\s*\(([^)]*)\)")

LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {
    "tests/sim/test_year.py test_every_occurrence_has_one_run_or_one_recorded_skip": 107,
    "tests/store/test_headers.py test_every_script_has_a_method_that_calls_it_with_its_own_arguments": 61,
}
MANY_PARAMETERS: dict[str, int] = {
    "rsched/cli/control.py delete": 10,
    "rsched/cli/control.py pause": 12,
    "rsched/cli/control.py resume": 10,
    "rsched/cli/create.py create": 9,
    "rsched/cli/jobs.py list_jobs": 9,
    "rsched/embedded/supervisor.py __init__": 9,
    "rsched/recorder/stream.py __init__": 9,
    "rsched/scheduler/claim.py __init__": 9,
    "rsched/worker/runtime.py __init__": 10,
}


def _sources() -> Iterator[tuple[str, str]]:
    """Yields (path below the root, text) of every source file that was written by hand."""
    for folder, inner, names in os.walk(ROOT):
        inner[:] = sorted(name for name in inner if name not in _BUILT and not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix in _SUFFIXES:
                text = path.read_text(encoding="utf-8")
                if not _GENERATED.match(text):
                    yield path.relative_to(ROOT).as_posix(), text


def _python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields (name, lines, parameters) of each function; *args, **kwargs and an Unpack count as one each, self as none."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            a = node.args
            positional = [*a.posonlyargs, *a.args]
            if positional and positional[0].arg in ("self", "cls"):
                del positional[0]
            parameters = len(positional) + len(a.kwonlyargs) + (a.vararg is not None) + (a.kwarg is not None)
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1, parameters


def _lua_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields (name, lines, parameters) of each named function; it ends at the `end` that stands as deep as its beginning."""
    lines = text.splitlines()
    for start, line in enumerate(lines):
        if found := _LUA_FUNCTION.match(line):
            indent, name, parameters = found.groups()
            end = start
            if not re.search(r"\bend\s*$", line):
                end = next(n for n in range(start + 1, len(lines)) if re.match(rf"{indent}end\b", lines[n]))
            yield name, end - start + 1, len([p for p in parameters.split(",") if p.strip()])


def _measure() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Returns what is over each limit: files, functions by their lines, functions by their parameters."""
    files: dict[str, int] = {}
    long: dict[str, int] = {}
    wide: dict[str, int] = {}
    for path, text in _sources():
        if (lines := len(text.splitlines())) > MAX_LINES:
            files[path] = lines
        if path.endswith(".sql"):
            continue
        for name, lines, parameters in _python_functions(text) if path.endswith(".py") else _lua_functions(text):
            key = f"{path} {name}"
            if lines > MAX_FUNCTION_LINES:
                long[key] = max(lines, long.get(key, 0))
            if parameters > MAX_PARAMETERS:
                wide[key] = max(parameters, wide.get(key, 0))
    return files, long, wide


@pytest.fixture(scope="module")
def over() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    return _measure()


@pytest.mark.parametrize(
    ("place", "allowed"),
    [(0, LONG_FILES), (1, LONG_FUNCTIONS), (2, MANY_PARAMETERS)],
    ids=["files of 400 lines", "functions of 60 lines", "functions of 8 parameters"],
)
def test_nothing_is_over_its_limit_but_what_is_listed(
    over: tuple[dict[str, int], dict[str, int], dict[str, int]], place: int, allowed: dict[str, int]
) -> None:
    measured = over[place]
    assert {k: n for k, n in measured.items() if n > allowed.get(k, 0)} == {}, "new or grown: make it smaller"
    assert {k: n for k, n in allowed.items() if n != measured.get(k)} == {}, "shrunk: correct or remove the entry above"


def test_all_sources_are_looked_at() -> None:
    suffixes = {path.rsplit(".", 1)[1] for path, _ in _sources()}
    folders = {path.split("/", 1)[0] for path, _ in _sources()}
    assert suffixes == {"py", "lua", "sql"}
    assert folders >= {"rsched", "api", "bench", "lua", "tests"}


def test_a_function_of_each_language_is_measured() -> None:
    python = "class A:\n    def f(self, a, /, b, *c, d, **e):\n        return (\n            a,\n        )\n"
    assert list(_python_functions(python)) == [("f", 4, 5)]
    lua = "local function f(a, b)\n  if a then\n    b()\n  end\nend\nlocal function g() return 1 end\n"
    assert list(_lua_functions(lua)) == [("f", 5, 2), ("g", 1, 0)]
