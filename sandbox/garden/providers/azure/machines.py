"""The virtual machines of a shoot's worker pools, and the routes to the pods on them.

A machine is its network interface here: that is all a network sees of it. Names and tags are those of
machine-controller-manager-provider-azure.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import Any

from sandbox.garden.nodes import free_blocks
from sandbox.garden.providers import CloudError, Machine, Order, Record
from sandbox.garden.providers.azure.infrastructure import ROUTE_TABLE
from sandbox.garden.providers.azure.session import Session

__all__ = ["delete_machines", "interface_of", "reconcile_machines"]

_POOL, _ZONE, _TYPE = "worker.gardener.cloud_pool", "zone", "machine-type"
_NIC = "-nic"


def reconcile_machines(session: Session, order: Order, record: Record) -> None:
    """Starts what is missing of each pool and zone, stops what is too much."""
    running = _interfaces(session, order)
    kept: list[str] = []
    for worker, zone, count in _shares(order):
        present = [
            each.name
            for each in running
            if ((each.tags or {}).get(_POOL), (each.tags or {}).get(_ZONE, "")) == (worker["name"], zone)
        ]
        kept += present[:count]
        for _ in range(count - len(present)):
            kept.append(_start(session, order, record, worker, zone))
    _stop(session, order, [each.name for each in running if each.name not in kept])
    found = {each.name: each for each in _interfaces(session, order)}
    record.machines = [_machine(session, order, found[name]) for name in kept if name in found]
    _reconcile_routes(session, order, record)
    record.save()


def delete_machines(session: Session, order: Order, record: Record) -> None:
    """Stops all of them."""
    _stop(session, order, [each.name for each in _interfaces(session, order)])
    record.pop("podRanges", None)


def interface_of(machine: str) -> str:
    """The name of a machine's network interface."""
    return f"{machine}{_NIC}"


def _interfaces(session: Session, order: Order) -> list[Any]:
    """The interfaces of the shoot's machines."""
    found = session.listed(session.network.network_interfaces.list, order.technical_id)
    return [each for each in found if each.name.startswith(f"{order.technical_id}-") and _POOL in (each.tags or {})]


def _shares(order: Order) -> Iterator[tuple[Any, str, int]]:
    """How many machines of a pool go into which zone: its minimum, spread over its zones, the first ones first."""
    for worker in order.workers:
        zones = worker.get("zones") or [""]
        for index, zone in enumerate(zones):
            yield worker, zone, (worker["minimum"] + len(zones) - 1 - index) // len(zones)


def _start(session: Session, order: Order, record: Record, worker: Any, zone: str) -> str:
    """One machine as provider-azure describes it (`pkg/controller/worker/machines.go`)."""
    _check_image(order, worker["machine"])
    tid, vnet, subnets = order.technical_id, record["vnet"], record["subnets"]
    subnet = session.id_of(vnet["group"], "virtualNetworks", vnet["name"])
    subnet += f"/subnets/{subnets.get('') or subnets[zone]}"
    place = f"-z{zone}" if zone else ""
    name = f"{tid}-{worker['name']}{place}-{secrets.token_hex(3)[:5]}-{secrets.token_hex(3)[:5]}"
    body = {
        "location": order.region,
        "tags": {
            "Name": tid,
            f"kubernetes.io-cluster-{tid}": "1",
            "kubernetes.io-role-node": "1",
            _POOL: worker["name"],
            _TYPE: worker["machine"]["type"],
            **({_ZONE: zone} if zone else {}),
        },
        "properties": {
            "enableIPForwarding": True,
            "ipConfigurations": [{"name": interface_of(name), "properties": {"subnet": {"id": subnet}}}],
        },
    }
    session.done(session.network.network_interfaces.begin_create_or_update, tid, interface_of(name), body)
    return interface_of(name)


def _stop(session: Session, order: Order, names: Sequence[str]) -> None:
    for name in names:
        session.gone(session.network.network_interfaces.begin_delete, order.technical_id, name)


def _check_image(order: Order, machine: Any) -> None:
    wanted, architecture = machine["image"], machine.get("architecture", "amd64")
    for image in order.offers["providerConfig"]["machineImages"]:
        for version in image["versions"]:
            given = (image["name"], version["version"], version.get("architecture", "amd64"))
            if given == (wanted["name"], wanted["version"], architecture):
                return
    text = f"could not find machine image for name={wanted['name']}, version={wanted['version']}, {architecture}"
    raise CloudError(text, ("ERR_CONFIGURATION_PROBLEM",))


def _machine(session: Session, order: Order, interface: Any) -> Machine:
    name, zone = interface.name.removesuffix(_NIC), interface.tags.get(_ZONE, "")
    return Machine(
        name=name,
        pool=interface.tags[_POOL],
        # Nodes in no zone are in fault domain 0 (kubernetes-sigs/cloud-provider-azure, `azure_zones.go`).
        zone=f"{order.region}-{zone}" if zone else "0",
        address=interface.properties.ip_configurations[0].properties.private_ip_address,
        provider_id=(
            f"azure:///subscriptions/{session.subscription}/resourceGroups/{order.technical_id}"
            f"/providers/Microsoft.Compute/virtualMachines/{name}"
        ),
        type=interface.tags[_TYPE],
    )


def _reconcile_routes(session: Session, order: Order, record: Record) -> None:
    """The cloud controller makes one route per node in the shoot's own table, with one write for all of them.

    The ranges are those that the nodes get (`free_blocks`, in the order of the machines).
    """
    before: dict[str, str] = record.get("podRanges", {})
    free = free_blocks({"spec": {"networking": order.networking}}, set(before.values()))
    ranges = {each.name: before.get(each.name) or next(free) for each in record.machines}
    record["podRanges"] = ranges
    record.save()
    tables = session.network.route_tables
    table = session.found(tables.get, order.technical_id, ROUTE_TABLE)
    if table is None:
        return
    others = [dict(route) for route in table.properties.routes or () if route.name not in {*before, *ranges}]
    own = [
        {
            "name": machine.name,
            "properties": {
                "addressPrefix": ranges[machine.name],
                "nextHopType": "VirtualAppliance",
                "nextHopIpAddress": machine.address,
            },
        }
        for machine in record.machines
    ]
    body = {"location": order.region, "properties": dict(table.properties) | {"routes": [*others, *own]}}
    session.done(tables.begin_create_or_update, order.technical_id, ROUTE_TABLE, body)
