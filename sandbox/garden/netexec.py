"""What `agnhost netexec` answers in a pod (kubernetes, `test/images/agnhost/netexec`), by the network as it is."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from concurrent.futures import Executor
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from sandbox.garden.hosts import Hosts, Key
from sandbox.garden.insides import Insides, key_of, server_of
from sandbox.garden.kinds import GARDEN, SHOOTS_KEY
from sandbox.garden.pods import is_running
from sandbox.garden.providers import CloudError, Host, Provider
from sandbox.garden.services import target_port
from sandbox.kube import Object, ProxyTarget, Store, denied, lookup

_PORT = 8080
_MOST_TRIES = 1000
_PORT_FLAG = re.compile(r"^--http-port(?:=(\d+))?$")


class _Refused(Exception):  # noqa: N818 - what a connection may be, not a fault
    """Somebody is there, but nobody listens."""


class _Lost(Exception):  # noqa: N818
    """The packet is dropped on the way, or nobody is there."""


class Netexec:
    """Answers the proxy subresource of pods and services, for all shoots."""

    def __init__(
        self, store: Store, providers: Mapping[str, Provider], hosts: Hosts, insides: Insides, executor: Executor
    ) -> None:
        self._store = store
        self._providers = providers
        self._hosts = hosts
        self._insides = insides
        self._executor = executor

    async def answer(self, request: Request, target: ProxyTarget) -> Response:
        """The response of the pod that is asked; 503 if it does not answer."""
        pod, port = self._pod(target)
        if not is_running(pod) or _listening(pod) != port:
            where = f"{lookup(pod, 'status.podIP') or ''}:{port}"
            raise denied(503, f"error trying to reach service: dial tcp {where}: connect: connection refused")
        if target.path == "dial":
            return await self._dial(request, target.server, pod)
        return PlainTextResponse(_page(target.path, request.query_params, pod, "127.0.0.1:0"))

    def _pod(self, target: ProxyTarget) -> tuple[Object, int]:
        obj = self._store.get(target.server, target.resource.key, target.namespace, target.name)
        if obj is None:
            kind = target.resource.key
            raise denied(404, f'{kind} "{target.name}" not found', name=target.name, kind=kind)
        if target.resource.key == "pods":
            return obj, int(target.port) if target.port.isdigit() else _first_port(obj)
        if target.resource.key != "services":
            raise denied(400, "only pods and services are proxied")
        for port in obj["spec"].get("ports") or []:
            if target.port not in ("", port.get("name"), str(port["port"])):
                continue
            for pod in self._insides.endpoints(target.server, obj):
                number = target_port(pod, port)
                if number is not None:
                    return pod, number
        raise denied(503, f'no endpoints available for service "{target.name}"')

    async def _dial(self, request: Request, server: str, pod: Object) -> Response:
        query = request.query_params
        host, port, wanted = query.get("host", ""), query.get("port", ""), query.get("request", "")
        protocol = query.get("protocol", "").lower()
        try:
            tries = int(query.get("tries") or "1")
        except ValueError:
            text = f'tries parameter is invalid. strconv.Atoi: parsing "{query["tries"]}": invalid syntax\n'
            return PlainTextResponse(text, 400)
        if not wanted:
            return PlainTextResponse("request parameter not specified. <nil>\n", 400)
        if protocol not in ("", "http"):
            return PlainTextResponse(f"unsupported protocol. {protocol}\n", 400)
        if not _is_address(host) or not port.isdigit() or int(port) > 65535:
            return PlainTextResponse(f"host and/or port param are invalid. lookup {host}: no such host\n", 400)
        responses, errors = [], []
        failed = f'Get "http://{host}:{port}/{wanted}": dial tcp {host}:{port}: '
        response = ""
        for _ in range(min(tries, _MOST_TRIES)):
            try:
                response = await self._get(server, pod, host, int(port), wanted)
                responses.append(response)
            except _Lost:
                response = ""
                errors.append(f"{failed}i/o timeout")
            except _Refused:
                response = ""
                errors.append(f"{failed}connect: connection refused")
        output = ({"responses": responses} if response else {}) | ({"errors": errors} if errors else {})
        return Response(json.dumps(output, separators=(",", ":")), media_type="text/plain; charset=utf-8")

    async def _get(self, server: str, source: Object, host: str, port: int, wanted: str) -> str:
        """The body of `http://host:port/wanted`, asked for from within a pod."""
        pod = await self._receiver(server, source, host, port)
        path, _, query = wanted.partition("?")
        parameters = dict(part.partition("=")[::2] for part in query.split("&") if part)
        return _page(path, parameters, pod, f"{lookup(source, 'status.hostIP')}:40000")

    async def _receiver(self, server: str, source: Object, host: str, port: int) -> Object:
        """The pod that gets a connection; raises _Lost or _Refused."""
        key = key_of(server)
        shoot = self._store.get(GARDEN, SHOOTS_KEY, *key)
        networking = lookup(shoot or {}, "spec.networking") or {}
        # Inside of its own ranges a cluster knows no other network: equal ranges elsewhere are out of its reach.
        if _within(host, networking.get("services")):
            return self._by_service(server, host, port)
        if _within(host, networking.get("pods")):
            return self._by_pod(server, host, port)
        provider = lookup(shoot or {}, "spec.provider.type")
        found = await self._across(key, str(provider), source, host, port)
        return self._by_node(server_of(found[0]), found[1].machine.address, port)

    async def _across(self, key: Key, provider: str, source: Object, host: str, port: int) -> tuple[Key, Host]:
        own = lookup(source, "status.hostIP")
        origin = next((each for each in self._hosts.of(key) if each.machine.address == own), None)
        if origin is None:
            raise _Lost
        if origin.machine.address == host:
            return key, origin  # It never leaves the machine.
        candidates = self._hosts.at(provider, host)
        if not candidates:
            raise _Lost
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(
                self._executor, self._providers[provider].reached, origin, host, port, candidates
            )
        except CloudError as error:
            raise denied(503, f"the sandbox cannot look at the network: {error}") from error
        owner = self._hosts.owner(provider, found) if found else None
        if found is None or owner is None:
            raise _Lost
        return owner, found

    def _by_service(self, server: str, host: str, port: int) -> Object:
        for service in self._store.list(server, self._insides.services.key):
            if service["spec"].get("clusterIP") == host:
                return self._endpoint(server, service, "port", port, None)
        raise _Lost

    def _by_node(self, server: str, address: str, port: int) -> Object:
        for service in self._store.list(server, self._insides.services.key):
            if any(each.get("nodePort") == port for each in service["spec"].get("ports") or []):
                local = service["spec"].get("externalTrafficPolicy") == "Local"
                return self._endpoint(server, service, "nodePort", port, address if local else None)
        for pod in self._store.list(server, self._insides.pods.key):
            on_host = pod["spec"].get("hostNetwork") and lookup(pod, "status.hostIP") == address
            if on_host and is_running(pod) and _listening(pod) == port:
                return pod
        raise _Refused

    def _by_pod(self, server: str, address: str, port: int) -> Object:
        for pod in self._store.list(server, self._insides.pods.key):
            if lookup(pod, "status.podIP") == address and is_running(pod):
                if _listening(pod) == port:
                    return pod
                raise _Refused
        raise _Lost

    def _endpoint(self, server: str, service: Object, field: str, number: int, host: str | None) -> Object:
        for port in service["spec"].get("ports") or []:
            if port.get(field) != number or port.get("protocol", "TCP") != "TCP":
                continue
            for pod in self._insides.endpoints(server, service):
                if host in (None, lookup(pod, "status.hostIP")) and _listening(pod) == target_port(pod, port):
                    return pod
            if host is not None:
                raise _Lost  # kube-proxy drops what has no endpoint on this node.
        raise _Refused


def _listening(pod: Object) -> int | None:
    """The port on which a pod's `agnhost netexec` listens; None if it runs something else."""
    for container in pod["spec"]["containers"]:
        words = [*(container.get("command") or []), *(container.get("args") or [])]
        if "agnhost" not in container["image"] or "netexec" not in words:
            continue
        for index, word in enumerate(words):
            flag = _PORT_FLAG.match(str(word))
            if flag:
                following = words[index + 1] if index + 1 < len(words) else _PORT
                return int(flag.group(1) or following)
        return _PORT
    return None


def _first_port(pod: Object) -> int:
    """The port that the API server's proxy takes when none is named."""
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or []:
            return int(port["containerPort"])
    return 80


def _page(path: str, query: Mapping[str, str], pod: Object, client: str) -> str:
    match path.strip("/"):
        case "hostname" | "hostName":
            return str(pod["spec"].get("hostname") or pod["metadata"]["name"])
        case "healthz":
            return ""
        case "clientip":
            return client
        case "echo":
            return str(query.get("msg", ""))
    return f"NOW: {datetime.now(UTC)}"


def _within(address: str, cidr: str | None) -> bool:
    return bool(cidr) and ip_address(address) in ip_network(str(cidr))


def _is_address(text: str) -> bool:
    try:
        return ip_address(text).version == 4
    except ValueError:
        return False
