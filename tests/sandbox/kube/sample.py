"""A server with one kind of its own, Vessel. As a program with the argument DATABASE it prints its port."""

import asyncio
import socket
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount

from sandbox.kube import (
    AGE,
    CORE,
    Action,
    Admission,
    Column,
    Denied,
    Object,
    ProxyTarget,
    Resource,
    Store,
    bearer_token,
    denied,
    ensure_namespace,
    kube_app,
)

GROUP = "fleet.example.org"


def _admit(admission: Admission) -> None:
    if admission.verb == "delete":
        annotations = admission.new["metadata"].get("annotations") or {}
        if annotations.get("moored") == "true":
            raise Denied("Forbidden", f"vessel {admission.new['metadata']['name']} is moored", 403)
        return
    spec = admission.new.setdefault("spec", {})
    spec.setdefault("port", "Hamburg")
    if spec.get("length", 0) < 0:
        raise denied(422, "spec.length: must not be negative")
    if admission.old and admission.old["spec"].get("flag") != spec.get("flag"):
        raise denied(422, "spec.flag: is immutable")


async def _papers(request: Request, vessel: Object) -> Object:
    asked = await request.json()
    return {"kind": "Papers", "for": vessel["metadata"]["name"], "pages": asked["pages"]}


async def _forward(request: Request, target: ProxyTarget) -> Response:
    body = (await request.body()).decode()
    return JSONResponse(
        {
            "method": request.method,
            "to": [target.server, target.namespace, target.scheme, target.name, target.port, target.path],
            "query": str(request.query_params),
            "body": body,
        }
    )


VESSEL = Resource(
    group=GROUP,
    version="v1beta1",
    kind="Vessel",
    plural="vessels",
    short_names=("vs",),
    categories=("all",),
    columns=(
        Column("Port", ".spec.port"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Length", ".spec.length", "integer", priority=1),
        AGE,
    ),
    admit=_admit,
    subresources={"papers": _papers},
    fields=("spec.port",),
)
POD = Resource("", "v1", "Pod", "pods", short_names=("po",), columns=(Column("Phase", ".status.phase"), AGE))
RESOURCES = (*CORE, POD, VESSEL)
TOKENS = {"token-of-anne": "anne", "token-of-bob": "bob"}


def _authorize(request: Request, action: Action) -> str:
    """Anne may do everything, Bob may look at vessels."""
    user = TOKENS.get(bearer_token(request) or "")
    if user is None:
        raise denied(401, "Unauthorized")
    looks = action.resource is None or (
        action.resource.kind == "Vessel" and action.verb in ("get", "list", "watch") and not action.subresource
    )
    if user == "bob" and not looks:
        kind = action.resource.plural if action.resource else ""
        raise denied(403, f'{kind} is forbidden: User "bob" cannot {action.verb} resource "{kind}"')
    return user


def _island(request: Request) -> str:
    name = request.path_params["name"]
    if name == "atlantis":
        raise denied(404, "there is no island atlantis")
    return f"island/{name}"


def application(store: Store) -> Starlette:
    """The main server at /, one server per island under /islands/NAME, and a guarded one under /guarded."""
    ensure_namespace(store, "main", "default")
    ensure_namespace(store, "guarded", "default")
    return Starlette(
        routes=[
            Mount("/islands/{name}", app=kube_app(_island, RESOURCES, store, proxy=_forward)),
            Mount("/guarded", app=kube_app("guarded", RESOURCES, store, authorize=_authorize)),
            Mount("/", app=kube_app("main", RESOURCES, store, proxy=_forward)),
        ]
    )


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, app: Starlette, started: asyncio.Future[int]) -> None:
        super().__init__(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", lifespan="off"))
        self._port = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._port.set_result(self.servers[0].sockets[0].getsockname()[1])


async def serve(store: Store, started: asyncio.Future[int]) -> None:
    """Serves until cancelled; tells the port."""
    server = _Server(application(store), started)
    serving = asyncio.create_task(server.serve())
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        store.close()
        server.should_exit = True
        await serving


async def _main(database: Path) -> None:
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(Store(database), started))
    print(await started, flush=True)
    await serving


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
