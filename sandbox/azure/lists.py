"""Lists: pages with `nextLink`, and the `$filter` of Azure Resource Manager.

https://learn.microsoft.com/rest/api/resources/resources/list and
https://learn.microsoft.com/rest/api/resources/resource-groups/list (filters on tags, names, types and locations).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias
from urllib.parse import urlencode

from sandbox.azure.errors import refused
from sandbox.azure.identity import base_url
from sandbox.clouds import Answer, Call, Document, Refusal

__all__ = ["page", "passes"]

_Test: TypeAlias = Callable[[Document], bool]

_PAGE = 100
_COMPARISON = re.compile(
    r"\s*(?P<name>\w+)\s+(?P<operator>eq|ne)\s+'(?P<value>(?:[^']|'')*)'\s*(?:(?P<joint>and|or)\b|$)", re.IGNORECASE
)


def page(call: Call, documents: Sequence[Document]) -> Answer:
    """One page of a list, in order of id."""
    found = sorted(documents, key=lambda document: str(document["id"]).lower())
    size = _number(call, "$top", _PAGE)
    start = _number(call, "$skiptoken", 0)
    answer: Document = {"value": found[start : start + size]}
    if start + size < len(found):
        query = {**call.query, "$skiptoken": str(start + size)}
        answer["nextLink"] = f"{base_url(call)}{call.path}?{urlencode(query)}"
    return Answer(answer)


def passes(call: Call) -> _Test:
    """Whether a document passes the call's `$filter`: comparisons joined by `and`, or by `or`.

    Raises:
        Refusal: the filter cannot be read.
    """
    text = call.query.get("$filter", "")
    if not text.strip():
        return lambda _: True
    tests, joints, tag = [], set(), ""
    position = 0
    while position < len(text):
        match = _COMPARISON.match(text, position)
        if match is None:
            raise _no_filter(text)
        name, value = match["name"].lower(), match["value"].replace("''", "'")
        if name == "tagname":
            tag = value
        tests.append(_test(text, name, match["operator"].lower() == "eq", value, tag))
        if match["joint"]:
            joints.add(match["joint"].lower())
        position = match.end()
    if len(joints) > 1 or (match and match["joint"]):
        raise _no_filter(text)
    combine = any if joints == {"or"} else all
    return lambda document: combine(test(document) for test in tests)


def _test(text: str, name: str, wanted: bool, value: str, tag: str) -> _Test:
    def tags(document: Document) -> dict[str, str]:
        return {key.lower(): content for key, content in (document.get("tags") or {}).items()}

    match name:
        case "tagname":
            return lambda document: (value.lower() in tags(document)) is wanted
        case "tagvalue" if tag:
            return lambda document: (tags(document).get(tag.lower()) == value) is wanted
        case "name" | "location":
            return lambda document: (str(document[name]).lower() == value.lower()) is wanted
        case "resourcetype":
            return lambda document: (str(document["type"]).lower() == value.lower()) is wanted
        case "resourcegroup":
            return lambda document: (f"/resourcegroups/{value.lower()}/" in str(document["id"]).lower()) is wanted
        case _:
            raise _no_filter(text)


def _no_filter(text: str) -> Refusal:
    return refused(400, "InvalidFilterInQueryString", f"Invalid $filter '{text}' specified in the query string.")


def _number(call: Call, name: str, default: int) -> int:
    text = call.query.get(name, str(default))
    if not text.isdigit():
        raise refused(400, "InvalidParameter", f"The value '{text}' of parameter '{name}' is not a number.")
    return int(text) or default
