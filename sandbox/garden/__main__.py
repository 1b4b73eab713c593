"""`python -m sandbox.garden`: the garden as a server on 127.0.0.1."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from pathlib import Path
from types import FrameType

import uvicorn

from sandbox.garden.app import garden_app
from sandbox.garden.providers import Provider
from sandbox.garden.providers.alicloud import Alicloud
from sandbox.garden.providers.aws import Aws
from sandbox.garden.providers.azure import Azure
from sandbox.garden.providers.gcp import Gcp
from sandbox.garden.providers.openstack import OpenStack
from sandbox.garden.settings import Settings
from sandbox.garden.start import open_alicloud, open_azure, open_gcp, open_openstack
from sandbox.kube import Store
from sandbox.tls import server_certificate


class _Server(uvicorn.Server):
    """Ends the watches first, which would otherwise keep it waiting."""

    def __init__(self, config: uvicorn.Config, store: Store) -> None:
        super().__init__(config)
        self._store = store
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._store.close)
        # Not the base class's: that would raise the signal once more at the end, and so spoil the exit status.
        self.should_exit = True
        # Idle connections of clients are cut at the end, of which uvicorn would complain.
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)


def main() -> None:
    """Serves until told to end."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.garden", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="0 for a free one")
    parser.add_argument("--url", help="under which clients reach it; none: its own address")
    parser.add_argument("--state-dir", type=Path, required=True, help="where everything is kept over a restart")
    parser.add_argument("--aws-endpoint", required=True, help="the URL of AWS")
    parser.add_argument("--gcp-endpoint", help="the URL of the sandbox's Compute Engine; none: no shoots there")
    parser.add_argument("--alicloud-endpoint", help="the URL of the sandbox's Alibaba Cloud; none: no shoots there")
    parser.add_argument("--azure-endpoint", help="the URL of the sandbox's Azure; none: no shoots there")
    parser.add_argument("--azure-authority", type=Path, help="the certificate that signed that of the sandbox's Azure")
    parser.add_argument("--openstack-auth-url", help="the URL of the sandbox's Keystone; none: no shoots there")
    parser.add_argument("--shoot-seconds", type=float, default=5.0, help="how long a shoot's machines take")
    parser.add_argument("--retry-seconds", type=float, default=2.0, help="the pause before a first retry")
    arguments = parser.parse_args()
    arguments.state_dir.mkdir(parents=True, exist_ok=True)
    listener = socket.create_server(("127.0.0.1", arguments.port))
    url = arguments.url or f"https://127.0.0.1:{listener.getsockname()[1]}"
    settings = Settings(shoot_seconds=arguments.shoot_seconds, retry_seconds=arguments.retry_seconds)
    clouds: list[Provider] = [Aws(arguments.aws_endpoint)]
    store = Store(arguments.state_dir / "garden.db")
    if arguments.gcp_endpoint:
        open_gcp(store, arguments.gcp_endpoint)
        clouds.append(Gcp(arguments.gcp_endpoint))
    if arguments.alicloud_endpoint:
        open_alicloud(store, arguments.alicloud_endpoint)
        clouds.append(Alicloud(arguments.alicloud_endpoint))
    if arguments.azure_endpoint:
        open_azure(store, arguments.azure_endpoint, arguments.azure_authority)
        clouds.append(Azure(arguments.azure_endpoint, arguments.azure_authority))
    if arguments.openstack_auth_url:
        open_openstack(store, arguments.openstack_auth_url)
        clouds.append(OpenStack(arguments.openstack_auth_url))
    asyncio.run(_serve(listener, url, arguments.state_dir, store, settings, clouds))
    # A thread may still be in a call to a cloud. Nothing is lost: the operation begins again at the next start.
    sys.stdout.flush()
    os._exit(0)


async def _serve(
    listener: socket.socket, url: str, state_dir: Path, store: Store, settings: Settings, clouds: list[Provider]
) -> None:
    tls = server_certificate(state_dir, "garden")
    app = garden_app(store, state_dir, settings, url, tls.authority, clouds)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
        ssl_certfile=tls.certificate,
        ssl_keyfile=tls.key,
    )
    server = _Server(config, store)
    print(f"listening on {url}", flush=True)
    await server.serve(sockets=[listener])


if __name__ == "__main__":
    main()
