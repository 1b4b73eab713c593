"""The HTTP side of an API server: `kube_app`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from sandbox.kube.resources import Resource
from sandbox.kube.store import Store


@dataclass(frozen=True)
class Action:
    """What a request wants, for `authorize`.

    Attributes:
        server: The API server.
        verb: get, list, watch, create, update, patch, delete, deletecollection.
        resource: The kind, None for paths that are no resource (discovery, /version).
        subresource: "status", "adminkubeconfig", "proxy" or "".
    """

    server: str
    verb: str
    resource: Resource | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True)
class ProxyTarget:
    """Whom `.../{pods,services}/[scheme:]name[:port]/proxy/path` means."""

    server: str
    resource: Resource
    namespace: str
    name: str
    scheme: str
    port: str
    path: str


Authorize = Callable[[Request, Action], str]
Proxy = Callable[[Request, ProxyTarget], Awaitable[Response]]


def kube_app(
    server: str | Callable[[Request], str],
    resources: Iterable[Resource],
    store: Store,
    *,
    authorize: Authorize | None = None,
    proxy: Proxy | None = None,
) -> Starlette:
    """An ASGI application that speaks the Kubernetes API; may be mounted under any path.

    Args:
        server: Name of the API server in the store, or a function that finds it (or raises Denied) for a request.
        resources: The kinds it serves.
        store: Where objects are kept.
        authorize: Given the request and what it wants, the user's name; raises Denied (401, 403). Default: all is open.
        proxy: Answers the proxy subresource of pods and services.
    """
    raise NotImplementedError
