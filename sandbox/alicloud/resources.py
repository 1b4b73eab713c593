"""Resources of every kind: where they are kept, how long their changes take, and how they are shown.

A resource is stored as it is shown, plus members that begin with `_`. While an operation works on one, its Status says
so, and whatever needs it is refused.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import refused
from sandbox.clouds import Cloud, Document, Operation

__all__ = ["Kind", "Resources", "iso", "page", "shown", "tag_list", "token_page"]

_LAGS = "settling"
_SETTLING = "Settling"


@dataclass(frozen=True)
class Kind:
    """A kind of resource.

    Attributes:
        name: As in the store, and in the dependency errors of a VPC.
        prefix: What its ids begin with.
        id: The member that holds the id.
        missing: The code and message of a resource that is not there; HTTP status 404.
    """

    name: str
    prefix: str
    id: str
    missing: tuple[str, str]


class Resources:
    """All resources of one server."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self._store = cloud.store
        self._kinds: dict[str, Kind] = {}
        self._ends: dict[str, Callable[[str, Document], None]] = {}

    def finishing(self, verb: str, kind: Kind, then: Callable[[str, Document], None] | None = None) -> None:
        """Declare an action that takes time; `then` is called when it is done, with the place and the resource."""
        self._kinds[verb] = kind
        self.cloud.finishers[verb] = self._finish
        if then is not None:
            self._ends[verb] = then

    # What is there.

    def all(self, kind: Kind, place: str | None = None) -> list[Document]:
        """All of a kind in a place, or everywhere, in order of creation."""
        found = [document for _, document in self._store.list(kind.name, f"{place}/" if place else "")]
        return sorted(found, key=lambda document: (document["_made"], document[kind.id]))

    def inside(self, kind: Kind, place: str, vpc_id: str) -> list[Document]:
        """All of a kind in a VPC."""
        return [document for document in self.all(kind, place) if document.get("VpcId") == vpc_id]

    def seen(self, kind: Kind, place: str) -> list[Document]:
        """What a read sees of a kind; the newest may not be visible yet."""
        return [
            document
            for document in self.all(kind, place)
            if self.cloud.visible(kind.name, f"{place}/{document[kind.id]}")
        ]

    def get(self, kind: Kind, place: str, resource_id: str) -> Document | None:
        """One resource, or None."""
        return self._store.get(kind.name, f"{place}/{resource_id}")

    def find(self, kind: Kind, place: str, resource_id: str) -> Document:
        """One resource, which must be there."""
        document = self.get(kind, place, resource_id)
        if document is None:
            raise refused(404, *kind.missing)
        return document

    def ready(self, kind: Kind, place: str, resource_id: str, code: str, *, status: str = "Available") -> Document:
        """The same, in a status in which it can be worked on; refused with `code` otherwise."""
        document = self.find(kind, place, resource_id)
        if document["Status"] != status:
            raise refused(400, code, f"Current {kind.name} status does not support this operation.")
        return document

    def limit(self, quota: str, default: int) -> int:
        """A quota's limit: what the settings say, or Alibaba Cloud's default."""
        return self.cloud.settings.quotas.get(quota, default)

    # What changes.

    def add(self, ask: Ask, kind: Kind, document: Document, *, place: str | None = None) -> Document:
        """A new resource: gets an id, what all have, and may not be visible at once."""
        place = place or ask.place
        resource_id = f"{kind.prefix}-{secrets.token_hex(10)}"
        made = {kind.id: resource_id, **document, "_made": ask.now, "_place": place}
        self.put(kind, made)
        self.cloud.hide(kind.name, f"{place}/{resource_id}")
        return made

    def put(self, kind: Kind, document: Document) -> None:
        """Write a resource."""
        self._store.put(kind.name, f"{document['_place']}/{document[kind.id]}", document)

    def drop(self, kind: Kind, document: Document) -> None:
        """Remove a resource at once. Its VPC is not ready to go for a moment."""
        self._store.delete(kind.name, f"{document['_place']}/{document[kind.id]}")
        self._settle(kind, document, self.cloud.now())

    def begin(self, verb: str, document: Document, status: str, changes: Document | None) -> None:
        """Start an action that takes time.

        Args:
            verb: The action, declared before.
            document: The resource.
            status: What it is in meanwhile.
            changes: The members that it has when the action is done; None: then it is gone.
        """
        kind = self._kinds[verb]
        self.put(kind, document | {"Status": status})
        self.cloud.start(verb, f"{document['_place']}/{document[kind.id]}", {"changes": changes})

    def settling(self, kinds: Sequence[Kind], place: str, owner_id: str) -> Kind | None:
        """The first of these kinds of which a VPC or vSwitch still counts something that is gone since a moment."""
        for kind in kinds:
            lag = self._store.get(_LAGS, f"{place}/{owner_id}/{kind.name}")
            if lag is not None and self.cloud.now() < lag["until"]:
                return kind
        return None

    def _settle(self, kind: Kind, document: Document, since: float) -> None:
        seconds = self.cloud.settings.seconds_of(_SETTLING)
        for owner in ("VpcId", "_vswitch"):
            if owner in document and seconds:
                key = f"{document['_place']}/{document[owner]}/{kind.name}"
                self._store.put(_LAGS, key, {"until": since + seconds})

    def _finish(self, operation: Operation) -> None:
        kind = self._kinds[operation.verb]
        document = self._store.get(kind.name, operation.target)
        if document is None:
            return
        changes: Document | None = operation.inputs["changes"]
        if changes is None:
            self._store.delete(kind.name, operation.target)
            self._settle(kind, document, operation.due)
        else:
            document |= changes
            self.put(kind, document)
        if operation.verb in self._ends:
            self._ends[operation.verb](document["_place"], document)


def shown(document: Document) -> Document:
    """What a client sees."""
    return {name: value for name, value in document.items() if not name.startswith("_")} | {"Tags": tag_list(document)}


def tag_list(document: Document, key: str = "Key", value: str = "Value") -> Document:
    """A resource's tags as most answers show them."""
    return {"Tag": [{key: name, value: text} for name, text in document.get("_tags", {}).items()]}


def iso(seconds: float) -> str:
    """A time as answers show it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def page(ask: Ask, outer: str, inner: str, documents: Sequence[Any], *, most: int = 50) -> Document:
    """A page by number: https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-describevpcs."""
    number, size = ask.number("PageNumber", 1, 1, 10**6), ask.number("PageSize", 10, 1, most)
    start = (number - 1) * size
    return {
        "PageNumber": number,
        "PageSize": size,
        "TotalCount": len(documents),
        outer: {inner: list(documents[start : start + size])},
    }


def token_page(ask: Ask, documents: Sequence[Any], *, default: int = 50, most: int = 100) -> tuple[list[Any], Document]:
    """A page by token, and the members that lead to the next one.

    https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-listtagresources.
    """
    size, token = ask.number("MaxResults", default, 1, most), ask.text("NextToken")
    try:
        start = int(base64.urlsafe_b64decode(token)) if token else 0
    except (binascii.Error, ValueError):
        raise refused(400, "InvalidParameter.NextToken", "The specified NextToken is not valid.") from None
    end = start + size
    more = {"NextToken": base64.urlsafe_b64encode(str(end).encode()).decode()} if end < len(documents) else {}
    return list(documents[start:end]), more
