"""Backoff: when the next attempt of a failed run is due."""

from __future__ import annotations

import random

from rsched.core.jobs.policies import RetryPolicy


def backoff_ms(policy: RetryPolicy, attempt: int, rng: random.Random) -> int:
    """Delay in ms between the end of the failed `attempt` (from 1) and the next.

    base * factor^(attempt - 1), at most cap; with full jitter uniform in 0..that, so that a crowd which failed together
    does not come back together (source: the "full jitter" of exponential backoff and jitter).
    """
    base, cap = policy.base_ms, policy.cap_ms
    if policy.backoff == "fixed":
        delay = float(base)
    else:
        # Clamped before the power: factor^300 overflows, and past this exponent the cap holds anyway.
        exponent = min(attempt - 1, 64)
        try:
            delay = base * policy.factor**exponent
        except OverflowError:
            delay = float(cap)
    delay = min(delay, cap)
    if policy.jitter == "full":
        delay = rng.uniform(0, delay)
    return int(delay)
