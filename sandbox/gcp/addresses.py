"""Reserved addresses, regional and global.

https://cloud.google.com/compute/docs/reference/rest/v1/addresses and .../globalAddresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

from sandbox.clouds import Answer, Call, Document, overlapping
from sandbox.gcp.bodies import Address, Labels, parse
from sandbox.gcp.catalog import ZONES
from sandbox.gcp.collection import Collection
from sandbox.gcp.errors import invalid, refused, required
from sandbox.gcp.lists import aggregated_answer
from sandbox.gcp.names import fingerprint, link, path_of, place_of, reference
from sandbox.gcp.ranges import subnet_ranges

__all__ = ["Addresses", "free_address"]

# RFC 2544: addresses of benchmarks stand for the Internet's.
_EXTERNAL = IPv4Network("198.18.0.0/15")
_FIRST_USABLE, _LAST_RESERVED = 2, 2


class Addresses(Collection):
    """`addresses` and `globalAddresses`."""

    name = "addresses"
    noun = "address"
    scope = "regions"
    body = Address
    changes = ("setLabels",)

    def build(self, path: str, body: Address) -> Document:
        """An external address, an internal one of a subnetwork, or (global) a range for service producers."""
        kind = body.address_type or "EXTERNAL"
        document = body.fields() | {"addressType": kind, "labelFingerprint": fingerprint(body.labels or {})}
        if kind == "EXTERNAL":
            return document | self._external()
        if place_of(path).scope == "global":
            return document | self._range(path, body)
        return document | self._internal(path, body)

    def insert(self, call: Call) -> Answer:
        """`insert`: a full quota is refused at once."""
        if parse(Address, call.content).address_type != "INTERNAL":
            place, quotas = self.place(call), self.context.quotas
            region = place.region
            failure = region and quotas.failure(
                "STATIC_ADDRESSES", quotas.addresses(place.project, region), region=region
            )
            if failure:
                raise refused(403, "quotaExceeded", failure["errors"][0]["message"])
        return super().insert(call)

    def aggregated(self, call: Call) -> Answer:
        """`aggregatedList`: with the global ones."""
        project = call.at["project"]
        scopes = ["global", *(f"regions/{region}" for region in ZONES)]
        path, documents = f"projects/{project}/aggregated/addresses", self.seen(f"projects/{project}/")
        return aggregated_answer(call, "compute#address", path, self.name, documents, scopes)

    def users(self, path: str, document: Document) -> Sequence[str]:
        """The routers whose NAT gateways use it."""
        del document
        return [
            name
            for name, router in self.store.list("routers")
            if any(link(path) in nat.get("natIps", ()) for nat in router.get("nats", ()))
        ]

    def show(self, path: str, document: Document) -> Document:
        """With who uses it."""
        users = [link(user) for user in self.users(path, document)]
        shown = super().show(path, document) | {"status": "IN_USE" if users else "RESERVED"}
        return shown | ({"users": users} if users else {})

    def set_labels(self, call: Call) -> Answer:
        """`setLabels`: needs the present fingerprint of the labels."""
        body = parse(Labels, call.content)

        def changes(path: str, document: Document) -> Document:
            del path
            if body.label_fingerprint != document["labelFingerprint"]:
                message = "Labels fingerprint either invalid or resource labels have changed"
                raise refused(412, "conditionNotMet", message, location="If-Match", locationType="header")
            return {"labels": body.labels, "labelFingerprint": fingerprint(body.labels)}

        return self.change(call, changes, "setLabels")

    def _external(self) -> Document:
        taken = {each["address"] for _, each in self.all() if each["addressType"] == "EXTERNAL"}
        free = next(address for address in _EXTERNAL.hosts() if str(address) not in taken)
        return {"address": str(free), "networkTier": "PREMIUM"}

    def _internal(self, path: str, body: Address) -> Document:
        if body.subnetwork is None:
            raise required("resource.subnetwork")
        subnetwork = reference("resource.subnetwork", body.subnetwork, place_of(path).project, "subnetworks")
        document = self.context.ready(subnetwork)
        taken = {each["address"] for _, each in self.all() if each.get("subnetwork") == link(subnetwork)}
        address = free_address("resource.address", document, taken, body.address)
        return {"address": address, "subnetwork": link(subnetwork), "purpose": body.purpose or "GCE_ENDPOINT"}

    def _range(self, path: str, body: Address) -> Document:
        if body.network is None or body.prefix_length is None or body.address is None:
            raise required("resource.network, resource.prefixLength and resource.address")
        network = reference("resource.network", body.network, place_of(path).project, "networks")
        self.context.ready(network)
        given = IPv4Network(f"{body.address}/{body.prefix_length}", strict=False)
        hit = overlapping(given, subnet_ranges(self.store, network))
        if hit:
            detail = f"Requested range {given} conflicts with subnetwork '{path_of(hit[1]['selfLink'])}'."
            raise invalid("resource.address", body.address, detail)
        return {"network": link(network), "purpose": body.purpose or "VPC_PEERING"}


def free_address(field: str, subnetwork: Document, taken: set[str], wanted: str | None) -> str:
    """An address of a subnetwork's primary range: the wanted one, or the first that is free.

    The first two and the last two are reserved (https://cloud.google.com/vpc/docs/subnets#unusable-ip-addresses-in-every-subnet).

    Raises:
        Refusal: the wanted one is taken or not in the range, or none is free.
    """
    cidr = IPv4Network(subnetwork["ipCidrRange"])
    first, last = int(cidr[_FIRST_USABLE]), int(cidr[-1]) - _LAST_RESERVED
    if wanted is not None:
        if not first <= _number(wanted) <= last:
            raise invalid(field, wanted, f"It is no usable address of {cidr}.")
        if wanted in taken:
            raise refused(400, "ipInUse", f"IP '{wanted}' is already being used by another resource.")
        return wanted
    for number in range(first, last + 1):
        if str(IPv4Address(number)) not in taken:
            return str(IPv4Address(number))
    raise refused(400, "ipSpaceExhausted", f"IP space of '{path_of(subnetwork['selfLink'])}' is exhausted.")


def _number(text: str) -> int:
    try:
        return int(IPv4Address(text))
    except ValueError:
        return -1
