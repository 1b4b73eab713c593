"""GCP in a test, and its SDK as somebody else would use it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from ipaddress import IPv4Network
from typing import Any

from google.cloud import compute_v1
from google.oauth2 import service_account

from activities.clouds.gcp import GcpCloud, Patience
from domain.networks import Network, NetworkOrder
from domain.specs import Provider
from sandbox.faults import Faults
from tests.activities.cloud_contract import Rig
from tests.sandbox.gcp_server import PROJECT, REGION, Compute, Server, nat

SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


class GcpRig(Rig):
    """GCP, and its SDK as somebody else would use it."""

    api = "gcp"
    making = "*.insert"
    removing = "*.delete"
    create = "networks.insert"
    elsewhere = "us-central1"

    def __init__(self, faults: Faults, server: Server, key: dict[str, Any]) -> None:
        self.server, self.key = server, key
        super().__init__(faults)
        credentials = service_account.Credentials.from_service_account_info(key, scopes=SCOPES)
        self.compute: Compute = server.compute(credentials)
        self.global_addresses: Any = compute_v1.GlobalAddressesClient(
            credentials=credentials, transport="rest", client_options={"api_endpoint": server.url}
        )

    def connect(self, region: str | None = None, **more: Any) -> GcpCloud:
        secret = {"serviceaccount.json": json.dumps(more.get("key", self.key))}
        patience = more.get("patience", Patience(settle=1, operation=5, retry=1, poll=0.02))
        return GcpCloud(REGION if region is None else region, secret, installation=self.installation, patience=patience)

    def order(self, clusters: int = 64) -> NetworkOrder:
        return NetworkOrder(
            tenant="t",
            vpc=uuid.uuid4().hex[:8],
            incarnation="1",
            provider=Provider.GCP,
            region=REGION,
            credentials="gcp",
            cidrs=(IPv4Network("10.0.0.0/16"),),
            clusters=clusters,
        )

    def networks(self, order: NetworkOrder) -> list[str]:
        wanted = {"installation": self.installation, "vpc": order.vpc, "incarnation": order.incarnation}
        return [
            each.name
            for each in self.compute.networks.list(project=PROJECT)
            if each.description
            and wanted.items()
            <= {k.removeprefix("trellis.dev/"): v for k, v in json.loads(each.description).items()}.items()
        ]

    def add_foreign(self, network: Network) -> tuple[str, Callable[[], None]]:
        name = f"s-{uuid.uuid4().hex[:8]}"
        self.compute.done(self.compute.subnetwork(network.id, name, "10.0.8.0/24"))
        return name, lambda: self.delete_subnetwork(name)

    def delete_subnetwork(self, name: str) -> None:
        self.compute.done(self.compute.subnetworks.delete_unary(project=PROJECT, region=REGION, subnetwork=name))

    def shoot_in(self, network: Network) -> str:
        """A subnetwork and a NAT gateway as Gardener makes them; returns the shoot's technical id."""
        tid = f"shoot--p--{uuid.uuid4().hex[:10]}"
        self.compute.done(self.compute.subnetwork(network.id, f"{tid}-nodes", "10.0.0.0/23"))
        gateway = nat(f"{tid}-cloud-nat", f"{tid}-nodes")
        self.compute.done(self.compute.add_nat(network.parts["router-0"], [gateway]))
        return tid

    def reserve(self, network: str, address: str, prefix: int) -> str:
        """A range for the services of others."""
        name = f"a-{uuid.uuid4().hex[:8]}"
        body = compute_v1.Address(
            name=name,
            address=address,
            prefix_length=prefix,
            address_type="INTERNAL",
            purpose="VPC_PEERING",
            network=f"global/networks/{network}",
        )
        self.compute.done(self.global_addresses.insert_unary(project=PROJECT, address_resource=body))
        return name

    def peer(self, network: Network, name: str, other: Network) -> None:
        """One side of a peering."""
        peer = f"projects/{PROJECT}/global/networks/{other.id}"
        peering = compute_v1.NetworkPeering(name=name, network=peer, exchange_subnet_routes=True)
        request = compute_v1.NetworksAddPeeringRequest(network_peering=peering)
        adding = self.compute.networks.add_peering_unary(
            project=PROJECT, network=network.id, networks_add_peering_request_resource=request
        )
        self.compute.done(adding)

    def delete_by_hand(self, network: Network) -> None:
        for router in network.parts.values():
            self.compute.done(self.compute.routers.delete_unary(project=PROJECT, region=REGION, router=router))
        self.compute.done(self.compute.networks.delete_unary(project=PROJECT, network=network.id))
