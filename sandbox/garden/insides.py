"""The insides of shoots: nodes, pods that run on them, services that find the pods."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Network, ip_network
from typing import Any, cast

from sandbox.garden.hosts import Key
from sandbox.garden.kinds import GARDEN, SHOOTS_KEY
from sandbox.garden.providers import Machine
from sandbox.garden.status import now
from sandbox.kube import AGE, CORE, Admission, Column, Object, Resource, Store, denied, ensure_namespace, lookup

NODE_PORT_MIN, NODE_PORT_MAX = 30000, 32767
_START_SECONDS, _STOP_SECONDS = 0.2, 0.2
_KUBELET = "sandbox.gardener.cloud/kubelet"
_POD_PREFIX = 24
_FIRST_POD = 2


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
            columns=(
                Column("Ready", _readiness),
                Column("Status", _phase),
                Column("Restarts", lambda _: 0, "integer"),
                AGE,
                Column("IP", ".status.podIP", priority=1),
                Column("Node", ".spec.nodeName", priority=1),
            ),
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
            columns=(
                Column("Type", ".spec.type"),
                Column("Cluster-IP", ".spec.clusterIP"),
                Column("External-IP", lambda _: "<none>"),
                Column("Port(s)", _ports),
                AGE,
            ),
            admit=self._admit_service,
            fields=("spec.type", "spec.clusterIP"),
            categories=("all",),
        )
        self.nodes = Resource(
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
        accounts = Resource("", "v1", "ServiceAccount", "serviceaccounts", short_names=("sa",), status=False)
        self.resources: tuple[Resource, ...] = (*CORE, self.nodes, self.pods, self.services, accounts)

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
        known = {node["metadata"]["name"]: node for node in self._store.list(server, self.nodes.key)}
        taken = {node["spec"]["podCIDR"] for node in known.values()}
        free = _blocks(shoot, taken)
        for machine in machines:
            if machine.name not in known:
                self._store.create(server, self.nodes.key, _node(machine, shoot, next(free)))
        gone = set(known) - {machine.name for machine in machines}
        for name in gone:
            self._store.delete(server, self.nodes.key, None, name)
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
            _check_pod(pod)
            pod["spec"].setdefault("restartPolicy", "Always")
            pod["spec"].setdefault("terminationGracePeriodSeconds", 30)
            pod["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
            if not admission.dry_run:
                self._later(_START_SECONDS, self._start, server, pod)
        elif admission.verb == "update" and not admission.subresource:
            _check_pod_update(pod, admission.old or pod)
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

    def _later(self, seconds: float, what: Any, server: str, pod: Object) -> None:
        asyncio.get_running_loop().call_later(seconds, what, server, pod)

    def _start(self, server: str, created: Object) -> None:
        """Scheduler and kubelet: the pod gets a node with the fewest pods, an address, and runs."""
        meta = created["metadata"]
        pod = self._store.get(server, self.pods.key, meta["namespace"], meta["name"])
        if pod is None or lookup(pod, "status.phase") != "Pending" or pod["metadata"].get("deletionTimestamp"):
            return
        pods = self._store.list(server, self.pods.key)
        node = _chosen(pod, self._store.list(server, self.nodes.key), pods)
        if node is None:
            pod["status"]["conditions"] = [_pod_condition("PodScheduled", "False", "Unschedulable")]
            self._store.update(server, self.pods.key, pod)
            self._later(1.0, self._start, server, pod)
            return
        pod["spec"]["nodeName"] = node["metadata"]["name"]
        host = _internal_address(node)
        address = host if pod["spec"].get("hostNetwork") else _free_address(node, pods)
        pod["status"] = _running(pod, host, address)
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
        _check_ports(service)
        others = [
            each for each in self._store.list(admission.server, self.services.key) if _place(each) != _place(service)
        ]
        self._give_cluster_ip(admission.server, service, old, others)
        if spec["type"] in ("NodePort", "LoadBalancer"):
            spec.setdefault("externalTrafficPolicy", "Cluster")
            _give_node_ports(service, old, others)
        service.setdefault("status", {"loadBalancer": {}})

    def _give_cluster_ip(self, server: str, service: Object, old: Object | None, others: list[Object]) -> None:
        spec = service["spec"]
        before = lookup(old or {}, "spec.clusterIP")
        if before and spec.get("clusterIP", before) != before:
            raise _invalid_service(service, "spec.clusterIPs[0]", spec["clusterIP"], "may not change once set")
        if not before and spec.get("clusterIP") == "None":
            return
        network = self._services_network(server)
        taken = {each["spec"].get("clusterIP") for each in others}
        wanted = before or spec.get("clusterIP")
        if wanted is None:
            offsets = iter(lambda: 2 + secrets.randbelow(network.num_addresses - 3), -1)
            wanted = next(str(network[offset]) for offset in offsets if str(network[offset]) not in taken)
        elif wanted in taken:
            raise _invalid_service(service, "spec.clusterIPs", wanted, "provided IP is already allocated")
        spec |= {"clusterIP": wanted, "clusterIPs": [wanted]}

    def _services_network(self, server: str) -> IPv4Network:
        shoot = self._store.get(GARDEN, SHOOTS_KEY, *key_of(server))
        text = lookup(shoot or {}, "spec.networking.services") or "100.64.0.0/13"
        return cast("IPv4Network", ip_network(text))


def is_running(pod: Object) -> bool:
    """Whether a pod takes requests."""
    return lookup(pod, "status.phase") == "Running" and not pod["metadata"].get("deletionTimestamp")


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


def _place(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _blocks(shoot: Object, taken: set[str]) -> Iterator[str]:
    """The pod ranges that nodes may get, without the ones that have gone."""
    whole = cast("IPv4Network", ip_network(shoot["spec"]["networking"]["pods"]))
    prefix = max(_POD_PREFIX, whole.prefixlen)
    return (str(block) for block in whole.subnets(new_prefix=prefix) if str(block) not in taken)


def _node(machine: Machine, shoot: Object, pod_range: str) -> Object:
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
        "spec": {"podCIDR": pod_range, "podCIDRs": [pod_range], "providerID": machine.provider_id},
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


def _internal_address(node: Object) -> str:
    return next(str(each["address"]) for each in node["status"]["addresses"] if each["type"] == "InternalIP")


def _chosen(pod: Object, nodes: list[Object], pods: list[Object]) -> Object | None:
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
    ]
    return min(fitting, key=lambda node: load[node["metadata"]["name"]], default=None)


def _free_address(node: Object, pods: list[Object]) -> str:
    taken = {lookup(pod, "status.podIP") for pod in pods}
    block = cast("IPv4Network", ip_network(node["spec"]["podCIDR"]))
    return next(str(block[index]) for index in range(_FIRST_POD, block.num_addresses) if str(block[index]) not in taken)


def _running(pod: Object, host: str, address: str) -> Object:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "qosClass": "BestEffort",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now(),
        "conditions": [_pod_condition(kind, "True") for kind in kinds],
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


def _pod_condition(kind: str, value: str, reason: str | None = None) -> Object:
    condition = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": now()}
    return condition | ({"reason": reason, "message": "0/0 nodes are available"} if reason else {})


def _check_pod(pod: Object) -> None:
    containers = lookup(pod, "spec.containers")
    name = pod["metadata"]["name"]
    if not isinstance(containers, list) or not containers:
        raise denied(422, f'Pod "{name}" is invalid: spec.containers: Required value')
    for index, container in enumerate(containers):
        for field in ("name", "image"):
            if not isinstance(container, dict) or not container.get(field):
                raise denied(422, f'Pod "{name}" is invalid: spec.containers[{index}].{field}: Required value')


def _check_pod_update(pod: Object, old: Object) -> None:
    if pod["spec"] != old["spec"]:
        detail = "pod updates may not change fields other than a few that nothing here needs to change"
        raise denied(422, f'Pod "{pod["metadata"]["name"]}" is invalid: spec: Forbidden: {detail}')


def _check_ports(service: Object) -> None:
    spec = service["spec"]
    if spec["type"] not in ("ClusterIP", "NodePort", "LoadBalancer"):
        raise _invalid_service(service, "spec.type", spec["type"], "ClusterIP, NodePort or LoadBalancer is needed")
    ports = spec.get("ports") or []
    if not ports and spec.get("clusterIP") != "None":
        raise denied(422, f'Service "{service["metadata"]["name"]}" is invalid: spec.ports: Required value')
    for index, port in enumerate(ports):
        number = port.get("port")
        if not isinstance(number, int) or not 1 <= number <= 65535:
            raise _invalid_service(
                service, f"spec.ports[{index}].port", number, "must be between 1 and 65535, inclusive"
            )
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", number)


def _give_node_ports(service: Object, old: Object | None, others: list[Object]) -> None:
    taken = {port.get("nodePort") for each in others for port in each["spec"].get("ports") or []}
    before = {(port.get("name"), port["port"]): port.get("nodePort") for port in lookup(old or {}, "spec.ports") or []}
    for index, port in enumerate(service["spec"].get("ports") or []):
        wanted = port.get("nodePort") or before.get((port.get("name"), port["port"]))
        path = f"spec.ports[{index}].nodePort"
        if wanted is not None and not NODE_PORT_MIN <= wanted <= NODE_PORT_MAX:
            detail = (
                f"provided port is not in the valid range. The range of valid ports is {NODE_PORT_MIN}-{NODE_PORT_MAX}"
            )
            raise _invalid_service(service, path, wanted, detail)
        if wanted is not None and wanted in taken:
            raise _invalid_service(service, path, wanted, "provided port is already allocated")
        if wanted is None:
            free = [each for each in range(NODE_PORT_MIN, NODE_PORT_MAX + 1) if each not in taken]
            wanted = secrets.choice(free)
        port["nodePort"] = wanted
        taken.add(wanted)


def _invalid_service(service: Object, path: str, value: Any, detail: str) -> Exception:
    return denied(
        422, f'Service "{service["metadata"]["name"]}" is invalid: {path}: Invalid value: {value!r}: {detail}'
    )


def _readiness(pod: Object) -> str:
    statuses = lookup(pod, "status.containerStatuses") or []
    return f"{sum(bool(each['ready']) for each in statuses)}/{len(pod['spec']['containers'])}"


def _phase(pod: Object) -> str:
    return "Terminating" if pod["metadata"].get("deletionTimestamp") else str(lookup(pod, "status.phase"))


def _ports(service: Object) -> str:
    return ",".join(
        f"{port['port']}" + (f":{port['nodePort']}" if port.get("nodePort") else "") + f"/{port['protocol']}"
        for port in service["spec"].get("ports") or []
    )


def _node_status(node: Object) -> str:
    ready = lookup(node, 'status.conditions[?(@.type=="Ready")].status') == "True"
    return ("Ready" if ready else "NotReady") + (",SchedulingDisabled" if node["spec"].get("unschedulable") else "")
