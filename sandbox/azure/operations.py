"""Asynchronous operations as Azure Resource Manager shows them.

https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations: a write answers 200 or 201 with
`Azure-AsyncOperation`, a deletion 202 with `Location` too; `Retry-After` says when to look again.
"""

from __future__ import annotations

import secrets
import uuid

from sandbox.azure.errors import refused
from sandbox.azure.identity import base_url
from sandbox.azure.ids import Id
from sandbox.clouds import Answer, Call, Cloud, Document, Operation

__all__ = ["OperationsApi"]


class OperationsApi:
    """Starts operations, and answers the calls about them."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def start(self, call: Call, verb: str, target: Id, location: str, inputs: Document) -> dict[str, str]:
        """Begin an operation on a resource; gives the headers that tell of it.

        Args:
            call: The call that asked for it.
            verb: Kind and method, such as `virtualNetworks.put`.
            target: The resource, or a child of one: no other operation may touch either meanwhile.
            location: Where the resource is.
            inputs: What the finisher needs.
        """
        place = f"/subscriptions/{target.subscription}/providers/Microsoft.Network/locations/{location}"
        more = {"root": target.root_key, "subscription": target.subscription.lower(), "place": place}
        operation = self._cloud.start(verb, str(target), inputs | more, name=str(uuid.uuid4()))
        base, version = base_url(call), call.query["api-version"]
        headers = {"Azure-AsyncOperation": f"{base}{self._path(operation)}?api-version={version}"}
        if verb.endswith(".delete"):
            headers["Location"] = f"{base}{place}/operationResults/{operation.name}?api-version={version}"
        return headers | self._retry_after(operation)

    def start_on_group(self, call: Call, verb: str, group: str, inputs: Document) -> dict[str, str]:
        """The same on a resource group, whose deletion is told by `Location` alone."""
        subscription = call.at["subscription"]
        more = {"root": group.lower(), "subscription": subscription.lower()}
        operation = self._cloud.start(verb, group, inputs | more, name=secrets.token_hex(20).upper())
        place = f"{base_url(call)}/subscriptions/{subscription}/operationresults/{operation.name}"
        return {"Location": f"{place}?api-version={call.query['api-version']}"} | self._retry_after(operation)

    def refuse_busy(self, target: Id) -> None:
        """Refuses a write on a resource while an operation on it, or on a child of it, runs.

        https://github.com/Azure/terraform-provider-azapi/issues/503 shows it for the subnets of one network.
        """
        for operation in self._cloud.operations.running():
            if operation.inputs["root"] == target.root_key:
                message = (
                    "Another operation on this or dependent resource is in progress. To retrieve status of the "
                    f"operation use uri: https://management.azure.com{self._path(operation)}?api-version=2024-05-01."
                )
                raise refused(409, "AnotherOperationInProgress", message, details=[])

    def status(self, call: Call) -> Answer:
        """How far an operation is."""
        operation = self._find(call)
        if not operation.done:
            return Answer({"status": "InProgress"}, headers=self._retry_after(operation))
        if operation.error is not None:
            return Answer({"status": "Failed", "error": operation.error})
        return Answer({"status": "Succeeded"})

    def result(self, call: Call) -> Answer:
        """What came of an operation: 202 until it is done."""
        operation = self._find(call)
        if not operation.done:
            path = f"{base_url(call)}{call.path}?api-version={call.query['api-version']}"
            return Answer(None, 202, {"Location": path} | self._retry_after(operation))
        if operation.error is not None:
            return Answer({"error": operation.error}, 409)
        return Answer(None, 200)

    def _find(self, call: Call) -> Operation:
        operation = self._cloud.operations.get(call.at["operation"])
        if operation is None or operation.inputs["subscription"] != call.at["subscription"].lower():
            message = f"The operation '{call.at['operation']}' could not be found."
            raise refused(404, "OperationNotFound", message)
        return operation

    def _path(self, operation: Operation) -> str:
        return f"{operation.inputs.get('place', '')}/operations/{operation.name}"

    def _retry_after(self, operation: Operation) -> dict[str, str]:
        """Whole seconds, as HTTP has it; left out where it is a matter of less."""
        seconds = int(operation.due - self._cloud.now())
        return {"Retry-After": str(seconds)} if seconds > 0 else {}
