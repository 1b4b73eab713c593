"""Whose a network or router is: what its description says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from domain.names import bounded
from domain.networks import NetworkOrder

__all__ = ["Mark"]

_DOMAIN = "trellis.dev"
_PARTS = 5
# docs.openstack.org/api-ref/network/v2: names and descriptions have 255 characters.
_NAME_MAX = 255


@dataclass(frozen=True)
class Mark:
    """Written `trellis.dev/<installation>/<tenant>/<vpc>/<incarnation>`; none of these has a slash."""

    installation: str
    tenant: str
    vpc: str
    incarnation: str

    @classmethod
    def of(cls, order: NetworkOrder, installation: str) -> Self:
        """The mark of an order."""
        return cls(installation, order.tenant, order.vpc, order.incarnation)

    @classmethod
    def read(cls, description: str | None) -> Self | None:
        """The mark that a description is; None where it is none."""
        parts = (description or "").split("/")
        return cls(*parts[1:]) if len(parts) == _PARTS and parts[0] == _DOMAIN else None

    @property
    def name(self) -> str:
        """What people see; it need not be unique."""
        return bounded(f"trellis-{self.tenant}-{self.vpc}", _NAME_MAX)

    @property
    def tags(self) -> set[str]:
        """For people's filters."""
        return {"trellis", f"trellis-installation={self.installation}", f"trellis-tenant={self.tenant}",
                f"trellis-vpc={self.vpc}"}  # fmt: skip

    def __str__(self) -> str:
        return "/".join((_DOMAIN, self.installation, self.tenant, self.vpc, self.incarnation))
