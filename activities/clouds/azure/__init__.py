"""Azure: a resource group of its own with one virtual network in it.

What Gardener asks of a network that it did not make: its name and its resource group, which is not the shoot's, in the
same subscription (gardener-extension-provider-azure, pkg/apis/azure/validation/infrastructure.go and
pkg/controller/infrastructure/infraflow). Nodes of different clusters reach each other by the rules that every security
group has. Both names follow from the order alone, and both resources carry tags from their creation on; a write is a
PUT, which may be repeated.

Azure deletes a resource group with everything in it, whoever made that. So a group is only deleted once nothing is left
in it, and what somebody else put there is named.

The credentials need these permissions: `Microsoft.Resources/subscriptions/resourceGroups/{read,write,delete}`,
`Microsoft.Resources/subscriptions/resourceGroups/resources/read`,
`Microsoft.Resources/subscriptions/operationresults/read`,
`Microsoft.Network/virtualNetworks/{read,write,delete}` and `Microsoft.Network/locations/operations/read`.
"""

from __future__ import annotations

from collections.abc import Mapping

from activities.clouds.azure._ensure import ensure
from activities.clouds.azure._remove import remove, staying_inside
from activities.clouds.azure._subscription import Patience, Subscription
from domain.errors import Code, TrellisError
from domain.networks import Blocker, NetworkRecord, NetworkSeen, Owned
from domain.specs import Provider

__all__ = ["AzureCloud", "Patience"]


class AzureCloud:
    """One Azure subscription in one region; see `activities.clouds.Cloud`. Safe to use from several threads."""

    def __init__(
        self, region: str, secret: Mapping[str, str], *, installation: str, patience: Patience | None = None
    ) -> None:
        """A client for `region`.

        The cloud is Azure's public one, or what the environment says: `AZURE_SDK_CLOUD_CONF` for the national ones
        (azure-core's own), together with `AZURE_AUTHORITY_HOST` (azure-identity's own); for a private one
        `AZURE_AUTHORITY_HOST` and `AZURE_RESOURCE_MANAGER_ENDPOINT`, the base URL of its Resource Manager.
        Certificates that are not public are trusted by `REQUESTS_CA_BUNDLE`.

        Args:
            region: Azure's name of the region, such as `westeurope`.
            secret: data of the garden's Secret, with the keys `clientID`, `clientSecret`, `subscriptionID` and
                `tenantID`, as Gardener reads them (gardener-extension-provider-azure, pkg/azure/types.go).
            installation: what tells this Trellis's resources from another's in the same subscription.
            patience: how long Azure may take.

        Raises:
            TrellisError: `forbidden` where the secret lacks a key or holds none that can be, `invalid` where the
                environment names an endpoint that is no HTTPS URL.
        """
        self._subscription = Subscription(region, secret, installation=installation, patience=patience or Patience())

    def ensure(self, record: NetworkRecord) -> NetworkSeen:
        """See `Cloud.ensure`. Two calls where nothing is to be done."""
        self._check(record)
        return ensure(self._subscription, record)

    def remove(self, record: NetworkRecord) -> None:
        """See `Cloud.remove`."""
        self._check(record)
        remove(self._subscription, record)

    def blockers(self, record: NetworkRecord) -> tuple[Blocker, ...]:
        """See `Cloud.blockers`."""
        self._check(record)
        return staying_inside(self._subscription, record)

    def owned(self) -> tuple[Owned, ...]:
        """See `Cloud.owned`."""
        return self._subscription.owned()

    def _check(self, record: NetworkRecord) -> None:
        order, subscription = record.order, self._subscription
        if order.provider is not Provider.AZURE or order.region != subscription.region:
            raise TrellisError(
                Code.INVALID,
                f"VPC {order.vpc} is in {order.region} of {order.provider}, and this client serves "
                f"{subscription.region} of azure: nothing was touched",
                "a defect in how the worker picks its clients: what is not found in the wrong region is not gone",
            )
        if record.network and record.network.account.lower() not in {"", subscription.id.lower()}:
            raise TrellisError(
                Code.CONFLICT,
                f"the network of {order.vpc} was made in the Azure subscription {record.network.account}, and the "
                f"credentials {order.credentials} belong to {subscription.id}: nothing was touched",
                f"put a service principal of subscription {record.network.account} into the Secret behind the "
                "CredentialsBinding",
            )
