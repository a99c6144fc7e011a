"""The policies of a job: what happens to late, failed and overlapping runs, and which go first.

Each choice that a record keeps as a letter has one row in a table here; records, scripts (through tools/lua_codes.py), the
API's schema and the CLI's help follow from the tables.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import msgspec

from rsched.core.durations import Duration, parse_duration
from rsched.core.options import option

MisfirePolicy = Literal["run_once", "run_all", "skip"]
Overlap = Literal["allow", "skip", "queue_one", "queue_all", "cancel_running"]
Priority = Literal["high", "normal", "low"]
# Where a change has to be before it is answered: postgres survives the total loss of Redis, redis does not.
Ack = Literal["postgres", "redis"]


class Policy(NamedTuple):
    """One choice of a policy.

    Attributes:
        name: As people write it.
        code: The character that stands for it in records, in queue keys and in scripts.
        does: What it does, as the end of a sentence.
    """

    name: str
    code: str
    does: str


MISFIRE_POLICIES: tuple[Policy, ...] = (
    Policy("run_once", "o", "one run for the latest late occurrence, the others are skipped"),
    Policy("run_all", "a", "one run for each late occurrence"),
    Policy("skip", "s", "none of them runs"),
)
# A new policy: its name in Overlap above, its row here, and its part in lua/lib/overlap_decide.lua.
OVERLAP_POLICIES: tuple[Policy, ...] = (
    Policy("allow", "", "runs start beside one another"),
    Policy("skip", "s", "a run that comes while another is active is skipped"),
    Policy("queue_one", "q", "one run waits for the active one, further ones are skipped"),
    Policy("queue_all", "w", "runs wait for the active one, in their order"),
    Policy("cancel_running", "k", "a new run asks the active one to stop and starts after it"),
)
PRIORITIES: tuple[Policy, ...] = (
    Policy("high", "0", "fetched before all others"),
    Policy("normal", "1", "fetched before low"),
    Policy("low", "2", "fetched when nothing else waits"),
)
PRIORITY_CODE: dict[str, str] = {policy.name: policy.code for policy in PRIORITIES}


def names_of(policies: tuple[Policy, ...], default: str) -> str:
    """Returns the names for a sentence, such as "run_once (default), run_all or skip"."""
    named = [f"{p.name} (default)" if p.name == default else p.name for p in policies]
    return f"{', '.join(named[:-1])} or {named[-1]}"


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a failed run is attempted again; rsched.core.retry computes the delay.

    Attributes:
        max_attempts: Before a run is DEAD, 1 to 100.
        backoff: exponential: base times factor for each attempt that failed; fixed: base.
        base: The delay after the first failure.
        factor: By what the delay grows, 1 to 100.
        cap: The longest delay.
        jitter: full: a random part of the delay; none: all of it.
    """

    max_attempts: Annotated[
        int, option("--max-attempts", text="Before a run is DEAD, by default 3.", reads="integer")
    ] = 3
    backoff: Literal["exponential", "fixed"] = "exponential"
    base: Duration = "1s"
    factor: float = 2
    cap: Duration = "10m"
    jitter: Literal["full", "none"] = "full"

    @property
    def base_ms(self) -> int:
        """The delay after the first failure (ms)."""
        return parse_duration(self.base)

    @property
    def cap_ms(self) -> int:
        """The longest delay (ms)."""
        return parse_duration(self.cap)


class Misfire(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When an occurrence counts as missed.

    Attributes:
        grace: An occurrence later than this is a misfire.
        catchup_window: One that was missed longer ago is skipped on record, whatever the policy; None: however long ago.
    """

    grace: Annotated[Duration, option("--grace", text="Later than this is late, by default 60s.", reads="length")] = (
        "60s"
    )
    catchup_window: Annotated[
        Duration | None,
        option(
            "--catchup-window",
            text="What was missed longer ago is skipped, such as 7d; by default nothing.",
            reads="length",
        ),
    ] = None
