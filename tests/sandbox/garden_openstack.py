"""A shoot on OpenStack."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from tests.sandbox.garden.garden_server import NAMESPACE
from tests.sandbox.openstack_server import POOL, REGION

Shoot = dict[str, Any]
ZONE = f"{REGION}a"


def manifest(name: str, network: str, router: str, block: str = "10.0.0.0/22", **changes: Any) -> Shoot:
    """A shoot in one zone: the lower half of its block for nodes, in a network and on a router by their ids."""
    nodes, _ = IPv4Network(block).subnets()
    api_version = "openstack.provider.extensions.gardener.cloud/v1alpha1"
    networks = {"id": network, "router": {"id": router}, "workers": str(nodes), **changes.pop("networks", {})}
    networking = {
        "type": "calico",
        "nodes": str(nodes),
        "pods": "10.96.0.0/13",
        "services": "10.104.0.0/13",
        "providerConfig": {"overlay": {"enabled": True}},
        **changes.pop("networking", {}),
    }
    worker = {
        "name": "worker",
        "minimum": 1,
        "maximum": 3,
        "zones": [ZONE],
        "machine": {"type": "g_c2_m8", "image": {"name": "gardenlinux", "version": "1877.14.0"}},
        **changes.pop("worker", {}),
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"name": "openstack"},
            "credentialsBindingName": "openstack",
            "region": REGION,
            "kubernetes": {"version": "1.35.4"},
            "networking": networking,
            "provider": {
                "type": "openstack",
                "infrastructureConfig": {
                    "apiVersion": api_version,
                    "kind": "InfrastructureConfig",
                    "floatingPoolName": POOL,
                    "networks": {key: value for key, value in networks.items() if value is not None},
                    **changes.pop("infrastructure", {}),
                },
                "controlPlaneConfig": {
                    "apiVersion": api_version,
                    "kind": "ControlPlaneConfig",
                    "loadBalancerProvider": "octavia",
                },
                "workers": [worker],
            },
        },
    }
