"""Server-side apply: who owns which field (`metadata.managedFields`).

As for a custom resource whose schema preserves unknown fields: maps are merged by key, a list is one value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sandbox.kube.errors import Denied
from sandbox.kube.resources import Object
from sandbox.kube.store import clone, clone_value, now

Path = tuple[str, ...]

# Fields that nobody owns (`stripSet` of apimachinery's fieldmanager).
_NOT_OWNED = {("apiVersion",), ("kind",), ("metadata",)} | {
    ("metadata", name)
    for name in (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
}


@dataclass
class _Claim:
    """The fields one manager set in one way."""

    manager: str
    operation: str
    subresource: str
    api_version: str
    time: str = field(default_factory=now)
    paths: set[Path] = field(default_factory=set)

    def is_by(self, other: _Claim) -> bool:
        return (self.manager, self.operation, self.subresource) == (
            other.manager,
            other.operation,
            other.subresource,
        )


def applied(current: Object | None, body: Object, manager: str, *, force: bool, subresource: str = "") -> Object:
    """The object after `manager` applied `body`.

    What the manager applied before and no longer does goes, unless another one owns it too.

    Raises:
        Denied: Conflict, with a cause per field, if another manager owns a field with another value and not `force`.
    """
    result = clone(current) if current else {"metadata": {}}
    claims = _claims(result)
    wanted = _leaves(body)
    mine = _Claim(manager, "Apply", subresource, body["apiVersion"], paths=set(wanted))
    before = next((claim for claim in claims if claim.is_by(mine)), None)
    others = [claim for claim in claims if claim is not before]
    disputed = [
        (claim, path)
        for claim in others
        for path in sorted(claim.paths)
        if any(_overlap(path, own) and _at(result, own) != value for own, value in wanted.items() if value != {})
    ]
    if disputed and not force:
        raise _conflict(disputed)
    for claim, path in disputed:
        claim.paths.discard(path)
    for path, value in wanted.items():
        _put(result, path, value)
    kept = mine.paths.union(*(claim.paths for claim in others))
    for path in sorted((before.paths if before else set()) - kept, reverse=True):
        _remove(result, path, kept)
    if before and before.paths == mine.paths:
        mine.time = before.time
    result |= {"apiVersion": body["apiVersion"], "kind": body["kind"]}
    for name in ("name", "namespace", "resourceVersion", "uid"):
        if name in body["metadata"]:
            result["metadata"][name] = body["metadata"][name]
    _record(result, [*others, mine])
    return result


def updated(current: Object | None, new: Object, manager: str, subresource: str = "") -> None:
    """Notes in `new` that `manager` made the change from `current` (None: created it) by writing, not applying.

    A writer may also set `managedFields` itself, as kubectl does to migrate to server-side apply.
    """
    fields = new["metadata"].get("managedFields")
    if current and fields is None:
        new["metadata"]["managedFields"] = fields = clone_value(current["metadata"].get("managedFields", []))
    claims = _claims(new)
    old_leaves, leaves = _leaves(current or {}), _leaves(new)
    changed = {path for path, value in leaves.items() if path not in old_leaves or old_leaves[path] != value}
    gone = old_leaves.keys() - leaves.keys()
    if changed or gone:
        mine = _Claim(manager, "Update", subresource, new["apiVersion"])
        before = next((claim for claim in claims if claim.is_by(mine)), None)
        mine.paths = (before.paths if before else set()) | changed
        for claim in [claim for claim in claims if claim is not before]:
            claim.paths = {path for path in claim.paths if path not in changed}
        claims = [claim for claim in claims if claim is not before] + [mine]
        for claim in claims:
            claim.paths -= gone
    _record(new, claims)


def _leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """All owned fields; an empty map is one."""
    found: dict[Path, Any] = {}
    for name, item in value.items():
        here = (*path, name)
        if here == ("metadata",) or (isinstance(item, dict) and item):
            found |= _leaves(item, here)
        elif here not in _NOT_OWNED:
            found[here] = item
    return found


def _overlap(one: Path, other: Path) -> bool:
    short = min(len(one), len(other))
    return one[:short] == other[:short]


def _at(obj: Any, path: Path) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _put(obj: Object, path: Path, value: Any) -> None:
    for name in path[:-1]:
        if not isinstance(obj.get(name), dict):
            obj[name] = {}
        obj = obj[name]
    if value != {} or not isinstance(obj.get(path[-1]), dict):
        obj[path[-1]] = clone_value(value)


def _remove(obj: Object, path: Path, kept: set[Path]) -> None:
    """Removes a field, and the maps that are empty without it and that nobody keeps."""
    parent = _at(obj, path[:-1])
    if not isinstance(parent, dict):
        return
    if not (isinstance(parent.get(path[-1]), dict) and parent[path[-1]]):
        parent.pop(path[-1], None)
    if len(path) > 1 and not parent and path[:-1] not in kept and path[:-1] != ("metadata",):
        _remove(obj, path[:-1], kept)


def _claims(obj: Object) -> list[_Claim]:
    return [
        _Claim(
            entry.get("manager", "unknown"),
            entry.get("operation", "Update"),
            entry.get("subresource", ""),
            entry.get("apiVersion", ""),
            entry.get("time", now()),
            _paths(entry.get("fieldsV1") or {}),
        )
        for entry in obj["metadata"].get("managedFields") or []
        if entry
    ]


def _record(obj: Object, claims: list[_Claim]) -> None:
    entries = [
        {
            "manager": claim.manager,
            "operation": claim.operation,
            "apiVersion": claim.api_version,
            "time": claim.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": _fields(claim.paths),
        }
        | ({"subresource": claim.subresource} if claim.subresource else {})
        for claim in sorted(claims, key=lambda claim: (claim.operation, claim.time, claim.manager))
        if claim.paths
    ]
    obj["metadata"].pop("managedFields", None)
    if entries:
        obj["metadata"]["managedFields"] = entries


def _fields(paths: set[Path]) -> Object:
    tree: Object = {}
    for path in sorted(paths):
        node = tree
        for name in path:
            node = node.setdefault(f"f:{name}", {})
    return tree


def _paths(tree: Object, path: Path = ()) -> set[Path]:
    found: set[Path] = set()
    for name, item in tree.items():
        if not name.startswith("f:"):
            continue  # "." is the map itself; "k:", "v:" and "i:" point into a list
        here = (*path, name[2:])
        found |= _paths(item, here) or {here}
    return found


def _conflict(disputed: list[tuple[_Claim, Path]]) -> Denied:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{claim.manager}"'
            + ("" if claim.operation == "Apply" else f" using {claim.api_version}"),
            "field": "".join(f".{name}" for name in path),
        }
        for claim, path in disputed
    ]
    text = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    noun = "conflict" if len(causes) == 1 else "conflicts"
    return Denied("Conflict", f"Apply failed with {len(causes)} {noun}: {text}", 409, details={"causes": causes})
