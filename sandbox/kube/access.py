"""Who may do what: what `authorize` is asked, and the reviews with which clients ask the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.requests import Request

from sandbox.kube.errors import Denied
from sandbox.kube.resources import Object, Resource

ANONYMOUS = "system:anonymous"


@dataclass(frozen=True)
class Action:
    """What a request wants, for `authorize`.

    Attributes:
        server: The API server.
        verb: get, list, watch, create, update, patch, delete, deletecollection; in lower case.
        resource: The kind, None for paths that are no resource (discovery, /version).
        namespace: The namespace, "" for all or none.
        name: The object's name, "" for all.
        subresource: "status", "adminkubeconfig", "proxy" or "".
    """

    server: str
    verb: str
    resource: Resource | None = None
    namespace: str = ""
    name: str = ""
    subresource: str = ""


Authorize = Callable[[Request, Action], str]


def bearer_token(request: Request) -> str | None:
    """The bearer token of a request, if it has one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token else None


def anyone(_request: Request, _action: Action) -> str:
    """Lets everyone do everything, under the name of nobody."""
    return ANONYMOUS


def reviews(server: Callable[[Request], str], resources: Iterable[Resource], authorize: Authorize) -> list[Resource]:
    """The kinds SelfSubjectReview (`kubectl auth whoami`) and SelfSubjectAccessReview (`kubectl auth can-i`)."""
    known = {(resource.group, resource.plural): resource for resource in resources}

    async def who(request: Request, review: Object) -> Object:
        user = authorize(request, Action(server(request), "create"))
        return {**review, "status": {"userInfo": {"username": user}}}

    async def may(request: Request, review: Object) -> Object:
        asked = (review.get("spec") or {}).get("resourceAttributes") or {}
        resource = known.get((asked.get("group", ""), asked.get("resource", "")))
        if resource is None:
            return {**review, "status": {"allowed": False, "reason": "this server has no such resource"}}
        place = [asked.get(name, "") for name in ("namespace", "name", "subresource")]
        try:
            authorize(request, Action(server(request), asked.get("verb", ""), resource, *place))
        except Denied as error:
            return {**review, "status": {"allowed": False, "reason": error.message}}
        return {**review, "status": {"allowed": True}}

    return [
        Resource("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False, answer=who),
        Resource(
            "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False, answer=may
        ),
    ]
