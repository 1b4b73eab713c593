"""The clouds beside AWS: how each is started, what leads to it, and what the Garden must be told of it.

Every one is reached through the proxy that makes faults, by the Garden too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["VENDORS", "Vendor"]

# As many clusters as a VPC holds, several times over: the vendors' defaults stop at a handful.
_MANY = 2_000


@dataclass(frozen=True)
class Vendor:
    """A cloud of the sandbox.

    Attributes:
        name: The provider's name; the server is `sandbox.<name>`.
        environment: URL and state directory to the variables that lead SDK, adapter and command line to it.
        quotas: Limits that are raised, by the vendor's own names.
        https: Whether it is served with a certificate of its own, `DIR/<name>.ca.crt`.
        proxied: Whether the proxy that makes faults stands in front of it.
        ready_file: What is in its state directory as soon as it answers; None: it answers when its port does.
        start_seconds: How long its first start may take on top.
    """

    name: str
    environment: Callable[[str, Path], dict[str, str]]
    quotas: dict[str, int] = field(default_factory=dict)
    https: bool = False
    proxied: bool = True
    ready_file: str | None = None
    start_seconds: float = 0.0

    @property
    def scheme(self) -> str:
        """How it is spoken to."""
        return "https" if self.https else "http"

    def authority(self, state_dir: Path) -> Path:
        """The certificate that clients have to trust."""
        return state_dir / f"{self.name}.ca.crt"

    def command(self, port: int, state_dir: Path) -> list[str]:
        """What serves it; its settings are written first."""
        if not self.quotas:
            return [sys.executable, "-m", f"sandbox.{self.name}", "--port", str(port), "--state-dir", str(state_dir)]
        settings = state_dir / "settings.json"
        settings.write_text(json.dumps({"quotas": self.quotas}))
        options = {"--port": port, "--state-dir": state_dir, "--settings": settings}
        return [sys.executable, "-m", f"sandbox.{self.name}", *(str(part) for pair in options.items() for part in pair)]

    def garden_arguments(self, url: str, state_dir: Path) -> list[str]:
        """What the Garden is started with to build there."""
        if self.name == "openstack":
            return ["--openstack-auth-url", url]
        arguments = [f"--{self.name}-endpoint", url]
        return [*arguments, f"--{self.name}-authority", str(self.authority(state_dir))] if self.https else arguments


def _gcp(url: str, state_dir: Path) -> dict[str, str]:
    return {
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{url}/compute/v1/",
        "CLOUDSDK_CORE_PROJECT": "trellis-sandbox",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
    }


def _azure(url: str, state_dir: Path) -> dict[str, str]:
    return {
        "AZURE_AUTHORITY_HOST": url,
        "AZURE_RESOURCE_MANAGER_ENDPOINT": url,
        "REQUESTS_CA_BUNDLE": str(state_dir / "azure.ca.crt"),
    }


def _openstack(url: str, state_dir: Path) -> dict[str, str]:
    return {"OS_CLIENT_CONFIG_FILE": str(state_dir / "clouds.yaml"), "OS_CLOUD": "trellis"}


def _alicloud(url: str, state_dir: Path) -> dict[str, str]:
    return {f"ALIBABA_CLOUD_ENDPOINT_{product}": url for product in ("VPC", "VPCPEER", "ECS", "STS")}


VENDORS = {
    vendor.name: vendor
    for vendor in (
        Vendor("gcp", _gcp, {"NETWORKS": 500, "ROUTERS": 500, "STATIC_ADDRESSES": _MANY, "FIREWALLS": _MANY}),
        Vendor("azure", _azure, https=True),
        # The real Keystone and Neutron, which are installed at the first start of all.
        Vendor("openstack", _openstack, proxied=False, ready_file="clouds.yaml", start_seconds=600.0),
        Vendor(
            "alicloud",
            _alicloud,
            dict.fromkeys(
                (
                    "natgw_quota_nat_num_per_vpc", "vpc_quota_route_tables_num", "vpc_quota_vswitches_num",
                    "eip_quota_num", "q_security-groups", "vpc_quota_vpc_nums",
                ),
                _MANY,
            ),
        ),
    )
}  # fmt: skip
