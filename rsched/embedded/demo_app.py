"""The Python function of the demo."""

from __future__ import annotations

from rsched import App

app = App()


@app.function("demo.greet")
def greet(name: str) -> str:
    return f"hello {name}"
