"""Where the API is, and what the errors of the HTTP library mean for whoever called it."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from pyreqwest.client import BaseClientBuilder
from pyreqwest.exceptions import ClientClosedError, DetailedPyreqwestError, PyreqwestError, RequestTimeoutError

from rsched.client.attempts import BrokenOff
from rsched.core.errors import Misconfigured, RschedError, Unavailable
from rsched.runtime.clock import SystemClock
from rsched.version import __version__

B = TypeVar("B", bound=BaseClientBuilder)
_SETTLE_MS = 50.0
_CERTIFICATE = "BEGIN CERTIFICATE"


class Server(NamedTuple):
    """The API as a client reaches it.

    Args:
        url: Scheme, host, port and, behind a proxy, the path that comes first; no slash at the end.
        timeout_s: Seconds to connect, and seconds without a byte of the answer, before a try has failed.
        headers: Sent with every request.
        ca_file: A file of PEM certificates that are trusted beside the system's; None for these alone.
        max_connections: Open at once; more requests wait for one.
    """

    url: str
    timeout_s: float
    headers: Mapping[str, str]
    ca_file: str | Path | None
    max_connections: int

    def configure(self, builder: B) -> B:
        """Sets the builder of a client up for this server.

        Raises:
            Misconfigured: The file of certificates cannot be read.
        """
        patience = timedelta(seconds=self.timeout_s)
        builder = builder.connect_timeout(patience).read_timeout(patience).max_connections(self.max_connections)
        builder = builder.follow_redirects(False).no_proxy().user_agent(f"rsched-python/{__version__}")
        builder = builder.default_headers({"Accept": "application/json", **self.headers})
        return builder if self.ca_file is None else builder.add_root_certificate_pem(_certificates(self.ca_file))

    def error(self, raised: PyreqwestError) -> RschedError:
        """Tells what an error of the library is here.

        Raises:
            RuntimeError: The client was closed.
        """
        if isinstance(raised, ClientClosedError):
            raise RuntimeError("this client is closed") from None
        causes = _causes(raised)
        last = causes[-1] if causes else raised.message
        if "certificate" in last:
            return Misconfigured(f"{self.url}: {last}; pass a ca_file that has the certificate of who signed it")
        if isinstance(raised, RequestTimeoutError):
            last = f"no answer in {self.timeout_s:g} s"
        kind = BrokenOff if "client error (SendRequest)" in causes else Unavailable
        return kind(f"{self.url} does not answer ({last}); is `rsched api` or `rsched up` running?")


def settle_at_exit() -> None:
    """Lets the library's thread hand its last answer over before the interpreter ends.

    Its thread may still hold Python's lock for an instant after an awaited call has returned; a program that ends in that instant
    is aborted (seen with 0.15.1: PyGILState_Release). Registered by the async way alone; the sync one has no such thread.
    """
    atexit.unregister(_settle)
    atexit.register(_settle)


def _settle() -> None:
    SystemClock().sleep_sync(_SETTLE_MS)


def address(base_url: str) -> str:
    """Gives the URL without the slash at its end.

    Raises:
        Misconfigured: It is no URL of an API.
    """
    try:
        parts = urlsplit(base_url)
        _ = parts.port
    except ValueError:
        raise Misconfigured(f"{base_url!r} is not a URL; write http://127.0.0.1:8080") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Misconfigured(
            f"the API's URL must be http:// or https://, such as http://127.0.0.1:8080, not {base_url!r}"
        )
    return base_url.rstrip("/")


def _certificates(path: str | Path) -> bytes:
    try:
        text = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise Misconfigured(f"ca_file {str(path)!r}: {error.strerror}") from None
    if _CERTIFICATE.encode() not in text:
        raise Misconfigured(f"ca_file {str(path)!r} has no certificate in PEM; it must say {_CERTIFICATE}")
    return text


def _causes(raised: PyreqwestError) -> list[str]:
    if not isinstance(raised, DetailedPyreqwestError):
        return []
    return [cause["message"] for cause in raised.details["causes"] or ()]
