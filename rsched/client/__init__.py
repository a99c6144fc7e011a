"""The SDK over HTTP. Neither store nor ledger is imported.

A method builds a `Request` (request.py, bodies.py), the connection sends it by the rules of attempts.py, and the answer is read
as a struct of views.py or raised as an error of problems.py. Only methods and connection exist twice: aio/ is written by hand,
sync/ is generated from it by `make docs`.
"""

from rsched.client.aio import AsyncClient
from rsched.client.bodies import Day, Instant, JobFilter, JobOptions, Length, Zone
from rsched.client.sync import Client
from rsched.client.views import Occurrence, Page, Preview

__all__ = [
    "AsyncClient",
    "Client",
    "Day",
    "Instant",
    "JobFilter",
    "JobOptions",
    "Length",
    "Occurrence",
    "Page",
    "Preview",
    "Zone",
]
