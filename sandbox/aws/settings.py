"""What can be set: how long things take, how many there may be.

At start from a file, at run time by `PUT /sandbox/settings`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

__all__ = ["Delays", "Limits", "Settings", "SettingsError"]

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Limit = Annotated[int, Field(ge=0)]


class SettingsError(ValueError):
    """Settings that cannot be: the message names the field, the value and what is allowed."""


class Delays(BaseModel):
    """How long a state lasts, in seconds. In EC2 a NAT gateway takes one to three minutes each way."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vpc_pending: Seconds = 0.3
    nat_gateway_pending: Seconds = 1.0
    nat_gateway_deleting: Seconds = 1.0
    # Deleted and failed NAT gateways stay listed for about an hour, deleted peerings for two.
    nat_gateway_listed: Seconds = 3600.0
    peering_listed: Seconds = 7200.0


class Limits(BaseModel):
    """How many there may be. EC2's own defaults (5 VPCs, 5 addresses) are far too small for hundreds of clusters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vpcs: Limit = 1000
    internet_gateways: Limit = 1000
    subnets_per_vpc: Limit = 5000
    route_tables_per_vpc: Limit = 5000
    routes_per_route_table: Limit = 500
    nat_gateways_per_zone: Limit = 2000
    elastic_ips: Limit = 5000
    security_groups: Limit = 10000
    rules_per_security_group: Limit = 60
    peerings_per_vpc: Limit = 125


class Settings(BaseModel):
    """Everything that can be set.

    `host_bits` says what happens to a CIDR like 10.0.0.5/24: `refuse` is InvalidParameterValue; `canonical` makes it
    10.0.0.0/24, as the API reference of CreateVpc and CreateSubnet describes it. A strict sandbox finds more mistakes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    delays: Delays = Delays()
    limits: Limits = Limits()
    changes_per_snapshot: Annotated[int, Field(ge=1)] = 2000
    host_bits: Literal["refuse", "canonical"] = "refuse"

    def changed(self, patch: object) -> Settings:
        """These settings with the given parts replaced (a JSON merge). Raises SettingsError."""
        if not isinstance(patch, dict):
            raise SettingsError(f'settings are a JSON object such as {{"limits": {{"vpcs": 5}}}}, not {patch!r}')
        try:
            return Settings.model_validate(_merged(self.model_dump(), patch))
        except ValidationError as error:
            raise SettingsError("; ".join(_sentence(one) for one in error.errors())) from None

    @classmethod
    def patch_from(cls, file: Path) -> dict[str, Any]:
        """The settings a file asks for, checked. Raises SettingsError."""
        try:
            patch = json.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise SettingsError(f"{file}: {error}") from None
        cls().changed(patch)
        return dict(patch)


def _merged(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    return base | {
        key: _merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
        for key, value in patch.items()
    }


def _sentence(error: Any) -> str:
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']} (got {error['input']!r})"
