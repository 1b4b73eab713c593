"""What is there without being made: clouds, subscriptions, tenants, locations and resource providers.

https://learn.microsoft.com/rest/api/resources/subscriptions, https://learn.microsoft.com/rest/api/resources/providers
and, for the endpoints of a cloud, https://learn.microsoft.com/azure-stack/user/azure-stack-rest-api-use.
"""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.azure.errors import refused
from sandbox.azure.identity import Identity, base_url
from sandbox.azure.ids import LOCATIONS, location_of
from sandbox.azure.resources import GROUPS, Context, Resources
from sandbox.clouds import Answer, Call, Document

__all__ = ["Catalog"]

_NAMESPACES = ("Microsoft.Network", "Microsoft.Resources")
_VERSIONS = ["2026-03-01", "2025-01-01", "2024-05-01"]
# The versions that answer with a list of clouds, which is this one, and with the cloud itself.
_LISTED_SINCE, _ALONE_SINCE = "2019-05-01", "2022-09-01"


class Catalog:
    """Answers the calls about what is simply there."""

    def __init__(self, context: Context, identity: Identity, kinds: Mapping[str, Resources]) -> None:
        self._store = context.store
        self._quotas = context.quotas
        self._identity = identity
        self._kinds = kinds

    def endpoints(self, call: Call) -> Answer:
        """`/metadata/endpoints`: what a client has to know of a cloud."""
        base, version = base_url(call), call.query.get("api-version", "2015-01-01")
        authentication = {"loginEndpoint": base, "audiences": [base], "tenant": "common", "identityProvider": "AAD"}
        if version < _LISTED_SINCE:
            old = {"loginEndpoint": f"{base}/", "audiences": [base]}
            return Answer(
                {"galleryEndpoint": base, "graphEndpoint": base, "portalEndpoint": base, "authentication": old}
            )
        cloud = {
            "name": "Sandbox",
            "resourceManager": base,
            "authentication": authentication,
            "graph": base,
            "graphAudience": base,
            "microsoftGraphResourceId": base,
            "portal": base,
            "gallery": base,
            "media": base,
            "batch": base,
            "sqlManagement": base,
            "suffixes": {"storage": "invalid", "keyVaultDns": "invalid", "acrLoginServer": "invalid"},
        }
        return Answer([cloud] if version < _ALONE_SINCE else cloud)

    def tenants(self, call: Call) -> Answer:
        """The caller's tenant."""
        tenant, _ = self._identity.seen_by(call)
        return Answer({"value": [{"id": f"/tenants/{tenant}", "tenantId": tenant, "displayName": "Sandbox"}]})

    def subscriptions(self, call: Call) -> Answer:
        """The caller's subscription; all that hold something, for one whom nobody knows."""
        tenant, own = self._identity.seen_by(call)
        used = {group["id"].split("/")[2] for _, group in self._store.list(GROUPS)}
        found = [_subscription(each) | {"tenantId": tenant} for each in sorted(used if own is None else {own})]
        return Answer({"value": found})

    def subscription(self, call: Call) -> Answer:
        """Get a subscription: every one exists."""
        return Answer(_subscription(call.at["subscription"]))

    def locations(self, call: Call) -> Answer:
        """The locations of a subscription."""
        found = [
            {
                "id": f"/subscriptions/{call.at['subscription']}/locations/{name}",
                "name": name,
                "displayName": text,
                "regionalDisplayName": text,
                "type": "Region",
                "metadata": {"regionType": "Physical", "regionCategory": "Recommended"},
                "availabilityZoneMappings": [
                    {"logicalZone": zone, "physicalZone": f"{name}-az{zone}"} for zone in ("1", "2", "3")
                ],
            }
            for name, text in LOCATIONS.items()
        ]
        return Answer({"value": found})

    def provider(self, call: Call) -> Answer:
        """Get a resource provider, or register it: they all are."""
        namespace = next((each for each in _NAMESPACES if each.lower() == call.at["namespace"].lower()), None)
        if namespace is None:
            message = f"The resource namespace '{call.at['namespace']}' is invalid."
            raise refused(404, "InvalidResourceNamespace", message)
        return Answer(self._provider(call.at["subscription"], namespace))

    def providers(self, call: Call) -> Answer:
        """All resource providers."""
        return Answer({"value": [self._provider(call.at["subscription"], namespace) for namespace in _NAMESPACES]})

    def usages(self, call: Call) -> Answer:
        """`usages` of Microsoft.Network in a location."""
        location = location_of(call.at["location"])
        return Answer({"value": self._quotas.usages(call.at["subscription"], location)})

    def _provider(self, subscription: str, namespace: str) -> Document:
        types = list(self._kinds) if namespace == "Microsoft.Network" else ["resourceGroups"]
        return {
            "id": f"/subscriptions/{subscription}/providers/{namespace}",
            "namespace": namespace,
            "registrationState": "Registered",
            "registrationPolicy": "RegistrationRequired",
            "resourceTypes": [
                {"resourceType": each, "locations": list(LOCATIONS.values()), "apiVersions": _VERSIONS}
                for each in types
            ],
        }


def _subscription(subscription: str) -> Document:
    return {
        "id": f"/subscriptions/{subscription}",
        "subscriptionId": subscription,
        "displayName": "Sandbox",
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "subscriptionPolicies": {"locationPlacementId": "Public_2014-09-01", "quotaId": "PayAsYouGo_2014-09-01"},
    }
