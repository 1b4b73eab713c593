"""The insides of shoots: nodes, pods that run on them, services that find the pods."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Network, ip_network
from typing import cast

from sandbox.garden.hosts import Key
from sandbox.garden.kinds import GARDEN, SHOOTS_KEY
from sandbox.garden.nodes import NODES, free_blocks, internal_address, node_of
from sandbox.garden.pods import (
    POD_COLUMNS,
    check_pod,
    check_pod_update,
    chosen_node,
    free_address,
    is_running,
    pod_condition,
    running_status,
)
from sandbox.garden.providers import Machine
from sandbox.garden.services import SERVICE_COLUMNS, check_ports, give_node_ports, invalid_service
from sandbox.kube import CORE, Admission, Object, Resource, Store, ensure_namespace, lookup

_START_SECONDS, _STOP_SECONDS = 0.2, 0.2
_KUBELET = "sandbox.gardener.cloud/kubelet"


def server_of(key: Key) -> str:
    """The name of a shoot's API server in the store."""
    return f"shoot/{key[0]}/{key[1]}"


def key_of(server: str) -> Key:
    """The shoot of an API server."""
    _, namespace, name = server.split("/")
    return namespace, name


class Insides:
    """The kinds of a shoot's API server, and what its controllers and kubelets do."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.pods = Resource(
            "",
            "v1",
            "Pod",
            "pods",
            short_names=("po",),
            columns=POD_COLUMNS,
            admit=self._admit_pod,
            fields=("spec.nodeName", "status.phase", "status.podIP"),
            categories=("all",),
        )
        self.services = Resource(
            "",
            "v1",
            "Service",
            "services",
            short_names=("svc",),
            columns=SERVICE_COLUMNS,
            admit=self._admit_service,
            fields=("spec.type", "spec.clusterIP"),
            categories=("all",),
        )
        accounts = Resource("", "v1", "ServiceAccount", "serviceaccounts", short_names=("sa",), status=False)
        self.resources: tuple[Resource, ...] = (*CORE, NODES, self.pods, self.services, accounts)

    def resume(self, keys: Iterable[Key]) -> None:
        """Pods that were on their way when this process ended go on."""
        for key in keys:
            for pod in self._store.list(server_of(key), self.pods.key):
                if pod["metadata"].get("deletionTimestamp"):
                    self._later(_STOP_SECONDS, self._stop, server_of(key), pod)
                elif lookup(pod, "status.phase") == "Pending":
                    self._later(_START_SECONDS, self._start, server_of(key), pod)

    def furnish(self, key: Key, shoot: Object, machines: Sequence[Machine]) -> None:
        """Namespaces, and exactly one node for every machine."""
        server = server_of(key)
        for namespace in ("default", "kube-system", "kube-public", "kube-node-lease"):
            ensure_namespace(self._store, server, namespace)
        known = {node["metadata"]["name"]: node for node in self._store.list(server, NODES.key)}
        taken = {str(node["spec"].get("podCIDR")) for node in known.values()}
        free = free_blocks(shoot, taken)
        for machine in machines:
            if machine.name not in known:
                self._store.create(server, NODES.key, node_of(machine, shoot, next(free, None)))
        gone = set(known) - {machine.name for machine in machines}
        for name in gone:
            self._store.delete(server, NODES.key, None, name)
        for pod in self._store.list(server, self.pods.key):
            if pod["spec"].get("nodeName") in gone:
                self._stop(server, pod)

    def clear(self, key: Key) -> None:
        """The whole API server goes."""
        self._store.drop(server_of(key))

    def endpoints(self, server: str, service: Object) -> list[Object]:
        """The pods that a service leads to: selected, ready, not on their way out."""
        selector = service["spec"].get("selector") or {}
        namespace = service["metadata"]["namespace"]
        return [
            pod
            for pod in self._store.list(server, self.pods.key, namespace)
            if selector and is_running(pod) and selector.items() <= (pod["metadata"].get("labels") or {}).items()
        ]

    def _admit_pod(self, admission: Admission) -> None:
        pod, server = admission.new, admission.server
        if admission.verb == "create":
            check_pod(pod)
            pod["spec"].setdefault("restartPolicy", "Always")
            pod["spec"].setdefault("terminationGracePeriodSeconds", 30)
            pod["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
            if not admission.dry_run:
                self._later(_START_SECONDS, self._start, server, pod)
        elif admission.verb == "update" and not admission.subresource:
            check_pod_update(pod, admission.old or pod)
        elif admission.verb == "delete" and not admission.dry_run:
            self._hold(pod, admission)

    def _hold(self, pod: Object, admission: Admission) -> None:
        """A running pod is deleted with grace: it stays until its kubelet has stopped it."""
        grace = admission.options.get("gracePeriodSeconds")
        if str(grace) == "0" or not pod["spec"].get("nodeName"):
            return
        finalizers = pod["metadata"].setdefault("finalizers", [])
        if _KUBELET not in finalizers:
            finalizers.append(_KUBELET)
            self._store.update(admission.server, self.pods.key, pod)
        self._later(_STOP_SECONDS, self._stop, admission.server, pod)

    def _later(self, seconds: float, what: Callable[[str, Object], None], server: str, pod: Object) -> None:
        asyncio.get_running_loop().call_later(seconds, what, server, pod)

    def _start(self, server: str, created: Object) -> None:
        """Scheduler and kubelet: the pod gets a node with the fewest pods, an address, and runs."""
        meta = created["metadata"]
        pod = self._store.get(server, self.pods.key, meta["namespace"], meta["name"])
        if pod is None or lookup(pod, "status.phase") != "Pending" or pod["metadata"].get("deletionTimestamp"):
            return
        pods = self._store.list(server, self.pods.key)
        node = chosen_node(pod, self._store.list(server, NODES.key), pods)
        if node is None:
            if "conditions" not in pod["status"]:
                pod["status"]["conditions"] = [pod_condition("PodScheduled", "False", "Unschedulable")]
                self._store.update(server, self.pods.key, pod)
            self._later(1.0, self._start, server, pod)
            return
        pod["spec"]["nodeName"] = node["metadata"]["name"]
        host = internal_address(node)
        address = host if pod["spec"].get("hostNetwork") else free_address(node, pods)
        pod["status"] = running_status(pod, host, address)
        self._store.update(server, self.pods.key, pod)

    def _stop(self, server: str, known: Object) -> None:
        meta = known["metadata"]
        pod = self._store.get(server, self.pods.key, meta["namespace"], meta["name"])
        if pod is None:
            return
        if not pod["metadata"].get("deletionTimestamp"):
            self._store.delete(server, self.pods.key, meta["namespace"], meta["name"])
            return
        pod["metadata"]["finalizers"] = [each for each in pod["metadata"].get("finalizers") or [] if each != _KUBELET]
        self._store.update(server, self.pods.key, pod)

    def _admit_service(self, admission: Admission) -> None:
        service, old = admission.new, admission.old
        if admission.verb == "delete" or admission.subresource:
            return
        spec = service.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        spec.setdefault("internalTrafficPolicy", "Cluster")
        check_ports(service)
        meta = service["metadata"]
        others = [
            each
            for each in self._store.list(admission.server, self.services.key)
            if (each["metadata"]["namespace"], each["metadata"]["name"]) != (meta["namespace"], meta["name"])
        ]
        self._give_cluster_ip(admission.server, service, old, others)
        if spec["type"] in ("NodePort", "LoadBalancer"):
            spec.setdefault("externalTrafficPolicy", "Cluster")
            give_node_ports(service, old, others)
        service.setdefault("status", {"loadBalancer": {}})

    def _give_cluster_ip(self, server: str, service: Object, old: Object | None, others: list[Object]) -> None:
        spec = service["spec"]
        before = lookup(old or {}, "spec.clusterIP")
        if before and spec.get("clusterIP", before) != before:
            raise invalid_service(service, "spec.clusterIPs[0]", spec["clusterIP"], "may not change once set")
        if not before and spec.get("clusterIP") == "None":
            return
        network = self._services_network(server)
        taken = {each["spec"].get("clusterIP") for each in others}
        wanted = before or spec.get("clusterIP")
        if wanted is None:
            offsets = iter(lambda: 2 + secrets.randbelow(network.num_addresses - 3), -1)
            wanted = next(str(network[offset]) for offset in offsets if str(network[offset]) not in taken)
        elif wanted in taken:
            raise invalid_service(service, "spec.clusterIPs", wanted, "provided IP is already allocated")
        spec |= {"clusterIP": wanted, "clusterIPs": [wanted]}

    def _services_network(self, server: str) -> IPv4Network:
        shoot = self._store.get(GARDEN, SHOOTS_KEY, *key_of(server))
        text = lookup(shoot or {}, "spec.networking.services") or "100.64.0.0/13"
        return cast("IPv4Network", ip_network(text))
