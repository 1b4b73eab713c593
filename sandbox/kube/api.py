"""The HTTP side of an API server: `kube_app`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from sandbox.kube import protobuf
from sandbox.kube.access import Action, Authorize, anyone, reviews
from sandbox.kube.changes import Call, Changes, Place
from sandbox.kube.discovery import AGGREGATED, VERSION, Discovery, not_found, wants_aggregated
from sandbox.kube.errors import Denied, denied, details_of
from sandbox.kube.patches import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from sandbox.kube.reading import Reader
from sandbox.kube.resources import Object, Resource
from sandbox.kube.store import Store
from sandbox.kube.tables import shape_of, shown

_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


@dataclass(frozen=True)
class ProxyTarget:
    """Whom `.../{pods,services}/[scheme:]name[:port]/proxy/path` means; `scheme` is "http" if none is named."""

    server: str
    resource: Resource
    namespace: str
    name: str
    scheme: str
    port: str
    path: str


Proxy = Callable[[Request, ProxyTarget], Awaitable[Response]]


def kube_app(
    server: str | Callable[[Request], str],
    resources: Iterable[Resource],
    store: Store,
    *,
    authorize: Authorize = anyone,
    proxy: Proxy | None = None,
) -> Starlette:
    """An ASGI application that speaks the Kubernetes API; it may be mounted under any path.

    Watches end when the store is closed: close it before waiting for the HTTP server to finish.

    Args:
        server: Name of the API server in the store, or a function that finds it for a request (or raises Denied).
        resources: The kinds it serves.
        store: Where objects are kept.
        authorize: Given the request and what it wants, the user's name; raises Denied (401, 403). Default: all is
            open.
        proxy: Answers the proxy subresource of pods, services and nodes.
    """
    api = _Api(server, list(resources), store, authorize, proxy)
    return Starlette(
        routes=[Route("/{path:path}", api.answer, methods=_METHODS)],
        exception_handlers={Denied: _refuse, Exception: _fail},
    )


class _Api:
    def __init__(
        self,
        server: str | Callable[[Request], str],
        resources: list[Resource],
        store: Store,
        authorize: Authorize,
        proxy: Proxy | None,
    ) -> None:
        self._server = server
        self._reviews = reviews(self._server_of, resources, authorize)
        resources = [*resources, *self._reviews]
        self._resources = {(item.group, item.version, item.plural): item for item in resources}
        self._store, self._authorize, self._proxy = store, authorize, proxy
        self._discovery = Discovery(resources)
        self._changes = Changes(store, resources)

    async def answer(self, request: Request) -> Response:
        """Finds what the path means, asks whether it is allowed, and does it."""
        server = self._server_of(request)
        parts = request.path_params["path"].strip("/").split("/")
        target = self._target(parts)
        if target is None:
            self._authorize(request, Action(server, request.method.lower()))
            return self._describe(request, parts)
        place, rest = target
        if place.subresource == "proxy":
            return await self._forward(request, server, place, rest)
        verb = self._verb(request, place)
        # Everyone who is known may ask about himself.
        asked = None if place.resource in self._reviews else place.resource
        action = Action(server, verb, asked, place.namespace, place.name, place.subresource)
        user = self._authorize(request, action)
        if verb in ("get", "list", "watch"):
            return self._read(request, server, place, verb)
        manager = request.query_params.get("fieldManager") or request.headers.get("user-agent", "unknown")
        call = Call(server, user, manager.partition("/")[0], _query(request))
        return await self._change(request, call, place, verb)

    def _server_of(self, request: Request) -> str:
        return self._server if isinstance(self._server, str) else self._server(request)

    def _target(self, parts: list[str]) -> tuple[Place, str] | None:
        """The place that a path names, and what follows a proxy; None if it names no resource."""
        match parts:
            case ["api", version, *rest] if rest:
                group = ""
            case ["apis", group, version, *rest] if rest:
                pass
            case _:
                return None
        namespace = ""
        match rest:
            case ["namespaces", namespace, plural, *tail] if plural not in ("status", "finalize"):
                pass
            case [plural, *tail]:
                namespace = ""
        resource = self._resources.get((group, version, plural))
        if resource is None or (namespace and not resource.namespaced):
            raise not_found()
        name, subresource, *path = [*tail, "", ""] if len(tail) < 2 else tail
        if name and resource.namespaced and not namespace:
            raise not_found()
        return Place(resource, namespace, name, subresource), "/".join(path)

    @staticmethod
    def _verb(request: Request, place: Place) -> str:
        """The verb of a request.

        Raises:
            Denied: NotFound for an unknown subresource, MethodNotAllowed.
        """
        resource, method = place.resource, "GET" if request.method == "HEAD" else request.method
        allowed = {"GET", "PUT", "PATCH", "DELETE"} if place.name else {"GET", "POST", "DELETE"}
        if place.subresource in resource.subresources:
            allowed = {"POST"}
        elif place.subresource == "status" and resource.status:
            allowed = {"GET", "PUT", "PATCH"}
        elif place.subresource:
            raise not_found()
        elif resource.answer:
            allowed = set() if place.name else {"POST"}
        if method not in allowed:
            raise denied(405, "the server does not allow this method on the requested resource")
        if method == "GET" and request.query_params.get("watch") in ("true", "1"):
            return "watch"
        if not place.name and method in ("GET", "DELETE"):
            return {"GET": "list", "DELETE": "deletecollection"}[method]
        return _VERBS[method]

    def _describe(self, request: Request, parts: list[str]) -> Response:
        """Everything that is no resource."""
        match parts:
            case ["version"]:
                return _json(VERSION)
            case ["healthz" | "livez" | "readyz", *_]:
                return PlainTextResponse("ok")
            case ["api" | "apis" as root] if wants_aggregated(request.headers.get("accept", "")):
                return _json(self._discovery.aggregated(core=root == "api"), media_type=AGGREGATED)
        return _json(self._discovery.document(parts))

    def _reader(self, request: Request, server: str, place: Place) -> Reader:
        shape = shape_of(request.headers.get("accept", ""))
        namespace = place.namespace or None
        query = dict(request.query_params)
        return Reader(self._store, server, place.resource, namespace, shape, query, place.name)

    def _read(self, request: Request, server: str, place: Place, verb: str) -> Response:
        reader = self._reader(request, server, place)
        if verb == "watch":
            return StreamingResponse(reader.watch(), media_type="application/json")
        if verb == "list":
            return _json(reader.page())
        obj = self._changes.existing(server, place)
        return _json(shown(place.resource, obj, reader.shape, reader.query.get("includeObject", "")))

    async def _change(self, request: Request, call: Call, place: Place, verb: str) -> Response:
        if place.subresource in place.resource.subresources:
            obj = self._changes.existing(call.server, place)
            return _json(await place.resource.subresources[place.subresource](request, obj), 201)
        body = await _body(request)
        shape = shape_of(request.headers.get("accept", ""))
        status = 200
        match verb:
            case "create" if place.resource.answer:
                return _json(await place.resource.answer(request, _mapping(body)), 201)
            case "create":
                obj, status = self._changes.create(call, place, _mapping(body)), 201
            case "update":
                obj = self._changes.replace(call, place, _mapping(body))
            case "patch":
                obj, status = self._patch(request, call, place, body)
            case "delete":
                return _json(self._delete(call, place, _mapping(body or {})))
            case _:
                return _json(self._delete_all(request, call, place, _mapping(body or {})))
        return _json(shown(place.resource, obj, shape), status)

    def _patch(self, request: Request, call: Call, place: Place, body: Any) -> tuple[Object, int]:
        kind = _media_type(request)
        if kind == APPLY_PATCH:
            force = request.query_params.get("force") in ("true", "1")
            obj, created = self._changes.apply(call, place, body, force=force)
            return obj, 201 if created else 200
        if kind not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
            raise denied(415, f"the body of the patch was in an unknown format: {kind}")
        return self._changes.patch(call, place, kind, body), 200

    def _delete(self, call: Call, place: Place, options: Object) -> Object:
        obj = self._changes.delete(call, place, options)
        if self._store.get(call.server, place.resource.key, place.namespace, place.name) and not call.dry_run:
            return obj
        details = details_of(place.resource.key, place.name) | {"uid": obj["metadata"]["uid"]}
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }

    def _delete_all(self, request: Request, call: Call, place: Place, options: Object) -> Object:
        reader = self._reader(request, call.server, place)
        page = reader.page()
        for obj in reader.selected():
            meta = obj["metadata"]
            self._changes.delete(call, Place(place.resource, meta.get("namespace", ""), meta["name"]), options)
        return page

    async def _forward(self, request: Request, server: str, place: Place, path: str) -> Response:
        if self._proxy is None or place.resource.key not in ("pods", "services", "nodes"):
            raise not_found()
        action = Action(server, _VERBS.get(request.method, "get"), place.resource, place.namespace, place.name, "proxy")
        self._authorize(request, action)
        match place.name.split(":"):
            case [name]:
                scheme, port = "http", ""
            case [name, port]:
                scheme = "http"
            case [scheme, name, port]:
                scheme = scheme or "http"
            case _:
                raise denied(400, f"invalid proxy target {place.name!r}: [scheme:]name[:port] is needed")
        target = ProxyTarget(server, place.resource, place.namespace, name, scheme, port, path)
        return await self._proxy(request, target)


def _query(request: Request) -> dict[str, Any]:
    query = dict(request.query_params)
    if query.get("dryRun", "All") != "All":
        raise denied(422, f'dryRun: Unsupported value: "{query["dryRun"]}": supported values: "All"')
    return query


class _Loader(yaml.SafeLoader):
    """YAML as JSON knows it: a timestamp is a string."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()


async def _body(request: Request) -> Any:
    """The parsed body; None if there is none."""
    raw = await request.body()
    kind = _media_type(request)
    if not raw:
        return None
    try:
        if kind.endswith("json"):
            return json.loads(raw)
        if kind == protobuf.MEDIA_TYPE:
            return protobuf.decoded(raw)
        if kind.endswith("yaml"):
            return yaml.load(raw, _Loader)  # noqa: S506 - derived from the safe loader
    except (ValueError, yaml.YAMLError) as error:
        raise denied(400, f"couldn't parse the body as {kind}: {error}") from error
    raise denied(
        415,
        f"the body of the request was in an unknown format ({kind}); accepted: application/json, application/yaml",
    )


def _mapping(body: Any) -> Object:
    if not isinstance(body, dict):
        raise denied(400, "the body of the request must be an object")
    return body


def _json(body: Any, status: int = 200, media_type: str = "application/json") -> Response:
    return Response(json.dumps(body, separators=(",", ":")), status, media_type=media_type)


async def _refuse(_request: Request, error: Exception) -> Response:
    if not isinstance(error, Denied):
        raise TypeError(error)
    answer = _json(error.status(), error.code)
    if error.code == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


async def _fail(_request: Request, error: Exception) -> Response:
    return _json(denied(500, f"Internal error occurred: {type(error).__name__}").status(), 500)
