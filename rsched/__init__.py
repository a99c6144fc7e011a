"""rsched: a Redis-native job scheduler. Names are loaded when first used, so that `import rsched` costs next to nothing.

`Client` and `AsyncClient` are the API as methods; `App` and `JobContext` are what the Python functions of a worker are written
with; the error classes form one tree under `RschedError`, each with a stable `code` and whether a repeat may help (`retryable`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rsched.version import __version__

if TYPE_CHECKING:
    from rsched.client import AsyncClient as AsyncClient
    from rsched.client import Client as Client
    from rsched.client import JobFilter as JobFilter
    from rsched.client import JobOptions as JobOptions
    from rsched.client import Page as Page
    from rsched.client import Preview as Preview
    from rsched.core.answers import JobView as JobView
    from rsched.core.answers import RunView as RunView
    from rsched.core.errors import Conflict as Conflict
    from rsched.core.errors import DurabilityUnknown as DurabilityUnknown
    from rsched.core.errors import FieldError as FieldError
    from rsched.core.errors import Invalid as Invalid
    from rsched.core.errors import Misconfigured as Misconfigured
    from rsched.core.errors import NotFound as NotFound
    from rsched.core.errors import Rejected as Rejected
    from rsched.core.errors import RschedError as RschedError
    from rsched.core.errors import ShardClosed as ShardClosed
    from rsched.core.errors import TooLarge as TooLarge
    from rsched.core.errors import Unavailable as Unavailable
    from rsched.core.errors import VersionConflict as VersionConflict
    from rsched.core.jobs.model import FunctionTarget as FunctionTarget
    from rsched.core.jobs.model import HttpTarget as HttpTarget
    from rsched.core.jobs.model import JobSpec as JobSpec
    from rsched.core.jobs.model import RetryPolicy as RetryPolicy
    from rsched.core.jobs.model import ScheduleSpec as ScheduleSpec
    from rsched.worker.app import App as App
    from rsched.worker.app import Worker as Worker
    from rsched.worker.context import JobContext as JobContext


_NAMES = {
    "rsched.client": ("AsyncClient", "Client", "JobFilter", "JobOptions", "Page", "Preview"),
    "rsched.core.errors": (
        "Conflict", "DurabilityUnknown", "FieldError", "Invalid", "Misconfigured", "NotFound", "Rejected", "RschedError",
        "ShardClosed", "TooLarge", "Unavailable", "VersionConflict",
    ),
    "rsched.core.answers": ("JobView", "RunView"),
    "rsched.core.jobs.model": ("FunctionTarget", "HttpTarget", "JobSpec", "RetryPolicy", "ScheduleSpec"),
    "rsched.worker.app": ("App", "Worker"),
    "rsched.worker.context": ("JobContext",),
}  # fmt: skip
_HOME = {name: home for home, names in _NAMES.items() for name in names}
__all__ = [
    "App",
    "AsyncClient",
    "Client",
    "Conflict",
    "DurabilityUnknown",
    "FieldError",
    "FunctionTarget",
    "HttpTarget",
    "Invalid",
    "JobContext",
    "JobFilter",
    "JobOptions",
    "JobSpec",
    "JobView",
    "Misconfigured",
    "NotFound",
    "Page",
    "Preview",
    "Rejected",
    "RetryPolicy",
    "RschedError",
    "RunView",
    "ScheduleSpec",
    "ShardClosed",
    "TooLarge",
    "Unavailable",
    "VersionConflict",
    "Worker",
    "__version__",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'rsched' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
