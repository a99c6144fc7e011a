"""Asks the container's process whether it answers: the API by /healthz, the others by /metrics. Exits with 1 if it does not.

What process it is stands in the command line of process 1, its port in the same variables that the process reads.
"""

import os
import sys
import urllib.request
from pathlib import Path

KINDS = {
    "api": ("RSCHED_API_PORT", "8080", "/healthz"),
    "scheduler": ("RSCHED_SCHEDULER_METRICS_PORT", "0", "/metrics"),
    "worker": ("RSCHED_WORKER_METRICS_PORT", "0", "/metrics"),
    "recorder": ("RSCHED_RECORDER_METRICS_PORT", "0", "/metrics"),
}


def main() -> int:
    """Returns the exit code. A process without a port to ask is taken as healthy while it lives."""
    arguments = Path("/proc/1/cmdline").read_text().split("\0")
    kind = next((argument for argument in arguments if argument in KINDS), None)
    if kind is None:
        return 0
    variable, default, path = KINDS[kind]
    port = os.environ.get(variable, default)
    if port == "0":
        return 0
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=4) as answer:
            answer.read()
    except OSError as error:
        print(f"{kind} does not answer on port {port}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
