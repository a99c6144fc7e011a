"""Builds the image, runs a fleet of its containers against real servers until a job has succeeded, and removes them again.

    make image-test                              # podman, and a base that debootstrap makes (as root)
    make image-test BASE=python:3.11-slim        # a base from a registry; ENGINE=docker for Docker

The containers use the host's network. Variables for the engine's own settings (CONTAINERS_CONF and the like) are passed on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rsched.client import Client
from rsched.embedded.process import free_port
from rsched.embedded.servers import Servers
from rsched.ledger.databases import ensure_database
from rsched.runtime.clock import SystemClock
from rsched.version import __version__
from tests.packaging.installed import run_once, until

ROOT = Path(__file__).parents[1]
IMAGE = "localhost/rsched:try"
OWN_BASE = "localhost/rsched-base:bookworm"
KINDS = ("recorder", "scheduler", "worker", "api")
_CLOCK = SystemClock()


class Engine:
    """The command line of podman or docker, as far as both have it."""

    def __init__(self, command: str) -> None:
        self.command = command

    def run(self, *arguments: str) -> str:
        """Returns what the command printed on its standard output; what it says on the other one is shown."""
        # Podman leaves HEALTHCHECK out of an image in its own format.
        env = os.environ | {"BUILDAH_FORMAT": "docker"}
        done = subprocess.run([self.command, *arguments], env=env, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.strip()

    @contextmanager
    def container(self, kind: str, env: dict[str, str]) -> Iterator[str]:
        """Runs `rsched KIND` in the background. Yields the container's name, and removes it at the end."""
        name = f"rsched-try-{os.getpid()}-{kind}"
        variables = [part for pair in env.items() for part in ("--env", "=".join(pair))]
        self.run("run", "--detach", "--name", name, "--network", "host", "--init=false", *variables, IMAGE, kind)
        try:
            yield name
        except BaseException:
            print(f"--- {name}\n{self.run('logs', '--tail', '20', name)}", file=sys.stderr)
            raise
        finally:
            self.run("rm", "--force", name)


def make_base(engine: Engine) -> str:
    """Makes a base image of Debian's own packages without a registry, and returns its name. It needs root, and 1 min."""
    missing = [name for name in ("debootstrap", "tar") if shutil.which(name) is None]
    if missing:
        sys.exit(f"{' and '.join(missing)}: not found; install it, or name a base image with BASE=...")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "root")
        packages = "--include=python3,python3-venv,ca-certificates"
        subprocess.run(["debootstrap", "--variant=minbase", packages, "bookworm", str(root)], check=True)
        # A network that ends TLS itself has certificates of its own on this machine; pip has to know them as well.
        own = sorted(Path("/usr/local/share/ca-certificates").glob("*.crt"))
        for certificate in own:
            shutil.copy(certificate, root / "usr/local/share/ca-certificates")
        subprocess.run(["chroot", str(root), "update-ca-certificates"], check=True)
        trust = ["--change", "ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt"] if own else []
        left_out = ["--exclude=./var/cache/apt/archives", "--exclude=./var/lib/apt/lists"]
        with subprocess.Popen(["tar", "-C", str(root), *left_out, "-c", "."], stdout=subprocess.PIPE) as tar:
            subprocess.run([engine.command, "import", *trust, "-", OWN_BASE], stdin=tar.stdout, check=True)
    return OWN_BASE


def build(engine: Engine, base: str) -> None:
    """Builds the image, and checks what its description says."""
    options = ("--network", "host", "--build-arg", f"BASE={base}", "--tag", IMAGE, "--file", "docker/Dockerfile")
    engine.run("build", *options, str(ROOT))
    image = json.loads(engine.run("inspect", IMAGE))[0]
    config = image["Config"]
    # Docker has it in the configuration, podman beside it.
    health = config.get("Healthcheck") or image.get("Healthcheck") or {}
    assert config["Entrypoint"] == ["rsched"], config
    assert config["User"] == "65534:65534", config
    assert health.get("Test") == ["CMD", "python3", "/opt/rsched/healthcheck.py"], image


def try_fleet(engine: Engine, servers: Servers) -> None:
    """Runs one container of each kind against the servers until a job over HTTP has succeeded."""
    ports = {kind: free_port() for kind in KINDS}
    env = {
        "RSCHED_REDIS_URL": servers.redis_url,
        "RSCHED_DATABASE_URL": servers.database_url,
        "RSCHED_API_PORT": str(ports["api"]),
        **{f"RSCHED_{kind.upper()}_METRICS_PORT": str(ports[kind]) for kind in KINDS if kind != "api"},
    }
    settings = [part for pair in env.items() for part in ("--env", "=".join(pair))]
    print(engine.run("run", "--rm", "--network", "host", *settings, IMAGE, "migrate"))
    with ExitStack() as stack:
        names = {kind: stack.enter_context(engine.container(kind, env)) for kind in KINDS}
        api = f"http://127.0.0.1:{ports['api']}"
        with Client(api) as client:
            until(lambda: client.ready() or None, what="the fleet is ready", within_s=60)
        said = run_once(api)
        for kind, name in names.items():
            engine.run("exec", name, "python3", "/opt/rsched/healthcheck.py")
            who = engine.run("exec", name, "python3", "-c", "import os; print(os.getuid(), os.access('/opt', os.W_OK))")
            assert who == "65534 False", who
            engine.run("stop", "--time", "10", name)
            code = engine.run("inspect", "--format", "{{.State.ExitCode}}", name)
            assert code == "0", f"{kind} ended with {code}"
            print(f"{kind}: healthy, nobody's, stopped with 0")
    print(f"a run ended as {said}")
    assert said == "SUCCEEDED"


def main(argv: Sequence[str]) -> None:
    """Builds, runs and reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="podman", help="podman (default) or docker")
    parser.add_argument("--base", default="", help="the base image; by default one is made with debootstrap")
    options = parser.parse_args(argv)
    if shutil.which(options.engine) is None:
        sys.exit(f"{options.engine}: not found; install it, or name another with ENGINE=...")
    engine = Engine(options.engine)
    build(engine, options.base or make_base(engine))
    said = engine.run("run", "--rm", IMAGE, "--version")
    assert said == f"rsched {__version__}", said
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(Path(folder), redis_url=None, database_url=None, clock=_CLOCK)
        servers.start()
        try:
            asyncio.run(ensure_database(servers.database_url))
            try_fleet(engine, servers)
        finally:
            servers.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
