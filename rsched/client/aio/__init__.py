"""The client for programs with an event loop, written by hand; the one without, in sync/, is made from these files."""

from rsched.client.aio.client import AsyncClient

__all__ = ["AsyncClient"]
