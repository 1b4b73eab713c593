"""Tags on resources that exist: those of VPC's products, and those of ECS's.

https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-tagresources (and -untagresources,
-listtagresources), https://www.alibabacloud.com/help/en/ecs/developer-reference/api-ecs-2014-05-26-tagresources.
"""

from __future__ import annotations

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import missing_parameter, refused
from sandbox.alicloud.kinds import EIP, GROUP, INSTANCE, NAT, TABLE, VPC, VSWITCH
from sandbox.alicloud.resources import Kind, Resources, token_page
from sandbox.clouds import Document

__all__ = ["ECS_TYPES", "VPC_TYPES", "Tags"]

VPC_TYPES = {"VPC": VPC, "VSWITCH": VSWITCH, "ROUTETABLE": TABLE, "EIP": EIP, "NATGATEWAY": NAT}
ECS_TYPES = {"INSTANCE": INSTANCE, "SECURITYGROUP": GROUP}
_MOST = 20


class Tags:
    """The actions on tags.

    Args:
        resources: Whose tags.
        types: The kinds by what the product calls them, in capitals.
    """

    def __init__(self, resources: Resources, types: dict[str, Kind]) -> None:
        self._resources = resources
        self._types = types

    def add(self, ask: Ask) -> Document:
        """`TagResources`: all of the resources or none."""
        tags = ask.tags()
        if not tags:
            raise missing_parameter("Tag.1.Key")
        for kind, document in self._named(ask):
            document["_tags"] |= tags
            if len(document["_tags"]) > _MOST:
                raise refused(400, "QuotaExceeded.TagsPerResource", "The number of tags of the resource is exceeded.")
            self._resources.put(kind, document)
        return {}

    def remove(self, ask: Ask) -> Document:
        """`UnTagResources`: the keys that are named, or `All`."""
        keys = set(ask.several("TagKey"))
        for kind, document in self._named(ask):
            kept = {} if ask.flag("All") and not keys else document["_tags"]
            document["_tags"] = {key: value for key, value in kept.items() if key not in keys}
            self._resources.put(kind, document)
        return {}

    def describe(self, ask: Ask) -> Document:
        """`ListTagResources`: by resources, by tags, or both; resources without tags are not there."""
        kind, ids = self._kind(ask), ask.several("ResourceId")
        if not ids and not ask.wanted_tags():
            raise missing_parameter("ResourceId.1")
        found = [
            {"ResourceId": document[kind.id], "ResourceType": ask.required("ResourceType")}
            | {"TagKey": key, "TagValue": value}
            for document in self._resources.seen(kind, ask.place)
            if (not ids or document[kind.id] in ids) and ask.has_wanted_tags(document)
            for key, value in document["_tags"].items()
        ]
        pairs, more = token_page(ask, found)
        return {"TagResources": {"TagResource": pairs}} | more

    def _kind(self, ask: Ask) -> Kind:
        kind = self._types.get(ask.required("ResourceType").upper())
        if kind is None:
            raise refused(400, "InvalidResourceType.NotFound", "The ResourceType provided does not exist.")
        return kind

    def _named(self, ask: Ask) -> list[tuple[Kind, Document]]:
        kind, ids = self._kind(ask), ask.several("ResourceId")
        if not ids:
            raise missing_parameter("ResourceId.1")
        found = [(kind, self._resources.get(kind, ask.place, one)) for one in ids]
        if any(document is None for _, document in found):
            raise refused(404, "InvalidResourceId.NotFound", "The specified ResourceIds are not found in our records.")
        return [(kind, document) for kind, document in found if document is not None]
