"""rsched: a Redis-native job scheduler. Names are loaded when first used, so that `import rsched` costs next to nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rsched.version import __version__

if TYPE_CHECKING:
    from rsched.client import AsyncClient as AsyncClient
    from rsched.client import Client as Client
    from rsched.core.errors import RschedError as RschedError
    from rsched.worker.app import Worker as Worker
    from rsched.worker.context import JobContext as JobContext

__all__ = ["AsyncClient", "Client", "JobContext", "RschedError", "Worker", "__version__"]

_HOME = {
    "AsyncClient": "rsched.client",
    "Client": "rsched.client",
    "JobContext": "rsched.worker.context",
    "RschedError": "rsched.core.errors",
    "Worker": "rsched.worker.app",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'rsched' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
