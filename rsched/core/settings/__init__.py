"""Every setting of every kind of process, for everybody outside this package: import these names from here.

Authority: kinds declares each setting once, with its unit, default, bounds and reason; options, variables, the settings
file and `rsched doctor` follow from there. Trusts: nothing that it is given; text is converted and held against its
bounds, and settings against one another. Fails: Misconfigured names the option, variable or line and says the fix.
"""

from __future__ import annotations

from rsched.core.settings.effective import Effective, effective
from rsched.core.settings.kinds import (
    KINDS,
    ApiSettings,
    Measured,
    RecorderSettings,
    SchedulerSettings,
    Settings,
    WorkerSettings,
)
from rsched.core.settings.loading import load
from rsched.core.settings.shown import mask
from rsched.core.settings.variables import ENV_PREFIX, config_path, kind_of, unknown_variables, variable

__all__ = [
    "ENV_PREFIX",
    "KINDS",
    "ApiSettings",
    "Effective",
    "Measured",
    "RecorderSettings",
    "SchedulerSettings",
    "Settings",
    "WorkerSettings",
    "config_path",
    "effective",
    "kind_of",
    "load",
    "mask",
    "unknown_variables",
    "variable",
]
