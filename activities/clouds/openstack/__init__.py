"""OpenStack: a network, and one router with an external gateway that all its clusters share.

What Gardener asks of a network and a router that it did not make: that they are there, and that the router has an
address in an external network (gardener-extension-provider-openstack, pkg/controller/infrastructure/infraflow/
reconcile.go). Subnets of one network reach each other only where they hang on the same router; so every shoot is given
this one.

Neutron has no idempotency tokens, names need not be unique, and not every version takes tags when something is made.
So whose something is stands in its description, which every create call takes: `trellis.dev/<installation>/<tenant>/
<vpc>/<incarnation>`. Tags say the same to people, and to `openstack network list --tags trellis`; they are put on
afterwards, and nothing depends on them. A create whose answer was lost is looked up by its description. Where two
attempts made the same thing, the older one is kept.

The credentials need the role `member` of their project, or another that is allowed these actions of Neutron's policy
(docs.openstack.org/neutron/latest/configuration/policy.html): `{create,get,delete}_network`, `update_network:tags`,
`{create,get,update,delete}_router`, `{create,update}_router:external_gateway_info:network_id`, `update_router:tags`,
and, to see what is inside, `get_{subnet,port,floatingip}`.
"""

from __future__ import annotations

from collections.abc import Mapping

from activities.clouds.openstack._ensure import ensure
from activities.clouds.openstack._project import Patience, Project
from activities.clouds.openstack._remove import remove, staying_inside
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkRecord, NetworkSeen, Owned
from domain.specs import Provider

__all__ = ["OpenStackCloud", "Patience"]


class OpenStackCloud:
    """One OpenStack project in one region; see `activities.clouds.Cloud`. Safe to use from several threads."""

    def __init__(
        self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience | None = None
    ) -> None:
        """A client for `region`. Network's endpoint is the one that Keystone's catalog has for that region.

        Args:
            region: the region's name in Keystone's catalog.
            secret: data of the garden's Secret, as Gardener reads it (gardener-extension-provider-openstack,
                pkg/openstack/credentials.go): `domainName`, `tenantName`, and `username` with `password`, or an
                `applicationCredentialSecret` with `applicationCredentialID`, or with `applicationCredentialName` and
                `username`. Keystone is at `authURL`; where that is missing, as Gardener allows it, at `OS_AUTH_URL`.
            installation: what tells this Trellis's resources from another's in the same project.
            patience: how long Neutron may take.

        Raises:
            TrellisError: `forbidden` where the secret is not complete, `invalid` where Keystone's address is missing.
        """
        self._project = Project(region, secret, installation=installation, patience=patience or Patience())

    def ensure(self, record: NetworkRecord) -> NetworkSeen:
        """See `Cloud.ensure`. Five calls where nothing is to be done."""
        self._check(record)
        return ensure(self._project, record)

    def remove(self, record: NetworkRecord) -> None:
        """See `Cloud.remove`."""
        self._check(record)
        remove(self._project, record)

    def blockers(self, record: NetworkRecord) -> tuple[Blocker, ...]:
        """See `Cloud.blockers`."""
        self._check(record)
        return staying_inside(self._project, record)

    def owned(self) -> tuple[Owned, ...]:
        """See `Cloud.owned`."""
        return self._project.owned()

    def _check(self, record: NetworkRecord) -> None:
        order, project = record.order, self._project
        if order.provider is not Provider.OPENSTACK or order.region != project.region:
            raise TrellisError(
                Code.INVALID,
                f"VPC {order.vpc} is in {order.region} of {order.provider}, and this client serves "
                f"{project.region} of openstack: nothing was touched",
                "a defect in how the worker picks its clients: what is not found in the wrong region is not gone",
            )
        if record.network and record.network.account not in {"", project.id}:
            raise TrellisError(
                Code.CONFLICT,
                f"the network of {order.vpc} was made in the OpenStack project {record.network.account}, and the "
                f"credentials {order.credentials} belong to {project.id}: nothing was touched",
                f"put credentials of project {record.network.account} into the Secret behind the CredentialsBinding",
            )
