"""Resource paths, links and names.

https://cloud.google.com/compute/docs/naming-resources and
https://cloud.google.com/apis/design/resource_names (partial and full resource URLs).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from sandbox.clouds import Document
from sandbox.gcp.errors import invalid

__all__ = [
    "Place",
    "fingerprint",
    "link",
    "new_id",
    "path_of",
    "place_of",
    "reference",
    "short",
    "timestamp",
    "valid_name",
]

_BASE = "https://www.googleapis.com/compute/v1/"
_PACIFIC = timezone(timedelta(hours=-7))
_PREFIX = re.compile(r"^(https?://[^/]+)?/?(compute/(v1|beta|alpha)/)?")
_NAME = r"(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
_PATH = re.compile(
    r"projects/(?P<project>[^/]+)/(?P<scope>global|regions/[^/]+|zones/[^/]+)/(?P<collection>\w+)/(?P<name>[^/]+)"
)


@dataclass(frozen=True)
class Place:
    """A project and a scope in it: `global`, `regions/R` or `zones/Z`."""

    project: str
    scope: str

    def path(self, collection: str, name: str) -> str:
        """The path of a resource here."""
        return f"{self.prefix(collection)}{name}"

    def prefix(self, collection: str) -> str:
        """What the paths of all resources of a collection here begin with."""
        return f"projects/{self.project}/{self.scope}/{collection}/"

    @property
    def region(self) -> str | None:
        """The region's name, or None."""
        return self.scope.removeprefix("regions/") if self.scope.startswith("regions/") else None


def link(path: str) -> str:
    """The full URL of a resource: the public one, wherever this server listens, so that it outlives a port."""
    return _BASE + path


def path_of(url: str) -> str:
    """The path of a resource from a full or partial URL of it (with project)."""
    return _PREFIX.sub("", url, count=1)


def place_of(path: str) -> Place:
    """Where a resource is."""
    match = _PATH.fullmatch(path)
    if match is None:
        raise ValueError(f"{path} is no resource path")
    return Place(match["project"], match["scope"])


def short(path: str) -> str:
    """The last part of a path or URL."""
    return path.rsplit("/", 1)[-1]


def reference(field: str, url: str | None, project: str, collection: str) -> str:
    """The path that a field of a request refers to; the project may be left out of it.

    Raises:
        Refusal: the URL is none of this collection.
    """
    path = path_of(url or "")
    if not path.startswith("projects/"):
        path = f"projects/{project}/{path}"
    match = _PATH.fullmatch(path)
    if match is None or match["collection"] != collection:
        raise invalid(field, url or "", "The URL is malformed.")
    return path


def valid_name(field: str, name: str) -> str:
    """The name, if it may be one: RFC 1035, at most 63 characters.

    Raises:
        Refusal: it may not.
    """
    if not re.fullmatch(_NAME, name):
        raise invalid(field, name, f"Must be a match of regex '{_NAME}'")
    return name


def new_id() -> str:
    """A number for a new resource: 64 bits, written as a string as the API does."""
    return str(10**18 + secrets.randbelow(8 * 10**18))


def fingerprint(document: Document) -> str:
    """What changes with every change of the document."""
    public = {name: value for name, value in document.items() if not name.startswith("_") and name != "fingerprint"}
    digest = hashlib.sha256(json.dumps(public, sort_keys=True).encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def timestamp(seconds: float) -> str:
    """RFC 3339 with milliseconds and the Pacific offset, as the API writes it."""
    return datetime.fromtimestamp(seconds, _PACIFIC).isoformat(timespec="milliseconds")
