"""The scheduler's steps are tried on the same worlds as the scripts."""

from tests.store.conftest import world

__all__ = ["world"]
