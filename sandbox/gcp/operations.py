"""Operations as Compute Engine shows them.

https://cloud.google.com/compute/docs/api/how-tos/api-requests-responses#handling_api_responses and
https://cloud.google.com/compute/docs/reference/rest/v1/globalOperations: PENDING, RUNNING, DONE; `wait` answers when
the operation is done or after two minutes; errors are inside; a repeated `requestId` gives the first one's operation.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from sandbox.clouds import Answer, Call, Cloud, Document, Later, Operation
from sandbox.gcp.catalog import ZONES
from sandbox.gcp.errors import invalid, not_found, refused
from sandbox.gcp.lists import aggregated_answer, list_answer
from sandbox.gcp.names import Place, link, new_id, timestamp

__all__ = ["OperationsApi"]

_REQUESTS = "requests"
_WAIT = 120.0
_UUID = re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_KIND = "compute#operation"
_USER = "sandbox@example.com"


class OperationsApi:
    """Starts operations, and answers the calls about them."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def start(self, call: Call, place: Place, verb: str, target: str, inputs: Document) -> Answer:
        """Begin an operation.

        Args:
            call: The call that asked for it.
            place: Where the operation is.
            verb: Collection and method, such as `networks.insert`.
            target: The path of the resource.
            inputs: What the finisher needs; `targetId` is shown.
        """
        stamp = int(self._cloud.now() * 1000)
        name = f"operation-{stamp}-{secrets.token_hex(6)}-{secrets.token_hex(4)}-{secrets.token_hex(4)}"
        request_id = call.query.get("requestId")
        shown = {"id": new_id(), "project": place.project, "scope": place.scope, "requestId": request_id}
        operation = self._cloud.start(verb, target, {**inputs, "_shown": shown}, name=name)
        if request_id:
            self._cloud.store.put(_REQUESTS, f"{place.project}/{request_id}", {"operation": name})
        return Answer(self._view(operation))

    def replay(self, call: Call) -> Answer | None:
        """The answer that an earlier call with the same `requestId` got, or None.

        Raises:
            Refusal: the id is no UUID, or the zero one.
        """
        request_id = call.query.get("requestId")
        if not request_id:
            return None
        if not _UUID.fullmatch(request_id) or not request_id.strip("0-"):
            raise invalid("requestId", request_id, "Must be a valid UUID other than the zero UUID.")
        known = self._cloud.store.get(_REQUESTS, f"{call.at['project']}/{request_id}")
        operation = self._cloud.operations.get(known["operation"]) if known else None
        return Answer(self._view(operation)) if operation else None

    def get(self, call: Call) -> Answer:
        """`get` of global, region and zone operations."""
        return Answer(self._view(self._find(call)))

    def wait(self, call: Call) -> Answer:
        """`wait`: when it is done, or after two minutes as it is then."""
        operation = self._find(call)
        now = self._cloud.now()
        if not operation.done and now < call.received + _WAIT:
            raise Later(min(operation.due, call.received + _WAIT))
        return Answer(self._view(operation))

    def delete(self, call: Call) -> Answer:
        """`delete`: it is forgotten; only once it is done."""
        operation = self._find(call)
        if not operation.done:
            raise refused(400, "resourceNotReady", f"The resource '{_path(operation)}' is not ready")
        self._cloud.operations.delete(operation.name)
        return Answer({})

    def list_page(self, call: Call) -> Answer:
        """`list` of global, region and zone operations."""
        place = _place(call)
        documents = [document for document, scope in self._all(place.project) if scope == place.scope]
        return list_answer(call, _KIND, place.prefix("operations").rstrip("/"), documents)

    def aggregated(self, call: Call) -> Answer:
        """`globalOperations.aggregatedList`: of all scopes."""
        project = call.at["project"]
        documents = [document for document, _ in self._all(project)]
        regions = [f"regions/{region}" for region in ZONES]
        zones = [f"zones/{region}-{letter}" for region, letters in ZONES.items() for letter in letters]
        path = f"projects/{project}/aggregated/operations"
        return aggregated_answer(call, _KIND, path, "operations", documents, ["global", *regions, *zones])

    def _find(self, call: Call) -> Operation:
        place = _place(call)
        operation = self._cloud.operations.get(call.at["name"])
        if operation is None or (operation.inputs["_shown"]["project"], operation.inputs["_shown"]["scope"]) != (
            place.project,
            place.scope,
        ):
            raise not_found(place.path("operations", call.at["name"]))
        return operation

    def _all(self, project: str) -> Sequence[tuple[Document, str]]:
        return [
            (self._view(operation), operation.inputs["_shown"]["scope"])
            for operation in self._cloud.operations.all()
            if operation.inputs["_shown"]["project"] == project
        ]

    def _view(self, operation: Operation) -> Document:
        shown = operation.inputs["_shown"]
        view: Document = {
            "kind": _KIND,
            "id": shown["id"],
            "name": operation.name,
            "operationType": operation.verb.partition(".")[2],
            "targetLink": link(operation.target),
            "user": _USER,
            "insertTime": timestamp(operation.started),
            "startTime": timestamp(operation.started),
            "selfLink": link(_path(operation)),
            **self._progress(operation),
        }
        if operation.inputs.get("targetId"):
            view["targetId"] = operation.inputs["targetId"]
        if shown["requestId"]:
            view["clientOperationId"] = shown["requestId"]
        scope, _, _ = shown["scope"].partition("/")
        if scope != "global":
            view[scope.removesuffix("s")] = link(f"projects/{shown['project']}/{shown['scope']}")
        return view

    def _progress(self, operation: Operation) -> Document:
        if operation.done:
            ended: Document = {"status": "DONE", "progress": 100, "endTime": timestamp(operation.due)}
            if operation.error is not None:
                error = dict(operation.error)
                ended |= {"error": {"errors": error.pop("errors")}, **error}
            return ended
        span = operation.due - operation.started
        share = (self._cloud.now() - operation.started) / span if span else 1
        # The first tenth of its time an operation waits.
        if share < 0.1:
            return {"status": "PENDING", "progress": 0}
        return {"status": "RUNNING", "progress": min(int(share * 100), 99)}


def _path(operation: Operation) -> str:
    shown = operation.inputs["_shown"]
    return Place(shown["project"], shown["scope"]).path("operations", operation.name)


def _place(call: Call) -> Place:
    for scope in ("region", "zone"):
        if scope in call.at:
            return Place(call.at["project"], f"{scope}s/{call.at[scope]}")
    return Place(call.at["project"], "global")
