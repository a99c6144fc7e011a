"""Decides how to run Postgres for root, which Postgres refuses: in a user namespace, or as another user."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rsched.core.errors import Misconfigured

_CLONE_NEWUSER = 0x10000000
_NOBODY = 65534


class Identity(NamedTuple):
    """As whom a server runs.

    Attributes:
        uid: The user who owns the data folder; None for the current one.
        gid: The group that owns it; None for the current one.
        options: Further arguments of Popen.
        enter: What the child calls first.
    """

    uid: int | None
    gid: int | None
    options: dict[str, Any]
    enter: Callable[[], None]


def _nothing() -> None:
    return


def _enter_namespace() -> None:
    """Enters a namespace with uid 65534; outside all files stay root's, so that no parent folder needs other rights."""
    if ctypes.CDLL(None).unshare(_CLONE_NEWUSER) != 0:
        os._exit(126)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{_NOBODY} 0 1"), ("gid_map", f"{_NOBODY} 0 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _namespace_works() -> bool:
    if sys.platform != "linux":
        return False
    try:
        done = subprocess.run(["/bin/true"], preexec_fn=_enter_namespace, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def identity_for(data: Path) -> Identity:
    """Returns how to run Postgres on this data folder; an existing folder's owner tells how it was made.

    Raises:
        Misconfigured: Root can run it in neither way, with the fix.
    """
    ourselves = Identity(None, None, {}, _nothing)
    if os.geteuid() != 0:
        return ourselves
    version = data / "PG_VERSION"
    owner = version.stat().st_uid if version.exists() else None
    if owner in (None, 0) and _namespace_works():
        return ourselves._replace(enter=_enter_namespace)
    if owner == 0:
        raise Misconfigured(
            f"{data} was made in a user namespace, and none can be made here; use another --data-dir, or set"
            " RSCHED_DATABASE_URL"
        )
    user = pwd.getpwuid(owner) if owner is not None else _unprivileged()
    return Identity(
        user.pw_uid,
        user.pw_gid,
        {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []},
        _nothing,
    )


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            pass
    raise Misconfigured(
        "Postgres does not run as root and there is no user postgres or nobody; set RSCHED_DATABASE_URL"
    )


def give_to_owner(path: Path, identity: Identity) -> None:
    """Makes whoever runs Postgres the owner of a file or folder."""
    if identity.uid is not None:
        shutil.chown(path, identity.uid, identity.gid)
