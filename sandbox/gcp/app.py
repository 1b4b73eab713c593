"""The methods of Compute Engine v1 that this server has, and the permissions that each one needs.

Permissions: the section "IAM permissions" of each method at https://cloud.google.com/compute/docs/reference/rest/v1.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.applications import Starlette

from sandbox.clouds import Answer, Call, Cloud, Handler, Route
from sandbox.gcp.accounts import Accounts
from sandbox.gcp.addresses import Addresses
from sandbox.gcp.catalog import Catalog
from sandbox.gcp.collection import Collection, Context
from sandbox.gcp.errors import failed, wording
from sandbox.gcp.firewalls import Firewalls
from sandbox.gcp.instances import Instances
from sandbox.gcp.networks import Networks
from sandbox.gcp.peerings import Peerings
from sandbox.gcp.routers import Routers
from sandbox.gcp.routes import Routes
from sandbox.gcp.subnetworks import Subnetworks

__all__ = ["BROKEN", "make_app"]

_PROJECT = "/compute/v1/projects/{project}"
_SCOPES = {"global": "global", "regions": "regions/{region}", "zones": "zones/{zone}"}
_POLICY = "compute.networks.updatePolicy"
BROKEN = failed(500, "INTERNAL_ERROR", "Internal error. Please try again or contact Google Support.")


def make_app(cloud: Cloud) -> Starlette:
    """The server of a cloud."""
    context = Context(cloud)
    accounts = Accounts(cloud)
    methods = _Methods(accounts)
    _collections(context, methods)
    _operations(context, methods)
    _catalog(Catalog(context.quotas), methods)
    methods.open("POST", "/token", accounts.token)
    methods.open("POST", "/sandbox/projects/{project}/keys", accounts.make_key)
    return cloud.app(methods.routes, wording)


class _Methods:
    """Collects routes, each behind the check of its permissions."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self.routes: list[Route] = []

    def open(self, method: str, path: str, handler: Handler) -> None:
        """A method for everybody."""
        self.routes.append(Route(method, path, handler))

    def add(self, method: str, path: str, handler: Handler, *permissions: str) -> None:
        """A method of a project; `path` follows the project's."""

        def guarded(call: Call) -> Answer:
            self._accounts.check(call, permissions, call.path.partition("/compute/v1/")[2])
            return handler(call)

        self.routes.append(Route(method, f"{_PROJECT}{path}", guarded))

    def add_collection(self, collection: Collection, scope: str, *policy: str) -> str:
        """get, list, insert and delete; gives back the path of one resource."""
        base, name = f"/{_SCOPES[scope]}/{collection.name}", collection.name
        noun = "globalAddresses" if (name, scope) == ("addresses", "global") else name
        one = base + "/{name}"
        self.add("GET", base, collection.list_page, f"compute.{noun}.list")
        self.add("POST", base, collection.insert, f"compute.{noun}.create", *policy)
        self.add("GET", one, collection.get, f"compute.{noun}.get")
        self.add("DELETE", one, collection.delete, f"compute.{noun}.delete", *policy)
        return one

    def add_aggregated(self, collection: Collection) -> None:
        """AggregatedList."""
        path = f"/aggregated/{collection.name}"
        self.add("GET", path, collection.aggregated, f"compute.{collection.name}.list")


def _collections(context: Context, methods: _Methods) -> None:
    networks, peerings = Networks(context), Peerings(context)
    one = methods.add_collection(networks, "global")
    methods.add("PATCH", one, networks.patch, "compute.networks.update")
    methods.add(
        "POST", f"{one}/switchToCustomMode", networks.switch_to_custom_mode, "compute.networks.switchToCustomMode"
    )
    methods.add("POST", f"{one}/addPeering", peerings.add, "compute.networks.addPeering")
    methods.add("POST", f"{one}/removePeering", peerings.remove, "compute.networks.removePeering")
    methods.add("PATCH", f"{one}/updatePeering", peerings.update, "compute.networks.updatePeering")
    methods.add("GET", f"{one}/listPeeringRoutes", peerings.list_routes, "compute.networks.listPeeringRoutes")

    subnetworks = Subnetworks(context)
    one = methods.add_collection(subnetworks, "regions", _POLICY)
    methods.add("PATCH", one, subnetworks.patch, "compute.subnetworks.update")
    methods.add("POST", f"{one}/expandIpCidrRange", subnetworks.expand, "compute.subnetworks.expandIpCidrRange")
    methods.add(
        "POST",
        f"{one}/setPrivateIpGoogleAccess",
        subnetworks.set_private_access,
        "compute.subnetworks.setPrivateIpGoogleAccess",
    )
    methods.add_aggregated(subnetworks)

    routers = Routers(context)
    one = methods.add_collection(routers, "regions", _POLICY)
    methods.add("PATCH", one, routers.patch, "compute.routers.update", _POLICY)
    methods.add("PUT", one, routers.update, "compute.routers.update", _POLICY)
    methods.add("GET", f"{one}/getRouterStatus", routers.status, "compute.routers.get")
    methods.add_aggregated(routers)

    firewalls = Firewalls(context)
    one = methods.add_collection(firewalls, "global", _POLICY)
    methods.add("PATCH", one, firewalls.patch, "compute.firewalls.update", _POLICY)
    methods.add("PUT", one, firewalls.update, "compute.firewalls.update", _POLICY)

    methods.add_collection(Routes(context), "global", _POLICY)

    addresses = Addresses(context)
    for scope in ("regions", "global"):
        one = methods.add_collection(addresses, scope)
        methods.add("POST", f"{one}/setLabels", addresses.set_labels, "compute.addresses.setLabels")
    methods.add_aggregated(addresses)

    instances = Instances(context)
    methods.add_collection(instances, "zones")
    methods.add_aggregated(instances)


def _operations(context: Context, methods: _Methods) -> None:
    operations = context.operations
    for scope, noun in (("global", "global"), ("regions", "region"), ("zones", "zone")):
        base, permission = f"/{_SCOPES[scope]}/operations", f"compute.{noun}Operations"
        one = base + "/{name}"
        methods.add("GET", base, operations.list_page, f"{permission}.list")
        methods.add("GET", one, operations.get, f"{permission}.get")
        methods.add("DELETE", one, operations.delete, f"{permission}.delete")
        methods.add("POST", f"{one}/wait", operations.wait, f"{permission}.get")
    methods.add("GET", "/aggregated/operations", operations.aggregated, "compute.globalOperations.list")


def _catalog(catalog: Catalog, methods: _Methods) -> None:
    for path, handler, permission in _catalog_methods(catalog):
        methods.add("GET", path, handler, permission)


def _catalog_methods(catalog: Catalog) -> Iterator[tuple[str, Handler, str]]:
    yield "", catalog.get_project, "compute.projects.get"
    yield "/regions", catalog.list_regions, "compute.regions.list"
    yield "/regions/{region}", catalog.get_region, "compute.regions.get"
    yield "/zones", catalog.list_zones, "compute.zones.list"
    yield "/zones/{zone}", catalog.get_zone, "compute.zones.get"
    yield "/zones/{zone}/machineTypes", catalog.list_machine_types, "compute.machineTypes.list"
    yield "/zones/{zone}/machineTypes/{name}", catalog.get_machine_type, "compute.machineTypes.get"
    yield "/aggregated/machineTypes", catalog.list_all_machine_types, "compute.machineTypes.list"
