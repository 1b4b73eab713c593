"""The machines of a shoot's worker pools, as the ports that Nova would own, and the routes to the pods on them."""

from __future__ import annotations

import re
import secrets
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from sandbox.garden.nodes import free_blocks
from sandbox.garden.providers import CloudError, Machine, Order, Record
from sandbox.garden.providers.openstack.session import Session

__all__ = ["delete_machines", "reconcile_machines"]

_OWNER = "compute:"
_ENDING = re.compile(r"-z\d+-\w+-\w+$")


def reconcile_machines(session: Session, order: Order, record: Record) -> None:
    """Starts what is missing of each pool and zone, stops what is too much."""
    running = _ports(session, order, record)
    record["hadMachines"] = True
    record.save()
    kept: list[tuple[Any, Any, str]] = []
    for worker, index, zone, count in _shares(order):
        present = [each for each in running if (_pool(order, each), _zone(each)) == (worker["name"], zone)][:count]
        made = (_start(session, order, record, worker, index, zone) for _ in range(count - len(present)))
        kept += [(port, worker, zone) for port in (*present, *made)]
    names = {port.id for port, _, _ in kept}
    _stop(session, [each for each in running if each.id not in names])
    record.machines = [_machine(port, worker, zone) for port, worker, zone in kept]
    _reconcile_routes(session, order, record)
    record.save()


def delete_machines(session: Session, order: Order, record: Record) -> None:
    """Stops all of them."""
    _stop(session, _ports(session, order, record))


def _ports(session: Session, order: Order, record: Record) -> list[Any]:
    if not record.get("network"):
        return []
    ports = session.listed("ports", network_id=record["network"])
    return [
        each
        for each in ports
        if each.name.startswith(f"{order.technical_id}-") and str(each.device_owner).startswith(_OWNER)
    ]


def _pool(order: Order, port: Any) -> str:
    return _ENDING.sub("", port.name.removeprefix(f"{order.technical_id}-"))


def _zone(port: Any) -> str:
    return str(port.device_owner).removeprefix(_OWNER)


def _shares(order: Order) -> Iterator[tuple[Any, int, str, int]]:
    """How many machines of a pool go into which zone: its minimum, spread over its zones, the first ones first."""
    for worker in order.workers:
        zones = worker["zones"]
        for index, zone in enumerate(zones):
            yield worker, index, zone, (worker["minimum"] + len(zones) - 1 - index) // len(zones)


def _start(session: Session, order: Order, record: Record, worker: Any, index: int, zone: str) -> Any:
    """The port of one machine as provider-openstack describes it (`pkg/controller/worker/machines.go`)."""
    _check_image(order, worker["machine"])
    ends = f"z{index + 1}-{secrets.token_hex(3)[:5]}-{secrets.token_hex(3)[:5]}"
    return session.done(
        "create_port",
        name=f"{order.technical_id}-{worker['name']}-{ends}",
        network_id=record["network"],
        fixed_ips=[{"subnet_id": record["subnet"]}],
        security_groups=[record["securityGroup"]],
        device_id=str(uuid.uuid4()),
        device_owner=f"{_OWNER}{zone}",
    )


def _stop(session: Session, ports: Sequence[Any]) -> None:
    for port in ports:
        # Neutron lets nobody but Nova delete the port of a machine; Nova would first take the machine off it.
        session.done("update_port", port.id, device_owner="", device_id="")
        session.gone("delete_port", port.id)


def _check_image(order: Order, machine: Any) -> None:
    wanted = machine["image"]
    for image in order.offers["providerConfig"]["machineImages"]:
        if image["name"] == wanted["name"] and any(each["version"] == wanted["version"] for each in image["versions"]):
            return
    text = f"could not find image {wanted['name']} in version {wanted['version']} in the CloudProfile"
    raise CloudError(text, ("ERR_CONFIGURATION_PROBLEM",))


def _machine(port: Any, worker: Any, zone: str) -> Machine:
    return Machine(
        name=port.name,
        pool=worker["name"],
        zone=zone,
        address=port.fixed_ips[0]["ip_address"],
        provider_id=f"openstack:///{port.id}",
        type=worker["machine"]["type"],
    )


def _reconcile_routes(session: Session, order: Order, record: Record) -> None:
    """Without an overlay, the cloud controller makes one route per node, on the router (`--configure-cloud-routes`).

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
    wanted = {ranges[each.name]: each.address for each in record.machines}
    mine = {*before.values(), *ranges.values()}
    present = session.done("get_router", record["router"]).routes
    others = [each for each in present if each["destination"] not in mine]
    routes = [*others, *({"destination": cidr, "nexthop": address} for cidr, address in sorted(wanted.items()))]
    if sorted(map(str, routes)) != sorted(map(str, present)):
        session.done("update_router", record["router"], routes=routes)
