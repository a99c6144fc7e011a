"""What is published works where there is no checkout: the wheel, and a wheel that is built from the sdist alone."""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rsched.embedded.children import alive
from rsched.version import __version__
from tests.packaging.installed import ROOT, Installed, Up, build, build_from_sdist, run_once

# Two environments are made and filled from a package index.
pytestmark = [pytest.mark.packaging, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("sdist"), kind="sdist")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory, sdist: Path) -> dict[str, Path]:
    return {
        "wheel": build(ROOT, tmp_path_factory.mktemp("wheel"), kind="wheel"),
        "sdist": build_from_sdist(sdist, tmp_path_factory.mktemp("unpacked")),
    }


@pytest.fixture(scope="module", params=["wheel", "sdist"])
def installed(request: pytest.FixtureRequest, wheels: dict[str, Path]) -> Iterator[Installed]:
    # Not below pytest's folder, which is root's alone: a Postgres that gives up root's rights has to reach its programs.
    base = Path(tempfile.mkdtemp(prefix="rsched-installed-"))
    base.chmod(0o755)
    yield Installed(base / "env", wheels[request.param], extra="embedded")
    shutil.rmtree(base)


def _below(folder: Path, pattern: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in folder.rglob(pattern) if path.is_file()}


def test_the_wheel_has_every_script_migration_and_type_and_nothing_else(wheels: dict[str, Path]) -> None:
    wheel = wheels["wheel"]
    assert wheel.name == f"rsched-{__version__}-py3-none-any.whl"
    held = set(zipfile.ZipFile(wheel).namelist())
    scripts = _below(ROOT / "lua", "*.lua")
    modules = _below(ROOT / "rsched", "*.py") | {p.removeprefix("api/") for p in _below(ROOT / "api", "*.py")}
    assert len(scripts) > 50
    wanted = {f"rsched/{path}" for path in scripts} | modules | _below(ROOT / "rsched", "*.sql") | {"rsched/py.typed"}
    meta = f"rsched-{__version__}.dist-info"
    assert held - wanted == {
        f"{meta}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    }
    assert wanted - held == set()


def test_the_sdist_builds_the_same_wheel_and_carries_the_licence(sdist: Path, wheels: dict[str, Path]) -> None:
    top = f"rsched-{__version__}"
    with tarfile.open(sdist) as archive:
        names = {name.removeprefix(f"{top}/") for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "constraints.txt", "pyproject.toml", "PKG-INFO"} <= names
    assert {name.split("/")[0] for name in names if "/" in name} == {"rsched", "api", "lua"}

    def contents(wheel: Path) -> dict[str, int]:
        return {info.filename: info.CRC for info in zipfile.ZipFile(wheel).infolist()}

    assert contents(wheels["sdist"]) == contents(wheels["wheel"])


def test_the_installed_command_says_its_version(installed: Installed, tmp_path: Path) -> None:
    assert installed.run("--version", cwd=tmp_path) == f"rsched {__version__}\n"
    code = "import importlib.metadata, rsched; print(importlib.metadata.version('rsched'), rsched.__file__)"
    version, module = installed.python(code, cwd=tmp_path).split()
    assert version == __version__
    assert Path(module).is_relative_to(installed.bin.parent)


def test_the_installed_command_computes_occurrences(installed: Installed, tmp_path: Path) -> None:
    said = json.loads(installed.run("next", "0 2 * * *", "--from", "2027-01-01T00:00:00Z", "--json", cwd=tmp_path))
    assert said["occurrences"][0]["utc"] == "2027-01-01T02:00:00Z"


def test_rsched_up_runs_a_job_from_an_empty_folder_and_leaves_nothing(installed: Installed) -> None:
    folder = installed.bin.parent.with_name("empty")
    folder.mkdir()
    up = Up(installed, folder)
    try:
        said = up.wait_ready()
        pids = [process["pid"] for process in said["processes"]]
        assert run_once(said["api"]) == "SUCCEEDED"
    finally:
        code = up.stop()
    assert code == 0
    assert [pid for pid in pids if alive(pid)] == []
