"""Resource groups, and the list of what is in them.

https://learn.microsoft.com/rest/api/resources/resource-groups and
https://learn.microsoft.com/azure/azure-resource-manager/management/delete-resource-group: a deletion takes everything
in the group with it, whoever made it, except what something outside uses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from sandbox.azure.bodies import Group, GroupPatch, parse
from sandbox.azure.errors import failed, group_not_found, refused
from sandbox.azure.ids import Id, check_group_name, check_tags, location_of
from sandbox.azure.lists import page, passes
from sandbox.azure.resources import GROUPS, Context, Resources, group_key
from sandbox.clouds import Answer, Call, Document, Operation

__all__ = ["Groups"]

_DELETE = "resourceGroups.delete"


class Groups:
    """`resourceGroups` and `resources`.

    Args:
        context: As for every kind of resource.
        kinds: All kinds of resources that a group may hold, by type.
    """

    def __init__(self, context: Context, kinds: Mapping[str, Resources]) -> None:
        self._context = context
        self._store = context.store
        self._kinds = kinds
        context.cloud.finishers[_DELETE] = self._finish_delete

    def get(self, call: Call) -> Answer:
        """Get."""
        return Answer(self._found(call))

    def exists(self, call: Call) -> Answer:
        """`checkExistence`: 204 or 404, without a body."""
        return Answer(None, 204 if self._stored(call) else 404)

    def list_page(self, call: Call) -> Answer:
        """List, with a `$filter` on tags."""
        test = passes(call)
        groups = self._store.list(GROUPS, f"/subscriptions/{call.at['subscription']}/".lower())
        return page(call, [group for _, group in groups if test(group)])

    def put(self, call: Call) -> Answer:
        """Create or update, at once."""
        name, subscription = call.at["group"], call.at["subscription"]
        check_group_name(name)
        body, before = parse(Group, call.content), self._stored(call)
        location = location_of(body.location)
        check_tags(body.tags)
        if before is not None and before["properties"]["provisioningState"] == "Deleting":
            message = f"The resource group '{name}' is in deprovisioning state and cannot perform this operation."
            raise refused(409, "ResourceGroupBeingDeleted", message)
        if before is not None and before["location"] != location:
            message = (
                f"Invalid resource group location '{location}'. The Resource group already exists in location "
                f"'{before['location']}'."
            )
            raise refused(409, "InvalidResourceGroupLocation", message)
        group: Document = {
            "id": f"/subscriptions/{subscription}/resourceGroups/{name}",
            "name": name,
            "type": "Microsoft.Resources/resourceGroups",
            "location": location,
            "tags": body.tags,
            "properties": {"provisioningState": "Succeeded"},
        }
        self._store.put(GROUPS, group_key(subscription, name), group)
        if before is None:
            self._context.cloud.hide(GROUPS, group_key(subscription, name))
        return Answer(group, 200 if before else 201)

    def patch(self, call: Call) -> Answer:
        """Update: the tags given replace all."""
        group, body = self._found(call), parse(GroupPatch, call.content)
        if body.tags is not None:
            check_tags(body.tags)
            group = group | {"tags": body.tags}
        self._put(group)
        return Answer(group)

    def delete(self, call: Call) -> Answer:
        """Delete, with all that is inside."""
        group = self._found(call)
        if group["properties"]["provisioningState"] != "Deleting":
            self._put(group | {"properties": {"provisioningState": "Deleting"}})
        headers = self._context.operations.start_on_group(call, _DELETE, group["id"], {})
        return Answer(None, 202, headers)

    def list_resources(self, call: Call) -> Answer:
        """`resources`, of a group or a subscription, with a `$filter`."""
        test, subscription = passes(call), call.at["subscription"]
        prefix = f"/subscriptions/{subscription}/"
        if "group" in call.at:
            self._found(call)
            prefix = f"{group_key(subscription, call.at['group'])}/"
        with_state = "provisioningstate" in call.query.get("$expand", "").lower()
        found = [
            _as_listed(document, with_state=with_state)
            for kind in self._kinds.values()
            for document in kind.seen(prefix.lower())
        ]
        return page(call, [document for document in found if test(document)])

    def _stored(self, call: Call) -> Document | None:
        return self._store.get(GROUPS, group_key(call.at["subscription"], call.at["group"]))

    def _found(self, call: Call) -> Document:
        group = self._stored(call)
        key = group_key(call.at["subscription"], call.at["group"])
        if group is None or not self._context.cloud.visible(GROUPS, key):
            raise group_not_found(call.at["group"])
        return group

    def _put(self, group: Document) -> None:
        self._store.put(GROUPS, group["id"].lower(), group)

    def _finish_delete(self, operation: Operation) -> Document | None:
        key = operation.target.lower()
        group = self._store.get(GROUPS, key)
        if group is None:
            return None
        stuck = self._remove_contents(f"{key}/")
        if not stuck:
            self._store.delete(GROUPS, key)
            return None
        self._put(group | {"properties": {"provisioningState": "Succeeded"}})
        names = ",".join(f"Microsoft.Network/{id_.type}/{id_.name}" for id_, _ in stuck)
        message = (
            f"Deletion of resource group '{group['name']}' failed as resources with identifiers '{names}' could not be "
            "deleted. The provisioning state of the resource group will be rolled back. The tracking Id is "
            f"'{operation.name[:36]}'. Please check audit logs for more details."
        )
        details = [
            {"code": None, "target": str(id_), "message": json.dumps({"error": failed(*why, [])})} for id_, why in stuck
        ]
        return failed("ResourceGroupDeletionBlocked", message, details)

    def _remove_contents(self, prefix: str) -> list[tuple[Id, tuple[str, str]]]:
        """Remove what nothing uses, again and again; what is left, and why."""
        while True:
            removed, stuck = 0, []
            for kind in self._kinds.values():
                for id_, _ in kind.all(prefix):
                    users = kind.users(id_)
                    if users:
                        stuck.append((id_, kind.in_use(id_, users[0])))
                    else:
                        kind.remove(id_)
                        removed += 1
            if not (removed and stuck):
                return stuck


def _as_listed(document: Document, *, with_state: bool) -> Document:
    listed = {
        name: document[name] for name in ("id", "name", "type", "location", "tags", "sku", "zones") if name in document
    }
    state = document["properties"]["provisioningState"]
    return listed | ({"provisioningState": state} if with_state else {})
