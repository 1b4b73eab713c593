"""The kinds that the garden keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sandbox.kube import AGE, Admission, Column, Object, Resource, denied, lookup
from sandbox.kube.resources import Handler

GARDEN = "garden"
"""The garden's name in the store."""

CLOUD_PROFILES = Resource(
    "core.gardener.cloud",
    "v1beta1",
    "CloudProfile",
    "cloudprofiles",
    namespaced=False,
    short_names=("cprofile", "cpfl"),
    columns=(AGE,),
    status=False,
)
PROJECTS = Resource(
    "core.gardener.cloud",
    "v1beta1",
    "Project",
    "projects",
    namespaced=False,
    columns=(
        Column("Namespace", ".spec.namespace"),
        Column("Status", ".status.phase"),
        Column("Owner", ".spec.owner.name"),
        Column("Creator", ".spec.createdBy.name"),
        AGE,
    ),
)


def _admit_binding(admission: Admission) -> None:
    binding, old = admission.new, admission.old
    if admission.verb == "delete":
        return
    name = binding["metadata"]["name"]
    for path in ("provider.type", "credentialsRef.kind", "credentialsRef.name", "credentialsRef.namespace"):
        if not lookup(binding, path):
            text = f"{path}: Required value: must be set"
            raise denied(422, f'CredentialsBinding.security.gardener.cloud "{name}" is invalid: {text}')
    if old is not None and any(binding.get(field) != old.get(field) for field in ("credentialsRef", "provider")):
        text = f'CredentialsBinding.security.gardener.cloud "{name}" is invalid: credentialsRef: field is immutable'
        raise denied(422, text)


CREDENTIALS_BINDINGS = Resource(
    "security.gardener.cloud",
    "v1alpha1",
    "CredentialsBinding",
    "credentialsbindings",
    columns=(
        Column("Provider", ".provider.type"),
        Column("Credentials-Kind", ".credentialsRef.kind"),
        Column("Credentials", lambda obj: f"{obj['credentialsRef']['namespace']}/{obj['credentialsRef']['name']}"),
        AGE,
    ),
    admit=_admit_binding,
    status=False,
)


def _operation(shoot: Object) -> str:
    last = lookup(shoot, "status.lastOperation")
    return f"{last['type']} {last['state']} ({last['progress']}%)" if last else "<pending>"


def _condition(kind: str) -> Callable[[Object], Any]:
    path = f'status.conditions[?(@.type=="{kind}")].status'
    return lambda shoot: lookup(shoot, path) or "<unknown>"


def _or(path: str, default: str) -> Callable[[Object], Any]:
    return lambda shoot: lookup(shoot, path) or default


SHOOT_COLUMNS = (
    Column("CloudProfile", ".spec.cloudProfile.name"),
    Column("Provider", ".spec.provider.type"),
    Column("Region", ".spec.region"),
    Column("Seed", _or("spec.seedName", "<none>"), priority=1),
    Column("K8S Version", ".spec.kubernetes.version"),
    Column("Hibernation", lambda _: "Awake"),
    Column("Last Operation", _operation),
    Column("Status", _or(r"metadata.labels.shoot\.gardener\.cloud/status", "<pending>")),
    Column("Purpose", _or("spec.purpose", "<none>"), priority=1),
    Column("Gardener Version", _or("status.gardener.version", "<unknown>"), priority=1),
    Column("APIServer", _condition("APIServerAvailable"), priority=1),
    Column("Control", _condition("ControlPlaneHealthy"), priority=1),
    Column("Observability", _condition("ObservabilityComponentsHealthy"), priority=1),
    Column("Nodes", _condition("EveryNodeReady"), priority=1),
    Column("System", _condition("SystemComponentsHealthy"), priority=1),
    AGE,
)
SHOOTS_KEY = "shoots.core.gardener.cloud"


def shoots(admit: Callable[[Admission], None], subresources: Mapping[str, Handler]) -> Resource:
    """Shoots, with whoever admits them and whoever hands out their kubeconfigs."""
    return Resource(
        "core.gardener.cloud",
        "v1beta1",
        "Shoot",
        "shoots",
        columns=SHOOT_COLUMNS,
        admit=admit,
        subresources=subresources,
        fields=(
            "spec.seedName",
            "spec.cloudProfileName",
            "spec.cloudProfile.name",
            "spec.cloudProfile.kind",
            "status.seedName",
            "status.technicalID",
        ),
    )
