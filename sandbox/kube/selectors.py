"""Label and field selectors, as in the query of a list or watch."""

from __future__ import annotations

import re
from collections.abc import Callable

from sandbox.kube.errors import denied
from sandbox.kube.resources import Object, Resource, lookup

Predicate = Callable[[Object], bool]

_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s=!]+)\s*(?P<op>!=|==|=)\s*(?P<value>[^\s=!]*)$")
_EXISTS = re.compile(r"^(?P<no>!?)\s*(?P<key>[^\s=!(),]+)$")
_COMMA = re.compile(r",(?![^(]*\))")  # outside parentheses


def selector(resource: Resource, labels: str, fields: str) -> Predicate:
    """One predicate for a `labelSelector` and a `fieldSelector` ("" selects everything).

    Raises:
        Denied: BadRequest for a selector that cannot be parsed or a field that cannot be selected by.
    """
    tests = [_label(term) for term in _terms(labels)] + [_field(resource, term) for term in _terms(fields)]
    return lambda obj: all(test(obj) for test in tests)


def _terms(text: str) -> list[str]:
    return [term.strip() for term in _COMMA.split(text)] if text.strip() else []


def _label(term: str) -> Predicate:
    def value(obj: Object, key: str) -> str | None:
        labels: dict[str, str] = obj["metadata"].get("labels") or {}
        return labels.get(key)

    if found := _SET.match(term):
        key, wanted = found["key"], found["op"] == "in"
        values = {item.strip() for item in found["values"].split(",")}
        return lambda obj: (value(obj, key) in values) is wanted
    if found := _EQUAL.match(term):
        key, text, equal = found["key"], found["value"], found["op"] != "!="
        return lambda obj: (value(obj, key) == text) is equal
    if found := _EXISTS.match(term):
        key, exists = found["key"], not found["no"]
        return lambda obj: (value(obj, key) is not None) is exists
    raise denied(400, f'unable to parse the label selector "{term}"')


def _field(resource: Resource, term: str) -> Predicate:
    found = _EQUAL.match(term)
    if not found:
        raise denied(400, f'unable to parse the field selector "{term}"')
    path, text, equal = found["key"], found["value"], found["op"] != "!="
    if path not in ("metadata.name", "metadata.namespace", *resource.fields):
        raise denied(400, f'field label not supported: "{path}"')
    return lambda obj: (_text(lookup(obj, path)) == text) is equal


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
