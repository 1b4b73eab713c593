"""What happens to an object between a request that changes it and the store."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.kube import ownership, patches
from sandbox.kube.errors import Denied, denied, details_of
from sandbox.kube.resources import Admission, Object, Resource
from sandbox.kube.store import Store, clone, clone_value

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?")
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # as apimachinery's names.SimpleNameGenerator: no vowels, no words


@dataclass(frozen=True)
class Call:
    """Who asks an API server for a change, and how.

    Attributes:
        server: The API server.
        user: The user's name.
        manager: Who owns the fields that change.
        options: The request's query.
    """

    server: str
    user: str
    manager: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return bool(self.options.get("dryRun"))


@dataclass(frozen=True)
class Place:
    """Where in the API an object is."""

    resource: Resource
    namespace: str
    name: str
    subresource: str = ""


class Changes:
    """Creates, updates and deletes objects as their kind demands.

    Every method raises Denied: NotFound, AlreadyExists, Conflict, BadRequest, Invalid, or what `admit` says.
    """

    def __init__(self, store: Store, resources: Iterable[Resource]) -> None:
        self._store = store
        self._resources = list(resources)
        self._has_namespaces = any(resource.key == "namespaces" for resource in self._resources)

    def create(self, call: Call, place: Place, body: Object) -> Object:
        """POST. The name may be left to `generateName`."""
        resource, obj = place.resource, clone(body)
        meta = obj.setdefault("metadata", {})
        if isinstance(meta, dict) and not meta.get("name") and meta.get("generateName"):
            suffix = "".join(secrets.choice(_SUFFIX) for _ in range(5))
            meta["name"] = f"{str(meta['generateName'])[:248]}{suffix}"
        _identify(place, obj)
        if resource.namespaced and not place.namespace:
            raise denied(400, "an empty namespace may not be set during creation")
        for name in ("managedFields", "resourceVersion"):
            meta.pop(name, None)
        return self._create(call, resource, obj, track=True)

    def replace(self, call: Call, place: Place, body: Object) -> Object:
        """PUT. Kinds outside the core group need a resourceVersion, as Gardener's do."""
        obj = clone(body)
        _identify(place, obj)
        if not obj["metadata"].get("resourceVersion") and place.resource.group:
            text = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise _invalid(place.resource, place.name, text)
        return self._update(call, place, self.existing(call.server, place), obj, track=True)

    def patch(self, call: Call, place: Place, kind: str, patch: Any) -> Object:
        """PATCH with one of the patch types but apply."""
        old = self.existing(call.server, place)
        new = patches.patched(kind, old, patch)
        _identify(place, new)
        return self._update(call, place, old, new, track=True)

    def apply(self, call: Call, place: Place, body: Any, *, force: bool) -> tuple[Object, bool]:
        """Server-side apply; also tells whether the object was created."""
        if not call.options.get("fieldManager"):
            raise denied(422, "PatchOptions is invalid: fieldManager: Required value: is required for apply patch")
        if not isinstance(body, dict):
            raise denied(400, "error decoding patch: an object is needed")
        hidden = {"status"} if place.resource.status else set()
        if place.subresource:
            hidden = body.keys() - {"apiVersion", "kind", "metadata", place.subresource}
        body = {name: clone_value(value) for name, value in body.items() if name not in hidden}
        _identify(place, body)
        if "managedFields" in body["metadata"]:
            raise denied(400, "metadata.managedFields must be nil")
        old = self._store.get(call.server, place.resource.key, place.namespace, place.name)
        if old is None and place.subresource:
            raise _missing(place)
        new = ownership.applied(old, body, call.manager, force=force, subresource=place.subresource)
        if old is None:
            return self._create(call, place.resource, new, track=False), True
        return self._update(call, place, old, new, track=False), False

    def delete(self, call: Call, place: Place, options: Mapping[str, Any]) -> Object:
        """DELETE with DeleteOptions; a namespace takes its contents along.

        Returns:
            The object: with a deletionTimestamp if it is still there.
        """
        old = self.existing(call.server, place)
        for name, value in (options.get("preconditions") or {}).items():
            if value is not None and value != old["metadata"].get(name):
                raise denied(
                    409,
                    f"Precondition failed: {name} in precondition: {value}, in object meta: "
                    f"{old['metadata'].get(name)}",
                    **details_of(place.resource.key, place.name),
                )
        call = Call(call.server, call.user, call.manager, {**call.options, **options})
        self._admit(call, Admission("delete", place.resource, call.server, clone(old), old))
        key = place.resource.key
        result = self._store.delete(call.server, key, place.namespace, place.name, dry_run=call.dry_run)
        if key == "namespaces" and not call.dry_run:
            self._delete_contents(call, place.name)
        return result

    def existing(self, server: str, place: Place) -> Object:
        """The object in a place."""
        found = self._store.get(server, place.resource.key, place.namespace, place.name)
        if found is None:
            raise _missing(place)
        return found

    def _create(self, call: Call, resource: Resource, obj: Object, *, track: bool) -> Object:
        meta = obj["metadata"]
        _validate(resource, obj)
        if resource.namespaced:
            self._check_namespace(call.server, resource, meta)
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            meta.pop(name, None)
        if resource.status:
            obj.pop("status", None)
        self._admit(call, Admission("create", resource, call.server, obj, None))
        if track:
            ownership.updated(None, obj, call.manager)
        return self._store.create(call.server, resource.key, obj, dry_run=call.dry_run)

    def _update(self, call: Call, place: Place, old: Object, new: Object, *, track: bool) -> Object:
        resource, meta = place.resource, new["metadata"]
        if place.subresource == "status":
            kept = {name: meta[name] for name in ("resourceVersion", "managedFields") if name in meta}
            new = {**clone(old), "status": new.get("status") or {}}
            meta = new["metadata"]
            meta |= kept
        elif resource.status:
            new.pop("status", None)
            new |= {"status": clone_value(old["status"])} if "status" in old else {}
        for name in ("generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
            meta.pop(name, None)
            meta |= {name: old["metadata"][name]} if name in old["metadata"] else {}
        _validate(resource, new)
        late = set(meta.get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ())
        if late and "deletionTimestamp" in meta:
            text = f"no new finalizers can be added if the object is being deleted, found {sorted(late)}"
            raise _invalid(resource, place.name, f"metadata.finalizers: Forbidden: {text}")
        self._admit(call, Admission("update", resource, call.server, new, old, place.subresource))
        if track:
            ownership.updated(old, new, call.manager, place.subresource)
        expected = meta.get("resourceVersion")
        return self._store.update(call.server, resource.key, new, expected, dry_run=call.dry_run)

    def _admit(self, call: Call, admission: Admission) -> None:
        admission.options, admission.user = call.options, call.user
        if admission.resource.admit:
            admission.resource.admit(admission)

    def _check_namespace(self, server: str, resource: Resource, meta: Object) -> None:
        if not self._has_namespaces:
            return
        namespace = self._store.get(server, "namespaces", None, meta["namespace"])
        if namespace is None:
            raise denied(404, f'namespaces "{meta["namespace"]}" not found', name=meta["namespace"], kind="namespaces")
        if "deletionTimestamp" in namespace["metadata"]:
            text = f"unable to create new content in namespace {meta['namespace']} because it is being terminated"
            raise denied(
                403,
                f'{resource.key} "{meta["name"]}" is forbidden: {text}',
                **details_of(resource.key, meta["name"]),
                causes=[{"reason": "NamespaceTerminating", "message": text, "field": "metadata.namespace"}],
            )

    def _delete_contents(self, call: Call, namespace: str) -> None:
        for resource in self._resources:
            if not resource.namespaced:
                continue
            for obj in self._store.list(call.server, resource.key, namespace):
                try:
                    self.delete(call, Place(resource, namespace, obj["metadata"]["name"]), {})
                except Denied:
                    continue  # it stays, and with it the namespace, until someone may delete it


def _identify(place: Place, obj: Object) -> None:
    """Completes an object's kind, name and namespace from its place, or refuses what contradicts it."""
    resource = place.resource
    for name, value in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if (obj.get(name) or value) != value:
            raise denied(400, f"the {name} in the data ({obj[name]}) does not match the expected one ({value})")
        obj[name] = value
    meta = obj.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise denied(400, "metadata must be an object")
    given = meta.get("namespace") or place.namespace
    if given != place.namespace:
        raise denied(
            400,
            f"the namespace of the provided object does not match the namespace sent on the request: {given}"
            if resource.namespaced
            else "namespace may not be set on cluster-wide objects",
        )
    if resource.namespaced:
        meta["namespace"] = place.namespace
    else:
        meta.pop("namespace", None)
    if place.name and (meta.get("name") or place.name) != place.name:
        raise denied(400, f"the name of the object ({meta['name']}) does not match the name on the URL ({place.name})")
    if place.name:
        meta["name"] = place.name


def _validate(resource: Resource, obj: Object) -> None:
    """The rules for the metadata of all objects."""
    meta = obj["metadata"]
    name = meta.get("name")
    if not name:
        raise _invalid(resource, "", "metadata.name: Required value: name or generateName is required")
    # Names of RBAC objects are any path segment (`system:admin`).
    lax = resource.group == "rbac.authorization.k8s.io"
    if not isinstance(name, str) or len(name) > 253 or not (lax or _NAME.fullmatch(name)):
        text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
        raise _invalid(resource, str(name), f'metadata.name: Invalid value: "{name}": {text}')
    for kind in ("labels", "annotations"):
        for key, value in _strings(meta, kind).items():
            if not _LABEL_KEY.fullmatch(key):
                raise _invalid(resource, name, f'metadata.{kind}: Invalid value: "{key}": no qualified name')
            if kind == "labels" and not _LABEL_VALUE.fullmatch(value):
                raise _invalid(resource, name, f'metadata.labels: Invalid value: "{value}": no label value')


def _strings(meta: Object, name: str) -> dict[str, str]:
    values = meta.get(name) or {}
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise denied(400, f"metadata.{name} must map strings to strings")
    return values


def _missing(place: Place) -> Denied:
    details = details_of(place.resource.key, place.name)
    return denied(404, f'{place.resource.key} "{place.name}" not found', **details)


def _invalid(resource: Resource, name: str, text: str) -> Denied:
    where, _, message = text.partition(": ")
    details = details_of(resource.key, name) | {
        "kind": resource.kind,
        "causes": [{"reason": "FieldValueInvalid", "message": message, "field": where}],
    }
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return denied(422, f'{kind} "{name}" is invalid: {text}', **details)
