"""What errors of the client and of scripts mean to callers: what passes, what people have to fix, what is a bug of ours."""

from __future__ import annotations

import re

from redis.exceptions import (
    AuthenticationError,
    NoPermissionError,
    OutOfMemoryError,
    RedisError,
    ResponseError,
)

from rsched.core.errors import NeedsFixing, Unavailable
from rsched.store.scripts import Script

# First words of the replies of a server that is there and does not serve now.
_PASSING = frozenset({
    "ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN",
    "UNBLOCKED", "UNKILLABLE",
})  # fmt: skip
# The user has lost a right: inside a script neither server has a word for it.
_DENIED_IN_SCRIPT = ("ACL failure in script", "The user executing the script can't")
# What only a changed key makes a right command answer.
_DAMAGED = (
    "hash value is not an integer",
    "increment or decrement would overflow",
    "The ID specified in XADD is equal or smaller",
)
# A script of ours stopped at what it had read: it was tried with all that it writes itself.
_STOPPED = "user_script:"
_NO_PASSWORD_SET = "without any password configured"
# As the client annotates errors of a pipeline: the command, then the reply as a tuple of one.
_IN_PIPELINE = re.compile(
    r"^Command # \d+ \((?P<command>.*?)\) of pipeline caused error: \((?P<quote>['\"])(?P<reply>.*)(?P=quote),\)$",
    re.DOTALL,
)
_IN_SCRIPT = re.compile(r" script: (?:[0-9a-f]{40}, )?on @user_script:(?P<line>\d+)\.?$")
_DENIED_FIX = (
    "let the user that RSCHED_REDIS_URL names run all commands on its keys and channels again (ACL SETUSER, or the file that"
    " ACL LOAD reads)"
)


class DamagedKey(NeedsFixing):
    """A key of another type, or with content, that no script of ours wrote."""


def _told(error: RedisError) -> tuple[str, str, str]:
    """(code, reply without it, command or "")."""
    text, command = str(error), ""
    if in_pipeline := _IN_PIPELINE.match(text):
        text, command = in_pipeline["reply"], in_pipeline["command"]
    # The client takes the word off where it has a class for it.
    code = getattr(error, "status_code", None) or ""
    if not code:
        code, _, rest = text.partition(" ")
        if not code.isupper():
            code, rest = "", text
        text = rest
    return code, text, command


def passes(error: ResponseError) -> bool:
    """Returns whether the same command may succeed later: by itself, or once people have fixed something."""
    code, reply, _ = _told(error)
    return (
        code in _PASSING
        or code == "NOPERM"
        or isinstance(error, OutOfMemoryError | NoPermissionError)
        or reply.startswith(_DENIED_IN_SCRIPT)
        or _damaged(code, reply)
    )


def _damaged(code: str, reply: str) -> bool:
    return code == "WRONGTYPE" or reply.startswith(_STOPPED) or any(words in reply for words in _DAMAGED)


def translate(error: RedisError, *, script: Script | None = None, marker: str = "") -> Unavailable:
    """Returns what a client error means to callers, all of which pass.

    Args:
        error: What the client raised.
        script: The script that ran, None for a plain command.
        marker: The key of the shard's marker, "" where it is not known.
    """
    code, reply, command = _told(error)
    if isinstance(error, OutOfMemoryError):
        return Unavailable(f"Redis is out of memory: {reply}; raise maxmemory")
    if code in _PASSING:
        return Unavailable(f"Redis does not serve now ({code}): {reply}")
    if isinstance(error, AuthenticationError):
        return _refused(code, reply)
    at, reply = _where(reply, command or " ".join(getattr(error, "__notes__", ())), script), _IN_SCRIPT.sub("", reply)
    if code == "NOPERM" or reply.startswith(_DENIED_IN_SCRIPT):
        return NeedsFixing(f"Redis does not permit it ({code}): {reply}{at}; {_DENIED_FIX}")
    if _damaged(code, reply):
        kind = "is of another type than it should be" if code == "WRONGTYPE" else "holds what it should not"
        return DamagedKey(
            f"a key in Redis {kind} ({code}): {reply}{at}; find out who wrote it, delete it, then delete"
            f" {marker or 'the marker'}, so that a recorder opens the shard again, and run `rsched reconcile`"
        )
    return Unavailable(f"Redis is away: {reply}")


def _refused(code: str, reply: str) -> NeedsFixing:
    """At the start of a connection; those that are open already go on."""
    if _NO_PASSWORD_SET in reply:
        fix = "take the password out of RSCHED_REDIS_URL and start this process again, or set it on the server (requirepass)"
    else:
        fix = (
            "give the user its password back (ACL SETUSER, or requirepass), or correct RSCHED_REDIS_URL and start this process"
            " again"
        )
    return NeedsFixing(f"Redis refuses the user or password ({code}): {reply}; {fix}")


def _where(reply: str, command: str, script: Script | None) -> str:
    """Of the command that failed, as far as it is known: its arguments, or its place in a script."""
    in_script = _IN_SCRIPT.search(reply)
    if script is None or in_script is None:
        return f" (by {command})" if command and script is None else ""
    lines = script.source.splitlines()
    number = int(in_script["line"])
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f" (by {script.header.verb}.lua: {line})"
