"""Subnetworks: https://cloud.google.com/compute/docs/reference/rest/v1/subnetworks and
https://cloud.google.com/vpc/docs/subnets.
"""  # noqa: D205 - two links

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network

from sandbox.clouds import Answer, Call, Document, overlapping
from sandbox.gcp.bodies import ExpandRange, PrivateAccess, Subnetwork, parse
from sandbox.gcp.collection import Collection
from sandbox.gcp.errors import invalid, refused, required
from sandbox.gcp.names import fingerprint, link, path_of, place_of, reference, short, valid_name
from sandbox.gcp.ranges import address_space, check_subnet_range, subnet_ranges

__all__ = ["Subnetworks"]

# Where auto mode networks have their own subnetworks, now and in regions to come.
_AUTO = IPv4Network("10.128.0.0/9")
_MOST_SECONDARY = 170
_LARGEST_AUTO = 16


class Subnetworks(Collection):
    """`subnetworks`."""

    name = "subnetworks"
    noun = "subnetwork"
    scope = "regions"
    body = Subnetwork
    changes = ("patch", "expandIpCidrRange", "setPrivateIpGoogleAccess")

    def build(self, path: str, body: Subnetwork) -> Document:
        """A subnetwork whose ranges overlap nothing in the network, its peers, and theirs."""
        network = reference("resource.network", body.network, place_of(path).project, "networks")
        if body.ip_cidr_range is None:
            raise required("resource.ipCidrRange")
        if self.context.ready(network)["autoCreateSubnetworks"]:
            given = check_subnet_range("resource.ipCidrRange", body.ip_cidr_range)
            if given.overlaps(_AUTO):
                detail = f"Extended subnetworks in auto subnet mode networks cannot overlap with {_AUTO}."
                raise invalid("resource.ipCidrRange", body.ip_cidr_range, detail)
        ranges = self._checked_ranges(body, network)
        document = body.fields() | {
            "network": link(network),
            "gatewayAddress": str(ranges[0][1][1]),
            "privateIpGoogleAccess": bool(body.private_ip_google_access),
            "purpose": body.purpose or "PRIVATE",
            "stackType": "IPV4_ONLY",
        }
        return document | {"fingerprint": fingerprint(document)}

    def shortage(self, path: str, document: Document) -> Document | None:
        """Ranges per network."""
        del path
        used = sum(1 for _ in subnet_ranges(self.store, path_of(document["network"])))
        more = 1 + len(document.get("secondaryIpRanges", ()))
        return self.context.quotas.failure("SUBNET_RANGES_PER_NETWORK", used, more=more)

    def users(self, path: str, document: Document) -> Sequence[str]:
        """Instances, NAT gateways and internal addresses."""
        del document
        instances = [
            name
            for name, instance in self.store.list("instances")
            if any(each["subnetwork"] == link(path) for each in instance["networkInterfaces"])
        ]
        routers = [
            name
            for name, router in self.store.list("routers")
            if any(each["name"] == link(path) for nat in router.get("nats", ()) for each in nat.get("subnetworks", ()))
        ]
        addresses = [name for name, each in self.store.list("addresses") if each.get("subnetwork") == link(path)]
        return [*instances, *routers, *addresses]

    def delete(self, call: Call) -> Answer:
        """`delete`: not of what an auto mode network made itself."""
        document = self.context.find(self.path(call))
        network = self.context.find(path_of(document["network"]))
        if document.get("_auto") and network["autoCreateSubnetworks"]:
            raise refused(400, "invalidUsage", "Cannot delete auto subnetwork from an auto subnet mode network.")
        return super().delete(call)

    def patch(self, call: Call) -> Answer:
        """`patch`: needs the fingerprint of what it was made from."""
        body = parse(Subnetwork, call.content)

        def changes(path: str, document: Document) -> Document:
            if body.fingerprint != document["fingerprint"]:
                raise refused(
                    412, "conditionNotMet", "Invalid fingerprint.", location="If-Match", locationType="header"
                )
            given = body.fields()
            for field in ("name", "network", "ipCidrRange", "purpose"):
                if field in given and _plain(given.pop(field)) != _plain(document[field]):
                    raise invalid(
                        f"resource.{field}", getattr(body, field, ""), "The field cannot be changed by patch."
                    )
            for field, secondary in self._check_secondary(body, path_of(document["network"]), besides=path):
                _refuse_among(field, secondary, [IPv4Network(document["ipCidrRange"])])
            return _renewed(document, given)

        return self.change(call, changes)

    def expand(self, call: Call) -> Answer:
        """`expandIpCidrRange`: to a larger range that contains the present one."""
        text = parse(ExpandRange, call.content).ip_cidr_range

        def changes(path: str, document: Document) -> Document:
            wider, present = check_subnet_range("ipCidrRange", text), IPv4Network(document["ipCidrRange"])
            if not (present.subnet_of(wider) and present != wider):
                raise invalid("ipCidrRange", text, f"Must be larger than, and contain, the present range {present}.")
            if document.get("_auto") and wider.prefixlen < _LARGEST_AUTO:
                raise invalid("ipCidrRange", text, f"An auto subnetwork cannot be larger than /{_LARGEST_AUTO}.")
            self._refuse_overlap("ipCidrRange", wider, path_of(document["network"]), besides=path)
            secondary = [IPv4Network(each["ipCidrRange"]) for each in document.get("secondaryIpRanges", ())]
            _refuse_among("ipCidrRange", wider, secondary)
            return _renewed(document, {"ipCidrRange": text, "gatewayAddress": str(wider[1])})

        return self.change(call, changes, "expandIpCidrRange")

    def set_private_access(self, call: Call) -> Answer:
        """`setPrivateIpGoogleAccess`."""
        wanted = parse(PrivateAccess, call.content).private_ip_google_access
        return self.change(
            call,
            lambda _, document: _renewed(document, {"privateIpGoogleAccess": wanted}),
            "setPrivateIpGoogleAccess",
        )

    def _checked_ranges(self, body: Subnetwork, network: str, besides: str = "") -> list[tuple[str, IPv4Network]]:
        """All ranges of a body with their fields, the primary one first."""
        ranges = [("resource.ipCidrRange", check_subnet_range("resource.ipCidrRange", body.ip_cidr_range or ""))]
        self._refuse_overlap(*ranges[0], network, besides)
        for field, given in self._check_secondary(body, network, besides):
            _refuse_among(field, given, [earlier for _, earlier in ranges])
            ranges.append((field, given))
        return ranges

    def _check_secondary(self, body: Subnetwork, network: str, besides: str = "") -> list[tuple[str, IPv4Network]]:
        secondary = body.secondary_ip_ranges or []
        if len(secondary) > _MOST_SECONDARY:
            raise invalid("resource.secondaryIpRanges", len(secondary), f"At most {_MOST_SECONDARY} are allowed.")
        found: list[tuple[str, IPv4Network]] = []
        for index, each in enumerate(secondary):
            field = f"resource.secondaryIpRanges[{index}]"
            valid_name(f"{field}.rangeName", each.range_name)
            if each.range_name in [earlier.range_name for earlier in secondary[:index]]:
                raise invalid(f"{field}.rangeName", each.range_name, "The name of a secondary range must be unique.")
            given = check_subnet_range(f"{field}.ipCidrRange", each.ip_cidr_range)
            self._refuse_overlap(f"{field}.ipCidrRange", given, network, besides)
            _refuse_among(f"{field}.ipCidrRange", given, [earlier for _, earlier in found])
            found.append((f"{field}.ipCidrRange", given))
        return found

    def _refuse_overlap(self, field: str, given: IPv4Network, network: str, besides: str = "") -> None:
        for each in address_space(self.store, network):
            others = (hit for hit in subnet_ranges(self.store, each) if path_of(hit[1]["selfLink"]) != besides)
            hit = overlapping(given, others)
            if hit:
                whose = f"'{hit[1]['name']}' in region '{short(hit[1]['region'])}'"
                detail = f"Invalid IPCidrRange: {given} conflicts with existing subnetwork {whose}."
                raise invalid(field, given, detail)


def _refuse_among(field: str, given: IPv4Network, own: Iterable[IPv4Network]) -> None:
    hit = overlapping(given, ((other, None) for other in own))
    if hit:
        raise invalid(field, given, f"Invalid IPCidrRange: {given} overlaps with {hit[0]} of the same subnetwork.")


def _renewed(document: Document, changes: Document) -> Document:
    return changes | {"fingerprint": fingerprint(document | changes)}


def _plain(value: str) -> str:
    return path_of(value) if "/projects/" in value else value
