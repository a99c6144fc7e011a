"""Descriptions in the OpenAPI document, from the docstrings of the types: their `Attributes:` describe the properties."""

from __future__ import annotations

import inspect
import re
from typing import Any

from rsched.core.jobs.model import JobFields

_ATTRIBUTE = re.compile(r"^    (\w+): (.*)$")


def describe(components: dict[str, dict[str, Any]]) -> None:
    """Moves what docstrings say of attributes to the properties of the schemas.

    Args:
        components: Schemas by name, whose descriptions are docstrings; changed in place.
    """
    shared = _attributes(inspect.cleandoc(JobFields.__doc__ or ""))[1]
    for name, schema in components.items():
        text, attributes = _attributes(schema.get("description", ""))
        if name in ("JobSpec", "JobView"):
            attributes = shared | attributes
        if text:
            schema["description"] = text
        for attribute, described in attributes.items():
            if attribute in schema.get("properties", {}):
                schema["properties"][attribute]["description"] = described


def _attributes(text: str) -> tuple[str, dict[str, str]]:
    """A docstring without its attributes, and those."""
    head, _, rest = text.partition("\n\nAttributes:\n")
    attributes: dict[str, str] = {}
    last = ""
    for line in rest.split("\n"):
        if match := _ATTRIBUTE.match(line):
            last = match[1].rstrip("_")
            attributes[last] = match[2]
        elif last and line.strip():
            attributes[last] += f" {line.strip()}"
    return head, attributes
