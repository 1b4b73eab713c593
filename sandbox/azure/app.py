"""The methods of Azure that this server has, and the permissions that each one needs.

Permissions: https://learn.microsoft.com/azure/role-based-access-control/permissions/networking
and .../management-and-governance.
"""

from __future__ import annotations

from starlette.applications import Starlette

from sandbox.azure.catalog import Catalog
from sandbox.azure.errors import failed, wording
from sandbox.azure.groups import Groups
from sandbox.azure.identity import Identity
from sandbox.azure.interfaces import Interfaces
from sandbox.azure.networks import Networks
from sandbox.azure.operations import OperationsApi
from sandbox.azure.others import NatGateways, PublicIps, RouteTables, SecurityGroups
from sandbox.azure.resources import Context, Resources
from sandbox.azure.routing import Router
from sandbox.clouds import Cloud

__all__ = ["BROKEN", "make_app"]

_NETWORK = "Microsoft.Network"
_GROUP = "/resourceGroups/{group}"
_GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"
BROKEN = failed("InternalServerError", "An error occurred.")


def make_app(cloud: Cloud) -> Starlette:
    """The server of a cloud."""
    context = Context(cloud)
    networks = Networks(context)
    # In this order a whole group is taken apart.
    kinds: dict[str, Resources] = {
        "networkInterfaces": Interfaces(context, networks.subnets),
        "virtualNetworks": networks,
        "natGateways": NatGateways(context),
        "publicIPAddresses": PublicIps(context),
        "networkSecurityGroups": SecurityGroups(context),
        "routeTables": RouteTables(context),
    }
    identity = Identity(cloud)
    router = Router(identity)
    _entra(identity, router)
    _management(Groups(context, kinds), Catalog(context, identity, kinds), context.operations, router)
    for kind in kinds.values():
        _resource(kind, router)
    _network(networks, router)
    return cloud.app(router.routes(), wording)


def _entra(identity: Identity, router: Router) -> None:
    router.open("POST", "/{tenant}/oauth2/v2.0/token", identity.token)
    router.open("GET", "/{tenant}/v2.0/.well-known/openid-configuration", identity.configuration)
    router.open("GET", "/common/discovery/instance", identity.instances)
    router.open("POST", "/sandbox/subscriptions/{subscription}/principals", identity.make_principal)


def _management(groups: Groups, catalog: Catalog, operations: OperationsApi, router: Router) -> None:
    router.open("GET", "/metadata/endpoints", catalog.endpoints)
    router.add_above("GET", "/tenants", "Microsoft.Resources/tenants/read", catalog.tenants)
    router.add_above("GET", "/subscriptions", "Microsoft.Resources/subscriptions/read", catalog.subscriptions)
    router.add("GET", "", "Microsoft.Resources/subscriptions/read", catalog.subscription)
    router.add("GET", "/locations", "Microsoft.Resources/subscriptions/locations/read", catalog.locations)
    router.add("GET", "/providers", "Microsoft.Resources/subscriptions/providers/read", catalog.providers)
    router.add("GET", "/providers/{namespace}", "Microsoft.Resources/subscriptions/providers/read", catalog.provider)
    router.add("POST", "/providers/{namespace}/register", f"{_NETWORK}/register/action", catalog.provider)
    router.add("GET", "/resources", "Microsoft.Resources/subscriptions/resources/read", groups.list_resources)
    router.add("GET", "/resourceGroups", f"{_GROUPS}/read", groups.list_page)
    router.add("GET", _GROUP, f"{_GROUPS}/read", groups.get)
    router.add("HEAD", _GROUP, f"{_GROUPS}/read", groups.exists)
    router.add("PUT", _GROUP, f"{_GROUPS}/write", groups.put)
    router.add("PATCH", _GROUP, f"{_GROUPS}/write", groups.patch)
    router.add("DELETE", _GROUP, f"{_GROUPS}/delete", groups.delete)
    router.add("GET", f"{_GROUP}/resources", f"{_GROUPS}/resources/read", groups.list_resources)
    router.add(
        "GET",
        "/operationresults/{operation}",
        "Microsoft.Resources/subscriptions/operationresults/read",
        operations.result,
    )
    places = f"/providers/{_NETWORK}/locations/{{location}}"
    router.add("GET", f"{places}/usages", f"{_NETWORK}/locations/usages/read", catalog.usages)
    action = f"{_NETWORK}/locations/operations/read"
    router.add("GET", f"{places}/operations/{{operation}}", action, operations.status)
    router.add("GET", f"{places}/operationResults/{{operation}}", action, operations.result)


def _resource(kind: Resources, router: Router) -> None:
    path, action = f"{_GROUP}/providers/{_NETWORK}/{kind.collection}", f"{_NETWORK}/{kind.collection}"
    one = f"{path}/{{name}}"
    router.add("GET", f"/providers/{_NETWORK}/{kind.collection}", f"{action}/read", kind.list_all)
    router.add("GET", path, f"{action}/read", kind.list_page)
    router.add("GET", one, f"{action}/read", kind.get)
    router.add("PUT", one, f"{action}/write", kind.put)
    router.add("PATCH", one, f"{action}/write", kind.patch_tags)
    router.add("DELETE", one, f"{action}/delete", kind.delete)
    for name, child in kind.children.items():
        below = f"{action}/{name}"
        router.add("GET", f"{one}/{name}", f"{below}/read", child.list_page)
        router.add("GET", f"{one}/{name}/{{child}}", f"{below}/read", child.get)
        router.add("PUT", f"{one}/{name}/{{child}}", f"{below}/write", child.put)
        router.add("DELETE", f"{one}/{name}/{{child}}", f"{below}/delete", child.delete)


def _network(networks: Networks, router: Router) -> None:
    one = f"{_GROUP}/providers/{_NETWORK}/virtualNetworks/{{name}}"
    action = f"{_NETWORK}/virtualNetworks"
    router.add(
        "GET", f"{one}/checkIPAddressAvailability", f"{action}/checkIpAddressAvailability/read", networks.check_address
    )
    router.add("GET", f"{one}/usages", f"{action}/usages/read", networks.usages)
