"""What the API server asks of services, and gives them."""

from __future__ import annotations

import secrets
from typing import Any

from sandbox.kube import AGE, Column, Denied, Object, denied, lookup

NODE_PORT_MIN, NODE_PORT_MAX = 30000, 32767


def target_port(pod: Object, port: Object) -> int | None:
    """The number of the pod's port that a service port leads to; None if the pod does not name it."""
    target = port.get("targetPort", port["port"])
    if isinstance(target, int):
        return target
    for container in pod["spec"]["containers"]:
        for each in container.get("ports") or []:
            if each.get("name") == target:
                return int(each["containerPort"])
    return None


def check_ports(service: Object) -> None:
    """Type and ports, with their defaults; raises Denied."""
    spec = service["spec"]
    if spec["type"] not in ("ClusterIP", "NodePort", "LoadBalancer"):
        raise invalid_service(service, "spec.type", spec["type"], "ClusterIP, NodePort or LoadBalancer is needed")
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None":
        raise denied(422, f'Service "{service["metadata"]["name"]}" is invalid: spec.ports: Required value')
    for index, port in enumerate(ports):
        number = port.get("port")
        if not isinstance(number, int) or not 1 <= number <= 65535:
            raise invalid_service(
                service, f"spec.ports[{index}].port", number, "must be between 1 and 65535, inclusive"
            )
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", number)


def give_node_ports(service: Object, old: Object | None, others: list[Object]) -> None:
    """A free node port for every port that has none; raises Denied for one that cannot be."""
    taken = {port.get("nodePort") for each in others for port in each["spec"].get("ports") or []}
    before = {(port.get("name"), port["port"]): port.get("nodePort") for port in lookup(old or {}, "spec.ports") or []}
    for index, port in enumerate(service["spec"].get("ports") or []):
        wanted = port.get("nodePort") or before.get((port.get("name"), port["port"]))
        path = f"spec.ports[{index}].nodePort"
        if wanted is not None and not NODE_PORT_MIN <= wanted <= NODE_PORT_MAX:
            detail = (
                f"provided port is not in the valid range. The range of valid ports is {NODE_PORT_MIN}-{NODE_PORT_MAX}"
            )
            raise invalid_service(service, path, wanted, detail)
        if wanted is not None and wanted in taken:
            raise invalid_service(service, path, wanted, "provided port is already allocated")
        if wanted is None:
            free = [each for each in range(NODE_PORT_MIN, NODE_PORT_MAX + 1) if each not in taken]
            wanted = secrets.choice(free)
        port["nodePort"] = wanted
        taken.add(wanted)


def invalid_service(service: Object, path: str, value: Any, detail: str) -> Denied:
    """What the API server says of a field that is wrong."""
    return denied(
        422, f'Service "{service["metadata"]["name"]}" is invalid: {path}: Invalid value: {value!r}: {detail}'
    )


def _place(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _port_list(service: Object) -> str:
    return ",".join(
        f"{port['port']}" + (f":{port['nodePort']}" if port.get("nodePort") else "") + f"/{port['protocol']}"
        for port in service["spec"].get("ports") or []
    )


SERVICE_COLUMNS = (
    Column("Type", ".spec.type"),
    Column("Cluster-IP", ".spec.clusterIP"),
    Column("External-IP", lambda _: "<none>"),
    Column("Port(s)", _port_list),
    AGE,
)
