"""Regions, zones, machine types and projects: what is there without being made.

https://cloud.google.com/compute/docs/regions-zones and
https://cloud.google.com/vpc/docs/subnets#ip-ranges (the range of each region in an auto mode network).
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.clouds import Answer, Call, Document
from sandbox.gcp.errors import invalid, not_found
from sandbox.gcp.lists import aggregated_answer, list_answer
from sandbox.gcp.names import link
from sandbox.gcp.quotas import Quotas

__all__ = ["AUTO_RANGES", "ZONES", "Catalog", "check_region", "check_zone", "machine_types_of"]

# A selection of the real ones: zones by region.
ZONES = {
    "europe-west1": ("b", "c", "d"),
    "europe-west3": ("a", "b", "c"),
    "us-central1": ("a", "b", "c", "f"),
    "us-east1": ("b", "c", "d"),
}
AUTO_RANGES = {
    "us-central1": "10.128.0.0/20",
    "europe-west1": "10.132.0.0/20",
    "us-east1": "10.142.0.0/20",
    "europe-west3": "10.156.0.0/20",
}
# Virtual CPUs and memory (MB).
_MACHINE_TYPES = {
    "e2-standard-2": (2, 8192),
    "n1-standard-2": (2, 7680),
    "n2-standard-2": (2, 8192),
    "n2-standard-4": (4, 16384),
    "n2-standard-8": (8, 32768),
    "t2a-standard-2": (2, 8192),
}
# https://cloud.google.com/compute/docs/regions-zones#available: Arm machines are in few places.
_NOT_IN = {"t2a-standard-2": ("europe-west3", "us-east1")}
_MADE = "1970-01-01T00:00:00.000-07:00"


def check_region(region: str) -> str:
    """The region, if there is one of this name.

    Raises:
        Refusal: there is none.
    """
    if region not in ZONES:
        raise invalid("region", region, "Unknown region.")
    return region


def check_zone(zone: str) -> str:
    """The zone, if there is one of this name.

    Raises:
        Refusal: there is none.
    """
    region, _, letter = zone.rpartition("-")
    if letter not in ZONES.get(region, ()):
        raise invalid("zone", zone, "Unknown zone.")
    return zone


def machine_types_of(zone: str) -> list[str]:
    """The machine types of a zone."""
    region = zone.rpartition("-")[0]
    return [name for name in _MACHINE_TYPES if region not in _NOT_IN.get(name, ())]


class Catalog:
    """Answers the calls about what is simply there."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas

    def get_project(self, call: Call) -> Answer:
        """`projects.get`: with the project's quotas and how much of them is used."""
        project = call.at["project"]
        return Answer(
            {
                "kind": "compute#project",
                "id": str(_number(project)),
                "name": project,
                "creationTimestamp": _MADE,
                "selfLink": link(f"projects/{project}"),
                "quotas": self._quotas.of_project(project),
                "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS",
                "defaultNetworkTier": "PREMIUM",
            }
        )

    def get_region(self, call: Call) -> Answer:
        """`regions.get`."""
        project, region = call.at["project"], call.at["region"]
        if region not in ZONES:
            raise not_found(f"projects/{project}/regions/{region}")
        return Answer(self._region(project, region))

    def list_regions(self, call: Call) -> Answer:
        """`regions.list`."""
        project = call.at["project"]
        documents = [self._region(project, region) for region in ZONES]
        return list_answer(call, "compute#region", f"projects/{project}/regions", documents)

    def get_zone(self, call: Call) -> Answer:
        """`zones.get`."""
        project, zone = call.at["project"], call.at["zone"]
        found = next((document for document in _zones(project) if document["name"] == zone), None)
        if found is None:
            raise not_found(f"projects/{project}/zones/{zone}")
        return Answer(found)

    def list_zones(self, call: Call) -> Answer:
        """`zones.list`."""
        project = call.at["project"]
        return list_answer(call, "compute#zone", f"projects/{project}/zones", _zones(project))

    def get_machine_type(self, call: Call) -> Answer:
        """`machineTypes.get`."""
        project, zone, name = call.at["project"], check_zone(call.at["zone"]), call.at["name"]
        found = next((document for document in _machine_types(project, zone) if document["name"] == name), None)
        if found is None:
            raise not_found(f"projects/{project}/zones/{zone}/machineTypes/{name}")
        return Answer(found)

    def list_machine_types(self, call: Call) -> Answer:
        """`machineTypes.list`."""
        project, zone = call.at["project"], check_zone(call.at["zone"])
        path = f"projects/{project}/zones/{zone}/machineTypes"
        return list_answer(call, "compute#machineType", path, _machine_types(project, zone))

    def list_all_machine_types(self, call: Call) -> Answer:
        """`machineTypes.aggregatedList`."""
        project = call.at["project"]
        zones = [document["name"] for document in _zones(project)]
        documents = [each for zone in zones for each in _machine_types(project, zone)]
        path = f"projects/{project}/aggregated/machineTypes"
        scopes = [f"zones/{zone}" for zone in zones]
        return aggregated_answer(call, "compute#machineType", path, "machineTypes", documents, scopes)

    def _region(self, project: str, region: str) -> Document:
        zones = [link(f"projects/{project}/zones/{region}-{letter}") for letter in ZONES[region]]
        return {
            "kind": "compute#region",
            "id": str(_number(region)),
            "creationTimestamp": _MADE,
            "name": region,
            "description": region,
            "status": "UP",
            "zones": zones,
            "quotas": self._quotas.of_region(project, region),
            "selfLink": link(f"projects/{project}/regions/{region}"),
        }


def _zones(project: str) -> Sequence[Document]:
    return [
        {
            "kind": "compute#zone",
            "id": str(_number(f"{region}-{letter}")),
            "creationTimestamp": _MADE,
            "name": f"{region}-{letter}",
            "description": f"{region}-{letter}",
            "status": "UP",
            "region": link(f"projects/{project}/regions/{region}"),
            "selfLink": link(f"projects/{project}/zones/{region}-{letter}"),
        }
        for region, letters in ZONES.items()
        for letter in letters
    ]


def _machine_types(project: str, zone: str) -> Sequence[Document]:
    return [
        {
            "kind": "compute#machineType",
            "id": str(_number(name)),
            "creationTimestamp": _MADE,
            "name": name,
            "description": f"{cpus} vCPUs, {memory // 1024} GB RAM",
            "guestCpus": cpus,
            "memoryMb": memory,
            "isSharedCpu": False,
            "architecture": "ARM64" if name.startswith("t2a") else "X86_64",
            "zone": zone,
            "selfLink": link(f"projects/{project}/zones/{zone}/machineTypes/{name}"),
        }
        for name in machine_types_of(zone)
        for cpus, memory in [_MACHINE_TYPES[name]]
    ]


def _number(text: str) -> int:
    return int.from_bytes(text.encode()[-7:].rjust(7, b"\0")) + 10**3
