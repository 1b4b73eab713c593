"""A small Kubernetes API server: real enough for kubectl and the Kubernetes clients.

`Store` keeps objects, `Resource` describes a kind, `kube_app` serves them over HTTP.
"""

from sandbox.kube.access import Action, bearer_token
from sandbox.kube.api import ProxyTarget, kube_app
from sandbox.kube.core import CORE, ensure_namespace, record_event
from sandbox.kube.errors import Denied, denied
from sandbox.kube.resources import AGE, Admission, Column, Object, Resource, lookup
from sandbox.kube.store import Event, Store

__all__ = [
    "AGE",
    "CORE",
    "Action",
    "Admission",
    "Column",
    "Denied",
    "Event",
    "Object",
    "ProxyTarget",
    "Resource",
    "Store",
    "bearer_token",
    "denied",
    "ensure_namespace",
    "kube_app",
    "lookup",
    "record_event",
]
