"""What the OpenStack extension's webhooks set and refuse (provider-openstack, `pkg/apis/openstack/validation`)."""

from __future__ import annotations

import re
import uuid
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sandbox.garden.cidrs import Range
from sandbox.garden.problems import Path, Problem, forbidden, immutable, invalid, required, unsupported
from sandbox.garden.providers.openstack.config import ControlPlaneConfig, InfrastructureConfig, Networks
from sandbox.kube import Object

__all__ = ["fill_in", "problems"]

M = TypeVar("M", bound=BaseModel)
_PROVIDER = Path("spec.provider")
_INFRASTRUCTURE = _PROVIDER / "infrastructureConfig"
_NETWORKS = _INFRASTRUCTURE / "networks"
_CONTROL_PLANE = _PROVIDER / "controlPlaneConfig"
_RESOURCE_NAME, _NAME_MAX = r"^[^{}\[\]\n]+$", 255


def fill_in(shoot: Object, old: Object | None) -> None:
    """Defaults: no overlay for new shoots, and then routes to the pods (`pkg/admission/mutator/shoot.go`)."""
    networking = shoot["spec"].get("networking")
    if networking is None:
        return
    config = dict(networking.get("providerConfig") or {})
    if config.get("overlay") is None:
        before = (((old or {}).get("spec") or {}).get("networking") or {}).get("providerConfig") or {}
        overlay = before.get("overlay") if old else {"enabled": False}
        config |= {"overlay": overlay} if overlay else {}
    overlay = config.get("overlay")
    if overlay and not overlay.get("enabled") and overlay.get("createPodRoutes") is None:
        config["overlay"] = {**overlay, "createPodRoutes": True}
    networking["providerConfig"] = config


def problems(shoot: Object, old: Object | None, profile: Object) -> list[Problem]:
    """Everything the validating webhook refuses, in its order."""
    spec, provider = shoot["spec"], shoot["spec"]["provider"]
    decoded: list[Any] = []
    for path, field, model in (
        (_INFRASTRUCTURE, "infrastructureConfig", InfrastructureConfig),
        (_CONTROL_PLANE, "controlPlaneConfig", ControlPlaneConfig),
    ):
        if provider.get(field) is None:
            return [required(path, f"{field} must be set for OpenStack shoots")]
        config = _decoded(model, provider[field], field)
        if isinstance(config, Problem):
            return [config]
        decoded.append(config)
    infrastructure, control_plane = decoded
    found = _update_problems(shoot, old, infrastructure) if old else []
    found += _profile_problems(old, spec["region"], infrastructure, control_plane, profile["spec"])
    found += _networking_problems(spec.get("networking") or {})
    found += _infrastructure_problems(infrastructure, spec.get("networking") or {})
    if not control_plane.loadBalancerProvider:
        detail = "must provide the name of a load balancer provider"
        found.append(required(_CONTROL_PLANE / "loadBalancerProvider", detail))
    storage = control_plane.storage
    if storage and storage.csiManila and storage.csiManila.enabled:
        found.append(forbidden(_CONTROL_PLANE / "storage" / "csiManila", "this garden serves no shared file systems"))
    for index, worker in enumerate(provider["workers"]):
        found += _worker_problems((_PROVIDER / "workers")[index], worker)
    return found


def _decoded(model: type[M], raw: Any, field: str) -> M | Problem:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f'unknown field "{where}"' if first["type"] == "extra_forbidden" else f"{where}: {first['msg']}"
        return Problem("", "InternalError", f"error decoding {field}: strict decoding error: {what}")


def _profile_problems(
    old: Object | None,
    region: str,
    infrastructure: InfrastructureConfig,
    control_plane: ControlPlaneConfig,
    offers: Object,
) -> list[Problem]:
    """Floating pool and load balancers against the CloudProfile; what has not changed may stay."""
    before = ((old or {}).get("spec") or {}).get("provider") or {}
    constraints, found = offers["providerConfig"]["constraints"], []
    pool, balancer = infrastructure.floatingPoolName, control_plane.loadBalancerProvider
    if (before.get("infrastructureConfig") or {}).get("floatingPoolName") != pool:
        pools = _offered(constraints["floatingPools"], region)
        if not any(fnmatchcase(pool, each) for each in pools):
            found.append(unsupported(_INFRASTRUCTURE / "floatingPoolName", pool, sorted(pools)))
    if (before.get("controlPlaneConfig") or {}).get("loadBalancerProvider") != balancer:
        providers = _offered(constraints["loadBalancerProviders"], region)
        if balancer not in providers:
            found.append(unsupported(_CONTROL_PLANE / "loadBalancerProvider", balancer, providers))
    return found


def _offered(constraints: list[Object], region: str) -> list[str]:
    """Names that are for the region; where there are none, those for all."""
    own = [each["name"] for each in constraints if each.get("region") == region]
    return own or [each["name"] for each in constraints if each.get("region") is None]


def _networking_problems(networking: Object) -> list[Problem]:
    path, found = Path("spec.networking"), []
    if not networking.get("nodes"):
        found.append(required(path / "nodes", "a nodes CIDR must be provided for Openstack shoots"))
    if "IPv6" in (networking.get("ipFamilies") or []):
        # The extension serves dual-stack; the seeds of this garden do not.
        found.append(unsupported(path / "ipFamilies[0]", "IPv6", ("IPv4",)))
    return found


def _infrastructure_problems(config: InfrastructureConfig, networking: Object) -> list[Problem]:
    """`ValidateInfrastructureConfig`."""
    networks = config.networks
    found = _name_problems(_INFRASTRUCTURE / "floatingPoolName", config.floatingPoolName)
    found += _range_problems(networks, networking)
    if networks.id is not None:
        found += _uuid_problems(_NETWORKS / "id", networks.id)
    if networks.router is not None and not networks.router.id:
        detail = "router id must not be empty when router key is provided"
        found.append(invalid(_NETWORKS / "router" / "id", "", detail))
    elif networks.router is not None:
        found += _uuid_problems(_NETWORKS / "router" / "id", networks.router.id)
    if config.floatingPoolSubnetName is not None:
        found += _name_problems(_INFRASTRUCTURE / "floatingPoolSubnetName", config.floatingPoolSubnetName)
        if networks.router is not None:
            detail = "router cannot be set when a floating subnet name is provided"
            found.append(forbidden(_INFRASTRUCTURE / "router", detail))
    return found + _unserved_problems(networks)


def _range_problems(networks: Networks, networking: Object) -> list[Problem]:
    if not networks.nodes:
        detail = "must specify either the network range for the worker network or a subnetPool"
        return [] if networks.subnetPool else [required(_NETWORKS / "workers", detail)]
    workers = Range(_NETWORKS / networks.nodes_field, networks.nodes)
    found = workers.parse_problems()
    if networks.subnetPool:
        detail = "subnetPool is mutually exclusive with workers/worker CIDR fields"
        found.append(invalid(_NETWORKS / "subnetPool", networks.subnetPool.model_dump(), detail))
    if networking.get("nodes"):
        found += Range("networking.nodes", networking["nodes"]).subset_problems([workers])
    return found


def _unserved_problems(networks: Networks) -> list[Problem]:
    """What the extension serves, and this garden does not."""
    unserved = {
        "subnetPool": (networks.subnetPool is not None, "subnet pools"),
        "ipv6": (networks.ipv6 is not None, "IPv6"),
        "shareNetwork": (bool(networks.shareNetwork and networks.shareNetwork.enabled), "shared file systems"),
    }
    return [
        forbidden(_NETWORKS / field, f"this garden serves no {what}")
        for field, (asked, what) in unserved.items()
        if asked
    ]


def _name_problems(path: Path, name: str) -> list[Problem]:
    """`validateResourceName`."""
    if not name:
        return [required(path, "cannot be empty")]
    found = []
    if not re.match(_RESOURCE_NAME, name):
        found.append(invalid(path, name, f"does not match expected regex {_RESOURCE_NAME}"))
    if len(name) > _NAME_MAX:
        found.append(invalid(path, name, f"must not be more than {_NAME_MAX} characters, got {len(name)}"))
    return found


def _uuid_problems(path: Path, value: str) -> list[Problem]:
    try:
        uuid.UUID(value)
    except ValueError:
        return [invalid(path, value, f"must be a valid UUID: invalid UUID length: {len(value)}")]
    return []


def _worker_problems(path: Path, worker: Object) -> list[Problem]:
    found, volume = [], worker.get("volume") or {}
    if not worker.get("zones"):
        return [required(path / "zones", "at least one zone must be configured")]
    if volume.get("type") is not None and not volume.get("size"):
        detail = "specifying volume type without a custom volume size is not allowed"
        found.append(forbidden(path / "volume" / "type", detail))
    return found


def _update_problems(shoot: Object, old: Object, infrastructure: InfrastructureConfig) -> list[Problem]:
    """`ValidateInfrastructureConfigUpdate` and `ValidateWorkersUpdate`."""
    before = old["spec"]["provider"]
    was = InfrastructureConfig.model_validate(before["infrastructureConfig"])
    found: list[Problem] = []
    for field in ("id", "router", "worker", "workers", "ipv6", "subnetPool"):
        new, then = (_plain(getattr(config.networks, field)) for config in (infrastructure, was))
        found += immutable(_NETWORKS / field, new, then)
    for field in ("floatingPoolName", "floatingPoolSubnetName"):
        found += immutable(_INFRASTRUCTURE / field, getattr(infrastructure, field), getattr(was, field))
    known = {worker["name"]: worker.get("zones") or [] for worker in before["workers"]}
    for index, worker in enumerate(shoot["spec"]["provider"]["workers"]):
        zones, old_zones = worker.get("zones") or [], known.get(worker["name"], [])
        # Zones may be appended (`ShouldEnforceImmutability`).
        if zones[: len(old_zones)] != old_zones:
            found.append(invalid((_PROVIDER / "workers")[index] / "zones", zones, "field is immutable"))
    return found


def _plain(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value
