"""Whose a network or router is: a name that follows from the order, and a description that says it."""

from __future__ import annotations

import hashlib

from pydantic import BaseModel, ConfigDict, ValidationError

from domain.names import bounded
from domain.networks import NetworkOrder

__all__ = ["Mark", "network_name", "router_name"]

_HASH = 16
# A name has 63 characters (cloud.google.com/compute/docs/naming-resources); a router's adds three to its network's.
_NAME_MAX = 60


class Mark(BaseModel):
    """What the description of everything that Trellis makes on GCP says, as compact JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_name=True,
        validate_by_alias=True,
        alias_generator=lambda name: f"trellis.dev/{name}",
    )

    installation: str
    tenant: str
    vpc: str
    incarnation: str
    # A network itself belongs to no region.
    region: str

    @classmethod
    def of(cls, order: NetworkOrder, installation: str) -> Mark:
        """The mark of an order."""
        return cls(
            installation=installation,
            tenant=order.tenant,
            vpc=order.vpc,
            incarnation=order.incarnation,
            region=order.region,
        )

    @classmethod
    def read(cls, description: str) -> Mark | None:
        """The mark that a description holds; None where it holds none."""
        try:
            return cls.model_validate_json(description)
        except ValidationError:
            return None

    def __str__(self) -> str:
        return self.model_dump_json(by_alias=True)


def network_name(mark: Mark) -> str:
    """Unique by its hash of the whole mark, whatever has to be cut from the readable part."""
    digest = hashlib.sha256(str(mark).encode()).hexdigest()[:_HASH]
    return f"{bounded(f'trellis-{mark.vpc}', _NAME_MAX - _HASH - 1)}-{digest}"


def router_name(network: str, index: int) -> str:
    """The name of a network's router with this index."""
    return f"{network}-r{index}"
