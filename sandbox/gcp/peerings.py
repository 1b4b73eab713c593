"""Network peerings: two sides, each made on its own network; connected when both are there.

https://cloud.google.com/vpc/docs/using-vpc-peering ("only one peering operation at a time across peered networks")
and https://cloud.google.com/vpc/docs/vpc-peering. That route operations count as well is what clients report, such
as https://github.com/hashicorp/terraform-provider-google/issues/3034 and /6361.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network

from sandbox.clouds import Answer, Call, Document, Operation, overlapping
from sandbox.gcp.bodies import AddPeering, Peering, RemovePeering, UpdatePeering, parse
from sandbox.gcp.collection import Context
from sandbox.gcp.errors import failed, invalid, refused, required
from sandbox.gcp.lists import list_answer
from sandbox.gcp.names import Place, link, path_of, reference, short, timestamp, valid_name
from sandbox.gcp.ranges import active_peers, subnet_ranges

__all__ = ["Peerings", "refuse_while_peering"]

_DEFAULTS: Document = {
    "exchangeSubnetRoutes": True,
    "autoCreateRoutes": True,
    "exportCustomRoutes": False,
    "importCustomRoutes": False,
    "exportSubnetRoutesWithPublicIp": True,
    "importSubnetRoutesWithPublicIp": False,
    "stackType": "IPV4_ONLY",
}


def refuse_while_peering(context: Context, networks: Iterable[str], *, also_routes: bool = False) -> None:
    """Refuse a call while an operation on the peerings of one of the networks runs (or, if asked, on routes)."""
    kinds = {"peering": "peering", **({"route": "route"} if also_routes else {})}
    for operation in context.cloud.operations.running():
        kind = kinds.get(operation.inputs.get("class", ""))
        if kind and set(networks) & set(operation.inputs["touches"]):
            message = f"There is a {kind} operation in progress on the local or peer network. Try again later."
            raise refused(400, "badRequest", message)


class Peerings:
    """The methods of `networks` about peerings."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        context.cloud.finishers |= {
            "networks.addPeering": self._finish_add,
            "networks.removePeering": self._finish_remove,
            "networks.updatePeering": self._finish_update,
        }

    def add(self, call: Call) -> Answer:
        """`addPeering`: one side."""
        replay = self._context.operations.replay(call)
        if replay:
            return replay
        body = parse(AddPeering, call.content)
        given = body.network_peering or Peering(
            name=body.name or "", network=body.peer_network, exchange_subnet_routes=body.auto_create_routes
        )
        local = self._network(call)
        if not given.name:
            raise required("networkPeering.name")
        valid_name("networkPeering.name", given.name)
        peer = reference("networkPeering.network", given.network, call.at["project"], "networks")
        if peer == local:
            raise invalid("networkPeering.network", given.network, "A network cannot be peered with itself.")
        if given.exchange_subnet_routes is False:
            raise invalid("networkPeering.exchangeSubnetRoutes", "false", "Must be true.")
        document = self._context.ready(local)
        refuse_while_peering(self._context, (local, peer), also_routes=True)
        for side in document.get("peerings", ()):
            if side["name"] == given.name:
                raise invalid("networkPeering.name", given.name, "The network has a peering of this name already.")
            if path_of(side["network"]) == peer:
                message = f"There is already a peering {side['name']} with the same network. Select another network."
                raise refused(400, "badRequest", message)
        peering = _DEFAULTS | given.fields() | {"network": link(peer)}
        return self._start(call, "addPeering", local, peer, {"peering": peering})

    def remove(self, call: Call) -> Answer:
        """`removePeering`: this side; the other one becomes inactive."""
        replay = self._context.operations.replay(call)
        if replay:
            return replay
        body, local = parse(RemovePeering, call.content), self._network(call)
        side = self._side(local, body.name)
        return self._start(call, "removePeering", local, path_of(side["network"]), {"name": body.name})

    def update(self, call: Call) -> Answer:
        """`updatePeering`: which routes this side imports and exports."""
        replay = self._context.operations.replay(call)
        if replay:
            return replay
        given, local = parse(UpdatePeering, call.content).network_peering, self._network(call)
        side = self._side(local, given.name)
        changes = given.fields()
        if "network" in changes and path_of(changes.pop("network")) != path_of(side["network"]):
            raise invalid("networkPeering.network", given.network, "The peer network cannot be changed.")
        return self._start(call, "updatePeering", local, path_of(side["network"]), {"changes": changes})

    def list_routes(self, call: Call) -> Answer:
        """`listPeeringRoutes`: the subnet routes that one peering brings, or gives, in a region."""
        local, query = self._network(call), call.query
        side = self._side(local, query.get("peeringName", ""))
        direction = query.get("direction", "INCOMING")
        source = path_of(side["network"]) if direction == "INCOMING" else local
        region = query.get("region")
        active = side["state"] == "ACTIVE"
        routes = [
            {
                "destRange": str(cidr),
                "type": "SUBNET_PEERING_ROUTE",
                "nextHopRegion": short(subnetwork["region"]),
                "priority": 0,
                "imported": active,
            }
            for cidr, subnetwork in subnet_ranges(self._store, source)
            if active and region in (None, short(subnetwork["region"]))
        ]
        return list_answer(call, "compute#exchangedPeeringRoutes", f"{local}/listPeeringRoutes", routes)

    def _start(self, call: Call, method: str, local: str, peer: str, inputs: Document) -> Answer:
        refuse_while_peering(self._context, (local, peer), also_routes=True)
        more = {"class": "peering", "touches": [local, peer], "peer": peer, "targetId": self._context.find(local)["id"]}
        place = Place(call.at["project"], "global")
        return self._context.operations.start(call, place, f"networks.{method}", local, inputs | more)

    def _network(self, call: Call) -> str:
        path = Place(call.at["project"], "global").path("networks", call.at["name"])
        self._context.ready(path)
        return path

    def _side(self, network: str, name: str) -> Document:
        sides: list[Document] = self._context.find(network).get("peerings", [])
        for side in sides:
            if side["name"] == name:
                return side
        message = f"There is no peering '{name}' in network '{short(network)}'."
        raise refused(400, "invalid", f"Invalid value for field 'name': '{name}'. {message}")

    def _finish_add(self, operation: Operation) -> Document | None:
        local, peer = operation.target, operation.inputs["peer"]
        sides = self._sides(local)
        full = self._context.quotas.failure("PEERINGS_PER_NETWORK", len(sides))
        if full:
            return full
        answered = any(path_of(side["network"]) == local for side in self._sides(peer))
        overlap = self._overlap(local, peer) if answered else None
        if overlap:
            return failed(400, "INVALID_USAGE", overlap)
        self._put_sides(local, [*sides, operation.inputs["peering"] | {"state": "INACTIVE"}])
        self._connect(local, peer, connected=answered, at=operation.due)
        return None

    def _finish_remove(self, operation: Operation) -> None:
        local, peer = operation.target, operation.inputs["peer"]
        self._put_sides(local, [side for side in self._sides(local) if side["name"] != operation.inputs["name"]])
        self._connect(local, peer, connected=False, at=operation.due)

    def _finish_update(self, operation: Operation) -> None:
        changes = operation.inputs["changes"]
        sides = [side | changes if side["name"] == changes["name"] else side for side in self._sides(operation.target)]
        self._put_sides(operation.target, sides)

    def _connect(self, local: str, peer: str, *, connected: bool, at: float) -> None:
        """Set the state of both sides of a pair, as far as they are there."""
        state = "ACTIVE" if connected else "INACTIVE"
        detail = "Connected." if connected else "Waiting for peer network to connect."
        for network, other in ((local, peer), (peer, local)):
            news = {"state": state, "stateDetails": f"[{timestamp(at)}]: {detail}"}
            sides = self._sides(network)
            if any(path_of(side["network"]) == other for side in sides):
                self._put_sides(network, [side | news if path_of(side["network"]) == other else side for side in sides])

    def _sides(self, network: str) -> list[Document]:
        document = self._store.get("networks", network) or {}
        return list(document.get("peerings", ()))

    def _put_sides(self, network: str, sides: list[Document]) -> None:
        document = self._context.find(network)
        document.pop("peerings", None)
        self._store.put("networks", network, document | ({"peerings": sides} if sides else {}))

    def _overlap(self, local: str, peer: str) -> str | None:
        """Why two networks cannot be connected."""
        for cidr, subnetwork in subnet_ranges(self._store, local):
            hit = overlapping(cidr, subnet_ranges(self._store, peer))
            if hit:
                return (
                    f"An IP range in the peer network ({hit[0]}) overlaps with an IP range in the local network "
                    f"({cidr}) allocated by resource ({path_of(subnetwork['selfLink'])})."
                )
        return self._far_overlap(local, peer, "peer") or self._far_overlap(peer, local, "local")

    def _far_overlap(self, one: str, other: str, side: str) -> str | None:
        """The same against the networks that `other` is connected with already."""
        taken = list(self._ranges_of_peers(other, besides=one))
        for cidr, _ in subnet_ranges(self._store, one):
            hit = overlapping(cidr, taken)
            if hit:
                return (
                    f"An IP range ({cidr}) overlaps with an IP range ({hit[0]}) in an active peer ({short(hit[1])}) "
                    f"of the {side} network."
                )
        return None

    def _ranges_of_peers(self, network: str, besides: str) -> Iterator[tuple[IPv4Network, str]]:
        for far in active_peers(self._store, network):
            if far != besides:
                yield from ((cidr, far) for cidr, _ in subnet_ranges(self._store, far))
