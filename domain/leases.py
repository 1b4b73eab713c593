"""Parts of a network that one cluster at a time may work on: who has which, and who is next.

On GCP all clusters of a router change its one list of NAT gateways by reading and writing it back, so two at once lose
one (gardener-extension-provider-gcp, infraflow's updater of NAT). Pure; a VPC's workflow keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.messages import Answer, Claim, Letter
from domain.names import cluster_workflow_id

__all__ = ["Leases"]


class Leases:
    """First come, first served, per part. The first claim of a part holds it; its answer says so."""

    def __init__(self, tenant: str, claims: Iterable[Claim] = ()) -> None:
        self._tenant = tenant
        self._claims = list(claims)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims, in the order of their coming."""
        return tuple(self._claims)

    def holder(self, part: str) -> Claim | None:
        """Whoever may work on the part."""
        return next((claim for claim in self._claims if claim.part == part), None)

    def claim(self, claim: Claim) -> list[Letter]:
        """Take a place in the queue; whoever is first is answered, also when it asks again."""
        if claim not in self._claims:
            self._claims.append(claim)
        return self._tell(claim.part) if self.holder(claim.part) == claim else []

    def give_back(self, claim: Claim) -> list[Letter]:
        """Leave the queue; the next one is answered."""
        return self._forget([claim])

    def drop(self, cluster: str) -> list[Letter]:
        """Forget all claims of a cluster that has left."""
        return self._forget([claim for claim in self._claims if claim.cluster == cluster])

    def _forget(self, gone: list[Claim]) -> list[Letter]:
        parts = dict.fromkeys(claim.part for claim in gone if self.holder(claim.part) == claim)
        self._claims = [claim for claim in self._claims if claim not in gone]
        return [letter for part in parts for letter in self._tell(part)]

    def _tell(self, part: str) -> list[Letter]:
        holder = self.holder(part)
        if holder is None:
            return []
        workflow_id = cluster_workflow_id(self._tenant, holder.cluster)
        return [Letter(workflow_id=workflow_id, answer=Answer(token=holder.token, lent=part))]
