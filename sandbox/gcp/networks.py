"""VPC networks: https://cloud.google.com/compute/docs/reference/rest/v1/networks and
https://cloud.google.com/vpc/docs/create-modify-vpc-networks.
"""  # noqa: D205 - two links

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

from sandbox.clouds import Answer, Call, Document
from sandbox.gcp.bodies import Network, parse
from sandbox.gcp.catalog import AUTO_RANGES
from sandbox.gcp.collection import Collection
from sandbox.gcp.errors import invalid, not_ready
from sandbox.gcp.names import Place, fingerprint, link, new_id, place_of, short, timestamp

__all__ = ["Networks"]

_MTU = 1460
_PATCHABLE = ("routingConfig", "mtu", "networkFirewallPolicyEnforcementOrder")


class Networks(Collection):
    """`networks`, without their peerings."""

    name = "networks"
    noun = "network"
    scope = "global"
    body = Network
    changes = ("patch", "switchToCustomMode")
    # What is inside is found by the operation: "Error waiting for Deleting Network: ..." of every client.
    refuses_deletion_at_once = False

    def build(self, path: str, body: Network) -> Document:
        """A custom or auto mode network."""
        del path
        if body.legacy_range is not None or body.auto_create_subnetworks is None:
            raise invalid("resource.IPv4Range", body.legacy_range, "Legacy networks can no longer be created.")
        order = body.network_firewall_policy_enforcement_order
        routing = body.routing_config.fields() if body.routing_config else {}
        return {
            "autoCreateSubnetworks": body.auto_create_subnetworks,
            "routingConfig": {"routingMode": "REGIONAL"} | routing,
            "mtu": body.mtu or _MTU,
            "networkFirewallPolicyEnforcementOrder": order or "AFTER_CLASSIC_FIREWALL",
        }

    def shortage(self, path: str, document: Document) -> Document | None:
        """Networks per project."""
        del document
        return self.context.quotas.project_failure(place_of(path).project, "NETWORKS")

    def inserted(self, path: str, document: Document) -> None:
        """The default route, and in auto mode a subnetwork in each region."""
        name = f"default-route-{secrets.token_hex(8)}"
        route = place_of(path).path("routes", name)
        self.store.put("routes", route, _default_route(route, path, timestamp(self.context.cloud.now())))
        if document["autoCreateSubnetworks"]:
            for region, cidr in AUTO_RANGES.items():
                self._make_auto_subnetwork(path, region, cidr)

    def deleted(self, path: str, document: Document) -> None:
        """What was made with the network goes with it."""
        del document
        for name, route in self.store.list("routes"):
            if route["network"] == link(path):
                self.store.delete("routes", name)
        for name, subnetwork in self.store.list("subnetworks"):
            if subnetwork["network"] == link(path):
                self.store.delete("subnetworks", name)

    def users(self, path: str, document: Document) -> Sequence[str]:
        """Peers, and whatever is in the network."""
        peers = [side["network"].partition("/compute/v1/")[2] for side in document.get("peerings", ())]
        return [*peers, *self._inside(path)]

    def show(self, path: str, document: Document) -> Document:
        """With the subnetworks of now."""
        shown = super().show(path, document)
        subnetworks = [each["selfLink"] for _, each in self.store.list("subnetworks") if each["network"] == link(path)]
        return shown | ({"subnetworks": subnetworks} if subnetworks else {})

    def delete(self, call: Call) -> Answer:
        """`delete`: not while an operation on its peerings or routes runs."""
        path = self.path(call)
        if any(path in operation.inputs.get("touches", ()) for operation in self.context.cloud.operations.running()):
            raise not_ready(path)
        return super().delete(call)

    def patch(self, call: Call) -> Answer:
        """`patch`: routing mode, MTU and the order of firewall policies only."""
        body = parse(Network, call.content)

        def changes(path: str, document: Document) -> Document:
            given = body.fields()
            for field in given:
                if field not in _PATCHABLE and given[field] != document.get(field):
                    raise invalid(f"resource.{field}", given[field], f"Cannot be changed in network '{short(path)}'.")
            routing = document["routingConfig"] | given.get("routingConfig", {})
            return {name: value for name, value in given.items() if name in _PATCHABLE} | {"routingConfig": routing}

        return self.change(call, changes)

    def switch_to_custom_mode(self, call: Call) -> Answer:
        """`switchToCustomMode`: for good; its subnetworks stay."""

        def changes(path: str, document: Document) -> Document:
            if not document["autoCreateSubnetworks"]:
                raise invalid("network", short(path), "The network is in custom subnet mode already.")
            return {"autoCreateSubnetworks": False}

        return self.change(call, changes, "switchToCustomMode")

    def _inside(self, path: str) -> Iterator[str]:
        auto = bool((self.store.get(self.name, path) or {}).get("autoCreateSubnetworks"))
        for name, subnetwork in self.store.list("subnetworks"):
            if subnetwork["network"] == link(path):
                if not (auto and subnetwork.get("_auto")):
                    yield name
                for instance, document in self.store.list("instances"):
                    if any(each["subnetwork"] == link(name) for each in document["networkInterfaces"]):
                        yield instance
        for collection in ("firewalls", "routers", "routes", "addresses"):
            for name, document in self.store.list(collection):
                if document.get("network") == link(path) and not document.get("_default"):
                    yield name

    def _make_auto_subnetwork(self, path: str, region: str, cidr: str) -> None:
        project = place_of(path).project
        own = Place(project, f"regions/{region}").path("subnetworks", short(path))
        if self.store.get("subnetworks", own) is not None:
            return
        document: Document = {
            "kind": "compute#subnetwork",
            "id": new_id(),
            "creationTimestamp": timestamp(self.context.cloud.now()),
            "name": short(path),
            "network": link(path),
            "ipCidrRange": cidr,
            "gatewayAddress": cidr.replace(".0/20", ".1"),
            "region": link(f"projects/{project}/regions/{region}"),
            "privateIpGoogleAccess": False,
            "purpose": "PRIVATE",
            "stackType": "IPV4_ONLY",
            "selfLink": link(own),
            "_auto": True,
        }
        self.store.put("subnetworks", own, document | {"fingerprint": fingerprint(document)})


def _default_route(path: str, network: str, made: str) -> Document:
    return {
        "kind": "compute#route",
        "id": new_id(),
        "creationTimestamp": made,
        "name": short(path),
        "description": "Default route to the Internet.",
        "network": link(network),
        "destRange": "0.0.0.0/0",
        "priority": 1000,
        "nextHopGateway": link(f"projects/{place_of(path).project}/global/gateways/default-internet-gateway"),
        "routeType": "STATIC",
        "selfLink": link(path),
        "_default": True,
    }
