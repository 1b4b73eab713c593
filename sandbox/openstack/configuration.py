"""Configuration of Keystone and Neutron, as files in the state directory.

The options are described at docs.openstack.org/keystone/latest/configuration and
docs.openstack.org/neutron/latest/configuration.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from sandbox.openstack.environment import Environment

__all__ = ["DOMAIN", "PASSWORD", "REGION", "SERVICE_PROJECT", "SERVICE_USER", "database_url", "keystone", "neutron"]

REGION = "eu-de-1"
DOMAIN = "Default"
SERVICE_PROJECT = "service"
SERVICE_USER = "neutron"
# Everybody's, on this machine only: no secret.
PASSWORD = "sandbox"  # noqa: S105

# Whoever wants smaller ones sets them through Neutron's own API: `openstack quota set --networks 5 trellis`.
_QUOTA = "5000"
_KINDS = ("network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule", "rbac_policy")

_Options = Mapping[str, Mapping[str, str]]


def database_url(directory: Path, name: str) -> str:
    """SQLAlchemy's URL of a service's database."""
    return f"sqlite:///{directory / name}.db"


def keystone(directory: Path) -> Path:
    """Writes Keystone's configuration; returns the file."""
    tokens = {"key_repository": str(directory / "fernet-keys")}
    options = {
        "DEFAULT": {"use_stderr": "true"},
        "database": _database(directory, "keystone"),
        "fernet_tokens": tokens,
        "fernet_receipts": tokens,
        "credential": {"key_repository": str(directory / "credential-keys")},
        # Log-ins take a quarter of a second otherwise.
        "identity": {"password_hash_rounds": "4"},
    }
    return _written(directory / "keystone.conf", options)


def neutron(directory: Path, environment: Environment, auth_url: str) -> Path:
    """Writes Neutron's configuration; returns the file."""
    plugins = "router,trunk,segments,network_ip_availability,auto_allocate,flavors,tag,timestamp,revisions"
    options = {
        "DEFAULT": {
            "use_stderr": "true",
            "core_plugin": "ml2",
            "service_plugins": plugins,
            "auth_strategy": "keystone",
            "state_path": str(directory),
            "api_paste_config": str(environment.paste_config),
            # There is nobody to be told: no broker, no agents, no Nova.
            "transport_url": "fake:///",
            "rpc_response_timeout": "2",
            "dhcp_agent_notification": "false",
            "notify_nova_on_port_status_changes": "false",
            "notify_nova_on_port_data_changes": "false",
        },
        "oslo_concurrency": {"lock_path": str(directory / "locks")},
        "oslo_messaging_notifications": {"driver": "noop"},
        "database": _database(directory, "neutron"),
        # The usual driver locks rows, which SQLite cannot.
        "quotas": {"quota_driver": "neutron.db.quota.driver_nolock.DbQuotaNoLockDriver"}
        | {f"quota_{kind}": _QUOTA for kind in _KINDS},
        "ml2": {
            "type_drivers": "local,flat,vlan,vxlan,geneve",
            "tenant_network_types": "vxlan",
            "mechanism_drivers": "openvswitch",
            "extension_drivers": "port_security",
        },
        "ml2_type_vxlan": {"vni_ranges": "1:5000"},
        "ml2_type_flat": {"flat_networks": "*"},
        "keystone_authtoken": {
            "auth_url": auth_url,
            "auth_type": "password",
            "username": SERVICE_USER,
            "password": PASSWORD,
            "project_name": SERVICE_PROJECT,
            "user_domain_name": DOMAIN,
            "project_domain_name": DOMAIN,
            "region_name": REGION,
            "interface": "public",
        },
    }
    return _written(directory / "neutron.conf", options)


def _database(directory: Path, name: str) -> dict[str, str]:
    # What was written survives the process at once; only a machine that loses power may lose it.
    return {"connection": database_url(directory, name), "sqlite_synchronous": "false"}


def _written(path: Path, options: _Options) -> Path:
    # Another name for the section of defaults, which would otherwise be mixed into every other.
    config = configparser.ConfigParser(interpolation=None, default_section="")
    config.read_dict(options)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        config.write(file)
    return path
