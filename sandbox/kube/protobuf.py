"""Reads the few Kubernetes objects that kubectl sends as protobuf: what `create` and `auth can-i` make themselves.

The fields are those of the `generated.proto` files of k8s.io/api and k8s.io/apimachinery.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from sandbox.kube.errors import denied
from sandbox.kube.resources import Object

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
# Per message: field number -> name and type. "[]" is repeated, "{}" a map from strings; the rest is left out.
_MESSAGES: dict[str, dict[int, tuple[str, str]]] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "bytes")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        11: ("labels", "{}string"),
        12: ("annotations", "{}string"),
        14: ("finalizers", "[]string"),
    },
    "Namespace": {1: ("metadata", "ObjectMeta"), 2: ("spec", "NamespaceSpec")},
    "NamespaceSpec": {1: ("finalizers", "[]string")},
    "Secret": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}bytes"),
        3: ("type", "string"),
        4: ("stringData", "{}string"),
        5: ("immutable", "bool"),
    },
    "ConfigMap": {
        1: ("metadata", "ObjectMeta"),
        2: ("data", "{}string"),
        3: ("binaryData", "{}bytes"),
        4: ("immutable", "bool"),
    },
    "SelfSubjectReview": {1: ("metadata", "ObjectMeta")},
    "SelfSubjectAccessReview": {1: ("metadata", "ObjectMeta"), 2: ("spec", "SelfSubjectAccessReviewSpec")},
    "SelfSubjectAccessReviewSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "ResourceAttributes": {
        number: (name, "string")
        for number, name in enumerate(
            ("namespace", "verb", "group", "version", "resource", "subresource", "name"), start=1
        )
    },
    "NonResourceAttributes": {1: ("path", "string"), 2: ("verb", "string")},
}
_TOP = ("Namespace", "Secret", "ConfigMap", "SelfSubjectReview", "SelfSubjectAccessReview")


def decoded(body: bytes) -> Object:
    """The object in a protobuf body.

    Raises:
        Denied: UnsupportedMediaType for kinds that are read as JSON or YAML only, BadRequest for a broken body.
    """
    try:
        envelope = _message("Unknown", body.removeprefix(_MAGIC))
        head: Object = envelope.get("typeMeta", {})
        if (kind := head.get("kind", "")) in _TOP:
            return head | _message(kind, base64.b64decode(envelope.get("raw", "")))
    except (ValueError, IndexError) as error:
        raise denied(400, f"couldn't parse the body as {MEDIA_TYPE}: {error}") from error
    raise denied(415, f"{kind or 'the body'} is not read as {MEDIA_TYPE} here; send application/json")


def _message(kind: str, raw: bytes) -> Object:
    """A message as JSON data; empty values count as absent, as in Go."""
    result: Object = {}
    for number, value in _fields(raw):
        name, of = _MESSAGES[kind].get(number, ("", ""))
        if not name:
            continue
        if of.startswith("{}"):
            entry = dict(_fields(value))
            result.setdefault(name, {})[_value("string", entry.get(1, b""))] = _value(of[2:], entry.get(2, b""))
        elif of.startswith("[]"):
            result.setdefault(name, []).append(_value(of[2:], value))
        elif item := _value(of, value):
            result[name] = item
    return result


def _value(kind: str, raw: Any) -> Any:
    match kind:
        case "string":
            return raw.decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "bool":
            return bool(raw)
    return _message(kind, raw)


def _fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    """Number and raw value of the fields of a message: an int, or bytes."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(raw, at)
            yield number, value
            continue
        if wire == 2:
            length, at = _varint(raw, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"unknown wire type {wire}")
        if at + length > len(raw):
            raise ValueError("it ends too early")
        yield number, raw[at : at + length]
        at += length


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (raw[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 0x80:
            return value, at
