"""Where everything of a running sandbox is: `sandbox.json`, and the same as shell exports."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

__all__ = [
    "AwsAddress",
    "CloudAddress",
    "FaultsAddress",
    "GardenAddress",
    "SandboxError",
    "TemporalAddress",
    "World",
    "secluded",
]

_FILE = "sandbox.json"
# The sandbox's cloud has no accounts: any key is let in. These are no secret.
ACCESS_KEY_ID = "sandbox"
SECRET_ACCESS_KEY = "sandbox"  # noqa: S105
_REGION = "eu-central-1"
_NO_PROXY = ("NO_PROXY", "no_proxy")
_LOOPBACK = ("127.0.0.1", "localhost")
# What a shell may have set for the real world, and what would win over, or mix with, the sandbox's addresses.
_SHADOWING = ("TEMPORAL_", "AWS_", "CLOUDSDK_", "GOOGLE_", "AZURE_", "ALIBABA_CLOUD_", "OS_")
_HARMLESS = frozenset({"AWS_PAGER"})


class SandboxError(Exception):
    """What is wrong with a sandbox, and what can be done."""


class _Closed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TemporalAddress(_Closed):
    """The Temporal server: `host:port`, namespace, and the URL of its web UI."""

    address: str
    namespace: str
    ui: str


class GardenAddress(_Closed):
    """The Garden: absolute path of a kubeconfig, and the project's namespace."""

    kubeconfig: str
    namespace: str


class AwsAddress(_Closed):
    """AWS: one endpoint URL for all regions and services."""

    endpoint: str
    access_key_id: str = ACCESS_KEY_ID
    secret_access_key: str = SECRET_ACCESS_KEY


class CloudAddress(_Closed):
    """Another cloud: its endpoint URL, and the certificate to trust where it is served over HTTPS."""

    endpoint: str
    certificate: str | None = None


class OpenStackAddress(_Closed):
    """OpenStack: the URL of Keystone, whose catalog leads to Neutron."""

    auth_url: str


class FaultsAddress(_Closed):
    """Where faults are set: `{url}/faults`, see `sandbox.faults`."""

    url: str


class World(_Closed):
    """Every address of a running sandbox, and the process ids behind them."""

    temporal: TemporalAddress
    garden: GardenAddress
    aws: AwsAddress
    # Only those that were asked for.
    gcp: CloudAddress | None = None
    azure: CloudAddress | None = None
    alicloud: CloudAddress | None = None
    openstack: OpenStackAddress | None = None
    faults: FaultsAddress
    processes: dict[str, int]
    # What leads SDKs and command lines to the clouds beside AWS.
    variables: dict[str, str] = Field(default_factory=dict)

    @classmethod
    def load(cls, state_dir: Path) -> Self:
        """The world as its supervisor last wrote it.

        Raises:
            SandboxError: there is none, or the file is not one.
        """
        path = state_dir / _FILE
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise SandboxError(f"no sandbox in {state_dir}: {path} does not exist") from None
        except (OSError, ValidationError) as error:
            raise SandboxError(f"{path} is not the record of a sandbox: {error}") from error

    def save(self, state_dir: Path) -> None:
        """Write `sandbox.json` in one step: a reader sees the old or the new, never half."""
        with tempfile.NamedTemporaryFile("w", dir=state_dir, prefix=_FILE, delete=False) as file:
            file.write(self.model_dump_json(indent=2, exclude_none=True) + "\n")
        Path(file.name).replace(state_dir / _FILE)

    def environment(self) -> dict[str, str]:
        """The variables by which `temporal`, `aws`, `kubectl` and `trellis` find this world."""
        return {
            "TEMPORAL_ADDRESS": self.temporal.address,
            "TEMPORAL_NAMESPACE": self.temporal.namespace,
            "AWS_ENDPOINT_URL": self.aws.endpoint,
            "AWS_ACCESS_KEY_ID": self.aws.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.aws.secret_access_key,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "KUBECONFIG": self.garden.kubeconfig,
            "TRELLIS_GARDEN_KUBECONFIG": self.garden.kubeconfig,
            "TRELLIS_GARDEN_NAMESPACE": self.garden.namespace,
            "TRELLIS_TEMPORAL_UI": self.temporal.ui,
            **self.variables,
        }

    def apply_to(self, environ: Mapping[str, str]) -> dict[str, str]:
        """A copy of `environ` in which only this world is to be found."""
        return secluded(environ) | self.environment()

    def exports(self, environ: Mapping[str, str] = os.environ) -> str:
        """Shell lines for `eval`, safe whatever the paths contain."""
        wanted = self.apply_to(environ)
        lines = [f"unset {name}" for name in _shadowing(environ) if name not in wanted]
        lines += [f"export {name}={shlex.quote(wanted[name])}" for name in [*self.environment(), *_NO_PROXY]]
        return "\n".join(lines)


def secluded(environ: Mapping[str, str]) -> dict[str, str]:
    """A copy of `environ` without what leads to the real world; a proxy is kept away from loopback."""
    bypass = [part for name in _NO_PROXY for part in environ.get(name, "").split(",") if part]
    no_proxy = ",".join(dict.fromkeys([*bypass, *_LOOPBACK]))
    shadowing = _shadowing(environ)
    kept = {name: value for name, value in environ.items() if name not in shadowing}
    return kept | dict.fromkeys(_NO_PROXY, no_proxy)


def _shadowing(environ: Mapping[str, str]) -> list[str]:
    return sorted(name for name in environ if name.startswith(_SHADOWING) and name not in _HARMLESS)
