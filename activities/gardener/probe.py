"""Kubernetes' own test image in a cluster: it answers with its name on a NodePort, and dials others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from domain.errors import Code, TrellisError

if TYPE_CHECKING:
    from activities.gardener.api import Api

__all__ = ["Probe", "probe"]

_log = logging.getLogger(__name__)

_PORT = 8080
_LABEL = "trellis.dev/probe"
_POLL_MIN, _POLL_MAX = 0.2, 2.0
# Pulling the image on a new node takes its time.
_START_SECONDS = 180.0
_REMOVE_SECONDS = 30.0
# The pod ends by itself after this, and what a killed worker left is removed by the next probe.
_LIFE = timedelta(minutes=15)


class _Dialed(BaseModel):
    """What agnhost's `/dial` answers (kubernetes, test/images/agnhost/netexec)."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    responses: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class Probe:
    """One cluster's end of a connectivity check. `hostname` is what it answers: cluster and nonce, nobody else's."""

    def __init__(self, api: Api, cluster: str, nonce: str, image: str) -> None:
        self.cluster = cluster
        self.hostname = f"{cluster}-{nonce}"
        self._api = api
        self._image = image
        self._name = f"trellis-probe-{nonce}"
        self._path = f"/api/v1/namespaces/{self._name}"
        self._host = ""
        self._node_port = 0

    @property
    def address(self) -> str:
        """Where it answers: its node's address on the node network, and the NodePort."""
        return f"{self._host}:{self._node_port}"

    async def start(self) -> None:
        """Make namespace, pod and service, and wait until the pod runs.

        Raises:
            TrellisError: `timeout` with the pod's own reason where it does not start in three minutes.
        """
        waiting = "its namespace is still being removed"
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._remove_stale()
                await self._make_namespace()
                waiting = "its service account was not there yet"
                await self._make_pod()
                service = await self._api.post(f"{self._path}/services", _service(self._name))
                self._node_port = service["spec"]["ports"][0]["nodePort"]
                async for _ in _polls():
                    pod = await self._api.find(f"{self._path}/pods/{self.hostname}")
                    waiting = _reason(pod) if pod else "its pod is not to be found"
                    if pod and _is_ready(pod):
                        self._host = pod["status"]["hostIP"]
                        break
        except TimeoutError:
            what = f"the probe in cluster {self.cluster} (pod {self._name}/{self.hostname}) did not start: {waiting}"
            hint = f"check that its nodes have room and can pull {self._image}"
            raise TrellisError(Code.TIMEOUT, what, hint) from None

    async def dial(self, peer: Probe) -> str:
        """Ask for the peer's name over the node network; empty if it is what came back, else what came instead."""
        query = {"request": "hostname", "protocol": "http", "tries": "3"}
        query |= {"host": peer._host, "port": str(peer._node_port)}
        answer = await self._api.find(f"{self._path}/pods/{self.hostname}:{_PORT}/proxy/dial", query)
        if answer is None:
            return f"the pod {self._name}/{self.hostname} is not there to ask"
        dialed = _Dialed.model_validate(answer)
        wrong = sorted(set(dialed.responses) - {peer.hostname})
        if wrong:
            return f"another machine answered: {', '.join(wrong)}"
        if dialed.errors or not dialed.responses:
            return "; ".join(sorted(set(dialed.errors))) or "nothing"
        return ""

    async def remove(self) -> None:
        """Remove all of it; what cannot be removed now goes with the next probe."""
        try:
            async with asyncio.timeout(_REMOVE_SECONDS):
                await self._api.delete(self._path)
        except (TrellisError, TimeoutError) as error:
            _log.warning("namespace %s stays in cluster %s for now: %s", self._name, self.cluster, error)

    async def _make_namespace(self) -> None:
        """A fresh one: what an attempt that was killed left is removed first."""
        labels = {_LABEL: "", "pod-security.kubernetes.io/enforce": "restricted"}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._name, "labels": labels}}
        async for _ in _polls():
            try:
                await self._api.post("/api/v1/namespaces", body)
            except TrellisError as error:
                if error.failure.code is not Code.CONFLICT:
                    raise
                await self._api.delete(self._path)
            else:
                return

    async def _make_pod(self) -> None:
        """The namespace's service account comes a moment after the namespace, and admission asks for it."""
        async for _ in _polls():
            try:
                await self._api.post(f"{self._path}/pods", _pod(self.hostname, self._image))
            except TrellisError as error:
                if error.failure.code is not Code.FORBIDDEN or "serviceaccount" not in error.failure.message:
                    raise
            else:
                return

    async def _remove_stale(self) -> None:
        namespaces, _ = await self._api.read_all("/api/v1/namespaces", {"labelSelector": _LABEL})
        for namespace in namespaces:
            meta = namespace["metadata"]
            age = datetime.now(UTC) - datetime.fromisoformat(meta["creationTimestamp"])
            if age > 2 * _LIFE and "deletionTimestamp" not in meta:
                await self._api.delete(f"/api/v1/namespaces/{meta['name']}")


@asynccontextmanager
async def probe(api: Api, cluster: str, nonce: str, image: str) -> AsyncIterator[Probe]:
    """A running probe, removed afterwards whatever happens."""
    this = Probe(api, cluster, nonce, image)
    try:
        await this.start()
        yield this
    finally:
        await this.remove()


async def _polls() -> AsyncIterator[None]:
    """At once, then with growing pauses, for ever: the caller has a deadline."""
    pause = _POLL_MIN
    while True:
        yield
        await asyncio.sleep(pause)
        pause = min(1.5 * pause, _POLL_MAX)


def _pod(name: str, image: str) -> dict[str, Any]:
    """Fits the strictest of Kubernetes' pod security standards."""
    container = {
        "name": "agnhost",
        "image": image,
        "args": ["netexec", f"--http-port={_PORT}"],
        "ports": [{"containerPort": _PORT}],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {_LABEL: ""}},
        "spec": {
            "activeDeadlineSeconds": int(_LIFE.total_seconds()),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }


def _service(name: str) -> dict[str, Any]:
    ports = [{"port": _PORT, "targetPort": _PORT, "protocol": "TCP"}]
    spec = {"type": "NodePort", "selector": {_LABEL: ""}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _reason(pod: dict[str, Any]) -> str:
    """Why a pod does not run yet: what its container waits for, or what the scheduler says."""
    status = pod.get("status", {})
    waiting = [each.get("state", {}).get("waiting") for each in status.get("containerStatuses") or []]
    told = [*filter(None, waiting), *(each for each in status.get("conditions") or [] if each["status"] != "True")]
    texts = [f"{each.get('reason', '')}: {each.get('message', '')}".strip(": ") for each in told]
    return next(filter(None, texts), f"phase {status.get('phase', 'unknown')}")
