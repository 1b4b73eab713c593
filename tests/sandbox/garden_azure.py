"""A shoot on Azure."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

from tests.sandbox.azure_server import LOCATION
from tests.sandbox.garden.garden_server import NAMESPACE

Shoot = dict[str, Any]


def manifest(name: str, group: str, block: str = "10.0.0.0/22", **changes: Any) -> Shoot:
    """A shoot in one zone: the lower half of its block for nodes, in the network `net` of a resource group."""
    nodes, _ = IPv4Network(block).subnets()
    api_version = "azure.provider.extensions.gardener.cloud/v1alpha1"
    networks = {
        "vnet": {"name": "net", "resourceGroup": group},
        "workers": str(nodes),
        "natGateway": {"enabled": True},
        **changes.pop("networks", {}),
    }
    networking = {
        "type": "calico",
        "nodes": str(nodes),
        "pods": "10.96.0.0/13",
        "services": "10.104.0.0/13",
        **changes.pop("networking", {}),
    }
    worker = {
        "name": "worker",
        "minimum": 1,
        "maximum": 3,
        "zones": ["1"],
        "volume": {"type": "StandardSSD_LRS", "size": "50Gi"},
        "machine": {"type": "Standard_D4s_v5", "image": {"name": "gardenlinux", "version": "1877.14.0"}},
        **changes.pop("worker", {}),
    }
    infrastructure = {
        "apiVersion": api_version,
        "kind": "InfrastructureConfig",
        "networks": {key: value for key, value in networks.items() if value is not None},
        "zoned": True,
        **changes.pop("infrastructure", {}),
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"name": "azure"},
            "credentialsBindingName": "azure",
            "region": LOCATION,
            "kubernetes": {"version": "1.35.4"},
            "networking": networking,
            "provider": {
                "type": "azure",
                "infrastructureConfig": infrastructure,
                "controlPlaneConfig": {"apiVersion": api_version, "kind": "ControlPlaneConfig"},
                "workers": [worker],
            },
        },
    }
