"""A cloud behind the proxy that does wrong on request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from sandbox.faults import Faults, listening, proxy_app


@contextmanager
def proxied(api: str, endpoint: str) -> Iterator[tuple[str, Faults]]:
    """The proxy's URL and the faults that are set, while the context is open."""
    faults = Faults()
    one = listening(0)
    config = uvicorn.Config(proxy_app(api, endpoint, faults), log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[one])))
    thread.start()
    try:
        yield f"http://127.0.0.1:{one.getsockname()[1]}", faults
    finally:
        server.should_exit = True
        thread.join()
