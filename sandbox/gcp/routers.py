"""Cloud routers and their NAT gateways.

https://cloud.google.com/compute/docs/reference/rest/v1/routers and https://cloud.google.com/nat/docs/nat-rules-overview.
A router has no fingerprint: whoever reads the list of NAT gateways, changes it and writes it back undoes what another
one wrote in between.
"""

from __future__ import annotations

from collections.abc import Iterator

from sandbox.clouds import Answer, Call, Document
from sandbox.gcp.bodies import Nat, Router, parse
from sandbox.gcp.collection import Collection
from sandbox.gcp.errors import invalid, required
from sandbox.gcp.names import link, path_of, place_of, reference, short, valid_name

__all__ = ["Routers"]

_ALL = ("ALL_SUBNETWORKS_ALL_IP_RANGES", "ALL_SUBNETWORKS_ALL_PRIMARY_IP_RANGES")


class Routers(Collection):
    """`routers`."""

    name = "routers"
    noun = "router"
    scope = "regions"
    body = Router
    changes = ("patch", "update")

    def build(self, path: str, body: Router) -> Document:
        """A router of one network in one region."""
        if body.network is None:
            raise required("resource.network")
        network = reference("resource.network", body.network, place_of(path).project, "networks")
        self.context.ready(network)
        return body.fields() | {"network": link(network)} | self._nats(path, network, body.nats)

    def shortage(self, path: str, document: Document) -> Document | None:
        """Routers per project, and per network and region."""
        quotas, place, network = self.context.quotas, place_of(path), path_of(document["network"])
        return quotas.project_failure(place.project, "ROUTERS") or quotas.network_failure(
            "ROUTERS_PER_REGION_PER_NETWORK", "routers", network, place.region
        )

    def patch(self, call: Call) -> Answer:
        """`patch`: members that are given replace the old ones, lists as a whole."""
        body = parse(Router, call.content)
        return self.change(call, lambda path, document: self._changes(path, document, body))

    def update(self, call: Call) -> Answer:
        """`update` (PUT): what is not given is gone."""
        body = parse(Router, call.content)

        def changes(path: str, document: Document) -> Document:
            emptied: Document = {"nats": [], "interfaces": [], "bgpPeers": []}
            return emptied | self._changes(path, document, body)

        return self.change(call, changes, "update")

    def status(self, call: Call) -> Answer:
        """`getRouterStatus`."""
        document = self.context.find(self.path(call))
        nats = [
            {
                "name": nat["name"],
                "autoAllocatedNatIps": [],
                "userAllocatedNatIps": [short(address) for address in nat.get("natIps", ())],
                "minExtraNatIpsNeeded": 0,
                "numVmEndpointsWithNatMappings": 0,
            }
            for nat in document.get("nats", ())
        ]
        result: Document = {"network": document["network"]} | ({"natStatus": nats} if nats else {})
        return Answer({"kind": "compute#routerStatusResponse", "result": result})

    def show(self, path: str, document: Document) -> Document:
        """Empty lists are left out."""
        shown = super().show(path, document)
        return {name: value for name, value in shown.items() if value != []}

    def _changes(self, path: str, document: Document, body: Router) -> Document:
        given = body.fields()
        if "name" in given and given.pop("name") != document["name"]:
            raise invalid("resource.name", body.name, "The name cannot be changed.")
        network = path_of(document["network"])
        if (
            "network" in given
            and reference("resource.network", given.pop("network"), place_of(path).project, "networks") != network
        ):
            raise invalid("resource.network", body.network, "The network cannot be changed.")
        return given | self._nats(path, network, body.nats)

    def _nats(self, path: str, network: str, nats: list[Nat] | None) -> Document:
        """The NAT gateways as stored, with full links."""
        if nats is None:
            return {}
        limit = self.context.quotas.limit("NATS_PER_ROUTER")
        if len(nats) > limit:
            raise invalid("resource.nats", f"{len(nats)} gateways", f"A router can have at most {limit} NAT gateways.")
        others = list(self._nats_beside(path, network))
        stored: list[Document] = []
        for index, nat in enumerate(nats):
            field = f"resource.nats[{index}]"
            valid_name(f"{field}.name", nat.name)
            if nat.name in [earlier["name"] for earlier in stored]:
                raise invalid(f"{field}.name", nat.name, "The names of a router's NAT gateways must be unique.")
            document = self._nat(path, network, field, nat)
            _refuse_shared(field, document, [*others, *stored])
            stored.append(document)
        return {"nats": stored}

    def _nat(self, path: str, network: str, field: str, nat: Nat) -> Document:
        place = place_of(path)
        listed = nat.source_subnetwork_ip_ranges_to_nat == "LIST_OF_SUBNETWORKS"
        if listed != bool(nat.subnetworks):
            detail = "Subnetworks must be given with LIST_OF_SUBNETWORKS, and only with it."
            raise invalid(f"{field}.subnetworks", len(nat.subnetworks), detail)
        manual = nat.nat_ip_allocate_option == "MANUAL_ONLY"
        if manual != bool(nat.nat_ips):
            raise invalid(f"{field}.natIps", len(nat.nat_ips), "Must be given with MANUAL_ONLY, and only with it.")
        document = {"type": "PUBLIC", "natIpAllocateOption": "AUTO_ONLY"} | nat.fields()
        subnetworks = []
        for each in nat.subnetworks:
            own = reference(f"{field}.subnetworks.name", each.name, place.project, "subnetworks")
            if self.context.find(own)["network"] != link(network) or place_of(own) != place:
                detail = f"The subnetwork is not in the router's region and network '{short(network)}'."
                raise invalid(f"{field}.subnetworks.name", each.name, detail)
            subnetworks.append(each.fields() | {"name": link(own)})
        addresses = [reference(f"{field}.natIps", each, place.project, "addresses") for each in nat.nat_ips]
        for address in addresses:
            self.context.ready(address)
        return (
            document
            | ({"subnetworks": subnetworks} if subnetworks else {})
            | ({"natIps": [link(each) for each in addresses]} if addresses else {})
        )

    def _nats_beside(self, path: str, network: str) -> Iterator[Document]:
        """The NAT gateways of the network's other routers in the region."""
        for name, router in self.all(place_of(path).prefix(self.name)):
            if name != path and router["network"] == link(network):
                yield from router.get("nats", ())


def _refuse_shared(field: str, nat: Document, others: list[Document]) -> None:
    """No range and no address may belong to two gateways (https://cloud.google.com/nat/docs/nat-product-interactions)."""
    for other in others:
        everything = nat["sourceSubnetworkIpRangesToNat"] in _ALL or other["sourceSubnetworkIpRangesToNat"] in _ALL
        shared = {each["name"] for each in nat.get("subnetworks", ())} & {
            each["name"] for each in other.get("subnetworks", ())
        }
        if everything or shared:
            which = ", ".join(path_of(name) for name in sorted(shared)) or "all subnetworks"
            raise invalid(
                field, nat["name"], f"The ranges of {which} are served by NAT gateway '{other['name']}' already."
            )
        taken = set(nat.get("natIps", ())) & set(other.get("natIps", ()))
        if taken:
            raise invalid(f"{field}.natIps", path_of(min(taken)), f"NAT gateway '{other['name']}' uses it already.")
