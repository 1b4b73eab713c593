"""Lists: filter, order, pages; and the same over all regions or zones (`aggregatedList`).

https://cloud.google.com/compute/docs/reference/rest/v1/networks/list and
https://cloud.google.com/compute/docs/reference/rest/v1/subnetworks/aggregatedList.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence

from sandbox.clouds import Answer, Call, Document
from sandbox.gcp.errors import invalid
from sandbox.gcp.filters import matcher
from sandbox.gcp.names import link, path_of

__all__ = ["aggregated_answer", "list_answer"]

_MOST = 500


def list_answer(call: Call, kind: str, own_path: str, documents: Iterable[Document]) -> Answer:
    """One page of a list; `own_path` is the list's own path."""
    page, token = _page(call, documents)
    answer: Document = {"kind": f"{kind}List", "id": own_path, "selfLink": link(own_path)}
    if page:
        answer["items"] = page
    if token:
        answer["nextPageToken"] = token
    return Answer(answer)


def aggregated_answer(
    call: Call, kind: str, own_path: str, noun: str, documents: Iterable[Document], scopes: Sequence[str]
) -> Answer:
    """One page of a list over scopes; scopes without results on this page carry a warning.

    Args:
        call: The call.
        kind: Kind of the single resource, `compute#subnetwork`.
        own_path: The list's own path.
        noun: The member that holds the resources of one scope, such as `subnetworks`.
        documents: All resources.
        scopes: All scopes, such as `regions/europe-west3`.
    """
    page, token = _page(call, documents)
    items: dict[str, Document] = {}
    for scope in scopes:
        here = [document for document in page if f"/{scope}/" in f"/{path_of(document['selfLink'])}"]
        items[scope] = {noun: here} if here else {"warning": _nothing(scope)}
    answer: Document = {"kind": f"{kind}AggregatedList", "id": own_path, "items": items, "selfLink": link(own_path)}
    if token:
        answer["nextPageToken"] = token
    return Answer(answer)


def _nothing(scope: str) -> Document:
    return {
        "code": "NO_RESULTS_ON_PAGE",
        "message": f"There are no results for scope '{scope}' on this page.",
        "data": [{"key": "scope", "value": scope}],
    }


def _page(call: Call, documents: Iterable[Document]) -> tuple[list[Document], str | None]:
    test = matcher(call.query.get("filter", ""))
    found = sorted((document for document in documents if test(document)), key=_key)
    order = call.query.get("orderBy", "name")
    if order.startswith("creationTimestamp"):
        found.sort(key=lambda document: document.get("creationTimestamp", ""), reverse=order.endswith(" desc"))
    elif order != "name":
        raise invalid("orderBy", order, "Sorting is by name or creationTimestamp desc only.")
    start = _start(call.query.get("pageToken", ""))
    size = _size(call.query.get("maxResults", str(_MOST)))
    page = found[start : start + size]
    more = start + size < len(found) and size > 0
    return page, base64.urlsafe_b64encode(str(start + size).encode()).decode() if more else None


def _key(document: Document) -> tuple[str, str]:
    return str(document.get("name", "")), str(document.get("selfLink", ""))


def _start(token: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(token)) if token else 0
    except (binascii.Error, ValueError):
        raise invalid("pageToken", token, "The page token is malformed.") from None


def _size(text: str) -> int:
    if not text.isdigit() or int(text) > _MOST:
        raise invalid("maxResults", text, f"Must be between 0 and {_MOST}, inclusive")
    return int(text) or _MOST
