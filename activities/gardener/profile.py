"""What a landscape offers, by its CloudProfile, and how a cluster's wishes are met from it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from domain.errors import Code, TrellisError
from domain.shoots import ShootKey, ShootPlan
from domain.specs import ClusterSpec

__all__ = ["CloudProfile"]

# What Gardener asks of a node pool that runs its system components.
_CPU_MIN, _MEMORY_MIN = 2, 4 * 2**30
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


class _Part(BaseModel):
    """Of the garden's objects only what is used here is read."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Version(_Part):
    version: str
    classification: str = "supported"
    expires: datetime | None = Field(None, alias="expirationDate")
    architectures: tuple[str, ...] = ("amd64",)

    @property
    def active(self) -> bool:
        return self.expires is None or self.expires > datetime.now(UTC)

    @property
    def rank(self) -> tuple[bool, list[int]]:
        """Supported before deprecated, then the newest."""
        numbers = self.version.split("-")[0].split(".")
        return self.classification == "supported", [int(number) if number.isdigit() else 0 for number in numbers]


class _Kubernetes(_Part):
    versions: tuple[_Version, ...]


class _Image(_Part):
    name: str
    versions: tuple[_Version, ...]


class _Storage(_Part):
    type: str = ""


class _MachineType(_Part):
    name: str
    cpu: str = "0"
    gpu: str = "0"
    memory: str = "0"
    usable: bool = True
    architecture: str = "amd64"
    storage: _Storage | None = None

    @property
    def common(self) -> bool:
        """Whether it suits a cluster that asked for nothing."""
        enough = _amount(self.cpu) >= _CPU_MIN and _amount(self.memory) >= _MEMORY_MIN
        return enough and _amount(self.gpu) == 0 and self.architecture == "amd64"


class _VolumeType(_Part):
    name: str
    usable: bool = True


class _Zone(_Part):
    name: str
    no_machines: tuple[str, ...] = Field((), alias="unavailableMachineTypes")
    no_volumes: tuple[str, ...] = Field((), alias="unavailableVolumeTypes")


class _Region(_Part):
    name: str
    zones: tuple[_Zone, ...] = ()


class _LoadBalancerProvider(_Part):
    name: str
    region: str | None = None


class _Constraints(_Part):
    load_balancers: tuple[_LoadBalancerProvider, ...] = Field((), alias="loadBalancerProviders")


class _ProviderConfig(_Part):
    """What the provider's extension adds (gardener-extension-provider-openstack, pkg/apis/openstack/v1alpha1)."""

    constraints: _Constraints = _Constraints()


class CloudProfile(_Part):
    """The `spec` of a CloudProfile."""

    type: str
    regions: tuple[_Region, ...]
    kubernetes: _Kubernetes
    images: tuple[_Image, ...] = Field(alias="machineImages")
    machine_types: tuple[_MachineType, ...] = Field(alias="machineTypes")
    volume_types: tuple[_VolumeType, ...] = Field((), alias="volumeTypes")
    provider_config: _ProviderConfig | None = Field(None, alias="providerConfig")

    @classmethod
    def of(cls, profile: dict[str, Any]) -> CloudProfile:
        """Read the object that the garden sent."""
        return cls.model_validate(profile["spec"])

    def plan(self, spec: ClusterSpec, shoot: ShootKey, name: str) -> ShootPlan:
        """Check what the user chose and choose the rest: the first zone, machine and image, the newest version.

        Raises:
            TrellisError: `invalid`, naming the valid choices.
        """
        region = self._region(spec)
        zones = self._zones(spec, region)
        machine = self._machine(spec, zones)
        image, version = self._image(machine)
        return ShootPlan(
            shoot=shoot,
            cloud_profile=name,
            zones=tuple(zone.name for zone in zones),
            machine_type=machine.name,
            architecture=machine.architecture,
            machine_image=image,
            machine_image_version=version,
            kubernetes_version=self._kubernetes_version(spec.kubernetes_version),
            volume_type=None if machine.storage else self._volume(zones),
            load_balancer_provider=self._load_balancer_provider(region),
        )

    def _region(self, spec: ClusterSpec) -> _Region:
        found = [region for region in self.regions if region.name == spec.region]
        if not found:
            raise _unknown("region", spec.region, f"provider {spec.provider}", (each.name for each in self.regions))
        return found[0]

    def _zones(self, spec: ClusterSpec, region: _Region) -> list[_Zone]:
        zones = {zone.name: zone for zone in region.zones}
        for name in spec.zones:
            if name not in zones:
                raise _unknown("zone", name, f"region {region.name}", zones)
        if spec.zones:
            return [zones[name] for name in spec.zones]
        suitable = [zone for zone in region.zones if self._offered(spec.machine_type, [zone])]
        if not suitable:
            wish = f"machine type {spec.machine_type}" if spec.machine_type else "a machine type for the first nodes"
            choices = (each.name for each in self.machine_types if each.usable)
            raise _unknown("machine_type", spec.machine_type, f"region {region.name}: no zone has {wish}", choices)
        return suitable[:1]

    def _offered(self, wanted: str | None, zones: list[_Zone]) -> list[_MachineType]:
        """The machine types that every one of the zones has, and that are the wanted one or suit everybody."""
        missing = {name for zone in zones for name in zone.no_machines}
        usable = [each for each in self.machine_types if each.usable and each.name not in missing]
        return [each for each in usable if (each.name == wanted if wanted else each.common)]

    def _machine(self, spec: ClusterSpec, zones: list[_Zone]) -> _MachineType:
        offered = self._offered(spec.machine_type, zones)
        if offered:
            return offered[0]
        missing = {name for zone in zones for name in zone.no_machines}
        choices = [each.name for each in self.machine_types if each.usable and each.name not in missing]
        raise _unknown("machine_type", spec.machine_type, f"zones {', '.join(zone.name for zone in zones)}", choices)

    def _image(self, machine: _MachineType) -> tuple[str, str]:
        """The first image that has a version for the machine's architecture, as Gardener itself would choose."""
        for image in self.images:
            versions = [each for each in image.versions if machine.architecture in each.architectures]
            if best := _best(versions):
                return image.name, best.version
        what = f"the CloudProfile has no current machine image for {machine.architecture}"
        raise TrellisError(Code.INVALID, f"machine_type {machine.name}: {what}", "choose another machine type")

    def _kubernetes_version(self, wanted: str | None) -> str:
        """The version itself, or the newest of a minor version such as `1.34`."""
        active = [each for each in self.kubernetes.versions if each.active]
        if wanted is not None:
            exact = [each for each in active if each.version == wanted]
            matching = exact or [each for each in active if each.version.startswith(f"{wanted}.")]
        else:
            matching = active
        best = exact[0] if wanted and exact else _best(matching)
        if best is None:
            choices = (f"{each.version} ({each.classification})" for each in active)
            raise _unknown("kubernetes_version", wanted, "this landscape", choices)
        return best.version

    def _load_balancer_provider(self, region: _Region) -> str | None:
        """The first of those for the region; where there are none, of those for all (pkg/apis/openstack/validation)."""
        offered = self.provider_config.constraints.load_balancers if self.provider_config else ()
        names = [[each.name for each in offered if each.region == wanted] for wanted in (region.name, None)]
        return next(iter([*names[0], *names[1]]), None)

    def _volume(self, zones: list[_Zone]) -> str | None:
        missing = {name for zone in zones for name in zone.no_volumes}
        return next((each.name for each in self.volume_types if each.usable and each.name not in missing), None)


def _best(versions: Iterable[_Version]) -> _Version | None:
    """The newest version that is neither expired nor a preview."""
    good = [each for each in versions if each.active and each.classification != "preview"]
    return max(good, key=lambda each: each.rank, default=None)


def _amount(quantity: str) -> float:
    """A Kubernetes quantity such as `2`, `500m` or `8Gi` as a number; 0 where it cannot be read."""
    number = quantity.rstrip("KMGTkim")
    try:
        value = float(number)
    except ValueError:
        return 0
    unit = quantity[len(number) :]
    return value / 1000 if unit == "m" else value * _UNITS.get(unit, 0)


def _unknown(field: str, value: str | None, where: str, choices: Iterable[str]) -> TrellisError:
    listed = ", ".join(choices) or "none"
    asked = f"{field} {value!r}" if value else field
    return TrellisError(Code.INVALID, f"{asked} is not available in {where}", f"choose one of: {listed}")
