"""What the garden's API server asks of a Shoot by itself (gardener, `pkg/api/core/validation/shoot.go`)."""

from __future__ import annotations

import re
from typing import Any

from sandbox.garden.cidrs import Range, disjoint_problems, reserved_problems
from sandbox.garden.problems import (
    Path,
    Problem,
    duplicate,
    forbidden,
    immutable,
    invalid,
    required,
    unsupported,
)
from sandbox.kube import Object

OPERATION = "gardener.cloud/operation"
CONFIRM_DELETION = "confirmation.gardener.cloud/deletion"
FORCE_DELETION = "confirmation.gardener.cloud/force-deletion"

# `errorCodesAllowingForceDeletion`
_FORCE_CODES = {
    "ERR_CLEANUP_CLUSTER_RESOURCES",
    "ERR_CONFIGURATION_PROBLEM",
    "ERR_INFRA_DEPENDENCIES",
    "ERR_INFRA_UNAUTHENTICATED",
    "ERR_INFRA_UNAUTHORIZED",
}
_OPERATIONS = ("maintain", "reconcile", "retry")
_PURPOSES = ("development", "evaluation", "production", "testing")
_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
_LABEL_DETAIL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', "
    "regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VERSION = re.compile(r"^\d+\.\d+\.\d+$")
_PROJECT_AND_SHOOT = 21
_LABEL_MAX = 63
_WORKER_NAME_MAX = 15
_SPEC = Path("spec")


def is_true(value: Any) -> bool:
    """Whether an annotation says yes, in any of Go's spellings of it."""
    return str(value) in {"1", "t", "T", "true", "TRUE", "True"}


def length_problem(project: str, name: str) -> Problem | None:
    """Project and shoot names end up in the technical id, which has 30 characters (`validateProjectMembership`)."""
    if len(project) + len(name) <= _PROJECT_AND_SHOOT:
        return None
    detail = "the length of the shoot name and the project name must not exceed"
    return invalid("name", name, f"{detail} {_PROJECT_AND_SHOOT} characters (project: {project}; shoot: {name})")


def shoot_problems(shoot: Object) -> list[Problem]:
    """Everything wrong with a Shoot in itself."""
    meta, spec = shoot["metadata"], shoot.get("spec") or {}
    problems = _name_problems(Path("metadata") / "name", meta.get("name", ""))
    if "--" in meta.get("name", ""):
        problems.append(invalid("metadata.name", meta["name"], "name may not contain two consecutive hyphens"))
    problems += operation_problems(shoot)
    problems += _reference_problems(spec)
    problems += _provider_problems(spec.get("provider") or {})
    problems += _version_problems(spec.get("kubernetes") or {})
    problems += networking_problems(spec.get("networking"))
    if (spec.get("hibernation") or {}).get("enabled"):
        # Gardener does hibernate; a refusal is better than a shoot that looks asleep and is not.
        problems.append(
            forbidden(_SPEC / "hibernation" / "enabled", "the seeds of this garden do not hibernate shoots")
        )
    if not spec.get("region"):
        problems.append(required(_SPEC / "region", "must specify a region"))
    purpose = spec.get("purpose")
    if purpose is not None and purpose not in _PURPOSES:
        problems.append(unsupported(_SPEC / "purpose", purpose, _PURPOSES))
    return problems


def creation_problems(shoot: Object) -> list[Problem]:
    """What only a new Shoot must not have."""
    return [
        forbidden(f"metadata.finalizers[{index}]", f'finalizer "{finalizer}" cannot be added on creation')
        for index, finalizer in enumerate(shoot["metadata"].get("finalizers") or [])
        if finalizer == "gardener"
    ]


def operation_problems(shoot: Object) -> list[Problem]:
    """The operation annotation: closed set, and one at a time (`validateShootOperation`)."""
    value = (shoot["metadata"].get("annotations") or {}).get(OPERATION, "")
    path = f"metadata.annotations[{OPERATION}]"
    operations = [operation for operation in value.split(";") if operation]
    for operation in operations:
        if operation not in _OPERATIONS:
            return [unsupported(path, operation, _OPERATIONS)]
        if len(operations) > 1 and operation == "retry":
            detail = f"operation '{operation}' is not permitted to be run in parallel with other operations"
            return [forbidden(path, detail)]
    return []


def _name_problems(path: str, name: str) -> list[Problem]:
    problems = []
    if len(name) > _LABEL_MAX:
        problems.append(invalid(path, name, f"must be no more than {_LABEL_MAX} characters"))
    if not _LABEL.match(name):
        problems.append(invalid(path, name, _LABEL_DETAIL))
    return problems


def _reference_problems(spec: Object) -> list[Problem]:
    problems = []
    profile = spec.get("cloudProfile") or {}
    if not profile.get("name"):
        problems.append(required(_SPEC / "cloudProfile" / "name", "must specify a cloud profile"))
    elif profile.get("kind", "CloudProfile") not in ("CloudProfile", "NamespacedCloudProfile"):
        kinds = ("CloudProfile", "NamespacedCloudProfile")
        problems.append(unsupported(_SPEC / "cloudProfile" / "kind", profile["kind"], kinds))
    secret, credentials = spec.get("secretBindingName"), spec.get("credentialsBindingName")
    path = _SPEC / "secretBindingName"
    if not secret and not credentials:
        problems.append(required(path, "must be set when credentialsBindingName is not"))
    elif secret and credentials:
        problems.append(forbidden(path, "is incompatible with credentialsBindingName"))
    if secret and _minor(spec) >= (1, 34):
        detail = "secretBindingName field is no longer supported, use spec.credentialsBindingName instead"
        problems.append(forbidden(path, f"for Kubernetes versions >= 1.34, {detail}"))
    return problems


def _minor(spec: Object) -> tuple[int, ...]:
    version = str((spec.get("kubernetes") or {}).get("version", ""))
    return tuple(int(part) for part in version.split(".")[:2]) if _VERSION.match(version) else (0, 0)


def _version_problems(kubernetes: Object) -> list[Problem]:
    version = kubernetes.get("version")
    path = _SPEC / "kubernetes" / "version"
    if not version:
        return [required(path, "kubernetes version must not be empty")]
    return [] if _VERSION.match(str(version)) else [invalid(path, version, "must be a valid semantic version")]


def _provider_problems(provider: Object) -> list[Problem]:
    path = _SPEC / "provider"
    problems: list[Problem] = []
    if not provider.get("type"):
        problems.append(required(path / "type", "must specify a provider type"))
    workers = provider.get("workers") or []
    if not workers:
        # The API server knows workerless Shoots; this garden has no use for them.
        problems.append(required(path / "workers", "must specify at least one worker"))
    seen: set[str] = set()
    for index, worker in enumerate(workers):
        at = (path / "workers")[index]
        problems += _worker_problems(at, worker)
        if worker.get("name") in seen:
            problems.append(duplicate(at / "name", worker["name"]))
        seen.add(worker.get("name", ""))
    return problems


def _worker_problems(path: Path, worker: Object) -> list[Problem]:
    name = worker.get("name", "")
    problems = _name_problems(path / "name", name)
    if len(name) > _WORKER_NAME_MAX:
        problems.append(
            Problem(path / "name", "FieldValueTooLong", f"Too long: may not be more than {_WORKER_NAME_MAX} bytes")
        )
    machine = worker.get("machine") or {}
    if not machine.get("type"):
        problems.append(required(path / "machine" / "type", "must specify a machine type"))
    image = machine.get("image")
    if image is None:
        problems.append(required(path / "machine" / "image", "must specify a machine image"))
    else:
        problems += [
            required(path / "machine" / "image" / field, f"must specify a machine image {field}")
            for field in ("name", "version")
            if not image.get(field)
        ]
    return problems + _size_problems(path, worker)


def _size_problems(path: Path, worker: Object) -> list[Problem]:
    problems = []
    least, most = worker.get("minimum", 0), worker.get("maximum", 0)
    for field, value in (("minimum", least), ("maximum", most)):
        if not isinstance(value, int) or isinstance(value, bool):
            return [invalid(path / field, value, "must be an integer")]
        if value < 0:
            problems.append(invalid(path / field, value, f"{field} value must not be negative"))
    if most < least:
        problems.append(forbidden(path / "maximum", "maximum value must not be less than minimum value"))
    if str(worker.get("maxUnavailable", 0)) in ("0", "0%") and str(worker.get("maxSurge", 0)) in ("0", "0%"):
        detail = "may not be 0 when `maxSurge` is 0"
        problems.append(invalid(path / "maxUnavailable", worker.get("maxUnavailable", 0), detail))
    return problems


def networking_problems(networking: Object | None) -> list[Problem]:
    """The three ranges: there, canonical, disjoint, outside of what Gardener keeps (`validateShootNetworks`)."""
    path = _SPEC / "networking"
    if networking is None:
        return [required(path, "networking should not be nil for a Shoot with workers")]
    problems: list[Problem] = []
    if not networking.get("type"):
        problems.append(required(path / "type", "networking type must be provided"))
    families = networking.get("ipFamilies") or ["IPv4"]
    unknown = [family for family in families if family not in ("IPv4", "IPv6")]
    if unknown:
        return [*problems, unsupported((path / "ipFamilies")[0], unknown[0], ("IPv4", "IPv6"))]
    for field, kind in (("nodes", "node"), ("pods", "pod"), ("services", "service")):
        text = networking.get(field)
        if text is None:
            if field != "nodes" and "IPv4" in families:
                problems.append(required(path / field, f"{field} is required"))
            continue
        given = Range(path / field, str(text))
        problems += given.parse_problems()
        if len(families) == 1:
            problems += given.family_problems(families[0])
        problems += reserved_problems(given, kind)
    if "IPv4" in families:
        problems += disjoint_problems(path, *(networking.get(field) for field in ("nodes", "pods", "services")))
    return problems


def update_problems(shoot: Object, old: Object) -> list[Problem]:
    """What may not change any more (`ValidateShootUpdate`)."""
    spec, before = shoot.get("spec") or {}, old.get("spec") or {}
    problems = force_deletion_problems(shoot, old)
    if shoot["metadata"].get("deletionTimestamp") and spec != before:
        return [*problems, forbidden(_SPEC, "cannot update shoot spec if deletion timestamp is set")]
    problems += immutable(_SPEC / "region", spec.get("region"), before.get("region"))
    problems += immutable(_SPEC / "seedName", spec.get("seedName"), before.get("seedName"))
    if before.get("credentialsBindingName") and not spec.get("credentialsBindingName"):
        problems.append(forbidden(_SPEC / "credentialsBindingName", "the field cannot be unset"))
    problems += immutable(
        _SPEC / "provider" / "type",
        (spec.get("provider") or {}).get("type"),
        (before.get("provider") or {}).get("type"),
    )
    now, then = spec.get("networking") or {}, before.get("networking") or {}
    for field in ("type", "pods", "services"):
        if then.get(field) is not None:
            problems += immutable(_SPEC / "networking" / field, now.get(field), then[field])
    problems += _version_update_problems(spec, before)
    return problems


def _version_update_problems(spec: Object, before: Object) -> list[Problem]:
    now, then = (str((each.get("kubernetes") or {}).get("version", "")) for each in (spec, before))
    if not (_VERSION.match(now) and _VERSION.match(then)) or now == then:
        return []
    path = _SPEC / "kubernetes" / "version"
    new, old = (tuple(int(part) for part in version.split(".")) for version in (now, then))
    if new < old:
        return [forbidden(path, "kubernetes version downgrade is not supported")]
    if new[:2] > (old[0], old[1] + 1):
        return [forbidden(path, "kubernetes version upgrade cannot skip a minor version")]
    return []


def force_deletion_problems(shoot: Object, old: Object) -> list[Problem]:
    """When a Shoot may be given up, leaving all it has in the cloud (`ValidateForceDeletion`)."""
    path = f"metadata.annotations[{FORCE_DELETION}]"
    now, then = (is_true((each["metadata"].get("annotations") or {}).get(FORCE_DELETION)) for each in (shoot, old))
    if then and not now:
        return [forbidden(path, "force-deletion annotation cannot be removed once set")]
    if then or not now:
        return []
    problems = []
    if not shoot["metadata"].get("deletionTimestamp"):
        detail = "force-deletion annotation cannot be set when Shoot deletionTimestamp is nil"
        problems.append(forbidden(path, detail))
    codes = {code for error in (shoot.get("status") or {}).get("lastErrors") or [] for code in error.get("codes", [])}
    if not codes & _FORCE_CODES:
        detail = "force-deletion annotation cannot be set when Shoot status does not contain one of these error codes"
        problems.append(forbidden(path, f"{detail}: [{' '.join(sorted(_FORCE_CODES))}]"))
    return problems
