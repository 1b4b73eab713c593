"""What an API server says about itself: version, groups, kinds and their schemas."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Any

from sandbox.kube.errors import denied
from sandbox.kube.resources import Object, Resource

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

VERSION: Object = {
    "major": "1",
    "minor": "32",
    "gitVersion": "v1.32.4",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2025-04-22T00:00:00Z",
    "goVersion": "",
    "compiler": platform.python_implementation().lower(),
    "platform": f"{platform.system().lower()}/{platform.machine()}",
}
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def wants_aggregated(accept: str) -> bool:
    """Whether a client asks /api or /apis for all kinds in one answer."""
    return any(
        {"g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"} <= {part.strip() for part in item.split(";")}
        for item in accept.split(",")
    )


class Discovery:
    """The answers about a set of kinds."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._versions: dict[tuple[str, str], list[Resource]] = {}
        for resource in resources:
            self._versions.setdefault((resource.group, resource.version), []).append(resource)

    def aggregated(self, *, core: bool) -> Object:
        """`apidiscovery.k8s.io/v2` for /api (core) or /apis."""
        groups: dict[str, list[Object]] = {}
        for (group, version), resources in self._versions.items():
            if (group == "") is core:
                groups.setdefault(group, []).append(
                    {
                        "version": version,
                        "freshness": "Current",
                        "resources": [_aggregated(resource) for resource in resources],
                    }
                )
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [
                {"metadata": {"name": group} if group else {}, "versions": versions}
                for group, versions in groups.items()
            ],
        }

    def document(self, path: list[str]) -> Object:
        """The answer to GET of a path.

        Raises:
            Denied: NotFound.
        """
        match path:
            case ["api"]:
                return self._core_versions()
            case ["apis"]:
                return self._groups()
            case ["api", version]:
                return self._kinds("", version)
            case ["apis", group]:
                return {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            case ["apis", group, version]:
                return self._kinds(group, version)
            case ["openapi", "v3"]:
                return self._openapi_index()
            case ["openapi", "v3", "api", version]:
                return self._openapi("", version)
            case ["openapi", "v3", "apis", group, version]:
                return self._openapi(group, version)
        raise not_found()

    def _core_versions(self) -> Object:
        versions = [version for group, version in self._versions if not group]
        return {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []}

    def _groups(self) -> Object:
        names = dict.fromkeys(group for group, _ in self._versions if group)
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self._group(name) for name in names]}

    def _kinds(self, group: str, version: str) -> Object:
        items: list[Object] = []
        for resource in self._of(group, version):
            kind = {"namespaced": resource.namespaced, "kind": resource.kind}
            items.append(
                {
                    "name": resource.plural,
                    "singularName": resource.kind.lower(),
                    "verbs": _verbs(resource),
                    "shortNames": list(resource.short_names),
                    "categories": list(resource.categories),
                    **kind,
                }
            )
            items += [
                {"name": f"{resource.plural}/{name}", "singularName": "", "verbs": verbs, **kind}
                for name, verbs in _subresources(resource).items()
            ]
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": items,
        }

    def _openapi_index(self) -> Object:
        """Where the schemas are. A client puts its own path prefix in front of the URLs."""
        paths = [_prefix(group, version) for group, version in self._versions]
        return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}

    def _openapi(self, group: str, version: str) -> Object:
        """Per kind a schema that keeps unknown fields, and its operations."""
        schemas: Object = {}
        paths: Object = {}
        for resource in self._of(group, version):
            schemas[_schema_name(resource)] = _schema(resource)
            scope = "/namespaces/{namespace}" if resource.namespaced else ""
            collection = f"/{_prefix(group, version)}{scope}/{resource.plural}"
            paths[collection] = {"post": _operation(resource, "post")}
            if not resource.answer:
                paths[f"{collection}/{{name}}"] = {
                    verb: _operation(resource, verb) for verb in ("put", "patch", "delete")
                }
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
            "paths": paths,
            "components": {"schemas": schemas},
        }

    def _of(self, group: str, version: str) -> list[Resource]:
        if (group, version) not in self._versions:
            raise not_found()
        return self._versions[group, version]

    def _group(self, name: str) -> Object:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for group, version in self._versions
            if group == name
        ]
        if not versions:
            raise not_found()
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def not_found() -> Exception:
    """The refusal of a path that nothing is served under."""
    return denied(404, "the server could not find the requested resource")


def _prefix(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _verbs(resource: Resource) -> list[str]:
    return ["create"] if resource.answer else _VERBS


def _subresources(resource: Resource) -> dict[str, list[str]]:
    status = {"status": ["get", "patch", "update"]} if resource.status else {}
    return status | {name: ["create"] for name in resource.subresources}


def _kind_of(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _aggregated(resource: Resource) -> Object:
    return {
        "resource": resource.plural,
        "responseKind": _kind_of(resource),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.kind.lower(),
        "verbs": _verbs(resource),
        "shortNames": list(resource.short_names),
        "categories": list(resource.categories),
        "subresources": [
            {"subresource": name, "responseKind": _kind_of(resource), "verbs": verbs}
            for name, verbs in _subresources(resource).items()
        ],
    }


def _schema_name(resource: Resource) -> str:
    return ".".join([*reversed((resource.group or "core").split(".")), resource.version, resource.kind])


def _schema(resource: Resource) -> Object:
    text: dict[str, Any] = {"type": "string"}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "type": "object",
        "description": f"{resource.kind} of {resource.api_version}.",
        "properties": {"apiVersion": text, "kind": text, "metadata": free},
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [_kind_of(resource)],
    }


def _operation(resource: Resource, verb: str) -> Object:
    names = ["dryRun"] if verb == "delete" else ["dryRun", "fieldManager", "fieldValidation"]
    return {
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": _kind_of(resource),
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
        "responses": {
            "200": {
                "description": "OK",
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{_schema_name(resource)}"}}},
            }
        },
    }
