"""Routes: static ones that are made, and those that follow from subnetworks and peerings.

https://cloud.google.com/compute/docs/reference/rest/v1/routes and https://cloud.google.com/vpc/docs/routes (a static
route's destination may not match, or lie within, a subnet route's).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from sandbox.clouds import Answer, Call, Document, parse_cidr
from sandbox.gcp.bodies import StaticRoute
from sandbox.gcp.collection import Collection
from sandbox.gcp.errors import invalid, refused, required
from sandbox.gcp.names import Place, link, path_of, place_of, reference
from sandbox.gcp.peerings import refuse_while_peering
from sandbox.gcp.ranges import active_peers, subnet_ranges

__all__ = ["Routes"]

_HOPS = ("next_hop_instance", "next_hop_ip", "next_hop_gateway")


class Routes(Collection):
    """`routes`."""

    name = "routes"
    noun = "route"
    scope = "global"
    body = StaticRoute
    changes = ()

    def build(self, path: str, body: StaticRoute) -> Document:
        """A static route with one next hop."""
        if body.network is None:
            raise required("resource.network")
        project = place_of(path).project
        network = reference("resource.network", body.network, project, "networks")
        self.context.ready(network)
        refuse_while_peering(self.context, [network])
        if sum(getattr(body, hop) is not None for hop in _HOPS) != 1:
            raise invalid("resource.nextHop", "", "Exactly one next hop must be given.")
        self._check_destination(body.dest_range, network)
        document = {"priority": 1000} | body.fields() | {"network": link(network), "routeType": "STATIC"}
        if body.next_hop_instance is not None:
            instance = reference("resource.nextHopInstance", body.next_hop_instance, project, "instances")
            self.context.find(instance)
            document["nextHopInstance"] = link(instance)
        if body.next_hop_gateway is not None:
            document["nextHopGateway"] = link(f"projects/{project}/global/gateways/default-internet-gateway")
        return document

    def shortage(self, path: str, document: Document) -> Document | None:
        """Static routes per network."""
        del path
        return self.context.quotas.network_failure("STATIC_ROUTES_PER_NETWORK", "routes", path_of(document["network"]))

    def inputs(self, path: str, document: Document) -> Document:
        """Peerings of this network have to wait."""
        del path
        return {"class": "route", "touches": [path_of(document["network"])]}

    def delete(self, call: Call) -> Answer:
        """`delete`: of static routes, and not while peerings of the network change."""
        path = self.path(call)
        if self.store.get(self.name, path) is None and self._derived_at(path):
            raise refused(
                400, "invalid", f"The route '{path}' follows from a subnetwork or peering; it cannot be deleted."
            )
        refuse_while_peering(self.context, [path_of(self.context.find(path)["network"])])
        return super().delete(call)

    def get(self, call: Call) -> Answer:
        """`get`: also of those that follow from something."""
        path = self.path(call)
        derived = self._derived_at(path)
        return Answer(derived) if derived else super().get(call)

    def seen(self, prefix: str) -> list[Document]:
        """With those that follow from something."""
        return [*super().seen(prefix), *self._derived(prefix)]

    def show(self, path: str, document: Document) -> Document:
        """With a warning where the next hop is gone."""
        shown = super().show(path, document)
        instance = document.get("nextHopInstance")
        if instance and self.store.get("instances", path_of(instance)) is None:
            message = f"Next hop instance '{instance}' was not found."
            shown["warnings"] = [{"code": "NEXT_HOP_INSTANCE_NOT_FOUND", "message": message}]
        return shown

    def _check_destination(self, text: str | None, network: str) -> None:
        if text is None:
            raise required("resource.destRange")
        given = parse_cidr(text)
        if given is None:
            raise invalid("resource.destRange", text, "Must be a CIDR address range.")
        for each in (network, *active_peers(self.store, network)):
            for cidr, subnetwork in subnet_ranges(self.store, each):
                if given.subnet_of(cidr):
                    detail = f"It matches or lies within the range {cidr} of subnetwork '{subnetwork['name']}'."
                    raise invalid("resource.destRange", text, detail)

    def _derived_at(self, path: str) -> Document | None:
        return next((route for route in self._derived(path) if route["selfLink"] == link(path)), None)

    def _derived(self, prefix: str) -> Iterator[Document]:
        """Subnet routes, and peering routes, of all networks of a project; `prefix` is any path in it."""
        project = prefix.split("/")[1]
        for network, document in self.store.list("networks", f"projects/{project}/"):
            for cidr, _ in subnet_ranges(self.store, network):
                text = f"Default local route to the subnetwork {cidr}."
                yield _derived(network, "default-route", str(cidr), text, {"nextHopNetwork": link(network)})
            for side in document.get("peerings", ()):
                if side["state"] != "ACTIVE":
                    continue
                for cidr, _ in subnet_ranges(self.store, path_of(side["network"])):
                    text = f"Auto generated route via peering [{side['name']}]."
                    yield _derived(network, "peering-route", str(cidr), text, {"nextHopPeering": side["name"]})


def _derived(network: str, kind: str, cidr: str, description: str, hop: Document) -> Document:
    digest = hashlib.sha256(f"{network} {kind} {cidr} {hop}".encode()).hexdigest()
    name = f"{kind}-{digest[:16]}"
    path = Place(place_of(network).project, "global").path("routes", name)
    return {
        "kind": "compute#route",
        "id": str(int(digest[:15], 16) + 10**18),
        "name": name,
        "description": description,
        "network": link(network),
        "destRange": cidr,
        "priority": 0,
        "routeType": "SUBNET",
        "selfLink": link(path),
        **hop,
    }
