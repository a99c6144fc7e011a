from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.client.both import CLIENTS


@pytest.fixture(params=sorted(CLIENTS))
def connect(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Makes a client of one kind, then of the other: `with connect(url) as client`."""
    return CLIENTS[request.param]
