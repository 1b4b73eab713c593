"""What a Shoot may ask of its CloudProfile (gardener, `plugin/pkg/shoot/validator/admission.go`)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sandbox.garden.problems import Path, Problem, duplicate, invalid, unsupported
from sandbox.kube import Object

_SPEC = Path("spec")


def is_active(version: Object, now: datetime | None = None) -> bool:
    """Whether a version of the CloudProfile may be chosen: it is not past its expiration date."""
    expires = version.get("expirationDate")
    return expires is None or datetime.fromisoformat(str(expires)) > (now or datetime.now(UTC))


def profile_problems(shoot: Object, old: Object | None, profile: Object, binding: Object) -> list[Problem]:
    """Region, versions, machines, volumes and zones against the CloudProfile. What has not changed may stay."""
    spec, before, offers = shoot["spec"], (old or {}).get("spec") or {}, profile["spec"]
    problems = _version_problems(spec, before, offers)
    problems += _region_problems(spec, before, offers)
    type_problems = _type_problems(spec, offers, binding)
    if type_problems:
        return problems + type_problems
    known = {worker["name"]: worker for worker in (before.get("provider") or {}).get("workers") or []}
    for index, worker in enumerate(spec["provider"].get("workers") or []):
        path = (_SPEC / "provider" / "workers")[index]
        was = known.get(worker["name"], {})
        problems += _machine_problems(path, spec, worker, was, offers)
        problems += _volume_problems(path, spec, worker, was, offers)
        problems += _zone_problems(path, spec, worker, was, offers)
    return problems


def _version_problems(spec: Object, before: Object, offers: Object) -> list[Problem]:
    version = spec["kubernetes"]["version"]
    if version == (before.get("kubernetes") or {}).get("version"):
        return []
    offered = [each for each in offers["kubernetes"]["versions"] if before or is_active(each)]
    if any(each["version"] == version for each in offered):
        return []
    preview = {True: " (preview)", False: ""}
    choices = [each["version"] + preview[each.get("classification") == "preview"] for each in offered]
    return [unsupported(_SPEC / "kubernetes" / "version", version, choices)]


def _region_problems(spec: Object, before: Object, offers: Object) -> list[Problem]:
    region = spec["region"]
    names = [each["name"] for each in offers["regions"]]
    if region == before.get("region") or region in names:
        return []
    return [unsupported(_SPEC / "region", region, names)]


def _type_problems(spec: Object, offers: Object, binding: Object) -> list[Problem]:
    asked = spec["provider"]["type"]
    path = _SPEC / "provider" / "type"
    if asked != offers["type"]:
        detail = f'provider type in shoot must equal provider type of referenced CloudProfile: "{offers["type"]}"'
        return [invalid(path, asked, detail)]
    if asked != binding["provider"]["type"]:
        detail = "provider type in shoot must match provider type of referenced CredentialsBinding"
        return [invalid(path, asked, f'{detail}: "{binding["provider"]["type"]}"')]
    return []


def _machine_problems(path: Path, spec: Object, worker: Object, was: Object, offers: Object) -> list[Problem]:
    machine, then = worker["machine"], was.get("machine") or {}
    architecture = machine.get("architecture", "amd64")
    if architecture not in ("amd64", "arm64"):
        return [unsupported(path / "machine" / "architecture", architecture, ("amd64", "arm64"))]
    if machine["type"] != then.get("type"):
        problems = _machine_type_problems(path / "machine" / "type", spec, worker, offers)
        if problems:
            return problems
    if machine["image"] != then.get("image"):
        return _image_problems(path / "machine" / "image", machine, offers)
    return []


def _machine_type_problems(path: Path, spec: Object, worker: Object, offers: Object) -> list[Problem]:
    wanted, architecture = worker["machine"]["type"], worker["machine"].get("architecture", "amd64")
    unavailable = _unavailable(spec, worker, offers, "unavailableMachineTypes")
    types = offers["machineTypes"]
    good = {
        each["name"]
        for each in types
        if each.get("usable") and each.get("architecture", "amd64") == architecture and each["name"] not in unavailable
    }
    if wanted in good:
        return []
    this = next((each for each in types if each["name"] == wanted), None)
    if this is None:
        return [unsupported(path, wanted, sorted(good))]
    flaws = [
        "is unusable, " if not this.get("usable") else "",
        "is unavailable in at least one zone, " if wanted in unavailable else "",
        ""
        if this.get("architecture", "amd64") == architecture
        else f'does not support CPU architecture "{architecture}", ',
    ]
    supported = f"supported types are [{' '.join(sorted(good))}]"
    return [invalid(path, wanted, f'machine type "{wanted}" {"".join(flaws)}{supported}')]


def _unavailable(spec: Object, worker: Object, offers: Object, field: str) -> set[str]:
    zones = [
        zone
        for region in offers["regions"]
        if region["name"] == spec["region"]
        for zone in region.get("zones") or []
        if zone["name"] in (worker.get("zones") or [])
    ]
    return {name for zone in zones for name in zone.get(field) or []}


def _image_problems(path: Path, machine: Object, offers: Object) -> list[Problem]:
    name, version = machine["image"]["name"], machine["image"]["version"]
    architecture = machine.get("architecture", "amd64")
    versions = {
        f"{image['name']}:{each['version']}": each
        for image in offers["machineImages"]
        if image["name"] == name
        for each in image["versions"]
    }
    good = {
        key
        for key, each in versions.items()
        if is_active(each) and architecture in each.get("architectures", ["amd64"])
    }
    wanted = f"{name}:{version}"
    if wanted in good:
        return []
    if wanted not in versions:
        return [unsupported(path / "version", version, sorted(good))]
    flaws = "" if is_active(versions[wanted]) else "is expired, "
    if architecture not in versions[wanted].get("architectures", ["amd64"]):
        flaws += f'does not support CPU architecture "{architecture}", '
    supported = f"supported machine image versions are: [{' '.join(sorted(good))}]"
    return [invalid(path, machine["image"], f"machine image version '{wanted}' {flaws}{supported}")]


def _volume_problems(path: Path, spec: Object, worker: Object, was: Object, offers: Object) -> list[Problem]:
    volume, then = worker.get("volume"), was.get("volume")
    if not volume or volume == then or not offers.get("volumeTypes"):
        return []
    kind = volume.get("type")
    unavailable = _unavailable(spec, worker, offers, "unavailableVolumeTypes")
    good = [each for each in offers["volumeTypes"] if each.get("usable") and each["name"] not in unavailable]
    chosen = next((each for each in good if each["name"] == kind), None)
    if chosen is None:
        return [unsupported(path / "volume" / "type", kind or "", sorted(each["name"] for each in good))]
    least, size = chosen.get("minSize"), str(volume.get("size", ""))
    if not size.removesuffix("Gi").isdigit() or not size.endswith("Gi"):
        return [invalid(path / "volume" / "size", size, 'volume size must match the regex "^(\\d)+Gi$"')]
    if least and int(size.removesuffix("Gi")) < int(least.removesuffix("Gi")):
        return [invalid(path / "volume" / "size", size, f"size must be >= {least}")]
    return []


def _zone_problems(path: Path, spec: Object, worker: Object, was: Object, offers: Object) -> list[Problem]:
    zones: list[Any] = worker.get("zones") or []
    if zones == (was.get("zones") or []):
        return []
    offered = zones_of(offers, spec["region"])
    problems = []
    for index, zone in enumerate(zones):
        at = (path / "zones")[index]
        if not offered:
            detail = "this region does not support availability zones, please do not configure them"
            problems.append(invalid(at, spec["region"], detail))
        elif zone not in offered:
            problems.append(unsupported(at, zone, offered))
        if zone in zones[:index]:
            problems.append(duplicate(at, zone))
    return problems


def zones_of(offers: Object, region: str) -> list[str]:
    """The zones of a region in a CloudProfile's spec."""
    regions: Iterable[Object] = offers["regions"]
    return [zone["name"] for each in regions if each["name"] == region for zone in each.get("zones") or []]
