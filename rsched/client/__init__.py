"""The SDK over HTTP, sync and async. Imports neither store nor ledger."""

from rsched.client.aio import AsyncClient
from rsched.client.sync import Client
from rsched.client.views import Occurrence, Page, Preview

__all__ = ["AsyncClient", "Client", "Occurrence", "Page", "Preview"]
