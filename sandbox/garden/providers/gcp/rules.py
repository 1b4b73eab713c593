"""What the GCP extension's webhooks set and refuse (provider-gcp, `pkg/apis/gcp/validation`, `pkg/admission`)."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sandbox.garden.cidrs import Range
from sandbox.garden.problems import Path, Problem, forbidden, immutable, invalid, required, unsupported
from sandbox.garden.profile_rules import zones_of
from sandbox.garden.providers.gcp.config import (
    CloudNat,
    ControlPlaneConfig,
    FlowLogs,
    InfrastructureConfig,
    Networks,
    Vpc,
)
from sandbox.kube import Object

__all__ = ["fill_in", "problems"]

M = TypeVar("M", bound=BaseModel)
_PROVIDER = Path("spec.provider")
_INFRASTRUCTURE = _PROVIDER / "infrastructureConfig"
_NETWORKS = _INFRASTRUCTURE / "networks"
_CONTROL_PLANE = _PROVIDER / "controlPlaneConfig"
_NAME, _NAME_MAX = r"^[a-z]([-a-z0-9]*[a-z0-9])?$", 63
_MTU = (1300, 8896)
_INTERVALS = (
    "INTERVAL_5_SEC",
    "INTERVAL_30_SEC",
    "INTERVAL_1_MIN",
    "INTERVAL_5_MIN",
    "INTERVAL_10_MIN",
    "INTERVAL_15_MIN",
)
_METADATA = ("CUSTOM_METADATA", "EXCLUDE_ALL_METADATA", "INCLUDE_ALL_METADATA")
_SCRATCH = "SCRATCH"


def fill_in(shoot: Object, old: Object | None) -> None:
    """Defaults: no overlay for new shoots, and then no address translation towards the upstream DNS."""
    networking = shoot["spec"].get("networking")
    if networking is None:
        return
    config = networking.get("providerConfig") or {}
    if config.get("overlay") is None:
        before = (((old or {}).get("spec") or {}).get("networking") or {}).get("providerConfig") or {}
        overlay = before.get("overlay") if old else {"enabled": False}
        config = {**config, **({"overlay": overlay} if overlay else {})}
    if not (config.get("overlay") or {"enabled": True}).get("enabled"):
        config = {**config, "snatToUpstreamDNS": {"enabled": False}}
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
            return [required(path, f"{field} must be set for GCP shoots")]
        config = _decoded(model, provider[field], field)
        if isinstance(config, Problem):
            return [config]
        decoded.append(config)
    infrastructure, control_plane = decoded
    found = _update_problems(shoot, old, infrastructure, control_plane) if old else []
    found += _networking_problems(spec.get("networking") or {})
    found += _infrastructure_problems(infrastructure.networks, spec.get("networking") or {})
    for index, worker in enumerate(provider["workers"]):
        found += _worker_problems((_PROVIDER / "workers")[index], worker)
    return found + _zone_problems(control_plane, spec, zones_of(profile["spec"], spec["region"]))


def _decoded(model: type[M], raw: Any, field: str) -> M | Problem:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f'unknown field "{where}"' if first["type"] == "extra_forbidden" else f"{where}: {first['msg']}"
        return Problem("", "InternalError", f"error decoding {field}: strict decoding error: {what}")


def _networking_problems(networking: Object) -> list[Problem]:
    path, found = Path("spec.networking"), []
    if not networking.get("nodes"):
        found.append(required(path / "nodes", "a nodes CIDR must be provided for GCP shoots"))
    if "IPv6" in (networking.get("ipFamilies") or []):
        # The extension serves dual-stack; the seeds of this garden do not.
        found.append(unsupported(path / "ipFamilies[0]", "IPv6", ("IPv4",)))
    return found


def _infrastructure_problems(networks: Networks, networking: Object) -> list[Problem]:
    """`ValidateInfrastructureConfig`."""
    nodes, pods, services = (
        Range(f"networking.{field}", networking.get(field) or "") for field in ("nodes", "pods", "services")
    )
    found: list[Problem] = []
    workers = Range(_NETWORKS / networks.nodes_field, networks.nodes)
    if networks.nodes:
        found += workers.parse_problems()
    else:
        found.append(required(_NETWORKS / "workers", "must specify the network range for the worker network"))
    if networks.internal is not None:
        internal = Range(_NETWORKS / "internal", networks.internal)
        found += internal.parse_problems()
        for other in (pods, services, nodes, workers):
            found += other.overlap_problems([internal])
    if networks.nodes and networking.get("nodes"):
        found += nodes.subset_problems([workers])
    found += _vpc_problems(networks.vpc) if networks.vpc else []
    found += _flow_log_problems(networks.flowLogs) if networks.flowLogs else []
    found += _nat_problems(networks.cloudNAT) if networks.cloudNAT else []
    return found + _mtu_problems(networks)


def _vpc_problems(vpc: Vpc) -> list[Problem]:
    path, found = _NETWORKS / "vpc", []
    router = vpc.cloudRouter
    shown = router.model_dump() if router else None
    if not vpc.name:
        found.append(invalid(path / "name", vpc.name, "vpc name must not be empty when vpc key is provided"))
        if router is not None:
            detail = "cloud router can not be configured when the VPC name is not specified"
            found.append(invalid(path / "cloudRouter", shown, detail))
        return found
    found += _name_problems(path / "name", vpc.name)
    if router is None:
        found.append(invalid(path / "cloudRouter", None, "cloud router must be defined when reusing a VPC"))
    elif not router.name:
        detail = "cloud router name must be specified when reusing a VPC"
        found.append(invalid(path / "cloudRouter" / "name", shown, detail))
    else:
        found += _name_problems(path / "cloudRouter" / "name", router.name)
    return found


def _name_problems(path: Path, name: str) -> list[Problem]:
    if not name:
        return [invalid(path, name, "must not be fewer than 1 characters, got 0")]
    found = []
    if not re.match(_NAME, name):
        found.append(invalid(path, name, f"does not match expected regex {_NAME}"))
    if len(name) > _NAME_MAX:
        found.append(invalid(path, name, f"must not be more than {_NAME_MAX} characters, got {len(name)}"))
    return found


def _flow_log_problems(logs: FlowLogs) -> list[Problem]:
    path, found = _NETWORKS / "flowLogs", []
    if logs == FlowLogs():
        detail = "at least one VPC flow log parameter must be specified when VPC flow log section is provided"
        found.append(required(path, detail))
    if logs.aggregationInterval is not None and logs.aggregationInterval not in _INTERVALS:
        found.append(unsupported(path / "aggregationInterval", logs.aggregationInterval, _INTERVALS))
    if logs.metadata is not None and logs.metadata not in _METADATA:
        found.append(unsupported(path / "metadata", logs.metadata, _METADATA))
    if logs.flowSampling is not None and not 0 <= logs.flowSampling <= 1:
        found.append(invalid(path / "flowSampling", logs.flowSampling, "must be between 0 and 1"))
    return found


def _nat_problems(nat: CloudNat) -> list[Problem]:
    path, found = _NETWORKS / "cloudNAT", []
    if nat.natIPNames is not None and not nat.natIPNames:
        found.append(invalid(path / "natIPNames", [], "nat IP names cannot be empty."))
    for index, each in enumerate(nat.natIPNames or ()):
        found += _name_problems((path / "natIPNames")[index] / "name", each.name)
    least, most = nat.minPortsPerVM, nat.maxPortsPerVM
    if not nat.enableDynamicPortAllocation:
        if most is not None:
            detail = "maxPortsPerVM are only configurable if dynamic port allocation is enabled."
            found.append(invalid(path / "maxPortsPerVM", least, detail))
        return found
    if nat.endpointIndependentMapping and nat.endpointIndependentMapping.enabled:
        detail = "dynamic port allocation may not be enabled at the same time as endpoint independent mapping."
        found.append(invalid(path / "enableDynamicPortAllocation", True, detail))
    if most is not None and most & (most - 1):
        found.append(invalid(path / "maxPortsPerVM", most, "maxPortsPerVM must be a power of two."))
    if least is not None and least & (least - 1):
        detail = "minPortsPerVM must be a power of two if dynamic port allocation is enabled."
        found.append(invalid(path / "minPortsPerVM", least, detail))
    if least is not None and most is not None and least > most:
        detail = "minPortsPerVM may not be greater than maxPortsPerVM."
        found.append(invalid(path / "minPortsPerVM", least, detail))
    return found


def _mtu_problems(networks: Networks) -> list[Problem]:
    path, found = _NETWORKS / "mtu", []
    if networks.mtu is None:
        return []
    if networks.vpc and networks.vpc.name:
        found.append(forbidden(path, "mtu cannot be configured when using an existing VPC"))
    if not _MTU[0] <= networks.mtu <= _MTU[1]:
        found.append(invalid(path, networks.mtu, f"mtu must be between {_MTU[0]} and {_MTU[1]}"))
    return found


def _worker_problems(path: Path, worker: Object) -> list[Problem]:
    found, volume = [], worker.get("volume")
    if volume is None:
        found.append(required(path / "volume", "must not be nil"))
    else:
        kind = volume.get("type")
        if kind is None:
            found.append(required(path / "volume" / "type", "must not be empty"))
        if kind == _SCRATCH:
            found.append(invalid(path / "volume" / "type", kind, f"type {kind} is not allowed as boot disk"))
        if not volume.get("size"):
            found.append(required(path / "volume" / "size", "must not be empty"))
    if not worker.get("zones"):
        found.append(required(path / "zones", "at least one zone must be configured"))
    return found


def _zone_problems(config: ControlPlaneConfig, spec: Object, zones: list[str]) -> list[Problem]:
    """`ValidateControlPlaneConfig`."""
    path, found = _CONTROL_PLANE / "zone", []
    if not config.zone:
        found.append(required(path, "must provide the name of a zone in this region"))
    elif config.zone not in zones:
        found.append(unsupported(path, config.zone, zones))
    if not any(config.zone in (worker.get("zones") or []) for worker in spec["provider"]["workers"]):
        found.append(invalid(path, config.zone, "must be part of at least one worker zone"))
    return found


def _update_problems(
    shoot: Object, old: Object, infrastructure: InfrastructureConfig, control_plane: ControlPlaneConfig
) -> list[Problem]:
    before = old["spec"]["provider"]
    was = InfrastructureConfig.model_validate(before["infrastructureConfig"])
    found = _network_update_problems(infrastructure.networks, was.networks) if infrastructure != was else []
    zone = ControlPlaneConfig.model_validate(before["controlPlaneConfig"]).zone
    found += immutable(_CONTROL_PLANE / "zone", control_plane.zone, zone)
    known = {worker["name"]: worker.get("zones") or [] for worker in before["workers"]}
    for index, worker in enumerate(shoot["spec"]["provider"]["workers"]):
        zones, old_zones = worker.get("zones") or [], known.get(worker["name"], [])
        # Zones may be appended (`ShouldEnforceImmutability`).
        if zones[: len(old_zones)] != old_zones:
            found.append(invalid((_PROVIDER / "workers")[index] / "zones", zones, "field is immutable"))
    return found


def _network_update_problems(new: Networks, old: Networks) -> list[Problem]:
    """`ValidateInfrastructureConfigUpdate`."""
    path, found = _NETWORKS / "vpc", []
    if old.vpc is not None and new.vpc is None:
        found += immutable(path, None, old.vpc.model_dump(exclude_none=True))
    if old.vpc is not None and new.vpc is not None:
        found += immutable(path / "name", new.vpc.name, old.vpc.name)
        routers = [each.cloudRouter.model_dump() if each.cloudRouter else None for each in (new.vpc, old.vpc)]
        found += immutable(path / "cloudRouter", *routers)
        if old.internal is not None:
            found += immutable(_NETWORKS / "internal", new.internal, old.internal)
    wider, narrower = Range(_NETWORKS / new.nodes_field, new.nodes), Range("", old.nodes)
    if not wider.contains(narrower):
        found.append(invalid(wider.path, wider.text, "worker CIDR blocks can only be expanded"))
    return found + immutable(_NETWORKS / "mtu", new.mtu, old.mtu)
