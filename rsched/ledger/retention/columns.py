"""The columns of the archive's files: what people read in Postgres, with instants as ms since 1970."""

from __future__ import annotations


def _instant(name: str) -> tuple[str, str, str]:
    return name, "bigint", f"ms_of(t.{name})"


_RUN_ID = ("run_id", "text", "run_id_of(t.job_id, t.scheduled_at, t.manual)")
# name, type, expression over a row t of the leaving table and what it names.
COLUMNS: dict[str, list[tuple[str, str, str]]] = {
    "runs": [
        ("claimed_on", "date", "t.claimed_on"), _RUN_ID, ("job_id", "text", "t.job_id"), ("team", "text", "q.team"),
        ("queue", "text", "q.queue"), ("priority", "text", "q.priority"), ("status", "text", "t.status"),
        ("attempt", "integer", "t.attempt"), ("fence", "bigint", "t.fence"), ("revision", "bigint", "t.revision"),
        ("schedule_version", "bigint", "t.schedule_version"), ("worker", "text", "w.name"), _instant("scheduled_at"),
        _instant("claimed_at"), _instant("due_at"), _instant("started_at"), _instant("ended_at"),
        ("error", "text", "nullif(t.error, '')"), ("flags", "text", "t.flags"), ("shard", "text", "q.shard"),
    ],
    "attempts": [
        ("claimed_on", "date", "t.claimed_on"), _RUN_ID, ("job_id", "text", "t.job_id"), ("attempt", "integer", "t.attempt"),
        ("fence", "bigint", "t.fence"), ("status", "text", "t.status"), ("worker", "text", "w.name"), _instant("due_at"),
        _instant("started_at"), _instant("ended_at"), ("error", "text", "t.error"),
    ],
    "skips": [
        ("job_id", "text", "t.job_id"), _instant("first_at"), _instant("last_at"), ("total", "bigint", "t.total"),
        ("reason", "text", "t.reason"), _instant("skipped_at"),
    ],
    "jobs": [
        ("job_id", "text", "t.job_id"), ("team", "text", "t.team"), ("state", "text", "t.state"),
        ("tags", "text", "array_to_string(t.tags, ',')"), ("schedule", "text", "t.schedule"), ("target", "text", "t.target"),
        _instant("created_at"), _instant("ended_at"),
    ],
}  # fmt: skip
_NAMES = "LEFT JOIN worker_names w ON w.id = t.worker"
SOURCES = {
    "runs": "{} t LEFT JOIN queue_keys q ON q.id = t.queue_key " + _NAMES,
    "attempts": "{} t " + _NAMES,
    "skips": "{} t",
    "jobs": "{} t",
}
ORDER = {
    "runs": "t.claimed_on, t.job_id, t.scheduled_at, t.manual",
    "attempts": "t.claimed_on, t.job_id, t.scheduled_at, t.manual, t.attempt",
    "skips": "t.job_id, t.first_at",
    "jobs": "t.job_id",
}
# Which instant the manifest says the first and the last of.
INSTANTS = {"runs": "claimed_at", "attempts": "ended_at", "skips": "skipped_at", "jobs": "ended_at"}
