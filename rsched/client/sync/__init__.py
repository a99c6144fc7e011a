# Generated from rsched/client/aio/__init__.py by tools/sync_client.py (`make docs`); do not edit.
"""The client for programs without an event loop, made from the files in aio/."""

from rsched.client.sync.client import Client

__all__ = ["Client"]
