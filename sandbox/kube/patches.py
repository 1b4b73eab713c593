"""JSON, merge and strategic merge patches."""

from __future__ import annotations

from typing import Any

import jsonpatch

from sandbox.kube.errors import denied
from sandbox.kube.resources import Object
from sandbox.kube.store import clone

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# How strategic patches merge lists: `patchMergeKey` in the types of k8s.io/api. The first key an item has counts.
_MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port"),
    "addresses": ("type",),
    "taints": ("key",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_MERGED_SETS = {"finalizers", "podCIDRs"}  # lists of scalars with patchStrategy "merge"


def patched(kind: str, obj: Object, patch: Any) -> Object:
    """The object with a patch (JSON_PATCH, MERGE_PATCH or STRATEGIC_PATCH) applied; `obj` stays as it is.

    Raises:
        Denied: BadRequest for what is no patch, Invalid (422) for a JSON patch that does not fit the object.
    """
    if kind == JSON_PATCH:
        return _json_patched(obj, patch)
    if not isinstance(patch, dict):
        raise denied(400, f"error decoding patch: an object is needed, not {type(patch).__name__}")
    merge = _merged if kind == MERGE_PATCH else _strategic
    result: Object = merge(clone(obj), clone(patch))
    return result


def _json_patched(obj: Object, patch: Any) -> Object:
    try:
        result = jsonpatch.JsonPatch(patch).apply(clone(obj))
    except (jsonpatch.JsonPatchConflict, jsonpatch.JsonPatchTestFailed, jsonpatch.JsonPointerException) as error:
        raise denied(422, f"the patch cannot be applied to the object: {error}") from error
    except (jsonpatch.InvalidJsonPatch, TypeError) as error:
        raise denied(400, f"error decoding patch: {error}") from error
    if not isinstance(result, dict):
        raise denied(422, "the patch leaves no object")
    return result


def _merged(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = value if isinstance(value, dict) else {}
    for name, item in patch.items():
        if item is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), item)
    return result


def _strategic(value: Any, patch: Any) -> Any:
    """A merge patch that knows lists of named items, and the `$` directives kubectl writes."""
    if not isinstance(patch, dict):
        return patch
    if patch.pop("$patch", "merge") == "replace":
        return patch
    result = value if isinstance(value, dict) else {}
    if (kept := patch.pop("$retainKeys", None)) is not None:
        result = {name: item for name, item in result.items() if name in kept}
    for name, item in patch.items():
        if not name.startswith("$"):
            _strategic_field(result, name, item)
    for name, order in patch.items():
        verb, _, target = name.partition("/")
        if verb == "$deleteFromPrimitiveList":
            result[target] = [entry for entry in result.get(target) or [] if entry not in order]
        elif verb == "$setElementOrder" and target in result:
            result[target] = _ordered(target, result[target], order)
    return result


def _strategic_field(obj: Object, name: str, item: Any) -> None:
    if item is None:
        obj.pop(name, None)
    elif isinstance(item, list):
        obj[name] = _strategic_list(name, obj.get(name) or [], item)
    else:
        obj[name] = _strategic(obj.get(name), item)


def _strategic_list(field: str, items: list[Any], patch: list[Any]) -> list[Any]:
    if {"$patch": "replace"} in patch:
        return [item for item in patch if item != {"$patch": "replace"}]
    if field in _MERGED_SETS:
        return items + [item for item in patch if item not in items]
    if field not in _MERGE_KEYS:
        return patch
    result = list(items)
    for change in patch:
        place = next((at for at, item in enumerate(result) if _same(field, item, change)), None)
        if change.get("$patch") == "delete":
            if place is not None:
                del result[place]
        elif place is None:
            result.append(_strategic({}, change))
        else:
            result[place] = _strategic(result[place], change)
    return result


def _ordered(field: str, items: list[Any], order: list[Any]) -> list[Any]:
    """The items in the order of a `$setElementOrder` list; items that it does not name come last."""

    def place(item: Any) -> int:
        return next((at for at, entry in enumerate(order) if _same(field, item, entry)), len(order))

    return sorted(items, key=place)


def _same(field: str, one: Any, other: Any) -> bool:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return bool(one == other)
    key = next((key for key in _MERGE_KEYS.get(field, ()) if key in other), None)
    return key is not None and one.get(key) == other[key]
