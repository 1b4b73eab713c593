"""What the Alibaba Cloud extension's webhooks set and refuse.

provider-alicloud: `pkg/admission` and `pkg/apis/alicloud/validation`.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sandbox.garden.cidrs import Range, pairwise_problems
from sandbox.garden.problems import Path, Problem, forbidden, immutable, invalid, required
from sandbox.garden.providers.alicloud.config import ControlPlaneConfig, InfrastructureConfig, Networks, Vpc, Zone
from sandbox.kube import Object

__all__ = ["API_VERSION", "fill_in", "problems"]

API_VERSION = "alicloud.provider.extensions.gardener.cloud/v1alpha1"
M = TypeVar("M", bound=BaseModel)
_PROVIDER = Path("spec.provider")
_INFRASTRUCTURE = _PROVIDER / "infrastructureConfig"
_CONTROL_PLANE = _PROVIDER / "controlPlaneConfig"
_WORKERS = _PROVIDER / "workers"
_NETWORKING = Path("spec.networking")
_NETWORKS = Path("networks")
# Alibaba Cloud's own services (`ReservedCIDR`).
_RESERVED = "100.64.0.0/10"


def fill_in(shoot: Object, old: Object | None) -> None:
    """Defaults: no overlay for new shoots, and then no address translation towards the upstream DNS."""
    spec = shoot["spec"]
    networking = spec.get("networking")
    if networking is not None and networking.get("type"):
        networking["providerConfig"] = _network_config(networking, old)
    if old is None:
        control_plane = spec["provider"].setdefault(
            "controlPlaneConfig", {"apiVersion": API_VERSION, "kind": "ControlPlaneConfig"}
        )
        if isinstance(control_plane, dict) and not control_plane.get("csi"):
            control_plane["csi"] = {"enableADController": True}


def _network_config(networking: Object, old: Object | None) -> Object:
    config: Object = dict(networking.get("providerConfig") or {})
    if config.get("overlay") is None:
        before = (((old or {}).get("spec") or {}).get("networking") or {}).get("providerConfig") or {}
        overlay = before.get("overlay") if old else {"enabled": False}
        config |= {"overlay": overlay} if overlay else {}
    overlay = config.get("overlay")
    if networking["type"] == "calico" and isinstance(overlay, dict) and not overlay.get("enabled"):
        config["snatToUpstreamDNS"] = {"enabled": False}
    return config


def problems(shoot: Object, old: Object | None, profile: Object) -> list[Problem]:
    """Everything the validating webhook refuses, in its order; the first group that has something ends it."""
    del profile
    spec, provider = shoot["spec"], shoot["spec"]["provider"]
    if provider.get("infrastructureConfig") is None:
        return [required(_INFRASTRUCTURE, "infrastructureConfig must be set for Alicloud shoots")]
    config = _decoded(InfrastructureConfig, provider["infrastructureConfig"], _INFRASTRUCTURE)
    if isinstance(config, Problem):
        return [config]
    if provider.get("controlPlaneConfig") is not None:
        control_plane = _decoded(ControlPlaneConfig, provider["controlPlaneConfig"], _CONTROL_PLANE)
        if isinstance(control_plane, Problem):
            return [control_plane]
    networking = spec.get("networking") or {}
    found = _update_problems(shoot, old, config) if old else []
    return (
        found
        or _infrastructure_problems(config.networks, networking)
        or _worker_problems(provider["workers"], config.networks.zones)
        or ([] if old else _networking_problems(networking))
    )


def _decoded(model: type[M], raw: Any, path: Path) -> M | Problem:
    try:
        return model.model_validate(raw)
    except ValidationError:
        return invalid(path, json.dumps(raw, separators=(",", ":")), "isn't a supported version")


def _infrastructure_problems(networks: Networks, networking: Object) -> list[Problem]:
    """`ValidateInfrastructureConfig`."""
    nodes, pods, services = (
        Range(f"networking.{field}", networking.get(field) or "") for field in ("nodes", "pods", "services")
    )
    path = _NETWORKS / "zones"
    found = [] if networks.zones else [required(path, "must specify at least the network for one zone")]
    workers: list[Range] = []
    for index, zone in enumerate(networks.zones):
        given = (("worker", zone.worker), ("workers", zone.workers))
        workers += [Range(path[index] / field, text) for field, text in given if text]
        found += _address_problems(path[index], zone)
    found += [problem for each in workers for problem in each.parse_problems()]
    if networking.get("nodes"):
        found += nodes.subset_problems(workers)
    found += _vpc_problems(networks.vpc, nodes, pods, services, workers)
    found += pairwise_problems(workers)
    return found + pods.overlap_problems(workers) + services.overlap_problems(workers)


def _vpc_problems(vpc: Vpc, nodes: Range, pods: Range, services: Range, workers: list[Range]) -> list[Problem]:
    path = _NETWORKS / "vpc"
    if (vpc.id is None) == (vpc.cidr is None):
        return [invalid(path, vpc.model_dump(exclude_none=True), "must specify either a vpc id or a cidr")]
    found: list[Problem] = []
    if vpc.cidr is not None:
        cidr = Range(path / "cidr", vpc.cidr)
        found += cidr.parse_problems() + cidr.subset_problems([nodes, *workers])
        found += cidr.overlap_problems([pods, services])
    elif vpc.useCustomRouteTable and not vpc.gardenerManagedNATGateway:
        detail = "gardenerManagedNATGateway must be true when useCustomRouteTable is enabled with a user-provided VPC"
        found.append(required(path / "gardenerManagedNATGateway", detail))
    return found


def _address_problems(path: Path, zone: Zone) -> list[Problem]:
    """`ValidateNatGatewayConfig`."""
    if zone.natGateway is None or zone.natGateway.eipAllocationID:
        return []
    allocation = zone.natGateway.eipAllocationID
    detail = "eip id is not specified" if allocation is None else "eip id cannot be empty string"
    return [invalid(path / "natGateway", zone.natGateway.model_dump(), detail)]


def _worker_problems(workers: list[Object], zones: list[Zone]) -> list[Problem]:
    """`ValidateWorkers`."""
    known, found = [zone.name for zone in zones], []
    for index, worker in enumerate(workers):
        path, volume = _WORKERS[index], worker.get("volume")
        if volume is None:
            found.append(required(path / "volume", "must not be nil"))
        else:
            if volume.get("type") is None:
                found.append(required(path / "volume" / "type", "must not be empty"))
            if not volume.get("size"):
                found.append(required(path / "volume" / "size", "must not be empty"))
        if not worker.get("zones"):
            found.append(required(path / "zones", "at least one zone must be configured"))
        for number, zone in enumerate(worker.get("zones") or []):
            if zone not in known:
                detail = f"supported values [{' '.join(known)}]"
                found.append(invalid((path / "zones")[number], zone, detail))
    return found


def _networking_problems(networking: Object) -> list[Problem]:
    """`ValidateNetworking`."""
    found = [] if networking.get("nodes") else [required(_NETWORKING / "nodes", "a CIDR must be provided")]
    for field in ("nodes", "pods", "services"):
        text = networking.get(field) or ""
        if Range("", text).overlaps(Range("", _RESERVED)):
            detail = f"must not overlap with {_RESERVED}, it is reserved by Alicloud"
            found.append(invalid(_NETWORKING / field, text, detail))
    return found


def _update_problems(shoot: Object, old: Object, config: InfrastructureConfig) -> list[Problem]:
    before = InfrastructureConfig.model_validate(old["spec"]["provider"]["infrastructureConfig"])
    return (
        (_network_update_problems(config.networks, before.networks) if config != before else [])
        or _worker_update_problems(shoot, old)
        or [
            problem
            for field in ("nodes", "pods", "services")
            for problem in immutable(
                _NETWORKING / field, shoot["spec"]["networking"].get(field), old["spec"]["networking"].get(field)
            )
        ]
    )


def _network_update_problems(new: Networks, old: Networks) -> list[Problem]:
    """`ValidateInfrastructureConfigUpdate`."""
    path = _NETWORKS / "vpc"
    plain = [vpc.model_copy(update={"useCustomRouteTable": None}).model_dump() for vpc in (new.vpc, old.vpc)]
    found = immutable(path, *plain)
    if bool(new.vpc.useCustomRouteTable) != bool(old.vpc.useCustomRouteTable):
        detail = "useCustomRouteTable can only be set at shoot creation time and cannot be changed afterwards"
        found.append(forbidden(path / "useCustomRouteTable", detail))
    zones = _NETWORKS / "zones"
    if len(new.zones) < len(old.zones):
        return [*found, forbidden(zones, "zones cannot be removed")]
    for index, (now, was) in enumerate(zip(new.zones, old.zones, strict=False)):
        found += immutable(zones[index], now.name, was.name)
        found += immutable(zones[index], now.nodes, was.nodes)
    return found


def _worker_update_problems(shoot: Object, old: Object) -> list[Problem]:
    """Zones may be appended (`ShouldEnforceImmutability`)."""
    known = {worker["name"]: worker.get("zones") or [] for worker in old["spec"]["provider"]["workers"]}
    found = []
    for index, worker in enumerate(shoot["spec"]["provider"]["workers"]):
        zones, old_zones = worker.get("zones") or [], known.get(worker["name"], [])
        if zones[: len(old_zones)] != old_zones:
            found.append(invalid(_WORKERS[index] / "zones", zones, "field is immutable"))
    return found
