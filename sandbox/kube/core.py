"""The kinds of the core group that every API server here has."""

from __future__ import annotations

from sandbox.kube.resources import Object, Resource
from sandbox.kube.store import Store

NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False, short_names=("ns",))
SECRETS = Resource("", "v1", "Secret", "secrets", status=False)
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", short_names=("cm",), status=False)
EVENTS = Resource("", "v1", "Event", "events", short_names=("ev",), status=False)
CORE = (NAMESPACES, SECRETS, CONFIGMAPS, EVENTS)


def record_event(
    store: Store,
    server: str,
    about: Object,
    reason: str,
    message: str,
    *,
    warning: bool = False,
    source: str = "sandbox",
) -> None:
    """Writes an Event about an object, as controllers do; a repeated one is counted."""
    raise NotImplementedError
