"""What the AWS extension's webhooks set and refuse (provider-aws, `pkg/apis/aws/validation`, `pkg/admission`)."""

from __future__ import annotations

import json
import re
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sandbox.garden.cidrs import Range, pairwise_problems
from sandbox.garden.problems import (
    Path,
    Problem,
    duplicate,
    forbidden,
    immutable,
    invalid,
    required,
    unsupported,
)
from sandbox.garden.profile_rules import zones_of
from sandbox.kube import Object

API_VERSION = "aws.provider.extensions.gardener.cloud/v1alpha1"
M = TypeVar("M", bound=BaseModel)
_PROVIDER = Path("spec.provider")
_INFRASTRUCTURE = _PROVIDER / "infrastructureConfig"
_CONTROL_PLANE = _PROVIDER / "controlPlaneConfig"
_RESERVED_TAG_PREFIXES = ("kubernetes.io", "gardener.cloud")
_VPC_ID, _SECURITY_GROUP_ID = r"^vpc-[a-z0-9]+$", r"^sg-[a-z0-9]+$"
_ALLOCATION_ID, _ENDPOINT = r"^eipalloc-[a-z0-9]+$", r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Vpc(_Config):
    """The VPC to use, or the range of one to make."""

    id: str | None = None
    cidr: str | None = None
    gatewayEndpoints: tuple[str, ...] = ()  # noqa: N815 - Gardener's own names


class Zone(_Config):
    """The subnets of one zone."""

    name: str
    workers: str
    public: str | None = None
    internal: str | None = None
    elasticIPAllocationID: str | None = None  # noqa: N815


class Networks(_Config):
    """The network part."""

    vpc: Vpc = Vpc()
    zones: tuple[Zone, ...] = ()
    nodesSecurityGroupID: str | None = None  # noqa: N815


class IgnoreTags(_Config):
    """Tags of others that stay on Gardener's resources."""

    keys: tuple[str, ...] = ()
    keyPrefixes: tuple[str, ...] = ()  # noqa: N815


class InfrastructureConfig(_Config):
    """`spec.provider.infrastructureConfig` of a shoot on AWS, as far as this garden serves it."""

    apiVersion: Literal["aws.provider.extensions.gardener.cloud/v1alpha1"]  # noqa: N815
    kind: Literal["InfrastructureConfig"]
    networks: Networks
    enableECRAccess: bool | None = None  # noqa: N815
    enableDedicatedTenancyForVPC: bool | None = None  # noqa: N815
    enableMTUCustomizer: bool | None = None  # noqa: N815
    ignoreTags: IgnoreTags | None = None  # noqa: N815


class _CloudControllerManager(_Config):
    featureGates: dict[str, bool] | None = None  # noqa: N815
    useCustomRouteController: bool | None = None  # noqa: N815


class _LoadBalancerController(_Config):
    enabled: bool = False
    ingressClassName: str | None = None  # noqa: N815


class _Storage(_Config):
    managedDefaultClass: bool | None = None  # noqa: N815


class _IpamController(_Config):
    enabled: bool = False


class ControlPlaneConfig(_Config):
    """`spec.provider.controlPlaneConfig`."""

    apiVersion: Literal["aws.provider.extensions.gardener.cloud/v1alpha1"]  # noqa: N815
    kind: Literal["ControlPlaneConfig"]
    cloudControllerManager: _CloudControllerManager | None = None  # noqa: N815
    loadBalancerController: _LoadBalancerController | None = None  # noqa: N815
    storage: _Storage | None = None
    ipamController: _IpamController | None = None  # noqa: N815


def fill_in(shoot: Object, old: Object | None) -> None:
    """Defaults: no overlay for new shoots, and a route controller where there is no overlay."""
    networking = shoot["spec"].get("networking")
    provider = shoot["spec"]["provider"]
    if networking is None:
        return
    config = networking.setdefault("providerConfig", {})
    if "overlay" not in config:
        before = (((old or {}).get("spec") or {}).get("networking") or {}).get("providerConfig") or {}
        config["overlay"] = before.get("overlay", {"enabled": False})
    overlay = isinstance(config["overlay"], dict) and bool(config["overlay"].get("enabled"))
    control_plane = provider.setdefault("controlPlaneConfig", {"apiVersion": API_VERSION, "kind": "ControlPlaneConfig"})
    manager = control_plane.setdefault("cloudControllerManager", {})
    if isinstance(manager, dict):
        manager["useCustomRouteController"] = not overlay
    infrastructure = provider.get("infrastructureConfig")
    if old is None and infrastructure is not None:
        infrastructure.setdefault("enableMTUCustomizer", False)


def problems(shoot: Object, old: Object | None, profile: Object) -> list[Problem]:
    """Everything the validating webhook refuses, in its order; the first group that has something ends it."""
    spec, provider = shoot["spec"], shoot["spec"]["provider"]
    if provider.get("infrastructureConfig") is None:
        return [required(_INFRASTRUCTURE, "InfrastructureConfig must be set for AWS shoots")]
    config = _decoded(InfrastructureConfig, provider["infrastructureConfig"], _INFRASTRUCTURE)
    if isinstance(config, Problem):
        return [config]
    before = _before(old)
    found = _profile_problems(config, before, zones_of(profile["spec"], spec["region"]))
    if not found and before is not None and config != before:
        found = _update_problems(config, before)
    if not found and old is not None:
        found = _worker_update_problems(shoot, old)
    return found or _shoot_problems(spec, config)


def _before(old: Object | None) -> InfrastructureConfig | None:
    return InfrastructureConfig.model_validate(old["spec"]["provider"]["infrastructureConfig"]) if old else None


def _decoded(model: type[M], raw: Any, path: Path) -> M | Problem:
    try:
        return model.model_validate(raw)
    except ValidationError:
        return invalid(path, json.dumps(raw, separators=(",", ":")), "isn't a supported version")


def _profile_problems(
    config: InfrastructureConfig, before: InfrastructureConfig | None, zones: list[str]
) -> list[Problem]:
    found: list[Problem] = []
    used: set[str] = set()
    known = before.networks.zones if before else ()
    for index, zone in enumerate(config.networks.zones):
        path = (_INFRASTRUCTURE / "network" / "zones")[index] / "name"
        if index >= len(known) or known[index] != zone:
            if zone.name not in zones:
                found.append(unsupported(path, zone.name, zones))
            if zone.name in used:
                found.append(duplicate(path, zone.name))
        used.add(zone.name)
    return found


def _update_problems(config: InfrastructureConfig, before: InfrastructureConfig) -> list[Problem]:
    new, old = config.networks, before.networks
    found = immutable(
        "enableDedicatedTenancyForVPC", config.enableDedicatedTenancyForVPC, before.enableDedicatedTenancyForVPC
    )
    found += immutable("networks.vpc.id", new.vpc.id, old.vpc.id)
    found += immutable("networks.vpc.cidr", new.vpc.cidr, old.vpc.cidr)
    found += immutable("networks.nodesSecurityGroupID", new.nodesSecurityGroupID, old.nodesSecurityGroupID)
    if len(old.zones) > len(new.zones):
        return [*found, forbidden("networks.zones", "removing zones is not allowed")]
    for index, (was, now) in enumerate(zip(old.zones, new.zones, strict=False)):
        path = Path("networks.zones")[index]
        found += immutable(path / "name", now.name, was.name)
        for field in ("public", "internal", "workers"):
            if getattr(was, field) is not None:
                found += immutable(path / field, getattr(now, field), getattr(was, field))
    return found


def _worker_update_problems(shoot: Object, old: Object) -> list[Problem]:
    known = {worker["name"]: worker for worker in old["spec"]["provider"]["workers"]}
    return [
        problem
        for index, worker in enumerate(shoot["spec"]["provider"]["workers"])
        if worker["name"] in known
        # Zones may be appended (`ShouldEnforceImmutability`).
        and (worker.get("zones") or [])[: len(known[worker["name"]].get("zones") or [])]
        != (known[worker["name"]].get("zones") or [])
        for problem in [invalid((_PROVIDER / "workers")[index] / "zones", worker.get("zones"), "field is immutable")]
    ]


def _shoot_problems(spec: Object, config: InfrastructureConfig) -> list[Problem]:
    networking = spec.get("networking") or {}
    found: list[Problem] = []
    if "IPv6" in (networking.get("ipFamilies") or []):
        # The extension serves dual-stack; the seeds of this garden do not.
        found.append(unsupported("spec.networking.ipFamilies[0]", "IPv6", ("IPv4",)))
    if not networking.get("nodes"):
        found.append(required("spec.networking.nodes", "a nodes CIDR must be provided for AWS shoots"))
    found += infrastructure_problems(config, networking)
    control_plane = spec["provider"].get("controlPlaneConfig")
    if control_plane is not None:
        decoded = _decoded(ControlPlaneConfig, control_plane, _CONTROL_PLANE)
        if isinstance(decoded, Problem):
            return [decoded]
    zones = [zone.name for zone in config.networks.zones]
    for index, worker in enumerate(spec["provider"]["workers"]):
        found += _worker_problems((_PROVIDER / "workers")[index], worker, zones)
    return found


def _worker_problems(path: Path, worker: Object, zones: list[str]) -> list[Problem]:
    found = []
    volume = worker.get("volume")
    if volume is None:
        found.append(required(path / "volume", "must not be nil"))
    else:
        found += [
            required(path / "volume" / field, "must not be empty")
            for field in ("size", "type")
            if not volume.get(field)
        ]
    if not worker.get("zones"):
        found.append(required(path / "zones", "at least one zone must be configured"))
    for index, zone in enumerate(worker.get("zones") or []):
        if zone not in zones:
            found.append(invalid((path / "zones")[index], zone, f"supported values [{' '.join(zones)}]"))
    return found


def infrastructure_problems(config: InfrastructureConfig, networking: Object) -> list[Problem]:
    """The InfrastructureConfig in itself and against the shoot's networks (`ValidateInfrastructureConfig`)."""
    networks = config.networks
    found: list[Problem] = []
    if not networks.zones:
        found.append(required("networks.zones", "must specify at least the networks for one zone"))
    for index, endpoint in enumerate(networks.vpc.gatewayEndpoints):
        if not re.match(_ENDPOINT, endpoint):
            path = Path("networks.vpc.gatewayEndpoints")[index]
            found.append(invalid(path, endpoint, "must be a valid DNS subdomain"))
    if networks.nodesSecurityGroupID is not None:
        path = Path("networks.nodesSecurityGroupID")
        found += _pattern_problems(path, networks.nodesSecurityGroupID, _SECURITY_GROUP_ID)
        if networks.vpc.id is None:
            found.append(forbidden(path, "nodesSecurityGroupID requires VPC.ID to be set (existing VPC)"))
    ranges, workers = _zone_ranges(networks)
    found += _allocation_problems(networks)
    for given in ranges:
        found += given.parse_problems()
    nodes, pods, services = (
        Range(f"networking.{field}", networking.get(field) or "") for field in ("nodes", "pods", "services")
    )
    found += nodes.subset_problems(workers)
    found += _vpc_problems(networks.vpc, ranges, nodes, [pods, services])
    found += pairwise_problems(ranges) + pods.overlap_problems(ranges) + services.overlap_problems(ranges)
    return found + _ignore_tags_problems(config.ignoreTags or IgnoreTags())


def _zone_ranges(networks: Networks) -> tuple[list[Range], list[Range]]:
    ranges, workers = [], []
    for index, zone in enumerate(networks.zones):
        path = Path("networks.zones")[index]
        ranges += [
            Range(path / field, text)
            for field, text in (("public", zone.public), ("internal", zone.internal), ("workers", zone.workers))
            if text is not None
        ]
        workers.append(Range(path / "workers", zone.workers))
    return ranges, workers


def _allocation_problems(networks: Networks) -> list[Problem]:
    found: list[Problem] = []
    seen: set[str] = set()
    for index, zone in enumerate(networks.zones):
        allocation = zone.elasticIPAllocationID
        if allocation is None:
            continue
        path = Path("networks.zones")[index] / "elasticIPAllocationID"
        if zone.public is None:
            detail = "elasticIPAllocationID is only valid when workers and public CIDRs are provided"
            found.append(forbidden(path, f"{detail} (Gardener-managed subnets)"))
        if allocation in seen:
            found.append(duplicate(path, allocation))
        seen.add(allocation)
        found += _pattern_problems(path, allocation, _ALLOCATION_ID)
    return found


def _pattern_problems(path: str, value: str, pattern: str) -> list[Problem]:
    if not value:
        return [required(path, "cannot be empty")]
    return [] if re.match(pattern, value) else [invalid(path, value, f"does not match expected regex {pattern}")]


def _vpc_problems(vpc: Vpc, ranges: list[Range], nodes: Range, outside: list[Range]) -> list[Problem]:
    path = Path("networks.vpc")
    if vpc.id is not None and vpc.cidr is not None:
        return [invalid(path, vpc.model_dump(exclude_none=True), "cannot specify both vpc id and cidr")]
    if vpc.id is not None:
        return _pattern_problems(path / "id", vpc.id, _VPC_ID)
    if vpc.cidr is None:
        return [invalid(path, vpc.model_dump(exclude_none=True), "must specify either a vpc id or a cidr")]
    whole = Range(path / "cidr", vpc.cidr)
    found = whole.parse_problems() + whole.subset_problems([nodes, *ranges])
    return found + whole.overlap_problems(outside)


def _ignore_tags_problems(tags: IgnoreTags) -> list[Problem]:
    found = []
    for index, key in enumerate(tags.keys):
        path = Path("ignoreTags.keys")[index]
        if key == "Name":
            found.append(invalid(path, key, 'must not ignore reserved key "Name"'))
        found += [
            invalid(path, key, f'must not ignore key with reserved prefix "{prefix}"')
            for prefix in _RESERVED_TAG_PREFIXES
            if key.startswith(prefix)
        ]
    for index, key in enumerate(tags.keyPrefixes):
        path = Path("ignoreTags.keyPrefixes")[index]
        if "Name".startswith(key):
            found.append(invalid(path, key, 'must not include reserved key "Name"'))
        found += [
            invalid(path, key, f'must not include reserved key prefix "{prefix}"')
            for prefix in _RESERVED_TAG_PREFIXES
            if key.startswith(prefix) or prefix.startswith(key)
        ]
    return found
