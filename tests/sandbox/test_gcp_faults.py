"""Compute Engine's operations as the proxy in front of it names them."""

import json

import pytest
from starlette.responses import Response

from sandbox.faults import Call, FaultKind
from sandbox.gcp.faults import ComputeEngine

GCP = ComputeEngine()


def call(method: str, path: str, body: str = "") -> Call:
    return Call(method, f"/compute/v1/projects/p/{path}", {}, body.encode())


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("GET", "global/networks", "networks.list"),
        ("GET", "global/networks?filter=name%3Da", "networks.list"),
        ("POST", "global/networks?requestId=1", "networks.insert"),
        ("GET", "global/networks/n", "networks.get"),
        ("DELETE", "global/networks/n", "networks.delete"),
        ("POST", "global/networks/n/addPeering", "networks.addPeering"),
        ("PATCH", "regions/r/routers/a", "routers.patch"),
        ("PUT", "regions/r/routers/a", "routers.update"),
        ("GET", "aggregated/subnetworks", "subnetworks.aggregatedList"),
        ("POST", "global/operations/o/wait", "globalOperations.wait"),
        ("GET", "regions/r/operations/o", "regionOperations.get"),
        ("GET", "zones/z/operations/o", "zoneOperations.get"),
        ("GET", "global/addresses", "globalAddresses.list"),
        ("GET", "regions/r/addresses", "addresses.list"),
    ],
)
def test_operations_are_named_as_in_the_reference(method: str, path: str, operation: str) -> None:
    assert GCP.operation(call(method, path)) == operation


@pytest.mark.parametrize(
    ("asked", "status", "answer"),
    [
        (call("GET", "global/networks"), 200, {"items": []}),
        (call("GET", "aggregated/routers"), 200, {"items": {}}),
        (call("GET", "global/networks/n"), 404, "projects/p/global/networks/n"),
        (call("POST", "global/networks/n/addPeering"), 404, "projects/p/global/networks/n"),
        (call("POST", "regions/r/routers", '{"network": "global/networks/n"}'), 404, "global/networks/n"),
    ],
)
def test_what_is_not_visible_yet_is_not_found_as_gcp_says_it(asked: Call, status: int, answer: object) -> None:
    blinded = GCP.blinded(asked)
    assert isinstance(blinded, Response)
    assert blinded.status_code == status
    body = json.loads(bytes(blinded.body))
    assert body == answer if status == 200 else f"'{answer}'" in body["error"]["message"]


def test_what_names_nothing_is_passed_on() -> None:
    asked = call("POST", "global/networks", '{"name": "n"}')
    assert GCP.blinded(asked) is asked


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        (FaultKind.THROTTLE, 403, "rateLimitExceeded"),
        (FaultKind.FORBIDDEN, 403, "forbidden"),
        (FaultKind.QUOTA, 403, "quotaExceeded"),
        (FaultKind.ERROR_BEFORE, 503, "backendError"),
        (FaultKind.ERROR_AFTER, 503, "backendError"),
    ],
)
def test_errors_have_gcps_shape(kind: FaultKind, status: int, reason: str) -> None:
    answer = GCP.error(kind, "networks.insert")
    assert answer.status_code == status
    assert json.loads(bytes(answer.body))["error"]["errors"][0]["reason"] == reason
