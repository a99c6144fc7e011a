"""What the API answers, as server and client know it: import these names from here.

jobs, runs and schedules are what is looked at; changes is what a request to many of them did.
"""

from __future__ import annotations

from rsched.core.answers.changes import BackfillView, BulkAnswer, BulkFailure, BulkItem
from rsched.core.answers.jobs import JobView, MisfireView, PauseView, RetryView
from rsched.core.answers.runs import AttemptView, RunView
from rsched.core.answers.schedules import (
    CalendarView,
    Flattened,
    ForecastView,
    Occurrence,
    Preview,
    SkipView,
    SpikeView,
    TeamForecast,
)

__all__ = [
    "AttemptView",
    "BackfillView",
    "BulkAnswer",
    "BulkFailure",
    "BulkItem",
    "CalendarView",
    "Flattened",
    "ForecastView",
    "JobView",
    "MisfireView",
    "Occurrence",
    "PauseView",
    "Preview",
    "RetryView",
    "RunView",
    "SkipView",
    "SpikeView",
    "TeamForecast",
]
