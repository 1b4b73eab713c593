"""What the API server, the scheduler and the kubelets know of pods."""

from __future__ import annotations

import secrets
from ipaddress import IPv4Network, ip_network
from typing import cast

from sandbox.garden.status import now
from sandbox.kube import AGE, Column, Object, denied, lookup

_FIRST_POD = 2


def is_running(pod: Object) -> bool:
    """Whether a pod takes requests."""
    return lookup(pod, "status.phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


def check_pod(pod: Object) -> None:
    """Raises Denied for a pod without containers, or with incomplete ones."""
    containers = lookup(pod, "spec.containers")
    name = pod["metadata"]["name"]
    if not isinstance(containers, list) or not containers:
        raise denied(422, f'Pod "{name}" is invalid: spec.containers: Required value')
    for index, container in enumerate(containers):
        for field in ("name", "image"):
            if not isinstance(container, dict) or not container.get(field):
                raise denied(422, f'Pod "{name}" is invalid: spec.containers[{index}].{field}: Required value')


def check_pod_update(pod: Object, old: Object) -> None:
    """Raises Denied for another spec: pods are replaced, not changed."""
    if pod["spec"] != old["spec"]:
        detail = "pod updates may not change fields other than a few that nothing here needs to change"
        raise denied(422, f'Pod "{pod["metadata"]["name"]}" is invalid: spec: Forbidden: {detail}')


def chosen_node(pod: Object, nodes: list[Object], pods: list[Object]) -> Object | None:
    """The node with the fewest pods among those that the pod accepts."""
    load = {node["metadata"]["name"]: 0 for node in nodes}
    for each in pods:
        if each["spec"].get("nodeName") in load:
            load[each["spec"]["nodeName"]] += 1
    wanted = pod["spec"].get("nodeName")
    selector = pod["spec"].get("nodeSelector") or {}
    fitting = [
        node
        for node in nodes
        if wanted in (None, node["metadata"]["name"])
        and selector.items() <= (node["metadata"].get("labels") or {}).items()
        and not node["spec"].get("unschedulable")
        and (pod["spec"].get("hostNetwork") or node["spec"].get("podCIDR"))
    ]
    return min(fitting, key=lambda node: load[node["metadata"]["name"]], default=None)


def free_address(node: Object, pods: list[Object]) -> str:
    """An address of the node's pod range that no pod has."""
    taken = {lookup(pod, "status.podIP") for pod in pods}
    block = cast("IPv4Network", ip_network(node["spec"]["podCIDR"]))
    return next(str(block[index]) for index in range(_FIRST_POD, block.num_addresses) if str(block[index]) not in taken)


def running_status(pod: Object, host: str, address: str) -> Object:
    """The status of a pod that runs on a node with the address `host`."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "qosClass": "BestEffort",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now(),
        "conditions": [pod_condition(kind, "True") for kind in kinds],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": container["image"],
                "containerID": f"containerd://{secrets.token_hex(32)}",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now()}},
                "lastState": {},
            }
            for container in pod["spec"]["containers"]
        ],
    }


def pod_condition(kind: str, value: str, reason: str | None = None) -> Object:
    """An entry of `status.conditions`; a reason is why the scheduler found no node."""
    condition = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": now()}
    return condition | ({"reason": reason, "message": "0/0 nodes are available"} if reason else {})


def _readiness(pod: Object) -> str:
    statuses = lookup(pod, "status.containerStatuses") or []
    return f"{sum(bool(each['ready']) for each in statuses)}/{len(pod['spec']['containers'])}"


def _phase(pod: Object) -> str:
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else str(lookup(pod, "status.phase"))


POD_COLUMNS = (
    Column("Ready", _readiness),
    Column("Status", _phase),
    Column("Restarts", lambda _: 0, "integer"),
    AGE,
    Column("IP", ".status.podIP", priority=1),
    Column("Node", ".spec.nodeName", priority=1),
)
