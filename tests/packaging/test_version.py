"""The version is written once, in rsched/version.py; whatever else shows it reads it there."""

from __future__ import annotations

import json
import re
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from rsched_api.openapi import render
from typer.testing import CliRunner

from rsched import Client, __version__
from rsched.cli.main import app

ROOT = Path(__file__).parents[2]
# Where the number may stand as text: its own place, what is generated from it, and what tells about releases.
_MAY_NAME_IT = {"rsched/version.py", "api/openapi.json", "CHANGELOG.md"}
_FOLDERS = ("rsched", "api", "bench", "tests", "tools", "docs", "docker", ".github", "lua")
_FILES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml", "Makefile", ".pre-commit-config.yaml")
_TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".lua", ".sql", ".sh", ""}


def test_the_version_is_a_release_number() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", __version__)


def test_the_build_reads_the_version_from_the_package() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in pyproject["project"]
    assert pyproject["project"]["dynamic"] == ["version"]
    assert pyproject["tool"]["hatch"]["version"]["path"] == "rsched/version.py"


def test_the_command_shows_the_version() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output.strip()) == (0, f"rsched {__version__}")


def test_the_description_of_the_api_carries_the_version() -> None:
    assert json.loads(render())["info"]["version"] == __version__


def test_the_sdk_names_its_version_to_the_api() -> None:
    agents: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            agents.append(self.headers["User-Agent"])
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            with Client(f"http://127.0.0.1:{server.server_port}", retry_for_s=0) as client:
                assert client.is_ready() is False
        finally:
            server.shutdown()
            serving.join()
    assert agents == [f"rsched-python/{__version__}"]


def test_the_newest_section_of_the_changelog_is_this_version() -> None:
    titles = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert titles[0] == __version__


def test_no_other_file_repeats_the_version() -> None:
    number = re.compile(rf"(?<![\w.=~^<>-]){re.escape(__version__)}(?![\w.])")
    files = [ROOT / name for name in _FILES]
    files += [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in _TEXT]
    searched = {path.relative_to(ROOT).as_posix(): path for path in files if path.is_file()}
    assert searched.keys() >= _MAY_NAME_IT - {"CHANGELOG.md"}
    repeating = {name for name, path in searched.items() if number.search(path.read_text())}
    assert repeating <= _MAY_NAME_IT
