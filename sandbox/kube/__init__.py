"""A small Kubernetes API server: real enough for kubectl and the Kubernetes clients.

`Store` keeps objects, `Resource` describes a kind, `kube_app` serves them over HTTP.
"""

from sandbox.kube.api import Action, ProxyTarget, kube_app
from sandbox.kube.core import CORE, NAMESPACES, record_event
from sandbox.kube.errors import Denied, denied
from sandbox.kube.resources import AGE, Admission, Column, Object, Resource
from sandbox.kube.store import Event, Store

__all__ = [
    "AGE",
    "CORE",
    "NAMESPACES",
    "Action",
    "Admission",
    "Column",
    "Denied",
    "Event",
    "Object",
    "ProxyTarget",
    "Resource",
    "Store",
    "denied",
    "kube_app",
    "record_event",
]
