"""What happens to a Shoot on its way into the garden: defaults, then everything that may refuse it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.garden import rules
from sandbox.garden.kinds import CLOUD_PROFILES, CREDENTIALS_BINDINGS, GARDEN, PROJECTS
from sandbox.garden.problems import Problem, joined, refuse_forbidden, refuse_invalid
from sandbox.garden.profile_rules import is_active, profile_problems
from sandbox.garden.providers import Provider
from sandbox.garden.shape import shape
from sandbox.kube import Admission, Denied, Object, Store, denied, lookup

TECHNICAL_ID = "shoot--{project}--{name}"


class ShootAdmission:
    """The `admit` hook of Shoots."""

    def __init__(self, store: Store, providers: Mapping[str, Provider]) -> None:
        self._store = store
        self._providers = providers

    def __call__(self, admission: Admission) -> None:
        """Defaults and checks; raises Denied as Gardener's API server, plugins and webhooks do."""
        shoot, old = admission.new, admission.old
        if admission.subresource:
            return
        if admission.verb == "delete":
            _check_confirmation(shoot)
            return
        if old is not None and shoot.get("spec") == old.get("spec") and _same_metadata(shoot, old):
            return
        self._admit(shoot, old)

    def _admit(self, shoot: Object, old: Object | None) -> None:
        name = shoot["metadata"]["name"]
        shape(shoot)
        project = self._project(shoot)
        profile = self._profile(shoot)
        _fill_in(shoot, profile)
        provider = self._providers.get(str(lookup(shoot, "spec.provider.type")))
        if provider is not None:
            provider.fill_in(shoot, old)
        if old is not None:
            _count_operation(shoot, old)
        problems = rules.shoot_problems(shoot)
        problems += rules.creation_problems(shoot) if old is None else rules.update_problems(shoot, old)
        refuse_invalid(name, problems)
        if shoot["metadata"].get("deletionTimestamp"):
            return
        if old is None:
            length = rules.length_problem(project["metadata"]["name"], name)
            refuse_invalid(name, [length] if length else [])
            shoot["status"] = {
                "technicalID": TECHNICAL_ID.format(project=project["metadata"]["name"], name=name),
            }
        self._check_references(name, shoot, old, profile, provider)

    def _check_references(
        self, name: str, shoot: Object, old: Object | None, profile: Object | None, provider: Provider | None
    ) -> None:
        binding = self._binding(shoot)
        if profile is None:
            asked = shoot["spec"]["cloudProfile"]["name"]
            refuse_forbidden(name, f'cloudprofile.core.gardener.cloud "{asked}" not found')
        if binding is None:
            asked = shoot["spec"].get("credentialsBindingName")
            refuse_forbidden(name, f'credentialsbinding.security.gardener.cloud "{asked}" not found')
        assert profile is not None
        assert binding is not None
        found = profile_problems(shoot, old, profile, binding)
        if found:
            refuse_forbidden(name, joined(found))
        if provider is None:
            kind = shoot["spec"]["provider"]["type"]
            refuse_forbidden(name, f'no extension of kind "Infrastructure" and type "{kind}" is registered')
        assert provider is not None
        _check_webhook(provider, provider.problems(shoot, old, profile))

    def _project(self, shoot: Object) -> Object:
        namespace = shoot["metadata"]["namespace"]
        for project in self._store.list(GARDEN, PROJECTS.key):
            if lookup(project, "spec.namespace") == namespace:
                return project
        raise denied(500, f"Internal error occurred: could not find referenced project: no project has {namespace}")

    def _profile(self, shoot: Object) -> Object | None:
        reference = shoot["spec"].get("cloudProfile") or {}
        name = reference.get("name") or shoot["spec"].get("cloudProfileName")
        return self._store.get(GARDEN, CLOUD_PROFILES.key, None, str(name)) if name else None

    def _binding(self, shoot: Object) -> Object | None:
        name = shoot["spec"].get("credentialsBindingName")
        namespace = shoot["metadata"]["namespace"]
        return self._store.get(GARDEN, CREDENTIALS_BINDINGS.key, namespace, str(name)) if name else None


def _check_confirmation(shoot: Object) -> None:
    annotations = shoot["metadata"].get("annotations") or {}
    if not rules.is_true(annotations.get(rules.CONFIRM_DELETION)):
        refuse_forbidden(shoot["metadata"]["name"], f'must have a "{rules.CONFIRM_DELETION}" annotation to delete')


def _same_metadata(shoot: Object, old: Object) -> bool:
    ignored = ("managedFields", "resourceVersion")
    now, then = ({key: value for key, value in each["metadata"].items() if key not in ignored} for each in (shoot, old))
    return now == then


def _fill_in(shoot: Object, profile: Object | None) -> None:
    """Defaults of the API server and of the ShootMutator plugin."""
    spec = shoot["spec"]
    if spec.get("cloudProfileName") and not spec.get("cloudProfile"):
        spec["cloudProfile"] = {"name": spec["cloudProfileName"]}
    if spec.get("cloudProfile"):
        spec["cloudProfile"].setdefault("kind", "CloudProfile")
    spec.setdefault("purpose", "evaluation")
    if spec.get("networking"):
        spec["networking"].setdefault("ipFamilies", ["IPv4"])
    kubernetes = spec["kubernetes"]
    if profile is not None:
        kubernetes["version"] = _default_version(str(kubernetes.get("version") or ""), profile)
    for worker in lookup(spec, "provider.workers") or []:
        worker.setdefault("maxSurge", 1)
        worker.setdefault("maxUnavailable", 0)
        worker.setdefault("cri", {"name": "containerd"})
        machine = worker["machine"]
        machine.setdefault("architecture", "amd64")
        if profile is not None:
            _default_image(machine, profile)


def _default_version(asked: str, profile: Object) -> str:
    """A version that is whole stays; of `1.34`, or of nothing, the newest that is supported."""
    if asked.count(".") >= 2:
        return asked
    versions = [
        each["version"]
        for each in profile["spec"]["kubernetes"]["versions"]
        if each.get("classification") != "preview"
        and is_active(each)
        and (not asked or each["version"].startswith(f"{asked}."))
    ]
    return max(versions, key=_numbers, default=asked)


def _default_image(machine: Object, profile: Object) -> None:
    image = machine.get("image") or {}
    if image.get("name") and image.get("version"):
        return
    for offered in profile["spec"]["machineImages"]:
        if image.get("name") not in (None, "", offered["name"]):
            continue
        versions = [
            each["version"]
            for each in offered["versions"]
            if is_active(each)
            and each.get("classification") != "preview"
            and machine["architecture"] in each.get("architectures", ["amd64"])
        ]
        if versions:
            machine["image"] = {**image, "name": offered["name"], "version": max(versions, key=_numbers)}
            return


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _count_operation(shoot: Object, old: Object) -> None:
    """An operation that is asked for makes a new generation, and its annotation goes (`mustIncreaseGeneration`)."""
    annotations = shoot["metadata"].get("annotations") or {}
    operations = [each for each in str(annotations.get(rules.OPERATION, "")).split(";") if each]
    counts = shoot.get("spec") != old.get("spec")
    if rules.is_true(annotations.get(rules.FORCE_DELETION)):
        before = old["metadata"].get("annotations") or {}
        counts |= not rules.is_true(before.get(rules.FORCE_DELETION))
    state = lookup(shoot, "status.lastOperation.state")
    if state is not None and operations:
        done = {"retry"} if state == "Failed" else {"reconcile", "maintain"}
        counts |= bool(done & set(operations) - {"maintain"})
        left = [each for each in operations if each not in done]
        annotations.pop(rules.OPERATION)
        if left:
            annotations[rules.OPERATION] = ";".join(left)
    if counts:
        shoot["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _check_webhook(provider: Provider, found: list[Problem]) -> None:
    if found:
        webhook = f"validator.{provider.type}.extensions.gardener.cloud"
        details: dict[str, Any] = {"causes": [problem.cause() for problem in found]}
        text = f'admission webhook "{webhook}" denied the request: {joined(found)}'
        raise Denied("Forbidden", text, 403, details=details)
