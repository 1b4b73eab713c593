"""Who may log in, and what is there before anybody does: projects, users, the catalog, a pool of floating addresses.

Everything is looked up before it is made, so that it can be done at every start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from keystoneauth1.exceptions import ClientException
from keystoneauth1.identity import v3
from keystoneauth1.session import Session
from openstack.config.cloud_region import from_session
from openstack.connection import Connection
from openstack.exceptions import SDKException

from sandbox.openstack.configuration import DOMAIN, PASSWORD, REGION, SERVICE_PROJECT, SERVICE_USER
from sandbox.world import SandboxError

__all__ = ["CLOUDS_FILE", "FLOATING_POOL", "OTHER", "TENANT", "furnish", "write_clouds"]

# A project each, with a user of the same name.
TENANT = "trellis"
OTHER = "other"
_ADMIN = "admin"
CLOUDS_FILE = "clouds.yaml"

# As the CloudProfile's `floatingPools` have it: FloatingIP-external-*.
FLOATING_POOL = "FloatingIP-external-sandbox"
_POOL_RANGE = "198.18.0.0/16"  # RFC 2544: for trials, routed nowhere


def furnish(auth_url: str, network_url: str, catalog_url: str | None = None) -> None:
    """Makes whatever is not there yet; the catalog then says where the servers are now.

    Raises:
        SandboxError: it is refused.
    """
    session = Session(auth=v3.Password(auth_url, **_log_in(_ADMIN)))
    # Not from the catalog, which may not have it yet, or where it was.
    region = from_session(
        session, region_name=REGION, identity_endpoint_override=auth_url, network_endpoint_override=network_url
    )
    try:
        with Connection(config=region) as admin:
            _furnish_identity(admin.identity, auth_url, catalog_url or network_url)
            _furnish_network(admin.network)
    except (ClientException, SDKException) as error:
        raise SandboxError(f"OpenStack cannot be furnished: {error}") from error


def _furnish_identity(identity: Any, auth_url: str, network_url: str) -> None:
    _ensure_service(identity, "keystone", "identity", auth_url)
    _ensure_service(identity, "neutron", "network", network_url)
    roles = {role.name: role for role in identity.roles()}
    _ensure_user(identity, SERVICE_USER, SERVICE_PROJECT, [roles["admin"], roles["service"]])
    for name in (TENANT, OTHER):
        _ensure_user(identity, name, name, [roles["member"]])


def _ensure_service(identity: Any, name: str, kind: str, url: str) -> None:
    service = next(identity.services(type=kind), None) or identity.create_service(name=name, type=kind)
    place = {"service_id": service.id, "region_id": REGION, "interface": "public"}
    endpoint = next(identity.endpoints(**place), None)
    if endpoint is None:
        identity.create_endpoint(url=url, **place)
    elif endpoint.url != url:
        identity.update_endpoint(endpoint, url=url)


def _ensure_user(identity: Any, name: str, project_name: str, roles: list[Any]) -> None:
    project = next(identity.projects(name=project_name), None) or identity.create_project(name=project_name)
    user = next(identity.users(name=name), None) or identity.create_user(
        name=name, password=PASSWORD, default_project_id=project.id
    )
    for role in roles:
        identity.assign_project_role_to_user(project, user, role)


def _furnish_network(network: Any) -> None:
    pool = next(network.networks(name=FLOATING_POOL), None) or network.create_network(
        name=FLOATING_POOL,
        is_router_external=True,
        provider_network_type="flat",
        provider_physical_network="external",
    )
    if not pool.subnet_ids:
        network.create_subnet(
            network_id=pool.id, name=FLOATING_POOL, cidr=_POOL_RANGE, ip_version=4, is_dhcp_enabled=False
        )


def write_clouds(state_dir: Path, auth_url: str) -> None:
    """Writes `clouds.yaml`, by which `openstack --os-cloud trellis` finds this cloud, in one step."""
    clouds = {
        name: {"region_name": REGION, "auth": {"auth_url": auth_url, **_log_in(name)}}
        for name in (TENANT, OTHER, _ADMIN)
    }
    fresh = state_dir / f"{CLOUDS_FILE}.new"
    fresh.write_text(yaml.safe_dump({"clouds": clouds}))
    fresh.replace(state_dir / CLOUDS_FILE)


def _log_in(name: str) -> dict[str, Any]:
    return {
        "username": name,
        "password": PASSWORD,
        "project_name": name,
        "user_domain_name": DOMAIN,
        "project_domain_name": DOMAIN,
    }
