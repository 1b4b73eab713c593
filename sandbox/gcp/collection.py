"""What all collections of resources have in common: get, list, insert, delete, patch, and the life of a resource.

A resource is stored as it is shown, plus members that begin with `_`. `_busy` names the operation that works on it:
until that is done, whatever needs the resource is refused with `resourceNotReady`
(https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-apis).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sandbox.clouds import Answer, Call, Cloud, Document, Operation
from sandbox.gcp.bodies import Resource, parse
from sandbox.gcp.catalog import ZONES, check_region, check_zone
from sandbox.gcp.errors import already_exists, failed, in_use, not_found, not_ready, refused, required
from sandbox.gcp.lists import aggregated_answer, list_answer
from sandbox.gcp.names import Place, link, new_id, place_of, short, timestamp, valid_name
from sandbox.gcp.operations import OperationsApi
from sandbox.gcp.quotas import Quotas

__all__ = ["Collection", "Context"]


class Context:
    """What every collection works with."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.store = cloud.store
        self.operations = OperationsApi(cloud)
        self.quotas = Quotas(cloud.store, lambda: cloud.settings.quotas)

    def find(self, path: str) -> Document:
        """The stored resource that a request refers to.

        Raises:
            Refusal: there is none.
        """
        found = self.store.get(path.rsplit("/", 2)[-2], path)
        if found is None:
            raise not_found(path)
        return found

    def ready(self, path: str) -> Document:
        """The same, which no operation may be working on.

        Raises:
            Refusal: one does, or there is no such resource.
        """
        found = self.find(path)
        if "_busy" in found:
            raise not_ready(path)
        return found


class Collection:
    """One collection. Subclasses say what differs.

    Attributes:
        name: As in URLs and in the store.
        noun: The singular, as in messages and kinds.
        body: The model of a resource in requests.
        scope: `global`, `regions` or `zones`.
        changes: The methods that change a resource; they take effect when their operations end.
        refuses_deletion_at_once: Whether a deletion of something in use is refused, or fails later in its operation.
    """

    name: ClassVar[str]
    noun: ClassVar[str]
    scope: ClassVar[str]
    body: ClassVar[type[Resource]]
    changes: ClassVar[tuple[str, ...]] = ("patch",)
    refuses_deletion_at_once: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        self.context = context
        self.store = context.store
        context.cloud.finishers |= {
            f"{self.name}.insert": self._finish_insert,
            f"{self.name}.delete": self._finish_delete,
        } | {f"{self.name}.{change}": self._finish_change for change in self.changes}

    # What subclasses say.

    def build(self, path: str, body: Any) -> Document:
        """The new resource, without what all have; refuses what cannot be at once."""
        raise NotImplementedError

    def shortage(self, path: str, document: Document) -> Document | None:
        """The error with which the insertion fails later, such as a quota's."""
        del path, document
        return None

    def inserted(self, path: str, document: Document) -> None:
        """Called when an insertion is done."""

    def deleted(self, path: str, document: Document) -> None:
        """Called when a deletion is done."""

    def users(self, path: str, document: Document) -> Sequence[str]:
        """The paths of what keeps a resource from being deleted."""
        del path, document
        return ()

    def show(self, path: str, document: Document) -> Document:
        """What a client sees."""
        del path
        return {name: value for name, value in document.items() if not name.startswith("_")}

    def inputs(self, path: str, document: Document) -> Document:
        """What else the operations on a resource keep, such as the networks they touch."""
        del path, document
        return {}

    # The methods of the API.

    def get(self, call: Call) -> Answer:
        """`get`."""
        path = self.path(call)
        document = self.context.find(path)
        if not self.context.cloud.visible(self.name, path):
            raise not_found(path)
        return Answer(self.show(path, document))

    def list_page(self, call: Call) -> Answer:
        """`list`."""
        place = self.place(call)
        own = place.prefix(self.name).rstrip("/")
        return list_answer(call, f"compute#{self.noun}", own, self.seen(place.prefix(self.name)))

    def aggregated(self, call: Call) -> Answer:
        """`aggregatedList`."""
        project = call.at["project"]
        documents = self.seen(f"projects/{project}/")
        scopes = [f"regions/{region}" for region in ZONES]
        if self.scope == "zones":
            scopes = [f"zones/{region}-{letter}" for region, letters in ZONES.items() for letter in letters]
        path = f"projects/{project}/aggregated/{self.name}"
        return aggregated_answer(call, f"compute#{self.noun}", path, self.name, documents, scopes)

    def insert(self, call: Call) -> Answer:
        """`insert`: the resource is there at once, and busy until the operation is done."""
        place = self.place(call)
        replay = self.context.operations.replay(call)
        if replay:
            return replay
        body = parse(self.body, call.content)
        if not body.name:
            raise required("resource.name")
        path = place.path(self.name, valid_name("resource.name", body.name))
        if self.store.get(self.name, path) is not None:
            raise already_exists(path)
        document = self._common(path, body) | self.build(path, body)
        shortage = self.shortage(path, document)
        if shortage is not None:
            return self.start(call, path, "insert", {"failure": shortage})
        answer = self.start(call, path, "insert", self.inputs(path, document), document)
        self.context.cloud.hide(self.name, path)
        return answer

    def delete(self, call: Call) -> Answer:
        """`delete`."""
        replay = self.context.operations.replay(call)
        if replay:
            return replay
        path = self.path(call)
        document = self.context.ready(path)
        users = self.users(path, document) if self.refuses_deletion_at_once else ()
        if users:
            raise refused(400, "resourceInUseByAnotherResource", in_use(self.noun, path, users[0]))
        return self.start(call, path, "delete", self.inputs(path, document), document)

    def change(self, call: Call, change: Callable[[str, Document], Document], verb: str = "patch") -> Answer:
        """A method that changes a resource: `change` gives the new members, which count when the operation is done."""
        replay = self.context.operations.replay(call)
        if replay:
            return replay
        path = self.path(call)
        document = self.context.ready(path)
        changes = change(path, document)
        return self.start(call, path, verb, self.inputs(path, document) | {"changes": changes}, document)

    # For subclasses.

    def start(self, call: Call, path: str, method: str, inputs: Document, document: Document | None = None) -> Answer:
        """Begin an operation on a resource, which is busy meanwhile."""
        more = {"targetId": document["id"]} if document else {"targetId": new_id()}
        place = place_of(path)
        answer = self.context.operations.start(call, place, f"{self.name}.{method}", path, inputs | more)
        if document is not None:
            self.store.put(self.name, path, document | {"_busy": answer.document["name"]})
        return answer

    def place(self, call: Call) -> Place:
        """Where a call works; refuses unknown regions and zones."""
        project = call.at["project"]
        if "region" in call.at:
            return Place(project, f"regions/{check_region(call.at['region'])}")
        if "zone" in call.at:
            return Place(project, f"zones/{check_zone(call.at['zone'])}")
        return Place(project, "global")

    def path(self, call: Call) -> str:
        """The resource that a call is about."""
        return self.place(call).path(self.name, call.at["name"])

    def all(self, prefix: str = "") -> Sequence[tuple[str, Document]]:
        """Stored resources whose paths begin so."""
        return self.store.list(self.name, prefix)

    def seen(self, prefix: str) -> list[Document]:
        """Resources as a list shows them."""
        visible = self.context.cloud.visible
        return [self.show(path, document) for path, document in self.all(prefix) if visible(self.name, path)]

    def put(self, path: str, document: Document) -> None:
        """Write a resource that is not busy."""
        self.store.put(self.name, path, {key: value for key, value in document.items() if key != "_busy"})

    def _finish_change(self, operation: Operation) -> Document | None:
        """The end of a change."""
        self.put(operation.target, self.context.find(operation.target) | operation.inputs["changes"])
        return None

    def _finish_insert(self, operation: Operation) -> Document | None:
        failure: Document | None = operation.inputs.get("failure")
        if failure is None:
            document = self.context.find(operation.target)
            self.put(operation.target, document)
            self.inserted(operation.target, document)
        return failure

    def _finish_delete(self, operation: Operation) -> Document | None:
        path = operation.target
        document = self.context.find(path)
        users = self.users(path, document)
        if users:
            self.put(path, document)
            return failed(400, "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", in_use(self.noun, path, users[0]))
        self.store.delete(self.name, path)
        self.deleted(path, document)
        return None

    def _common(self, path: str, body: Resource) -> Document:
        place = place_of(path)
        common: Document = {
            "kind": f"compute#{self.noun}",
            "id": new_id(),
            "creationTimestamp": timestamp(self.context.cloud.now()),
            "name": short(path),
            "selfLink": link(path),
            "selfLinkWithId": "",
        }
        common["selfLinkWithId"] = link(place.path(self.name, common["id"]))
        if body.description:
            common["description"] = body.description
        scope = place.scope.partition("/")[0]
        if scope != "global":
            common[scope.removesuffix("s")] = link(f"projects/{place.project}/{place.scope}")
        return common
