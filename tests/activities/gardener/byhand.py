"""A garden whose Gardener is the test: the API server is the sandbox's own, every status is written by hand."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request

from activities.gardener.client import Garden
from domain.layout import cut
from domain.names import shoot_name
from domain.networks import Network
from domain.shoots import ShootKey, ShootOrder, ShootPlan
from domain.specs import ClusterSpec
from sandbox.garden.kinds import CLOUD_PROFILES, CREDENTIALS_BINDINGS, GARDEN, PROJECTS, SHOOTS_KEY, shoots
from sandbox.kube import CORE, Object, Store, denied, kube_app

NAMESPACE = "garden-trellis"
HEALTHY = (
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    "EveryNodeReady",
    "SystemComponentsHealthy",
)


class _Server(uvicorn.Server):
    def __init__(self, app: Starlette, port: int) -> None:
        config = uvicorn.Config(app, "127.0.0.1", port, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        super().__init__(config)
        self.listening: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set_result(self.servers[0].sockets[0].getsockname()[1])


@asynccontextmanager
async def served(app: Starlette, port: int = 0) -> AsyncIterator[int]:
    """Serves while the context is open; gives the port."""
    server = _Server(app, port)
    task = asyncio.create_task(server.serve())
    try:
        yield await server.listening
    finally:
        server.should_exit = True
        server.force_exit = True
        await task


def kubeconfig(url: str, **user: str) -> bytes:
    """A kubeconfig with one context, as JSON, which is YAML."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": url}}],
        "users": [{"name": "it", "user": user}],
    }
    return json.dumps(content).encode()


@dataclass
class HandGarden:
    """The garden's API server and its store."""

    store: Store
    url: str
    kubeconfig: Path
    garden: Garden

    def shoot(self, name: str) -> Object:
        found = self.store.get(GARDEN, SHOOTS_KEY, NAMESPACE, name)
        assert found
        return found

    def names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self.store.list(GARDEN, SHOOTS_KEY, NAMESPACE)]

    def gardener_says(self, name: str, state: str, *, kind: str = "Create", **more: Any) -> None:
        """Write a status as gardenlet does: `codes`, `description`, `progress`, `healthy`, `generation`."""
        shoot = self.shoot(name)
        description = more.get("description", "doing things")
        shoot["status"] = {
            "observedGeneration": more.get("generation", shoot["metadata"]["generation"]),
            "lastOperation": {
                "type": kind,
                "state": state,
                "progress": more.get("progress", 100 if state == "Succeeded" else 42),
                "description": description,
                "lastUpdateTime": f"2026-01-01T00:00:{self.store.version % 60:02}Z",
            },
            "conditions": [{"type": each, "status": "True"} for each in more.get("healthy", HEALTHY)],
        }
        if "codes" in more:
            shoot["status"]["lastErrors"] = [{"description": description, "codes": list(more["codes"])}]
        (shoot["metadata"].get("annotations") or {}).pop("gardener.cloud/operation", None)
        self.store.update(GARDEN, SHOOTS_KEY, shoot)

    def remove(self, name: str) -> None:
        """What the last step of a deletion does."""
        shoot = self.shoot(name)
        shoot["metadata"]["finalizers"] = []
        self.store.update(GARDEN, SHOOTS_KEY, shoot)
        if name in self.names():
            self.store.delete(GARDEN, SHOOTS_KEY, NAMESPACE, name)


async def _admin_kubeconfig(request: Request, shoot: Object) -> Object:
    asked = await request.json()
    if asked["spec"]["expirationSeconds"] < 600:
        raise denied(422, "spec.expirationSeconds: must be at least 600")
    content = kubeconfig(f"https://{shoot['metadata']['name']}.example.org", token="t0ken")
    return {"status": {"kubeconfig": base64.b64encode(content).decode(), "expirationTimestamp": "2030-01-01T00:00:00Z"}}


def garden_app(store: Store) -> Starlette:
    """Gardener's kinds without Gardener's rules."""
    shoot = shoots(lambda _: None, {"adminkubeconfig": _admin_kubeconfig})
    return kube_app(GARDEN, [*CORE, CLOUD_PROFILES, CREDENTIALS_BINDINGS, PROJECTS, shoot], store)


def order(name: str = "alpha", block: str = "10.0.0.0/22", **spec: Any) -> ShootOrder:
    """An order for a shoot on AWS in three zones."""
    zones = tuple(f"eu-central-1{zone}" for zone in "abc")
    parsed = ClusterSpec.model_validate(
        {"name": name, "provider": "aws", "region": "eu-central-1", "vpc": "shared", "zones": zones, **spec}
    )
    plan = ShootPlan(
        shoot=ShootKey(namespace=NAMESPACE, name=shoot_name(parsed.tenant, name)),
        cloud_profile="aws",
        zones=parsed.zones,
        machine_type="m5.large",
        machine_image="gardenlinux",
        machine_image_version="1877.14.0",
        kubernetes_version="1.35.4",
        volume_type="gp3",
    )
    layout = cut(parsed.provider, IPv4Network(block), parsed.zones)
    network = Network(id="vpc-0a1b2c3d4e5f60718", parts={"nodes-security-group": "sg-0a1b2c3d4e5f60718"})
    return ShootOrder(spec=parsed, plan=plan, network=network, layout=layout)
