"""VPC firewall rules: https://cloud.google.com/compute/docs/reference/rest/v1/firewalls."""

from __future__ import annotations

from sandbox.clouds import Answer, Call, Document, parse_cidr
from sandbox.gcp.bodies import Firewall, parse
from sandbox.gcp.collection import Collection
from sandbox.gcp.errors import invalid, required
from sandbox.gcp.names import link, path_of, place_of, reference

__all__ = ["Firewalls"]


class Firewalls(Collection):
    """`firewalls`."""

    name = "firewalls"
    noun = "firewall"
    scope = "global"
    body = Firewall
    changes = ("patch", "update")

    def build(self, path: str, body: Firewall) -> Document:
        """A rule for a whole network."""
        network = reference(
            "resource.network", body.network or "global/networks/default", place_of(path).project, "networks"
        )
        self.context.ready(network)
        return _checked(body, {"priority": 1000, "direction": "INGRESS", "disabled": False} | body.fields()) | {
            "network": link(network)
        }

    def shortage(self, path: str, document: Document) -> Document | None:
        """Rules per project."""
        del document
        return self.context.quotas.project_failure(place_of(path).project, "FIREWALLS")

    def patch(self, call: Call) -> Answer:
        """`patch`: members that are given replace the old ones."""
        body = parse(Firewall, call.content)
        return self.change(call, lambda path, document: _changed(path, document, body))

    def update(self, call: Call) -> Answer:
        """`update` (PUT)."""
        body = parse(Firewall, call.content)
        return self.change(call, lambda path, document: _changed(path, document, body), "update")


def _changed(path: str, document: Document, body: Firewall) -> Document:
    given = body.fields()
    if given.pop("name", document["name"]) != document["name"]:
        raise invalid("resource.name", body.name, "The name cannot be changed.")
    network = given.pop("network", document["network"])
    if reference("resource.network", network, place_of(path).project, "networks") != path_of(document["network"]):
        raise invalid("resource.network", body.network, "The network cannot be changed.")
    if given.get("direction", document["direction"]) != document["direction"]:
        raise invalid("resource.direction", body.direction, "The direction cannot be changed.")
    _checked(body, document | given)
    return given


def _checked(body: Firewall, document: Document) -> Document:
    """The rule with its defaults, if it may be one."""
    if bool(document.get("allowed")) == bool(document.get("denied")):
        raise required("resource.allowed")
    for field, ranges in (("sourceRanges", body.source_ranges), ("destinationRanges", body.destination_ranges)):
        for text in ranges or ():
            if ":" not in text and parse_cidr(text) is None:
                raise invalid(f"resource.{field}", text, "Must be a CIDR address range.")
    egress = document["direction"] == "EGRESS"
    if egress and (document.get("sourceRanges") or document.get("sourceTags")):
        raise invalid("resource.sourceRanges", body.source_ranges, "Sources cannot be given for EGRESS rules.")
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    if egress:
        return {"destinationRanges": ["0.0.0.0/0"]} | document
    return document if any(document.get(each) for each in sources) else document | {"sourceRanges": ["0.0.0.0/0"]}
