"""The garden as one ASGI application: its own API, the API servers of its shoots, and a switchboard for tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route

from sandbox.garden import kinds
from sandbox.garden.access import Access
from sandbox.garden.admission import ShootAdmission
from sandbox.garden.controller import ShootController
from sandbox.garden.hosts import Hosts
from sandbox.garden.insides import Insides, server_of
from sandbox.garden.netexec import Netexec
from sandbox.garden.providers import Provider
from sandbox.garden.settings import Settings
from sandbox.garden.start import furnish
from sandbox.kube import CORE, Store, denied, kube_app

_THREADS = 16
# Probes mostly wait for each other: all that wait share one look at the network.
_PROBE_THREADS = 64


def garden_app(
    store: Store, state_dir: Path, settings: Settings, url: str, authority: Path, clouds: Iterable[Provider]
) -> Starlette:
    """Wires it all; writes `garden.kubeconfig` into the state directory when it starts.

    Args:
        store: Where everything is kept.
        state_dir: For keys and the kubeconfig.
        settings: How the garden behaves; changed in place by PUT /sandbox/settings.
        url: Under which the application is reached, without a slash at the end.
        authority: The certificate in PEM that clients are to trust.
        clouds: The providers whose shoots this garden serves.
    """
    providers = {each.type: each for each in clouds}
    access = Access(store, state_dir, settings, url, authority)
    hosts, insides = Hosts(), Insides(store)
    executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="cloud")
    probes = ThreadPoolExecutor(_PROBE_THREADS, thread_name_prefix="probe")
    netexec = Netexec(store, providers, hosts, insides, probes)
    subresources = {
        "adminkubeconfig": access.kubeconfig_handler("admin"),
        "viewerkubeconfig": access.kubeconfig_handler("viewer"),
    }
    shoots = kinds.shoots(ShootAdmission(store, providers), subresources)
    garden_kinds = (*CORE, shoots, kinds.CLOUD_PROFILES, kinds.PROJECTS, kinds.CREDENTIALS_BINDINGS)
    garden = kube_app(kinds.GARDEN, garden_kinds, store, authorize=access.to_garden)

    def shoot_server(request: Request) -> str:
        key = (request.path_params["namespace"], request.path_params["name"])
        if not store.get(server_of(key), "namespaces", None, "default"):
            raise denied(404, "the server could not find the requested resource")
        return server_of(key)

    inside = kube_app(shoot_server, insides.resources, store, authorize=access.to_shoot, proxy=netexec.answer)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        furnish(store, [cloud.type for cloud in clouds])
        known = [each["metadata"] for each in store.list(kinds.GARDEN, shoots.key)]
        insides.resume((meta["namespace"], meta["name"]) for meta in known)
        controller = ShootController(store, providers, settings, executor, hosts, insides, access.api_server)
        task = asyncio.create_task(controller.run())
        access.write_kubeconfig(state_dir / "garden.kubeconfig")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            for each in (executor, probes):
                each.shutdown(wait=False, cancel_futures=True)

    return Starlette(
        routes=[
            Route("/sandbox/settings", _switchboard(settings), methods=["GET", "PUT"]),
            Mount("/shoots/{namespace}/{name}", app=inside),
            Mount("/", app=garden),
        ],
        lifespan=lifespan,
    )


def _switchboard(settings: Settings) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if request.method == "PUT":
            try:
                given = Settings.model_validate_json(await request.body())
            except ValidationError as error:
                return Response(error.json(include_url=False), 422, media_type="application/json")
            for field in given.model_fields_set:
                setattr(settings, field, getattr(given, field))
        return JSONResponse(settings.model_dump(mode="json"))

    return answer
