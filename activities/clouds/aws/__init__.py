"""AWS: a VPC as Gardener wants to find it, with what its clusters share.

What Gardener asks of a VPC that it did not make: both DNS attributes, an internet gateway, and DHCP options with the
region's domain name and AmazonProvidedDNS (gardener-extension-provider-aws, pkg/controller/infrastructure:
configvalidator.go and infraflow/reconcile.go). Nodes of different clusters reach each other through one shared
security group, the `nodesSecurityGroupID` of the same repository's pkg/apis/aws/v1alpha1/types_infrastructure.go; its
rules are those that Gardener gives a group of its own.

No create call used here takes an idempotency token. So nothing that changes anything is repeated blindly: tags are part
of every create call, and a create whose answer was lost is looked up by them.
"""

from __future__ import annotations

from collections.abc import Mapping

from activities.clouds.aws._account import Account
from activities.clouds.aws._ensure import ensure
from activities.clouds.aws._patience import Patience
from activities.clouds.aws._remove import remove, staying_inside
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkOrder, NetworkRecord, NetworkSeen, Owned
from domain.specs import Provider

__all__ = ["AwsCloud", "Patience"]


class AwsCloud:
    """One AWS account in one region; see `activities.clouds.Cloud`. Safe to use from several threads."""

    def __init__(
        self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience | None = None
    ) -> None:
        """A client for `region`. The endpoint is AWS's, or what `AWS_ENDPOINT_URL` says.

        Args:
            region: AWS's name of the region, such as `eu-central-1`.
            secret: data of the garden's Secret, with the keys `accessKeyID` and `secretAccessKey`, as Gardener reads
                them (gardener-extension-provider-aws, pkg/aws/types.go).
            installation: what tells this Trellis's resources from another's in the same account.
            patience: how long EC2 may take.

        Raises:
            TrellisError: `forbidden` where the secret lacks a key, `invalid` where there can be no such region.
        """
        self._account = Account(region, secret, installation=installation)
        self._patience = patience or Patience()

    def ensure(self, record: NetworkRecord) -> NetworkSeen:
        """See `Cloud.ensure`. Seven describe calls where nothing is to be done."""
        self._check(record.order)
        return ensure(self._account, record, self._patience)

    def remove(self, record: NetworkRecord) -> None:
        """See `Cloud.remove`."""
        self._check(record.order)
        remove(self._account, record, self._patience)

    def blockers(self, record: NetworkRecord) -> tuple[Blocker, ...]:
        """See `Cloud.blockers`."""
        self._check(record.order)
        return staying_inside(self._account, record)

    def owned(self) -> tuple[Owned, ...]:
        """See `Cloud.owned`."""
        return self._account.owned()

    def _check(self, order: NetworkOrder) -> None:
        if order.provider is not Provider.AWS or order.region != self._account.region:
            raise TrellisError(
                Code.INVALID,
                f"VPC {order.vpc} is in {order.region} of {order.provider}, and this client serves "
                f"{self._account.region} of aws: nothing was touched",
                "a defect in how the worker picks its clients: what is not found in the wrong region is not gone",
            )
