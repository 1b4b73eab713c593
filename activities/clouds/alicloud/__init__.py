"""Alibaba Cloud: a VPC as Gardener wants to find it.

A cluster brings its own NAT gateway and its own custom route table, and the security group that Gardener makes lets the
nodes of the VPC's first range in (gardener-extension-provider-alicloud, pkg/controller/infrastructure:
configvalidator.go and infraflow/reconcile.go). So the VPC and its further ranges are all that clusters share.

`CreateVpc` takes tags and a client token: repeated with the same token, it gives the first one's VPC. Everything is
found again by its tags.

The credentials need these actions: `vpc:{AssociateVpcCidrBlock,CreateVpc,DeleteVpc,DescribeVpcs}`, and, to see what is
inside, `vpc:{DescribeNatGateways,DescribeRouteTableList,DescribeVSwitches,DescribeVpcAttribute}`,
`vpc:ListVpcPeerConnections` and `ecs:DescribeSecurityGroups`; `vpc:TagResources` lets CreateVpc set tags.
"""

from __future__ import annotations

from collections.abc import Mapping

from activities.clouds.alicloud._account import Account, Patience
from activities.clouds.alicloud._ensure import ensure
from activities.clouds.alicloud._remove import remove, staying_inside
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkOrder, NetworkRecord, NetworkSeen, Owned
from domain.specs import Provider

__all__ = ["AlicloudCloud", "Patience"]


class AlicloudCloud:
    """One Alibaba Cloud account in one region; see `activities.clouds.Cloud`. Safe to use from several threads."""

    def __init__(
        self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience | None = None
    ) -> None:
        """A client for `region`.

        The endpoints are Alibaba Cloud's, or what `ALIBABA_CLOUD_ENDPOINT_VPC`, `..._VPCPEER`, `..._ECS` and `..._STS`
        say, as for the vendor's Terraform provider (terraform-provider-alicloud, alicloud/connectivity/endpoint.go).
        The SDK itself reads no such variable. A URL's scheme counts; without one it is https.

        Args:
            region: Alibaba Cloud's name of the region, such as `eu-central-1`.
            secret: data of the garden's Secret, with the keys `accessKeyID` and `accessKeySecret`, as Gardener reads
                them (gardener-extension-provider-alicloud, pkg/alicloud/types.go).
            installation: what tells this Trellis's resources from another's in the same account.
            patience: how long the VPC service may take.

        Raises:
            TrellisError: `forbidden` where the secret lacks a key, `invalid` where there can be no such region.
        """
        self._account = Account(region, secret, installation=installation, patience=patience or Patience())

    def ensure(self, record: NetworkRecord) -> NetworkSeen:
        """See `Cloud.ensure`. Two calls where nothing is to be done."""
        self._check(record.order)
        return ensure(self._account, record)

    def remove(self, record: NetworkRecord) -> None:
        """See `Cloud.remove`."""
        self._check(record.order)
        remove(self._account, record)

    def blockers(self, record: NetworkRecord) -> tuple[Blocker, ...]:
        """See `Cloud.blockers`."""
        self._check(record.order)
        return staying_inside(self._account, record)

    def owned(self) -> tuple[Owned, ...]:
        """See `Cloud.owned`."""
        return self._account.owned()

    def _check(self, order: NetworkOrder) -> None:
        if order.provider is not Provider.ALICLOUD or order.region != self._account.region:
            raise TrellisError(
                Code.INVALID,
                f"VPC {order.vpc} is in {order.region} of {order.provider}, and this client serves "
                f"{self._account.region} of alicloud: nothing was touched",
                "a defect in how the worker picks its clients: what is not found in the wrong region is not gone",
            )
