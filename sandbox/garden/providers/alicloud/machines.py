"""The virtual machines of a shoot's worker pools, and the routes to the pods on them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from sandbox.garden.nodes import free_blocks
from sandbox.garden.providers import CloudError, Machine, Order, Record
from sandbox.garden.providers.alicloud.inventory import Look, cluster_tag, machines_of
from sandbox.garden.providers.alicloud.session import Json, Session, tag_of, tagged

__all__ = ["delete_machines", "reconcile_machines"]

_POOL_TAG = "worker.gardener.cloud/pool"


def reconcile_machines(session: Session, order: Order, record: Record) -> None:
    """Starts what is missing of each pool and zone, stops what is too much."""
    running = machines_of(session, order.technical_id) if record.get("hadMachines") else []
    record["hadMachines"] = True
    record.save()
    kept: list[str] = []
    for worker, zone, count in _shares(order):
        present = [
            each["InstanceId"]
            for each in running
            if tag_of(each, _POOL_TAG) == worker["name"] and each["ZoneId"] == zone
        ]
        kept += present[:count]
        kept += [_start(session, order, record, worker, zone) for _ in range(count - len(present))]
    look = Look(session)
    found = [session.until(partial(look.instance, each), each, "Running") for each in kept]
    _stop(session, [each["InstanceId"] for each in running if each["InstanceId"] not in kept])
    record.machines = [_machine(order, each) for each in found]
    _reconcile_routes(session, order, record)
    record.save()


def delete_machines(session: Session, order: Order, record: Record) -> None:
    """Stops all of them."""
    if record.get("hadMachines"):
        _stop(session, [each["InstanceId"] for each in machines_of(session, order.technical_id)])
    record.machines = []
    record.pop("podRanges", None)


def _stop(session: Session, instances: Sequence[str]) -> None:
    look = Look(session)
    for each in instances:
        session.call("ecs", "DeleteInstance", InstanceId=each, Force="true")
    for each in instances:
        session.await_gone(partial(look.instance, each), each)


def _shares(order: Order) -> Iterator[tuple[Any, str, int]]:
    """How many machines of a pool go into which zone: its minimum, spread over its zones, the first ones first."""
    for worker in order.workers:
        zones = worker["zones"]
        for index, zone in enumerate(zones):
            yield worker, zone, (worker["minimum"] + len(zones) - 1 - index) // len(zones)


def _start(session: Session, order: Order, record: Record, worker: Any, zone: str) -> str:
    """One machine as provider-alicloud describes it (`pkg/controller/worker/machines.go`)."""
    tid, volume = order.technical_id, worker["volume"]
    marks = {cluster_tag(tid): "1", f"kubernetes.io/role/worker/{tid}": "1", _POOL_TAG: worker["name"]}
    started = session.call(
        "ecs",
        "RunInstances",
        ImageId=_image(order, worker["machine"]),
        InstanceType=worker["machine"]["type"],
        InstanceName=f"{tid}-{worker['name']}-{zone}-{secrets.token_hex(3)[:5]}",
        VSwitchId=record["vswitches"][zone],
        SecurityGroupId=record["securityGroup"],
        ZoneId=zone,
        InstanceChargeType="PostPaid",
        InternetChargeType="PayByTraffic",
        SystemDisk__Category=volume["type"],
        SystemDisk__Size=str(volume["size"]).removesuffix("i").removesuffix("G"),
        Amount=1,
        **tagged(marks),
    )
    return str(started["InstanceIdSets"]["InstanceIdSet"][0])


def _image(order: Order, machine: Any) -> str:
    wanted = machine["image"]
    for image in order.offers["providerConfig"]["machineImages"]:
        for version in image["versions"]:
            if (image["name"], version["version"]) != (wanted["name"], wanted["version"]):
                continue
            for region in version["regions"]:
                if region["name"] == order.region:
                    return str(region["id"])
    text = f"could not find machine image for {wanted['name']}/{wanted['version']} in region {order.region}"
    raise CloudError(text, ("ERR_CONFIGURATION_PROBLEM",))


def _machine(order: Order, instance: Json) -> Machine:
    instance_id = instance["InstanceId"]
    return Machine(
        # An instance's host name follows from its id (machine-controller-manager-provider-alicloud, `pkg/spi`).
        name=f"iz{instance_id.removeprefix('i-')}z",
        pool=tag_of(instance, _POOL_TAG),
        zone=instance["ZoneId"],
        address=instance["VpcAttributes"]["PrivateIpAddress"]["IpAddress"][0],
        provider_id=f"{order.region}.{instance_id}",
        type=instance["InstanceType"],
    )


def _reconcile_routes(session: Session, order: Order, record: Record) -> None:
    """The cloud controller makes one route per node, with an overlay or without: `--configure-cloud-routes=true`.

    The ranges are those that the nodes get (`free_blocks`, in the order of the machines).
    """
    before: dict[str, str] = record.get("podRanges", {})
    free = free_blocks({"spec": {"networking": order.networking}}, set(before.values()))
    ranges = {}
    for machine in record.machines:
        cidr = before.get(machine.name) or next(free, None)
        if cidr is not None:
            ranges[machine.name] = cidr
    record["podRanges"] = ranges
    record.save()
    table, look = record["routeTable"], Look(session)
    present = {entry["DestinationCidrBlock"]: entry for entry in look.custom_routes(table)}
    for name in before.keys() - ranges.keys():
        if (entry := present.get(before[name])) is not None:
            one = {"RouteEntryId": entry["RouteEntryId"]}
            session.delete("vpc", "DeleteRouteEntry", partial(look.custom_routes, table, **one), **one)
    for machine in record.machines:
        if machine.name in ranges and ranges[machine.name] not in present:
            session.call(
                "vpc",
                "CreateRouteEntry",
                RouteTableId=table,
                DestinationCidrBlock=ranges[machine.name],
                NextHopType="Instance",
                NextHopId=machine.provider_id.partition(".")[2],
            )
