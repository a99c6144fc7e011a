"""Writes structured logs, one line for each event, for people (console) or machines (JSON)."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Literal

import msgspec

_encode = msgspec.json.Encoder().encode


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = getattr(record, "fields", None)
    return dict(fields) if isinstance(fields, dict) else {}


class _Console(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        fields = "".join(f" {k}={v}" for k, v in _fields(record).items())
        text = f"{at} {record.levelname.lower():7} {self._process}: {record.getMessage()}{fields}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


class _Json(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "process": self._process,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _encode(line).decode()


def setup_logging(process: str, fmt: Literal["console", "json"], level: str = "INFO") -> None:
    """Sends all logs of this process to standard error.

    Args:
        process: The process' name, which each line carries.
        fmt: "console" for people, "json" for machines.
        level: The lowest level that is written.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(process) if fmt == "json" else _Console(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # The pool logs every failed attempt to connect; whoever uses it logs once that the server is away and once that it is back.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)


def get_logger(name: str) -> logging.Logger:
    """Returns the logger of this name, such as rsched.worker."""
    return logging.getLogger(name)
