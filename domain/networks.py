"""Networks and their layout, as the steps of a workflow pass them to each other."""

from __future__ import annotations

from pydantic import Field

from domain.specs import Cidr, Frozen, Provider

__all__ = ["Blocker", "Layout", "Network", "NetworkOrder", "NetworkRecord", "NetworkSeen", "Owned", "Zone"]


class Zone(Frozen):
    """A cluster's subnets in one zone; `public` and `internal` only where the provider has them (AWS)."""

    name: str
    workers: Cidr
    public: Cidr | None = None
    internal: Cidr | None = None


class Layout(Frozen):
    """How a cluster's block is cut. `nodes` and `infra` are its halves, or as the VPC says."""

    block: Cidr
    nodes: Cidr
    infra: Cidr
    zones: tuple[Zone, ...]


class NetworkOrder(Frozen):
    """The network that a VPC wants: all that an adapter needs to make it, find it again and remove it.

    `incarnation` tells this life of the VPC from earlier ones of the same name: what an earlier one left is never
    adopted by mistake. `credentials` names a CredentialsBinding of the garden; secrets never travel.
    """

    tenant: str
    vpc: str
    incarnation: str
    provider: Provider
    region: str
    credentials: str
    cidrs: tuple[Cidr, ...]
    # How many clusters fit: some providers need a part per so many of them (GCP: a router takes 50 NAT gateways).
    clusters: int = 64


class Network(Frozen):
    """A network that exists. `id` is the provider's own; `parts` are what Trellis made with it, kind to id.

    `account` is the provider's account, subscription or project that holds it: what is not found in another one is
    not taken for deleted.

    AWS parts: `internet-gateway`, `dhcp-options`, `nodes-security-group`. GCP parts: `router-0` and so on.
    Azure parts: `resource-group`. OpenStack parts: `router`, and `floating-pool`, the name of the external network that
    the router's gateway is in, which Trellis did not make.
    """

    id: str
    account: str = ""
    parts: dict[str, str] = Field(default_factory=dict)


class NetworkRecord(Frozen):
    """What a VPC wants, and what it has on record: None until the network was made.

    A network on record that the cloud no longer has is lost; it is never made anew under its members.
    """

    order: NetworkOrder
    network: Network | None


class NetworkSeen(Frozen):
    """A network as the cloud holds it, with the CIDRs of all subnets inside, whoever made them."""

    network: Network
    ranges: tuple[Cidr, ...] = ()


class Blocker(Frozen):
    """Something that keeps a network from being deleted. `name` is what a person calls it, `owner` whose it seems."""

    kind: str
    id: str
    name: str = ""
    owner: str = ""

    def __str__(self) -> str:
        name = f" ({self.name})" if self.name else ""
        return f"{self.kind} {self.id}{name}" + (f" of {self.owner}" if self.owner else "")


class Owned(Frozen):
    """A cloud resource that carries the tags of a Trellis installation, and which network they name."""

    kind: str
    id: str
    tenant: str
    vpc: str
    incarnation: str
