"""A cloud behind the proxy that does wrong on request."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from sandbox.faults import Faults, listening, proxy_app
from sandbox.tls import ServerCertificate


class _Server(uvicorn.Server):
    """Breaks connections off at the end: clients keep theirs, and none of them answers TLS's farewell."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in self.server_state.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await super().shutdown(sockets)


@contextmanager
def proxied(api: str, endpoint: str, certificate: ServerCertificate | None = None) -> Iterator[tuple[str, Faults]]:
    """The proxy's URL and the faults that are set, while the context is open; HTTPS with the API's own certificate."""
    faults = Faults()
    one = listening(0)
    app = proxy_app(api, endpoint, faults, certificate.authority if certificate else None)
    config = uvicorn.Config(app, log_level="critical")
    if certificate:
        config.ssl_certfile, config.ssl_keyfile = str(certificate.certificate), str(certificate.key)
    server = _Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[one])))
    thread.start()
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{one.getsockname()[1]}", faults
    finally:
        server.should_exit = True
        thread.join()
