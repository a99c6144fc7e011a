"""The Python function of the demo."""

from __future__ import annotations

from rsched import App

app = App()


@app.function("demo.greet")
def greet(name: str) -> str:
    """Returns a greeting."""
    return f"hello {name}"
