"""The shapes in which objects are answered: whole, metadata alone, or as the Table that `kubectl get` prints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from sandbox.kube.errors import denied
from sandbox.kube.resources import NAME, Column, Object, Resource, lookup

Shape = Literal["object", "metadata", "table"]

_META = "meta.k8s.io/v1"


def shape_of(accept: str) -> Shape:
    """The first shape in an Accept header that can be given; everything is JSON.

    Raises:
        Denied: NotAcceptable (406).
    """
    for item in (accept or "*/*").split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        if media not in ("application/json", "application/*", "*/*"):
            continue
        named = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        match named.get("as", ""), named.get("g"), named.get("v"):
            case "Table", "meta.k8s.io", "v1":
                return "table"
            case (("PartialObjectMetadata" | "PartialObjectMetadataList"), "meta.k8s.io", "v1"):
                return "metadata"
            case "", _, _:
                return "object"
    raise denied(406, "only the following media types are accepted: application/json")


def shown(resource: Resource, obj: Object, shape: Shape, include: str = "") -> Object:
    """One object in a shape. `include` is the `includeObject` of a Table: Metadata (default), Object or None."""
    if shape == "table":
        return _table(resource, [obj], include, {"resourceVersion": obj["metadata"]["resourceVersion"]})
    return _partial(obj) if shape == "metadata" else obj


def listed(resource: Resource, items: list[Object], meta: Object, shape: Shape, include: str = "") -> Object:
    """A list of objects in a shape; `meta` is the list's metadata."""
    if shape == "table":
        return _table(resource, items, include, meta)
    if shape == "metadata":
        kind, version, items = "PartialObjectMetadataList", _META, [_partial(obj) for obj in items]
    else:
        kind, version = f"{resource.kind}List", resource.api_version
    return {"kind": kind, "apiVersion": version, "metadata": meta, "items": items}


def _partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def _table(resource: Resource, items: list[Object], include: str, meta: Object) -> Object:
    named = any(column.name == NAME.name for column in resource.columns)
    columns = resource.columns if named else (NAME, *resource.columns)
    return {
        "kind": "Table",
        "apiVersion": _META,
        "metadata": meta,
        "columnDefinitions": [
            {
                "name": column.name,
                # An age is sent as text; its reader would take a "date" for a timestamp.
                "type": "string" if column.type == "date" else column.type,
                "format": "name" if column.name == NAME.name else "",
                "description": column.source if isinstance(column.source, str) else column.name,
                "priority": column.priority,
            }
            for column in columns
        ],
        "rows": [_row(columns, obj, include) for obj in items],
    }


def _row(columns: tuple[Column, ...], obj: Object, include: str) -> Object:
    row: Object = {"cells": [_cell(column, obj) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = _partial(obj)
    return row


def _cell(column: Column, obj: Object) -> Any:
    value = column.source(obj) if callable(column.source) else lookup(obj, column.source)
    if column.type == "date":
        return "<unknown>" if not value else age(datetime.fromisoformat(value))
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return ",".join(str(item) for item in value)


def age(since: datetime) -> str:
    """How long ago that was, as kubectl prints it (`duration.HumanDuration` of apimachinery): 90s, 5m30s, 2d3h."""
    seconds = max(0, int((datetime.now(UTC) - since).total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    for limit, text in (
        (seconds < 120, f"{seconds}s"),
        (minutes < 10, _pair(minutes, "m", seconds % 60, "s")),
        (hours < 3, f"{minutes}m"),
        (hours < 8, _pair(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (days < 8, _pair(days, "d", hours % 24, "h")),
        (days < 365 * 2, f"{days}d"),
        (days < 365 * 8, _pair(days // 365, "y", days % 365, "d")),
    ):
        if limit:
            return text
    return f"{days // 365}y"


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}" + (f"{small}{small_unit}" if small else "")
