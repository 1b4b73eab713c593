"""What all resources of Microsoft.Network have in common: get, list, put, tags, delete, and the life of a resource.

https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling and
https://github.com/Azure/azure-resource-manager-rpc/blob/master/v1.0/resource-api-reference.md. A resource is stored as
it is shown, under its id in lower case; children (subnets, peerings, rules, routes) are stored by themselves and shown
inside their parents too.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from sandbox.azure.bodies import Body, Reference, ResourceBody, TagsBody, parse
from sandbox.azure.errors import bad_request, failed, group_not_found, not_found, parent_not_found, refused, retry_later
from sandbox.azure.ids import Id, check_name, check_tags, location_of
from sandbox.azure.lists import page
from sandbox.azure.operations import OperationsApi
from sandbox.azure.quotas import Quotas
from sandbox.clouds import Answer, Call, Cloud, Document, Operation, Refusal

__all__ = ["GROUPS", "Context", "Resources", "group_key", "referring"]

GROUPS = "resourceGroups"


def group_key(subscription: str, group: str) -> str:
    """What the store knows a resource group by."""
    return f"/subscriptions/{subscription}/resourcegroups/{group}".lower()


class Context:
    """What every kind of resource works with."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.store = cloud.store
        self.operations = OperationsApi(cloud)
        self.quotas = Quotas(cloud.store, lambda: cloud.settings.quotas)

    def group(self, id_: Id) -> Document:
        """The resource group that a resource is in.

        Raises:
            Refusal: there is none.
        """
        group = self.store.get(GROUPS, group_key(id_.subscription, id_.group))
        if group is None:
            raise group_not_found(id_.group)
        return group

    def referred(self, owner: Id, reference: Reference, kind: str, location: str) -> Id:
        """The resource that another one refers to.

        Raises:
            Refusal: there is no such resource of this kind in this location, or it is not ready.
        """
        id_ = Id.parse(reference.id)
        found = self.store.get(kind, id_.key) if id_ else None
        if id_ is None or found is None or found.get("location", location) != location:
            message = (
                f"Resource {reference.id} referenced by resource {owner} was not found. Please make sure that the "
                "referenced resource exists, and that both resources are in the same region."
            )
            raise bad_request("InvalidResourceReference", message)
        state = found["properties"]["provisioningState"]
        if state not in ("Succeeded", "Failed"):
            message = (
                f"Cannot proceed with operation because resource {reference.id} used by resource {owner} is not in "
                f"Succeeded state. Resource is in {state} state."
            )
            raise retry_later("ReferencedResourceNotProvisioned", message)
        return id_


class Resources:
    """One kind of resource, or of child. Subclasses say what differs.

    Attributes:
        collection: The type in URLs, such as `virtualNetworks`.
        child: The child's type, such as `subnets`; empty for a resource itself.
        body: The model of requests.
        quota: The name of the quota that counts these, if one does.
    """

    collection: ClassVar[str]
    child: ClassVar[str] = ""
    body: ClassVar[type[Body]]
    quota: ClassVar[str] = ""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.store = context.store
        self.children: dict[str, Resources] = {}
        context.cloud.finishers |= {
            f"{self.kind}.put": self._finish_put,
            f"{self.kind}.delete": self._finish_delete,
        }

    # What subclasses say.

    def build(self, id_: Id, body: Any, before: Document | None) -> Document:
        """The properties that result from a request; refuses what cannot be."""
        raise NotImplementedError

    def users(self, id_: Id) -> Sequence[str]:
        """The ids of what keeps a resource from being deleted."""
        del id_
        return ()

    def in_use(self, id_: Id, user: str) -> tuple[str, str]:
        """Code and message of the refusal to delete what is used."""
        raise NotImplementedError

    def shown(self, id_: Id, document: Document) -> Document:
        """Properties that are worked out when a resource is shown."""
        del id_, document
        return {}

    def written(self, id_: Id, body: Any) -> None:
        """Called when a request was accepted, before its operation."""

    def done(self, id_: Id) -> None:
        """Called when a write is done."""

    def deleted(self, id_: Id) -> None:
        """Called when a deletion is done."""

    # The methods of the API.

    @property
    def kind(self) -> str:
        """What the store keeps these under."""
        return self.child or self.collection

    @property
    def full_type(self) -> str:
        """The type as resources show it."""
        return "/".join(part for part in ("Microsoft.Network", self.collection, self.child) if part)

    def get(self, call: Call) -> Answer:
        """Get."""
        id_ = self.id_of(call)
        self.context.group(id_)
        document = self.find(id_)
        if document is None or not self.context.cloud.visible(self.kind, id_.key):
            raise self._missing(id_)
        return Answer(self.show(id_, document))

    def list_page(self, call: Call) -> Answer:
        """List, of a resource group or a parent."""
        subscription, group = call.at["subscription"], call.at["group"]
        if self.child:
            parent = self.id_of(call)
            if self.store.get(self.collection, parent.root_key) is None:
                raise not_found(self.collection, parent.name, parent.group)
            return page(call, self.seen(f"{parent.root_key}/{self.child.lower()}/"))
        if self.store.get(GROUPS, group_key(subscription, group)) is None:
            raise group_not_found(group)
        return page(call, self.seen(f"{group_key(subscription, group)}/"))

    def list_all(self, call: Call) -> Answer:
        """List, of a subscription."""
        return page(call, self.seen(f"/subscriptions/{call.at['subscription']}/".lower()))

    def put(self, call: Call) -> Answer:
        """Create or update: what is not given in the properties gets its default again."""
        id_ = self.id_of(call)
        group = self.context.group(id_)
        if group["properties"]["provisioningState"] == "Deleting":
            message = f"The resource group '{id_.group}' is in deprovisioning state and cannot perform this operation."
            raise refused(409, "ResourceGroupBeingDeleted", message)
        check_name(self.kind, id_.own_name)
        if self.child and self.store.get(self.collection, id_.root_key) is None:
            raise parent_not_found(f"{self.collection}/{self.child}", id_.name)
        self.context.operations.refuse_busy(id_)
        body: Any = parse(self.body, call.content)
        before = self.find(id_)
        _check_match(call, before)
        document = self.write(id_, body, before)
        self.written(id_, body)
        headers = self.context.operations.start(call, f"{self.kind}.put", id_, self.location(id_), self.inputs(call))
        if before is None:
            self.context.cloud.hide(self.kind, id_.key)
        return Answer(self.show(id_, document), 200 if before else 201, headers)

    def patch_tags(self, call: Call) -> Answer:
        """Update tags: replaces all of them, at once."""
        id_ = self.id_of(call)
        self.context.group(id_)
        document = self.find(id_)
        if document is None:
            raise self._missing(id_)
        tags = parse(TagsBody, call.content).tags
        check_tags(tags)
        document = document | {"tags": tags, "etag": _etag()}
        self.store.put(self.kind, id_.key, document)
        return Answer(self.show(id_, document))

    def delete(self, call: Call) -> Answer:
        """Delete: 204 for what is not there."""
        id_ = self.id_of(call)
        document = self.find(id_)
        if document is None:
            return Answer(None, 204)
        self.context.operations.refuse_busy(id_)
        _check_match(call, document)
        users = self.users(id_)
        if users:
            raise bad_request(*self.in_use(id_, users[0]))
        self._set_state(id_, document, "Deleting")
        headers = self.context.operations.start(call, f"{self.kind}.delete", id_, self.location(id_), {})
        return Answer(None, 202, headers)

    # For subclasses, and for what deletes whole groups.

    def id_of(self, call: Call) -> Id:
        """The resource, or child, that a call is about."""
        at = call.at
        child_type = self.child if self.child and "child" in at else ""
        return Id(at["subscription"], at["group"], self.collection, at.get("name", ""), child_type, at.get("child", ""))

    def find(self, id_: Id) -> Document | None:
        """The stored resource, or None."""
        return self.store.get(self.kind, id_.key)

    def all(self, prefix: str = "") -> list[tuple[Id, Document]]:
        """Stored resources whose keys begin so."""
        found = [(Id.parse(document["id"]), document) for _, document in self.store.list(self.kind, prefix)]
        return [(id_, document) for id_, document in found if id_]

    def children_of(self, id_: Id, kind: str) -> list[tuple[Id, Document]]:
        """Of a resource, the children of one kind."""
        return self.children[kind].all(f"{id_.root_key}/{kind.lower()}/")

    def seen(self, prefix: str) -> list[Document]:
        """Resources as a list shows them."""
        visible = self.context.cloud.visible
        return [self.show(id_, document) for id_, document in self.all(prefix) if visible(self.kind, id_.key)]

    def show(self, id_: Id, document: Document) -> Document:
        """What a client sees."""
        properties = document["properties"] | self.shown(id_, document)
        for kind, children in self.children.items():
            properties[kind] = [children.show(*child) for child in self.children_of(id_, kind)]
        return document | {"properties": properties}

    def location(self, id_: Id) -> str:
        """Where a resource, or a child's parent, is."""
        root = self.store.get(self.collection, id_.root_key) or {}
        return str(root.get("location", ""))

    def inputs(self, call: Call) -> Document:
        """What the finisher of a write needs to know."""
        del call
        return {}

    def write(self, id_: Id, body: Any, before: Document | None) -> Document:
        """Store what a request asks for, in state Updating."""
        common: Document = {"name": id_.own_name, "id": str(id_), "etag": _etag(), "type": self.full_type}
        if isinstance(body, ResourceBody):
            common |= self._common(id_, body, before)
        if before is None:
            self._check_quota(id_, common.get("location", ""))
            self.store.put(self.kind, id_.key, common | {"properties": {"provisioningState": "Updating"}})
        elif before["id"] != str(id_):
            common["id"], common["name"] = before["id"], before["name"]
        guid = (before or {}).get("properties", {}).get("resourceGuid") or str(uuid.uuid4())
        own: Document = {"provisioningState": "Updating"} | ({} if self.child else {"resourceGuid": guid})
        document = common | {"properties": own | self.build(id_, body, before)}
        self.store.put(self.kind, id_.key, document)
        if self.child:
            self._touch_parent(id_)
        return document

    def replace_children(self, id_: Id, kind: str, bodies: Sequence[Any]) -> None:
        """Make the children of one kind exactly these."""
        children = self.children[kind]
        wanted = {}
        for body in bodies:
            if not body.name:
                raise bad_request("InvalidRequestFormat", f"A name is missing in '{kind}' of {id_}.")
            check_name(kind, body.name)
            wanted[Id(id_.subscription, id_.group, id_.type, id_.name, kind, body.name)] = body
        kept = {child.key for child in wanted}
        for child, _ in children.all(f"{id_.root_key}/{kind.lower()}/"):
            if child.key not in kept:
                users = children.users(child)
                if users:
                    raise bad_request(*children.in_use(child, users[0]))
                self.store.delete(kind, child.key)
        for child, body in wanted.items():
            children.write(child, body, children.find(child))

    def remove(self, id_: Id) -> None:
        """Take a resource, with its children, out of the store."""
        for kind, children in self.children.items():
            for child, _ in self.children_of(id_, kind):
                children.remove(child)
        self.store.delete(self.kind, id_.key)
        self.deleted(id_)

    def _common(self, id_: Id, body: ResourceBody, before: Document | None) -> Document:
        location = location_of(body.location)
        if before is not None and before["location"] != location:
            message = (
                f"The resource '{id_.name}' already exists in location '{before['location']}' in resource group "
                f"'{id_.group}'. A resource with the same name cannot be created in location '{location}'. Please "
                "select a new resource name."
            )
            raise refused(409, "InvalidResourceLocation", message)
        check_tags(body.tags or {})
        common: Document = {"location": location}
        if body.tags is not None:
            common["tags"] = body.tags
        if body.zones is not None:
            common["zones"] = body.zones
        if body.sku is not None:
            common["sku"] = body.sku.fields()
        return common

    def _check_quota(self, id_: Id, location: str) -> None:
        if self.quota and not self.child:
            here = [each for _, each in self.all(f"/subscriptions/{id_.subscription}/".lower())]
            used = sum(1 for each in here if each["location"] == location)
            self.context.quotas.check(self.quota, used, location)

    def _touch_parent(self, id_: Id) -> None:
        parent = self.store.get(self.collection, id_.root_key)
        if parent is not None:
            self.store.put(self.collection, id_.root_key, parent | {"etag": _etag()})

    def _set_state(self, id_: Id, document: Document, state: str) -> None:
        properties = document["properties"] | {"provisioningState": state}
        self.store.put(self.kind, id_.key, document | {"properties": properties, "etag": _etag()})

    def _missing(self, id_: Id) -> Refusal:
        if self.child and self.store.get(self.collection, id_.root_key) is not None:
            return refused(404, "NotFound", f"Resource {id_} not found.", details=[])
        return not_found(self.collection, id_.name, id_.group)

    def _finish_put(self, operation: Operation) -> Document | None:
        id_ = Id.parse(operation.target)
        document = self.find(id_) if id_ else None
        if id_ is None or document is None:
            return None  # its resource group was deleted meanwhile
        self._set_state(id_, document, "Succeeded")
        for kind, children in self.children.items():
            for child, each in self.children_of(id_, kind):
                if each["properties"]["provisioningState"] == "Updating":
                    children._set_state(child, each, "Succeeded")  # noqa: SLF001 - of its own class
        self.done(id_)
        return None

    def _finish_delete(self, operation: Operation) -> Document | None:
        id_ = Id.parse(operation.target)
        document = self.find(id_) if id_ else None
        if id_ is None or document is None:
            return None
        users = self.users(id_)
        if users:
            self._set_state(id_, document, "Failed")
            return failed(*self.in_use(id_, users[0]))
        self.remove(id_)
        if self.child:
            self._touch_parent(id_)
        return None


def referring(
    context: Context, kind: str, member: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]], id_: Id
) -> list[str]:
    """The ids of resources whose properties refer to one; `member` finds the references in the properties."""
    return [
        str(document["id"])
        for _, document in context.store.list(kind)
        if any(reference["id"].lower() == id_.key for reference in member(document["properties"]))
    ]


def _etag() -> str:
    return f'W/"{uuid.uuid4()}"'


def _check_match(call: Call, before: Document | None) -> None:
    """https://learn.microsoft.com/rest/api/virtualnetwork: `etag` changes whenever a resource is updated."""
    wanted = call.headers.get("if-match")
    differs = wanted not in (None, "*") and (before is None or before["etag"] != wanted)
    if differs or (call.headers.get("if-none-match") == "*" and before is not None):
        raise refused(412, "PreconditionFailed", "Precondition failed.", details=[])
