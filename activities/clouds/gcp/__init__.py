"""GCP: a network in custom mode, and the cloud routers that its clusters share.

What Gardener asks of a network that it did not make: that it is there, and a cloud router of it in the shoot's region
(gardener-extension-provider-gcp, pkg/apis/gcp/validation/infrastructure.go, and infraflow of
pkg/controller/infrastructure). Every cluster puts one NAT gateway on a router. A router takes 50 of them and a network
has 5 routers in a region, both fixed (cloud.google.com/nat/quota and
cloud.google.com/network-connectivity/docs/router/quotas), so a network gets as many routers as its clusters need.

Neither networks nor routers carry labels. So both have names that follow from the order alone, and a description that
tells whose they are. Every call that changes something has a request id: repeated, it gets the first one's operation.

The credentials need these permissions of `compute.`: `networks.{create,delete,get,list,updatePolicy}`,
`routers.{create,delete,list}`, `globalOperations.get`, `regionOperations.get`, and, to see what is inside,
`{firewalls,globalAddresses,instances,routes,subnetworks}.list`.
"""

from __future__ import annotations

from collections.abc import Mapping

from activities.clouds.gcp._ensure import ensure
from activities.clouds.gcp._project import Patience, Project
from activities.clouds.gcp._remove import remove, staying_inside
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkOrder, NetworkRecord, NetworkSeen, Owned
from domain.specs import Provider

__all__ = ["GcpCloud", "Patience"]


class GcpCloud:
    """One GCP project in one region; see `activities.clouds.Cloud`. Safe to use from several threads."""

    def __init__(
        self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience | None = None
    ) -> None:
        """A client for `region`. The endpoint is GCP's, or `CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE`, as for gcloud.

        Args:
            region: GCP's name of the region, such as `europe-west3`.
            secret: data of the garden's Secret; `serviceaccount.json` is a service account's key file, as Gardener
                reads it (gardener-extension-provider-gcp, pkg/gcp/types.go).
            installation: what tells this Trellis's resources from another's in the same project.
            patience: how long Compute Engine may take.

        Raises:
            TrellisError: `forbidden` where the secret holds no such key, `invalid` where there can be no such region.
        """
        self._project = Project(region, secret, installation=installation, patience=patience or Patience())

    def ensure(self, record: NetworkRecord) -> NetworkSeen:
        """See `Cloud.ensure`. Four calls where nothing is to be done."""
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
        """See `Cloud.owned`. A network is global: it counts for the region that it was made for."""
        return self._project.owned()

    def _check(self, record: NetworkRecord) -> None:
        order, project = record.order, self._project
        if order.provider is not Provider.GCP or order.region != project.region:
            raise TrellisError(
                Code.INVALID,
                f"VPC {order.vpc} is in {order.region} of {order.provider}, and this client serves "
                f"{project.region} of gcp: nothing was touched",
                "a defect in how the worker picks its clients: what is not found in the wrong region is not gone",
            )
        if record.network and record.network.account not in {"", project.id}:
            raise _elsewhere(order, record.network.account, project.id)


def _elsewhere(order: NetworkOrder, recorded: str, project: str) -> TrellisError:
    return TrellisError(
        Code.CONFLICT,
        f"the network of {order.vpc} was made in the GCP project {recorded}, and the credentials "
        f"{order.credentials} belong to {project}: nothing was touched",
        f"put a key of a service account of project {recorded} into the Secret behind the CredentialsBinding",
    )
