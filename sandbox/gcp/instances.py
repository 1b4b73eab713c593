"""Instances, as far as they stand for the nodes of clusters: they hold addresses, and are next hops of routes.

https://cloud.google.com/compute/docs/reference/rest/v1/instances.
"""

from __future__ import annotations

from sandbox.clouds import Document
from sandbox.gcp.addresses import free_address
from sandbox.gcp.bodies import Instance, Interface
from sandbox.gcp.catalog import machine_types_of
from sandbox.gcp.collection import Collection
from sandbox.gcp.errors import invalid, refused, required
from sandbox.gcp.names import Place, link, path_of, place_of, reference, short

__all__ = ["Instances"]


class Instances(Collection):
    """`instances`."""

    name = "instances"
    noun = "instance"
    scope = "zones"
    body = Instance
    changes = ()

    def build(self, path: str, body: Instance) -> Document:
        """An instance with one address in each subnetwork that it is in."""
        zone = short(place_of(path).scope)
        machine_type = short(body.machine_type or "")
        if not machine_type:
            raise required("resource.machineType")
        if machine_type not in machine_types_of(zone):
            detail = f"Machine type '{machine_type}' does not exist in zone '{zone}'."
            raise invalid("resource.machineType", body.machine_type, detail)
        if not body.network_interfaces:
            raise invalid("resource.networkInterfaces", "", "At least one network interface is required.")
        interfaces = [
            self._interface(path, f"resource.networkInterfaces[{index}]", index, each)
            for index, each in enumerate(body.network_interfaces)
        ]
        return (
            {"canIpForward": False}
            | body.fields()
            | {
                "machineType": link(f"projects/{place_of(path).project}/zones/{zone}/machineTypes/{machine_type}"),
                "networkInterfaces": interfaces,
                "status": "PROVISIONING",
            }
        )

    def show(self, path: str, document: Document) -> Document:
        """With its state of now."""
        shown = super().show(path, document)
        return shown | {"status": document["status"] if "_busy" in document else "RUNNING"}

    def _interface(self, path: str, field: str, index: int, given: Interface) -> Document:
        subnetwork = self._subnetwork(path, field, given)
        document = self.context.ready(subnetwork)
        network = path_of(document["network"])
        if (
            given.network is not None
            and reference(f"{field}.network", given.network, place_of(path).project, "networks") != network
        ):
            detail = f"Subnetwork '{short(subnetwork)}' belongs to network '{short(network)}'."
            raise invalid(f"{field}.subnetwork", subnetwork, detail)
        taken = {
            each["networkIP"]
            for _, instance in self.all()
            for each in instance["networkInterfaces"]
            if each["subnetwork"] == link(subnetwork)
        } | {each["address"] for _, each in self.store.list("addresses") if each.get("subnetwork") == link(subnetwork)}
        address = free_address(f"{field}.networkIP", document, taken, given.network_ip)
        return (
            {"kind": "compute#networkInterface", "name": f"nic{index}"}
            | given.fields()
            | {
                "network": link(network),
                "subnetwork": link(subnetwork),
                "networkIP": address,
            }
        )

    def _subnetwork(self, path: str, field: str, given: Interface) -> str:
        """The subnetwork of an interface; an auto mode network has one for each region."""
        place = place_of(path)
        region = place.scope.removeprefix("zones/").rpartition("-")[0]
        if given.subnetwork is not None:
            subnetwork = reference(f"{field}.subnetwork", given.subnetwork, place.project, "subnetworks")
            if place_of(subnetwork).region != region:
                raise invalid(f"{field}.subnetwork", given.subnetwork, "The subnetwork is in another region.")
            return subnetwork
        network = reference(f"{field}.network", given.network or "global/networks/default", place.project, "networks")
        if not self.context.ready(network)["autoCreateSubnetworks"]:
            message = (
                f"Network interface must specify a subnet if the network resource '{network}' is in custom subnet mode."
            )
            raise refused(400, "invalid", f"Invalid value for field '{field}': ''. {message}")
        return Place(place.project, f"regions/{region}").path("subnetworks", short(network))
