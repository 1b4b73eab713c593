"""The kinds of the core group that every API server here has."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from sandbox.kube.errors import denied
from sandbox.kube.resources import AGE, Admission, Column, Object, Resource
from sandbox.kube.store import Store, now


def record_event(
    store: Store,
    server: str,
    about: Object,
    reason: str,
    message: str,
    *,
    warning: bool = False,
    source: str = "sandbox",
) -> Object:
    """Writes an Event about an object, as controllers do. The same one again only grows its count."""
    meta = about["metadata"]
    namespace = meta.get("namespace") or "default"
    kind = "Warning" if warning else "Normal"
    for event in store.list(server, EVENTS.key, namespace):
        if event["involvedObject"].get("uid") == meta["uid"] and (
            (event["reason"], event["message"], event["type"]) == (reason, message, kind)
        ):
            event |= {"count": event["count"] + 1, "lastTimestamp": now()}
            return store.update(server, EVENTS.key, event)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{meta['name']}.{store.version + 1:x}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": meta["name"],
            "namespace": meta.get("namespace", ""),
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": source},
        "reportingComponent": source,
        "reportingInstance": source,
        "count": 1,
        "firstTimestamp": now(),
        "lastTimestamp": now(),
    }
    return store.create(server, EVENTS.key, event)


def ensure_namespace(store: Store, server: str, name: str) -> Object:
    """The namespace, made if it is missing."""
    found = store.get(server, NAMESPACES.key, None, name)
    if found:
        return found
    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    _complete_namespace(namespace)
    return store.create(server, NAMESPACES.key, namespace)


def _complete_namespace(namespace: Object) -> None:
    meta = namespace["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}
    namespace.setdefault("spec", {"finalizers": ["kubernetes"]})
    namespace.setdefault("status", {"phase": "Active"})


def _admit_namespace(admission: Admission) -> None:
    if admission.verb != "delete":
        _complete_namespace(admission.new)


def _admit_secret(admission: Admission) -> None:
    secret, old = admission.new, admission.old
    if admission.verb == "delete":
        return
    for key, text in (secret.pop("stringData", None) or {}).items():
        secret.setdefault("data", {})[key] = base64.b64encode(str(text).encode()).decode()
    for key, value in (secret.get("data") or {}).items():
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError, TypeError) as error:
            raise denied(400, f"Secret in version v1 cannot be handled: data.{key} is not base64") from error
    secret.setdefault("type", "Opaque")
    if old and old.get("type") != secret["type"]:
        raise denied(
            422,
            f'Secret "{secret["metadata"]["name"]}" is invalid: type: Invalid value: "{secret["type"]}": '
            "field is immutable",
        )
    _keep_immutable(admission)


def _keep_immutable(admission: Admission) -> None:
    """Refuses other data for an object marked `immutable`."""
    new, old = admission.new, admission.old
    if not old or admission.verb == "delete" or not old.get("immutable"):
        return
    if any(new.get(name) != old.get(name) for name in ("data", "binaryData", "immutable")):
        kind, name = new["kind"], new["metadata"]["name"]
        raise denied(422, f'{kind} "{name}" is invalid: data: Forbidden: field is immutable when `immutable` is set')


def _count(obj: Object) -> int:
    return len(obj.get("data") or {})


def _about(event: Object) -> str:
    involved: dict[str, Any] = event.get("involvedObject") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


NAMESPACES = Resource(
    group="",
    version="v1",
    kind="Namespace",
    plural="namespaces",
    namespaced=False,
    short_names=("ns",),
    columns=(Column("Status", ".status.phase"), AGE),
    admit=_admit_namespace,
    fields=("status.phase",),
)
SECRETS = Resource(
    group="",
    version="v1",
    kind="Secret",
    plural="secrets",
    columns=(Column("Type", ".type"), Column("Data", _count, "integer"), AGE),
    admit=_admit_secret,
    status=False,
    fields=("type",),
)
CONFIGMAPS = Resource(
    group="",
    version="v1",
    kind="ConfigMap",
    plural="configmaps",
    short_names=("cm",),
    columns=(Column("Data", _count, "integer"), AGE),
    admit=_keep_immutable,
    status=False,
)
EVENTS = Resource(
    group="",
    version="v1",
    kind="Event",
    plural="events",
    short_names=("ev",),
    columns=(
        Column("Last Seen", ".lastTimestamp", "date"),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Object", _about),
        Column("Message", ".message"),
        Column("Name", ".metadata.name", priority=1),
    ),
    status=False,
    fields=(
        *(
            f"involvedObject.{name}"
            for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        ),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
)
CORE = (NAMESPACES, SECRETS, CONFIGMAPS, EVENTS)
"""What every server has: namespaces, secrets, configmaps, events."""
