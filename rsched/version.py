"""The one place of the version: the build, the commands, the SDK and openapi.json read it here."""

__version__ = "0.1.0"
