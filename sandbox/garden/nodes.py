"""Nodes as their kubelets register them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from ipaddress import IPv4Network, ip_network
from typing import cast

from sandbox.garden.providers import Machine
from sandbox.garden.status import now
from sandbox.kube import AGE, Column, Object, Resource, lookup

_POD_PREFIX = 24


def free_blocks(shoot: Object, taken: set[str]) -> Iterator[str]:
    """The pod ranges that nodes may get, without the ones that have gone."""
    whole = cast("IPv4Network", ip_network(shoot["spec"]["networking"]["pods"]))
    prefix = max(_POD_PREFIX, whole.prefixlen)
    return (str(block) for block in whole.subnets(new_prefix=prefix) if str(block) not in taken)


def node_of(machine: Machine, shoot: Object, pod_range: str | None) -> Object:
    """The node of a machine, ready. Without a pod range, where there are more nodes than ranges, it gets no pods."""
    version = f"v{shoot['spec']['kubernetes']['version']}"
    worker = next(each for each in shoot["spec"]["provider"]["workers"] if each["name"] == machine.pool)
    labels = {
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/arch": worker["machine"].get("architecture", "amd64"),
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.type,
        "topology.kubernetes.io/region": shoot["spec"]["region"],
        "topology.kubernetes.io/zone": machine.zone,
        "worker.gardener.cloud/pool": machine.pool,
        **(worker.get("labels") or {}),
    }
    ranges: Object = {"podCIDR": pod_range, "podCIDRs": [pod_range]} if pod_range else {}
    conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"providerID": machine.provider_id} | ranges,
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": machine.address},
                {"type": "Hostname", "address": machine.name},
            ],
            "capacity": {"cpu": "2", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "1920m", "memory": "7Gi", "pods": "110"},
            "conditions": [
                {
                    "type": kind,
                    "status": value,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": now(),
                    "lastTransitionTime": now(),
                }
                for kind, value, reason, message in conditions
            ],
            "nodeInfo": {
                "architecture": labels["kubernetes.io/arch"],
                "operatingSystem": "linux",
                "osImage": "Garden Linux",
                "kernelVersion": "6.12.40-cloud-amd64",
                "containerRuntimeVersion": "containerd://2.1.4",
                "kubeletVersion": version,
                "kubeProxyVersion": version,
                "machineID": secrets.token_hex(16),
                "systemUUID": secrets.token_hex(16),
                "bootID": secrets.token_hex(16),
            },
        },
    }


def internal_address(node: Object) -> str:
    """Its address in the cloud's network."""
    return next(str(each["address"]) for each in node["status"]["addresses"] if each["type"] == "InternalIP")


def _node_status(node: Object) -> str:
    ready = lookup(node, 'status.conditions[?(@.type=="Ready")].status') == "True"
    return ("Ready" if ready else "NotReady") + (",SchedulingDisabled" if node["spec"].get("unschedulable") else "")


NODES = Resource(
    "",
    "v1",
    "Node",
    "nodes",
    namespaced=False,
    short_names=("no",),
    columns=(
        Column("Status", _node_status),
        Column("Roles", lambda _: "<none>"),
        AGE,
        Column("Version", ".status.nodeInfo.kubeletVersion"),
        Column("Internal-IP", ".status.addresses[0].address", priority=1),
    ),
)
