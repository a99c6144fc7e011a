"""A recorder that kills itself at a named point of its work."""

from __future__ import annotations

import signal

from tests.faults.fault_run import Run


async def die_at(run: Run, point: str, *, passing: int = 1) -> None:
    """A recorder in place of the present one comes as far as the point."""
    name = f"recorder-{point}"
    run.fleet.start(name, env={"RSCHED_FAULTS": f"{point}:{passing}"})
    process = run.fleet.processes.pop(name)

    async def dead() -> bool:
        return process.poll() is not None

    try:
        await run.fleet.until(dead, what=f"the end at {point}", within_s=30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == -signal.SIGKILL, f"{point}: {run.fleet.log(name)[-2000:]}"
