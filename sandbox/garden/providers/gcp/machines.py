"""The virtual machines of a shoot's worker pools, and the routes to the pods on them."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from google.cloud import compute_v1

from sandbox.garden.nodes import free_blocks
from sandbox.garden.providers import CloudError, Machine, Order, Record
from sandbox.garden.providers.gcp.session import Session, short

__all__ = ["delete_machines", "machines_of", "reconcile_machines"]

_POOL = "worker-gardener-cloud-pool"
_LEAVING = ("STOPPING", "TERMINATED")


def reconcile_machines(session: Session, order: Order, record: Record) -> None:
    """Starts what is missing of each pool and zone, stops what is too much."""
    running = machines_of(session, order.technical_id) if record.get("hadMachines") else []
    record["hadMachines"] = True
    record.save()
    kept: list[str] = []
    begun = []
    for worker, index, zone, count in _shares(order):
        present = [
            each.name for each in running if each.labels.get(_POOL) == worker["name"] and short(each.zone) == zone
        ]
        kept += present[:count]
        for _ in range(count - len(present)):
            instance = _instance(order, record, worker, index, zone)
            kept.append(instance.name)
            begun.append(session.begun(session.instances.insert_unary, zone=zone, instance_resource=instance))
    for operation in begun:
        session.ended(operation)
    _stop(session, [each for each in running if each.name not in kept])
    found = {each.name: each for each in machines_of(session, order.technical_id)}
    record.machines = [_machine(session, found[name]) for name in kept if name in found]
    _reconcile_routes(session, order, record)
    record.save()


def delete_machines(session: Session, order: Order, record: Record) -> None:
    """Stops all of them."""
    _stop(session, machines_of(session, order.technical_id))
    record.pop("podRanges", None)


def machines_of(session: Session, technical_id: str) -> list[Any]:
    """The shoot's instances that live, or are about to."""
    scopes = session.listed(session.instances.aggregated_list, filter=f'name eq "{technical_id}-.*"')
    return [
        each
        for _, scope in scopes
        for each in scope.instances
        if technical_id in each.tags.items and each.status not in _LEAVING
    ]


def _stop(session: Session, instances: Sequence[Any]) -> None:
    for operation in [_begin_stop(session, each) for each in instances]:
        if operation is not None:
            session.ended(operation)


def _begin_stop(session: Session, instance: Any) -> Any | None:
    return session.found(session.instances.delete_unary, zone=short(instance.zone), instance=instance.name)


def _shares(order: Order) -> Iterator[tuple[Any, int, str, int]]:
    """How many machines of a pool go into which zone: its minimum, spread over its zones, the first ones first."""
    for worker in order.workers:
        zones = worker["zones"]
        for index, zone in enumerate(zones):
            yield worker, index, zone, (worker["minimum"] + len(zones) - 1 - index) // len(zones)


def _instance(order: Order, record: Record, worker: Any, index: int, zone: str) -> Any:
    """One machine as provider-gcp describes it (`pkg/controller/worker/machines.go`)."""
    tid, volume = order.technical_id, worker["volume"]
    subnetwork = f"regions/{order.region}/subnetworks/{record['subnetwork']}"
    image = _image(order, worker["machine"])
    disk = compute_v1.AttachedDiskInitializeParams(
        source_image=image,
        disk_type=f"zones/{zone}/diskTypes/{volume['type']}",
        disk_size_gb=_gigabytes(volume["size"]),
    )
    return compute_v1.Instance(
        name=f"{tid}-{worker['name']}-z{index + 1}-{secrets.token_hex(3)[:5]}-{secrets.token_hex(3)[:5]}",
        description=f"Machine of Shoot {tid} created by machine-controller-manager.",
        machine_type=f"zones/{zone}/machineTypes/{worker['machine']['type']}",
        can_ip_forward=True,
        labels={_POOL: worker["name"]},
        tags=compute_v1.Tags(items=[tid, f"kubernetes-io-cluster-{tid}", "kubernetes-io-role-node"]),
        disks=[compute_v1.AttachedDisk(boot=True, auto_delete=True, initialize_params=disk)],
        network_interfaces=[compute_v1.NetworkInterface(subnetwork=subnetwork)],
    )


def _gigabytes(size: str) -> int:
    return int(size.removesuffix("i").removesuffix("G"))


def _image(order: Order, machine: Any) -> str:
    wanted, architecture = machine["image"], machine.get("architecture", "amd64")
    for image in order.offers["providerConfig"]["machineImages"]:
        for version in image["versions"]:
            if (image["name"], version["version"], version.get("architecture", "amd64")) == (
                wanted["name"],
                wanted["version"],
                architecture,
            ):
                return str(version["image"])
    text = f"could not find machine image for name={wanted['name']}, version={wanted['version']}, {architecture}"
    raise CloudError(text, ("ERR_CONFIGURATION_PROBLEM",))


def _machine(session: Session, instance: Any) -> Machine:
    zone = short(instance.zone)
    return Machine(
        name=instance.name,
        pool=instance.labels[_POOL],
        zone=zone,
        address=instance.network_interfaces[0].network_i_p,
        provider_id=f"gce://{session.project}/{zone}/{instance.name}",
        type=short(instance.machine_type),
    )


def _reconcile_routes(session: Session, order: Order, record: Record) -> None:
    """Without an overlay, the cloud controller makes one route per node, in the one route table of the network.

    The ranges are those that the nodes get (`free_blocks`, in the order of the machines).
    """
    config = order.networking.get("providerConfig") or {}
    if (config.get("overlay") or {"enabled": True}).get("enabled"):
        return
    before: dict[str, str] = record.get("podRanges", {})
    free = free_blocks({"spec": {"networking": order.networking}}, set(before.values()))
    ranges = {each.name: before.get(each.name) or next(free) for each in record.machines}
    record["podRanges"] = ranges
    record.save()
    for name in before.keys() - ranges.keys():
        session.gone(session.routes.delete_unary, route=_route_name(order, name))
    for machine in record.machines:
        name = _route_name(order, machine.name)
        if session.found(session.routes.get, route=name) is None:
            route = compute_v1.Route(
                name=name,
                description="k8s-node-route",
                network=f"global/networks/{record['network']}",
                dest_range=ranges[machine.name],
                priority=1000,
                next_hop_instance=f"zones/{machine.zone}/instances/{machine.name}",
            )
            session.done(session.routes.insert_unary, route_resource=route)


def _route_name(order: Order, machine: str) -> str:
    """The cluster's name and the node's uid (kubernetes/cloud-provider-gcp, `providers/gce/gce_routes.go`)."""
    return f"{order.technical_id}-{uuid.uuid5(uuid.NAMESPACE_DNS, machine)}"
