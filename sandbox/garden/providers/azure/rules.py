"""What the Azure extension's webhooks set and refuse (provider-azure, `pkg/apis/azure/validation`, `pkg/admission`)."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sandbox.garden.cidrs import Range, pairwise_problems
from sandbox.garden.problems import Path, Problem, forbidden, immutable, invalid, required, unsupported
from sandbox.garden.profile_rules import zones_of
from sandbox.garden.providers.azure.config import (
    STANDARD,
    ControlPlaneConfig,
    InfrastructureConfig,
    NatGateway,
    Networks,
    PublicIp,
    Vnet,
    ZonedNatGateway,
)
from sandbox.kube import Object

__all__ = ["fill_in", "problems"]

M = TypeVar("M", bound=BaseModel)
_PROVIDER = Path("spec.provider")
_INFRASTRUCTURE = _PROVIDER / "infrastructureConfig"
_NETWORKS = _INFRASTRUCTURE / "networks"
_CONTROL_PLANE = _PROVIDER / "controlPlaneConfig"
_GROUP = r"^[A-Za-z0-9_().-]{1,89}[A-Za-z0-9_()-]$"
_VNET = r"^[A-Za-z0-9][\w.-]*[\w]$"
_ADDRESS = r"^[A-Za-z0-9][\w-]*$"
_ENDPOINT = r"^Microsoft\.[A-Za-z0-9.]+$"
_TIMEOUT = (4, 120)
_SKUS = (STANDARD, "StandardV2")
_MOST_VOLUMES = 64


def fill_in(shoot: Object, old: Object | None) -> None:
    """Defaults: no overlay for new shoots with Cilium; Calico has none here anyway."""
    networking = shoot["spec"].get("networking")
    if networking is None or networking.get("type") not in (None, "cilium"):
        return
    config = networking.get("providerConfig") or {}
    if config.get("overlay") is None:
        before = (((old or {}).get("spec") or {}).get("networking") or {}).get("providerConfig") or {}
        overlay = before.get("overlay") if old else {"enabled": False}
        config = {**config, **({"overlay": overlay} if overlay else {})}
    networking["providerConfig"] = config


def problems(shoot: Object, old: Object | None, profile: Object) -> list[Problem]:
    """Everything the validating webhook refuses, in its order."""
    spec, provider = shoot["spec"], shoot["spec"]["provider"]
    if provider.get("infrastructureConfig") is None:
        return [required(_INFRASTRUCTURE, "InfrastructureConfig must be set for Azure shoots")]
    config = _decoded(InfrastructureConfig, provider["infrastructureConfig"], "infrastructureConfig")
    if isinstance(config, Problem):
        return [config]
    if provider.get("controlPlaneConfig") is not None:
        decoded = _decoded(ControlPlaneConfig, provider["controlPlaneConfig"], "controlPlaneConfig")
        if isinstance(decoded, Problem):
            return [decoded]
    found: list[Problem] = []
    before = InfrastructureConfig.model_validate(old["spec"]["provider"]["infrastructureConfig"]) if old else None
    if old is not None and before is not None:
        found += _update_problems(config, before) if config != before else []
        found += _worker_update_problems(shoot, old)
    found += _networking_problems(spec.get("networking"))
    found += _zone_name_problems(config, before, zones_of(profile["spec"], spec["region"]))
    found += _infrastructure_problems(config, spec.get("networking") or {})
    for index, worker in enumerate(provider["workers"]):
        found += _worker_problems((_PROVIDER / "workers")[index], worker, config)
    return found


def _decoded(model: type[M], raw: Any, field: str) -> M | Problem:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f'unknown field "{where}"' if first["type"] == "extra_forbidden" else f"{where}: {first['msg']}"
        return Problem("", "InternalError", f"error decoding {field}: strict decoding error: {what}")


def _networking_problems(networking: Object | None) -> list[Problem]:
    path = Path("spec.networking")
    if networking is None:
        return [required(path, "networking field can't be empty for Azure shoots")]
    found = []
    if not networking.get("nodes"):
        found.append(required(path / "nodes", "a nodes CIDR must be provided for Azure shoots"))
    overlay = (networking.get("providerConfig") or {}).get("overlay") or {}
    if networking.get("type") == "calico" and overlay.get("enabled"):
        where = path / "providerConfig" / "overlay" / "enabled"
        found.append(forbidden(where, "Calico overlay network is not supported on azure"))
    families = networking.get("ipFamilies") or []
    if families == ["IPv6"]:
        found.append(invalid(path / "ipFamilies", families, "IPv6 single-stack networking is not supported"))
    if len(families) > 1:
        found.append(invalid(path / "ipFamilies", families, "dual-stack networking is not supported"))
    return found


def _zone_name_problems(
    config: InfrastructureConfig, before: InfrastructureConfig | None, zones: list[str]
) -> list[Problem]:
    known = {zone.name for zone in before.networks.zones} if before else set()
    return [
        unsupported((_NETWORKS / "zones")[index] / "name", zone.name, zones)
        for index, zone in enumerate(config.networks.zones)
        if zone.name not in known and str(zone.name) not in zones
    ]


def _infrastructure_problems(config: InfrastructureConfig, networking: Object) -> list[Problem]:
    """`ValidateInfrastructureConfig`."""
    found: list[Problem] = []
    if config.resourceGroup is not None:
        path, given = _INFRASTRUCTURE / "resourceGroup", config.resourceGroup
        found += _text_problems(path / "name", given.name, _GROUP, 90)
        detail = "specifying an existing resource group is not supported yet"
        found.append(invalid(path, given.model_dump(), detail))
    found += _network_problems(config, networking)
    if config.identity is not None:
        path = _INFRASTRUCTURE / "identity"
        found += _text_problems(path / "resourceGroup", config.identity.resourceGroup, _GROUP, 90)
        found += _text_problems(path / "name", config.identity.name, _ADDRESS, 120, shortest=3)
    return found


def _network_problems(config: InfrastructureConfig, networking: Object) -> list[Problem]:
    """`validateNetworkConfig`."""
    networks = config.networks
    if networks.workers is None and networks.is_single:
        return [forbidden(_NETWORKS / "workers", "either workers or zones must be specified")]
    if networks.workers is not None and not networks.is_single:
        return [forbidden(_NETWORKS / "workers", "workers and zones cannot be specified in parallel")]
    nodes, pods, services = (
        Range(f"networking.{field}", networking.get(field) or "") for field in ("nodes", "pods", "services")
    )
    found = _vnet_problems(networks, nodes, [pods, services])
    if networks.workers is not None:
        workers = Range(_NETWORKS / "workers", networks.workers)
        found += workers.parse_problems() + nodes.subset_problems([workers])
        found += _nat_problems(networks.natGateway)
        return found + _endpoint_problems(_NETWORKS / "serviceEndpoints", networks.serviceEndpoints)
    if not config.zoned:
        found.append(forbidden(_NETWORKS / "zones", "cannot specify zones in an non-zonal cluster"))
    if networks.natGateway is not None:
        detail = "natGateway cannot be specified when workers field is missing"
        found.append(forbidden(_NETWORKS / "workers", detail))
    if networks.serviceEndpoints:
        detail = "serviceEndpoints cannot be specified when workers field is missing"
        found.append(forbidden(_NETWORKS / "workers", detail))
    return found + _zones_problems(networks, nodes, [pods, services])


def _vnet_problems(networks: Networks, nodes: Range, outside: list[Range]) -> list[Problem]:
    """`validateVnetConfig`."""
    path, vnet = _NETWORKS / "vnet", networks.vnet
    shown = vnet.model_dump(exclude_none=True)
    if (vnet.name is None) != (vnet.resourceGroup is None):
        return [invalid(path, shown, "vnet name and resource group need to be specified together")]
    if vnet.is_users:
        return _users_vnet_problems(path, vnet)
    subnets = [Range((_NETWORKS / "zones")[index] / "cidr", zone.cidr) for index, zone in enumerate(networks.zones)]
    subnets += [Range(_NETWORKS / "workers", networks.workers)] if networks.workers is not None else []
    if vnet.cidr is None:
        if networks.workers is None:
            detail = "a vnet cidr or vnet reference must be specified when the workers field is not set"
            return [forbidden(path / "cidr", detail)]
        whole = subnets[0]
        found = whole.subset_problems([nodes])
        for other in outside:
            found += whole.overlap_problems([other])
        return found
    whole = Range(path / "cidr", vnet.cidr)
    found = whole.parse_problems() + whole.subset_problems([nodes]) + whole.overlap_problems(outside)
    return found + whole.subset_problems(subnets)


def _users_vnet_problems(path: Path, vnet: Vnet) -> list[Problem]:
    found = []
    name, group = vnet.name or "", vnet.resourceGroup or ""
    if not name:
        detail = "the vnet name must not be empty if specifying an existing vnet"
        found.append(required(path / "name", detail))
    if not group:
        detail = "the vnet resource group must not be empty if specifying an existing vnet"
        found.append(required(path / "resourceGroup", detail))
    found += _text_problems(path / "resourceGroup", group, _GROUP, 90)
    found += _text_problems(path / "name", name, _VNET, 64, shortest=2)
    if vnet.cidr is not None:
        shown = vnet.model_dump(exclude_none=True)
        found.append(invalid(path / "cidr", shown, "specifying a cidr for an existing vnet is not possible"))
    if vnet.ddosProtectionPlanID is not None:
        detail = "cannot assign a ddos protection plan to a vnet not managed by Gardener"
        found.append(forbidden(path / "ddosProtectionPlanID", detail))
    return found


def _zones_problems(networks: Networks, nodes: Range, outside: list[Range]) -> list[Problem]:
    """`validateZones`."""
    found: list[Problem] = []
    ranges: list[Range] = []
    seen: set[int] = set()
    for index, zone in enumerate(networks.zones):
        path = (_NETWORKS / "zones")[index]
        if zone.name in seen:
            found.append(invalid(path, zone.name, "the same zone cannot be specified multiple times"))
        seen.add(zone.name)
        ranges.append(Range(path / "cidr", zone.cidr))
        found += ranges[-1].parse_problems()
        found += _endpoint_problems(_NETWORKS / "zones" / "serviceEndpoints", zone.serviceEndpoints)
        found += _zoned_nat_problems(path / "natGateway", zone.natGateway)
    found += nodes.subset_problems(ranges) + pairwise_problems(ranges)
    for other in outside:
        found += other.overlap_problems(ranges)
    return found


def _nat_problems(nat: NatGateway | None) -> list[Problem]:
    """`validateNatGatewayConfig`."""
    path = _NETWORKS / "natGateway"
    if nat is None:
        return []
    if not nat.enabled:
        return _disabled_nat_problems(path, nat, nat.zone is not None)
    found = _timeout_problems(path, nat.idleConnectionTimeoutMinutes)
    if nat.sku is not None and nat.sku not in _SKUS:
        found.append(unsupported(path / "sku", nat.sku, _SKUS))
    return found + (_standard_problems if (nat.sku or STANDARD) == STANDARD else _redundant_problems)(path, nat)


def _standard_problems(path: Path, nat: NatGateway) -> list[Problem]:
    """`validateStandardV1NatGateway`."""
    addresses = nat.ipAddresses or []
    if addresses and nat.zone is None:
        return [invalid(path / "zone", None, "Public IPs can only be selected for zonal NatGateways")]
    found: list[Problem] = []
    for index, address in enumerate(addresses):
        found += _address_problems((path / "ipAddresses")[index], address)
        if address.zone is not None and address.zone != nat.zone:
            where = (path / "ipAddresses")[index] / "zone"
            why = "Public IP can't be used as it is not in the same zone as the NatGateway"
            found.append(invalid(where, address.zone, f"{why} (zone {nat.zone})"))
    return found


def _redundant_problems(path: Path, nat: NatGateway) -> list[Problem]:
    """`validateStandardV2NatGateway`."""
    found = []
    if nat.zone is not None:
        detail = "zone cannot be specified when using StandardV2 SKU (StandardV2 is zone-redundant)"
        found.append(forbidden(path / "zone", detail))
    for index, address in enumerate(nat.ipAddresses or ()):
        if address.zone is not None:
            why = "zone cannot be specified for IP addresses when using StandardV2 SKU"
            detail = f"{why} (StandardV2 NAT Gateway and its IPs must be zone-redundant)"
            found.append(forbidden((path / "ipAddresses")[index] / "zone", detail))
    return found


def _zoned_nat_problems(path: Path, nat: ZonedNatGateway | None) -> list[Problem]:
    """`validateZonedNatGatewayConfig`."""
    if nat is None:
        return []
    found = _timeout_problems(path, nat.idleConnectionTimeoutMinutes)
    if not nat.enabled:
        return found + _disabled_nat_problems(path, nat, False)
    for index, address in enumerate(nat.ipAddresses or ()):
        found += _address_problems((path / "ipAddresses")[index], address)
    if nat.sku is not None and nat.sku not in _SKUS:
        found.append(unsupported(path / "sku", nat.sku, _SKUS))
    if nat.sku is not None and nat.sku != STANDARD:
        found.append(forbidden(path / "sku", "Only Standard SKU can be configured for multi-subnet layout"))
    return found


def _disabled_nat_problems(path: Path, nat: NatGateway | ZonedNatGateway, has_zone: bool) -> list[Problem]:
    if not has_zone and nat.idleConnectionTimeoutMinutes is None and nat.ipAddresses is None and nat.sku is None:
        return []
    shown = nat.model_dump(exclude_none=True)
    return [invalid(path, shown, "NatGateway is disabled but additional NatGateway config is passed")]


def _timeout_problems(path: Path, minutes: int | None) -> list[Problem]:
    least, most = _TIMEOUT
    if minutes is None or least <= minutes <= most:
        return []
    detail = f"idleConnectionTimeoutMinutes values must range between {least} and {most}"
    return [invalid(path / "idleConnectionTimeoutMinutes", minutes, detail)]


def _address_problems(path: Path, address: PublicIp) -> list[Problem]:
    found = _text_problems(path / "resourceGroup", address.resourceGroup, _GROUP, 90)
    return found + _text_problems(path / "name", address.name, _ADDRESS, 80)


def _endpoint_problems(path: Path, endpoints: list[str]) -> list[Problem]:
    return [
        problem
        for index, each in enumerate(endpoints)
        for problem in _text_problems(path[index], each, _ENDPOINT, 120, shortest=9)
    ]


def _text_problems(path: Path, text: str, pattern: str, longest: int, *, shortest: int = 1) -> list[Problem]:
    """`combineValidationFuncs`."""
    found = []
    if text and not re.match(pattern, text):
        found.append(invalid(path, text, f"does not match expected regex {pattern}"))
    if not text and shortest == 1:
        found.append(required(path, "must not be empty"))
    elif len(text) < shortest:
        found.append(invalid(path, text, f"must not be fewer than {shortest} characters, got {len(text)}"))
    if len(text) > longest:
        found.append(invalid(path, text, f"must not be more than {longest} characters, got {len(text)}"))
    return found


def _worker_problems(path: Path, worker: Object, config: InfrastructureConfig) -> list[Problem]:
    found, volume, zones = [], worker.get("volume"), worker.get("zones") or []
    if volume is None:
        found.append(required(path / "volume", "must not be nil"))
    else:
        found += [
            required(path / "volume" / field, "must not be empty")
            for field in ("type", "size")
            if not volume.get(field)
        ]
    if len(worker.get("dataVolumes") or ()) > _MOST_VOLUMES:
        where, count = path / "dataVolumes", len(worker["dataVolumes"])
        found.append(Problem(where, "FieldValueTooMany", f"Too many: {count}: must have at most {_MOST_VOLUMES} items"))
    if config.zoned and not zones:
        return [*found, required(path / "zones", "at least one zone must be configured for zoned clusters")]
    if not config.zoned and zones:
        return [*found, required(path / "zones", "zones must not be specified for non zoned clusters")]
    for index, zone in enumerate(zones):
        where = (path / "zones")[index]
        if zone in zones[:index]:
            found.append(invalid(where, zone, "must only be specified once per worker group"))
        elif not config.networks.is_single and zone not in {str(each.name) for each in config.networks.zones}:
            detail = 'zone configuration must be specified in "infrastructureConfig.networks.zones"'
            found.append(invalid(where, zone, detail))
    return found


def _worker_update_problems(shoot: Object, old: Object) -> list[Problem]:
    known = {worker["name"]: worker.get("zones") or [] for worker in old["spec"]["provider"]["workers"]}
    found = []
    for index, worker in enumerate(shoot["spec"]["provider"]["workers"]):
        zones, before = worker.get("zones") or [], known.get(worker["name"], [])
        # Zones may be appended (`ShouldEnforceImmutability`).
        if zones[: len(before)] != before:
            found.append(invalid((_PROVIDER / "workers")[index] / "zones", zones, "field is immutable"))
    return found


def _update_problems(new: InfrastructureConfig, old: InfrastructureConfig) -> list[Problem]:
    """`ValidateInfrastructureConfigUpdate`."""
    found, now, was = [], new.networks, old.networks
    if now.workers is not None and was.workers is not None:
        found += immutable(_NETWORKS / "workers", now.workers, was.workers)
    if not was.is_single and now.is_single:
        why = "updating the infrastructure configuration from using dedicated subnets per zone to using single subnet"
        found.append(forbidden(_NETWORKS / "worker", f"{why} is not allowed"))
    elif was.is_single and not now.is_single:
        if was.workers not in [zone.cidr for zone in now.zones]:
            why = "when updating InfrastructureConfig to use dedicated subnets per zones, the CIDR for one of the zones"
            detail = f"{why} must match that of the previous config.networks.workers"
            found.append(forbidden(_NETWORKS / "zones", detail))
    elif not now.is_single:
        found += _zones_update_problems(now, was)
    found += immutable(_INFRASTRUCTURE / "zoned", new.zoned, old.zoned)
    found += _vnet_update_problems(now.vnet, was.vnet)
    skus = [(each.natGateway.sku or STANDARD) if each.natGateway else None for each in (now, was)]
    if None not in skus and skus[0] != skus[1]:
        why = "changing the NAT Gateway SKU is not allowed as it requires recreation of the NAT Gateway"
        detail = f"{why} and causes outbound connectivity disruption"
        found.append(invalid(_NETWORKS / "natGateway" / "sku", skus[0], detail))
    return found


def _zones_update_problems(now: Networks, was: Networks) -> list[Problem]:
    found = []
    if len(was.zones) > len(now.zones):
        found.append(forbidden(_NETWORKS / "zones", "removing zones is not allowed"))
    before = {zone.name: zone.cidr for zone in was.zones}
    for index, zone in enumerate(now.zones):
        if zone.name in before:
            found += immutable((_NETWORKS / "zones")[index] / "cidr", zone.cidr, before[zone.name])
    return found


def _vnet_update_problems(now: Vnet, was: Vnet) -> list[Problem]:
    path = _NETWORKS / "vnet"
    if was.cidr is None:
        found = immutable(path / "name", now.name, was.name)
        return found + immutable(path / "resourceGroup", now.resourceGroup, was.resourceGroup)
    if now.cidr is None:
        return [invalid(path / "cidr", None, "vnet cidr need to be specified")]
    if not Range("", now.cidr).contains(Range("", was.cidr)):
        return [invalid(path / "cidr", now.cidr, "VNet CIDR blocks can only be expanded")]
    return []
