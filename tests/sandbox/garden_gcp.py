"""A shoot on GCP."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from tests.sandbox.garden.garden_server import NAMESPACE
from tests.sandbox.gcp_server import REGION, ZONE

Shoot = dict[str, Any]


def manifest(name: str, network: str, block: str = "10.0.0.0/22", **changes: Any) -> Shoot:
    """A shoot in one zone: the halves of its block for nodes and for internal load balancers."""
    nodes, internal = IPv4Network(block).subnets()
    api_version = "gcp.provider.extensions.gardener.cloud/v1alpha1"
    networks = {
        "vpc": {"name": network, "cloudRouter": {"name": network}},
        "workers": str(nodes),
        "internal": str(internal),
        **changes.pop("networks", {}),
    }
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
        "volume": {"type": "pd-balanced", "size": "20Gi"},
        "machine": {"type": "n2-standard-2", "image": {"name": "gardenlinux", "version": "1877.14.0"}},
        **changes.pop("worker", {}),
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"name": "gcp"},
            "credentialsBindingName": "gcp",
            "region": REGION,
            "kubernetes": {"version": "1.35.4"},
            "networking": networking,
            "provider": {
                "type": "gcp",
                "infrastructureConfig": {
                    "apiVersion": api_version,
                    "kind": "InfrastructureConfig",
                    "networks": networks,
                },
                "controlPlaneConfig": {"apiVersion": api_version, "kind": "ControlPlaneConfig", "zone": ZONE},
                "workers": [worker],
            },
        },
    }
