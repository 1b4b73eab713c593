"""Peerings: two sides, each made on its own network; connected when both are there.

https://learn.microsoft.com/azure/virtual-network/virtual-network-manage-peering and
https://learn.microsoft.com/rest/api/virtualnetwork/virtual-network-peerings: Initiated until the other side is there,
Disconnected once that is deleted; after a change of prefixes both sides have to be synchronised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network

from sandbox.azure.bodies import PeeringBody
from sandbox.azure.errors import bad_request
from sandbox.azure.ids import Id
from sandbox.azure.ranges import network_ranges
from sandbox.azure.resources import Resources
from sandbox.clouds import Call, Document, Operation, Refusal

__all__ = ["Peerings"]

_NETWORKS = "virtualNetworks"
_DEFAULTS: Document = {
    "allowVirtualNetworkAccess": True,
    "allowForwardedTraffic": False,
    "allowGatewayTransit": False,
    "useRemoteGateways": False,
    "doNotVerifyRemoteGateways": False,
    "peerCompleteVnets": True,
}
_MORE = "For more information please refer to https://aka.ms/VnetPeeringInfo"


class Peerings(Resources):
    """`virtualNetworks/virtualNetworkPeerings`."""

    collection = _NETWORKS
    child = "virtualNetworkPeerings"
    body = PeeringBody

    def build(self, id_: Id, body: PeeringBody, before: Document | None) -> Document:
        """One side, towards a network whose prefixes are apart."""
        given = body.properties
        remote = Id.parse(given.remote_virtual_network.id) if given.remote_virtual_network else None
        network = self.store.get(_NETWORKS, remote.key) if remote else None
        if remote is None or network is None or remote.key == id_.root_key:
            text = given.remote_virtual_network.id if given.remote_virtual_network else "(none)"
            message = f"Resource {text} referenced by resource {id_} was not found, or is no network to peer with."
            raise bad_request("InvalidResourceReference", message)
        self._check_sides(id_, remote, before)
        self._check_spaces(id_, remote)
        own = self._space(id_.root_key)
        other = self._side(remote.root_key, id_.root_key)
        if other is not None and other[1]["properties"]["peeringState"] == "Disconnected":
            message = (
                f"Cannot create or update peering {id_} because remote peering {other[0]} referencing parent virtual "
                f"network {id_.root_text} is in Disconnected state. Update or re-create the remote peering to get it "
                "back to Initiated state. Peering gets Disconnected when remote vnet or remote peering is deleted and "
                "re-created."
            )
            raise bad_request("RemotePeeringIsDisconnected", message)
        kept = (before or {}).get("properties", {})
        seen = kept.get("remoteVirtualNetworkAddressSpace") or {"addressPrefixes": self._space(remote.key)}
        return (
            _DEFAULTS
            | given.fields()
            | {
                "remoteVirtualNetwork": {"id": str(network["id"])},
                "peeringState": kept.get("peeringState", "Initiated"),
                "peeringSyncLevel": kept.get("peeringSyncLevel", "RemoteNotInSync"),
                "remoteAddressSpace": seen,
                "remoteVirtualNetworkAddressSpace": seen,
                "_told": kept.get("_told", own),
            }
        )

    def show(self, id_: Id, document: Document) -> Document:
        """Without what only the server knows."""
        shown = super().show(id_, document)
        public = {name: value for name, value in shown["properties"].items() if not name.startswith("_")}
        return shown | {"properties": public}

    def inputs(self, call: Call) -> Document:
        """`syncRemoteAddressSpace=true` takes over the prefixes of now."""
        return {"sync": call.query.get("syncRemoteAddressSpace", "").lower() == "true"}

    def check_growth(self, id_: Id, ranges: Sequence[IPv4Network]) -> None:
        """Refuses prefixes of a network that overlap those of a network it is peered with."""
        for _, document in self.all(f"{id_.root_key}/virtualnetworkpeerings/"):
            remote = _remote_of(document)
            hit = _overlap(ranges, self._ranges(remote))
            if hit:
                message = (
                    f"Cannot create or update virtual network {id_}. Its address space overlaps with that of virtual "
                    f"network {remote}, which is already peered with it. Overlapping address prefixes: {hit}. {_MORE}"
                )
                raise bad_request("VnetAddressSpaceOverlapsWithAlreadyPeeredVnet", message)

    def network_changed(self, id_: Id) -> None:
        """Both sides are out of step while the prefixes that the peers know are older."""
        for mine, document in self.all(f"{id_.root_key}/virtualnetworkpeerings/"):
            other = self._side(_remote_of(document), id_.root_key)
            if other is not None and document["properties"]["peeringState"] == "Connected":
                self._level(mine, document, other)

    def network_deleted(self, id_: Id) -> None:
        """The peers of a network that is gone are disconnected."""
        for side, document in list(self.all()):
            if _remote_of(document) == id_.root_key:
                self._set(side, document, peeringState="Disconnected", peeringSyncLevel="LocalAndRemoteNotInSync")

    def deleted(self, id_: Id) -> None:
        """The other side is disconnected."""
        for side, document in list(self.all()):
            if _remote_of(document) == id_.root_key:
                self._set(side, document, peeringState="Disconnected", peeringSyncLevel="LocalAndRemoteNotInSync")

    def _finish_put(self, operation: Operation) -> Document | None:
        super()._finish_put(operation)
        id_ = Id.parse(operation.target)
        document = self.find(id_) if id_ else None
        if id_ is None or document is None:
            return None
        remote = _remote_of(document)
        if operation.inputs["sync"] or document["properties"]["peeringState"] != "Connected":
            space = {"addressPrefixes": self._space(remote)}
            document = self._set(id_, document, remoteAddressSpace=space, remoteVirtualNetworkAddressSpace=space)
        other = self._side(remote, id_.root_key)
        if other is None:
            self._set(id_, document, peeringState="Initiated", peeringSyncLevel="RemoteNotInSync")
            return None
        self._set(id_, document, peeringState="Connected")
        self._set(*other, peeringState="Connected")
        mine, theirs = self.find(id_), self.find(other[0])
        if mine and theirs:
            self._level(id_, mine, (other[0], theirs))
        return None

    def _level(self, id_: Id, document: Document, other: tuple[Id, Document]) -> None:
        """How far the prefixes that each side knows are those that the other one has."""
        local = document["properties"]["remoteVirtualNetworkAddressSpace"]["addressPrefixes"]
        far = other[1]["properties"]["remoteVirtualNetworkAddressSpace"]["addressPrefixes"]
        local_in_step = local == self._space(_remote_of(document))
        far_in_step = far == self._space(id_.root_key)
        self._set(id_, document, peeringSyncLevel=_sync_level(local_in_step, far_in_step))
        self._set(*other, peeringSyncLevel=_sync_level(far_in_step, local_in_step))

    def _set(self, id_: Id, document: Document, **members: object) -> Document:
        changed = document | {"properties": document["properties"] | members}
        self.store.put(self.kind, id_.key, changed)
        return changed

    def _check_sides(self, id_: Id, remote: Id, before: Document | None) -> None:
        sides = [side for side in self.all(f"{id_.root_key}/virtualnetworkpeerings/") if side[0].key != id_.key]
        if before is None:
            self.context.quotas.check("PeeringsPerVirtualNetwork", len(sides))
        elif before["properties"].get("remoteVirtualNetwork") and _remote_of(before) != remote.key:
            message = f"Cannot change remote virtual network of existing peering {id_}."
            raise bad_request("RemoteVnetOfPeeringCannotBeChanged", message)
        for side, document in sides:
            if _remote_of(document) == remote.key:
                message = (
                    f"Peering {side} already references remote virtual network {remote}. Cannot add another peering "
                    "referencing the same remote virtual network."
                )
                raise bad_request("AnotherPeeringAlreadyReferencesRemoteVnet", message)

    def _check_spaces(self, id_: Id, remote: Id) -> None:
        own, far = self._ranges(id_.root_key), self._ranges(remote.key)
        hit = _overlap(own, far)
        if hit:
            raise _cannot_be_peered(id_, remote, "VnetAddressSpacesOverlap", "their address spaces overlap.", hit)
        for one, other in ((id_.root_key, remote.key), (remote.key, id_.root_key)):
            for third in self._peers(other, besides=one):
                hit = _overlap(self._ranges(one), self._ranges(third))
                if hit:
                    order = "first" if one == id_.root_key else "second"
                    rest = "second" if one == id_.root_key else "first"
                    why = (
                        f"address space of the {order} virtual network overlaps with address space of virtual network "
                        f"{third} already peered with the {rest} virtual network."
                    )
                    raise _cannot_be_peered(id_, remote, "VnetAddressSpaceOverlapsWithAlreadyPeeredVnet", why, hit)

    def _peers(self, network: str, besides: str) -> Iterator[str]:
        for _, document in self.all(f"{network}/virtualnetworkpeerings/"):
            if document["properties"].get("remoteVirtualNetwork") and _remote_of(document) != besides:
                yield _remote_of(document)

    def _side(self, network: str, remote: str) -> tuple[Id, Document] | None:
        """The peering of one network towards another."""
        sides = self.all(f"{network}/virtualnetworkpeerings/")
        return next((side for side in sides if _remote_of(side[1]) == remote), None)

    def _space(self, network: str) -> list[str]:
        found = self.store.get(_NETWORKS, network)
        return list(found["properties"]["addressSpace"]["addressPrefixes"]) if found else []

    def _ranges(self, network: str) -> list[IPv4Network]:
        found = self.store.get(_NETWORKS, network)
        return network_ranges(found) if found else []


def _remote_of(document: Document) -> str:
    """The key of the network that a side leads to."""
    return str((document["properties"].get("remoteVirtualNetwork") or {}).get("id", "")).lower()


def _overlap(some: Sequence[IPv4Network], others: Sequence[IPv4Network]) -> str:
    hits = [f"{one}, {other}" for one in some for other in others if one.overlaps(other)]
    return ", ".join(hits)


def _sync_level(local: bool, remote: bool) -> str:
    match local, remote:
        case True, True:
            return "FullyInSync"
        case True, False:
            return "RemoteNotInSync"
        case False, True:
            return "LocalNotInSync"
        case _:
            return "LocalAndRemoteNotInSync"


def _cannot_be_peered(id_: Id, remote: Id, code: str, why: str, hit: str) -> Refusal:
    message = (
        f"Cannot create or update peering {id_}. Virtual networks {id_.root_text} and {remote} cannot be peered "
        f"because {why} Overlapping address prefixes: {hit}. {_MORE}"
    )
    return bad_request(code, message)
