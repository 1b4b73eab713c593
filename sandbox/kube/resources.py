"""How a kind of object is described to the API server."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.requests import Request

Object = dict[str, Any]
Handler = Callable[[Request, Object], Awaitable[Object]]
Verb = Literal["create", "update", "delete"]


@dataclass
class Admission:
    """One change on its way into the store.

    An `admit` hook may change `new` in place (defaults) or raise `Denied`.

    Attributes:
        verb: What is about to happen. Patches and applies are updates (or creations).
        resource: The kind of the object.
        server: The API server (as in `Store`) that was asked.
        new: The object as it will be stored; for `delete` the object as it is now.
        old: The object as it is now; None for `create`.
        subresource: "" or "status".
        options: The query parameters of the request; for `delete` merged with the DeleteOptions of the body.
        user: Who asks, as `authorize` named it.
    """

    verb: Verb
    resource: Resource
    server: str
    new: Object
    old: Object | None
    subresource: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    user: str = ""

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be stored."""
        return bool(self.options.get("dryRun"))


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`.

    Attributes:
        name: The heading.
        source: A path as in `lookup`, or a function of the object.
        type: OpenAPI type; values of a "date" column are printed as an age.
        priority: Columns above 0 appear with `-o wide` only.
    """

    name: str
    source: str | Callable[[Object], Any]
    type: str = "string"
    priority: int = 0


NAME = Column("Name", ".metadata.name")
AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, eq=False)
class Resource:
    """A kind of object that an API server keeps.

    Attributes:
        group: API group, "" for core.
        version: Version, such as `v1beta1`.
        kind: `Shoot`.
        plural: `shoots`.
        namespaced: Whether objects live in a namespace.
        short_names: Short names for kubectl.
        columns: Columns of `kubectl get`. The name comes first, unless a column of theirs is called Name.
        admit: Called for every change before it is stored.
        status: Whether there is a `status` subresource. If so, only it changes `.status`.
        subresources: POST handlers by name, such as `adminkubeconfig`: given the request and the object, the
            answer's body.
        fields: Paths beside metadata.name and metadata.namespace that a field selector may name, such as
            `spec.nodeName`.
        categories: Groups of kinds for kubectl, such as `all`.
        answer: For kinds that are asked, not kept (SelfSubjectAccessReview): given the request and the posted
            object, the answer. Such a kind has the verb `create` alone.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (AGE,)
    admit: Callable[[Admission], None] | None = None
    status: bool = True
    subresources: Mapping[str, Handler] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    answer: Handler | None = None

    @property
    def key(self) -> str:
        """The name of the resource in the store: `shoots.core.gardener.cloud`, or `secrets` for core ones."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


def lookup(obj: Object, path: str) -> Any:
    r"""What a path leads to, or None: `.spec.items[0].name`, `status.conditions[?(@.type=="Ready")].status`.

    A dot within a key is written `\.`.
    """
    value: Any = obj
    for name, index, key, wanted in _steps(path):
        if name:
            value = value.get(name) if isinstance(value, dict) else None
        elif not isinstance(value, list):
            return None
        elif index:
            value = value[int(index)] if int(index) < len(value) else None
        else:
            value = next((item for item in value if isinstance(item, dict) and item.get(key) == wanted), None)
    return value


_STEP = re.compile(
    r"""\.?(?P<name>(?:\\.|[^.\[\]\\])+)
    | \[(?P<index>\d+)\]
    | \[\?\(@\.(?P<key>\w+)\s*==\s*["'](?P<wanted>[^"']*)["']\)\]""",
    re.VERBOSE,
)


@functools.cache
def _steps(path: str) -> list[tuple[str, str, str, str]]:
    steps, end = [], 0
    while end < len(path):
        found = _STEP.match(path, end)
        if not found:
            raise ValueError(f"{path!r} is no path that can be followed: see {path[end:]!r}")
        name, index, key, wanted = (group or "" for group in found.groups())
        steps.append((name.replace("\\.", "."), index, key, wanted))
        end = found.end()
    return steps
