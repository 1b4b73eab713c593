"""The status of a Shoot, as gardenlet writes it (gardener, `pkg/gardenlet/controller/shoot`)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sandbox.garden import rules
from sandbox.kube import Object, lookup

STATUS_LABEL = "shoot.gardener.cloud/status"
FINALIZER = "gardener"
SEED = "sandbox"
# `HasNonRetryableErrorCode`
_NOT_RETRIED = {
    "ERR_INFRA_UNAUTHENTICATED",
    "ERR_INFRA_UNAUTHORIZED",
    "ERR_INFRA_DEPENDENCIES",
    "ERR_INFRA_QUOTA_EXCEEDED",
    "ERR_INFRA_RATE_LIMITS_EXCEEDED",
    "ERR_CONFIGURATION_PROBLEM",
    "ERR_PROBLEMATIC_WEBHOOK",
}
_GARDENER = {"id": "sandbox", "name": "gardenlet-sandbox", "version": "v1.150.0"}
_CONDITIONS = {
    "APIServerAvailable": (
        "HealthzRequestSucceeded",
        "API server /healthz endpoint responded with success status code.",
    ),
    "ControlPlaneHealthy": ("ControlPlaneRunning", "All control plane components are healthy."),
    "ObservabilityComponentsHealthy": ("ObservabilityComponentsRunning", "All observability components are healthy."),
    "EveryNodeReady": ("EveryNodeReady", "All nodes are ready."),
    "SystemComponentsHealthy": ("SystemComponentsRunning", "All system components are healthy."),
}


def now() -> str:
    """The present time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def operation_type(shoot: Object) -> str:
    """Create until that has once succeeded, then Reconcile; Delete when it is to go (`ComputeOperationType`)."""
    last = lookup(shoot, "status.lastOperation")
    if shoot["metadata"].get("deletionTimestamp"):
        return "Delete"
    if not last or (last["type"] == "Create" and last["state"] != "Succeeded"):
        return "Create"
    return "Reconcile"


def is_due(shoot: Object) -> bool:
    """Whether the shoot has an operation before it, or in it."""
    status = shoot.get("status") or {}
    last = status.get("lastOperation")
    if not last or status.get("observedGeneration") != shoot["metadata"]["generation"]:
        return True
    if last["state"] == "Failed":
        return False
    return last["state"] != "Succeeded" or bool(shoot["metadata"].get("deletionTimestamp"))


def is_forced(shoot: Object) -> bool:
    """Whether the shoot is to be given up without a look at the cloud."""
    annotations = shoot["metadata"].get("annotations") or {}
    return rules.is_true(annotations.get(rules.FORCE_DELETION))


def begin(shoot: Object) -> None:
    """An operation starts on the present generation."""
    meta = shoot["metadata"]
    kind = operation_type(shoot)
    if kind != "Delete" and FINALIZER not in (meta.get("finalizers") or []):
        meta["finalizers"] = [*(meta.get("finalizers") or []), FINALIZER]
    shoot["spec"].setdefault("seedName", SEED)
    status = shoot.setdefault("status", {})
    status.setdefault("uid", str(uuid.uuid4()))
    status.setdefault("retryCycleStartTime", now())
    status |= {"gardener": _GARDENER, "seedName": SEED, "hibernated": False, "observedGeneration": meta["generation"]}
    starting = "Reconciliation of Shoot cluster initialized."
    description = "Deletion of Shoot cluster in progress." if kind == "Delete" else starting
    status["lastOperation"] = _operation(kind, "Processing", 0, description)
    label(shoot)


def advance(shoot: Object, progress: int, description: str) -> None:
    """The operation has come further; `progress` is in per cent."""
    kind = shoot["status"]["lastOperation"]["type"]
    shoot["status"]["lastOperation"] = _operation(kind, "Processing", progress, description)


def fail(shoot: Object, task: str, message: str, codes: Sequence[str]) -> bool:
    """The operation has failed; tells whether it will be tried again without being asked."""
    status = shoot["status"]
    final = bool(_NOT_RETRIED.intersection(codes))
    text = f'task "{task}" failed: {message}'
    status["lastErrors"] = [
        {"taskID": task, "description": text, "lastUpdateTime": now()} | ({"codes": list(codes)} if codes else {})
    ]
    kind, progress = status["lastOperation"]["type"], status["lastOperation"]["progress"]
    flow = "deletion" if kind == "Delete" else "reconciliation"
    description = f'Flow "Shoot cluster {flow}" encountered task errors: [{text}]'
    if final:
        status.pop("retryCycleStartTime", None)
    else:
        description += " Operation will be retried."
    status["lastOperation"] = _operation(kind, "Failed" if final else "Error", progress, description)
    label(shoot)
    return not final


def succeed(shoot: Object, egress: Sequence[str], api_server: str) -> None:
    """The cluster is as its spec wants it."""
    status, networking = shoot["status"], shoot["spec"]["networking"]
    status.pop("lastErrors", None)
    status.pop("retryCycleStartTime", None)
    status["networking"] = {
        field: [networking[field]] for field in ("nodes", "pods", "services") if networking.get(field)
    } | ({"egressCIDRs": list(egress)} if egress else {})
    status["advertisedAddresses"] = [{"name": name, "url": api_server} for name in ("external", "internal")]
    _set_conditions(status)
    kind = status["lastOperation"]["type"]
    description = "Shoot cluster has been successfully reconciled."
    status["lastOperation"] = _operation(kind, "Succeeded", 100, description)
    label(shoot)


def end(shoot: Object) -> None:
    """Nothing is left of the cluster."""
    shoot["status"].pop("lastErrors", None)
    description = "Shoot cluster has been successfully deleted."
    shoot["status"]["lastOperation"] = _operation("Delete", "Succeeded", 100, description)


def label(shoot: Object) -> None:
    """The label by which shoots are found that need somebody (`ComputeStatus`)."""
    state = shoot["status"]["lastOperation"]["state"]
    errors = bool(shoot["status"].get("lastErrors"))
    if state == "Succeeded":
        value = "healthy"
    elif errors or state in ("Error", "Failed"):
        value = "unhealthy"
    else:
        value = "progressing" if not lookup(shoot, "status.conditions") else "healthy"
    shoot["metadata"]["labels"] = {**(shoot["metadata"].get("labels") or {}), STATUS_LABEL: value}


def _operation(kind: str, state: str, progress: int, description: str) -> dict[str, Any]:
    return {
        "type": kind,
        "state": state,
        "progress": progress,
        "description": description,
        "lastUpdateTime": now(),
    }


def _set_conditions(status: Object) -> None:
    before = {each["type"]: each for each in status.get("conditions") or []}
    conditions = []
    for kind, (reason, message) in _CONDITIONS.items():
        old = before.get(kind, {})
        since = old["lastTransitionTime"] if old.get("status") == "True" else now()
        conditions.append(
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": since,
                "lastUpdateTime": now(),
            }
        )
    status["conditions"] = conditions
