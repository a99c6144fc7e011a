"""Backoff: when the next attempt of a failed run is due."""

from __future__ import annotations

import random

from rsched.core.jobs.policies import RetryPolicy


def backoff_ms(policy: RetryPolicy, attempt: int, rng: random.Random) -> int:
    """Returns how long (ms) after the end of a failed attempt the next one is due.

    base * factor^(attempt - 1), at most cap; with full jitter uniform in 0..that, so that a crowd which failed together
    does not come back together. Source: "Exponential Backoff and Jitter" (AWS Architecture Blog, 2015), full jitter.

    Args:
        policy: Of the job.
        attempt: The number of the attempt that failed, from 1.
        rng: Where the jitter comes from.
    """
    base, cap = policy.base_ms, policy.cap_ms
    if policy.backoff == "fixed":
        delay = float(base)
    else:
        try:
            delay = base * policy.factor ** (attempt - 1)
        except OverflowError:  # as of 100.0^300, which is past any cap
            delay = float(cap)
    delay = min(delay, cap)
    if policy.jitter == "full":
        delay = rng.uniform(0, delay)
    return int(delay)
