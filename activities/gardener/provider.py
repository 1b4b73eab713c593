"""What the provider modules have in common: models that mirror Gardener's, and become its JSON."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ProviderConfig", "ProviderPart"]


class ProviderPart(BaseModel):
    """A part of a provider's configuration; fields carry Gardener's names as aliases."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


class ProviderConfig(ProviderPart):
    """An InfrastructureConfig or ControlPlaneConfig."""

    api_version: str = Field(alias="apiVersion")
    kind: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in the Shoot; what is not set is left out, since Gardener takes an empty value for a value."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
