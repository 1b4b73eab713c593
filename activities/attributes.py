"""Search attributes: how workflows are found and filtered in Temporal's UI. They are never encrypted."""

from __future__ import annotations

from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes

from domain.specs import Provider

TENANT = SearchAttributeKey.for_keyword("TrellisTenant")
VPC = SearchAttributeKey.for_keyword("TrellisVpc")
PROVIDER = SearchAttributeKey.for_keyword("TrellisProvider")
REGION = SearchAttributeKey.for_keyword("TrellisRegion")
PHASE = SearchAttributeKey.for_keyword("TrellisPhase")
STUCK = SearchAttributeKey.for_bool("TrellisStuck")

ALL: tuple[SearchAttributeKey[str] | SearchAttributeKey[bool], ...] = (
    TENANT,
    VPC,
    PROVIDER,
    REGION,
    PHASE,
    STUCK,
)


def attributes(
    *, tenant: str, vpc: str | None, provider: Provider | None, region: str | None, phase: str
) -> TypedSearchAttributes:
    """What a workflow is started with; unknown parts are left out."""
    pairs: list[SearchAttributePair[str] | SearchAttributePair[bool]] = [
        SearchAttributePair(TENANT, tenant),
        SearchAttributePair(PHASE, phase),
        SearchAttributePair(STUCK, False),
    ]
    known = {VPC: vpc, PROVIDER: provider and provider.value, REGION: region}
    pairs += [SearchAttributePair(key, value) for key, value in known.items() if value]
    return TypedSearchAttributes(pairs)
