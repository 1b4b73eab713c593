"""Calls to a Kubernetes API server, and the one place where its refusals become failures of Trellis.

Objects stay the dictionaries that the server sends: the garden's kinds have no models in the client, and of a pod or a
namespace only a few fields are read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration

from activities.gardener.kubeconfig import from_file, short_lived
from domain.errors import Code, TrellisError

__all__ = ["Api", "ExpiredError", "Object", "suppress_not_found"]

Object = dict[str, Any]

# What the servers' audit logs show.
_USER_AGENT = "trellis"
_CALL_TIMEOUT = 60.0
_CONNECT_TIMEOUT = 10.0
_LOOK_PAUSES = (0.0, 0.2, 0.5, 1.0)
_MERGE_PATCH = "application/merge-patch+json"
_FIELD_ERRORS = ("Invalid value:", "Unsupported value:", "Required value", "Duplicate value:")
_QUOTA_ERRORS = ("exceeded quota", "quota limits exceeded")


class ExpiredError(Exception):
    """The version to watch from is too old: list again."""


@contextmanager
def suppress_not_found() -> Iterator[None]:
    """Around calls for which what is not there is no failure."""
    try:
        yield
    except TrellisError as error:
        if error.failure.code is not Code.NOT_FOUND:
            raise


class Api:
    """One API server, as one user."""

    def __init__(self, configuration: Configuration, name: str) -> None:
        """`name` is what error messages call the server."""
        self._client = ApiClient(configuration)
        self._client.user_agent = _USER_AGENT
        self._name = name

    @classmethod
    async def from_file(cls, kubeconfig: Path) -> Self:
        """The garden, as its kubeconfig says; raises as `kubeconfig.from_file`."""
        return cls(await from_file(kubeconfig), "the garden")

    @classmethod
    def from_kubeconfig(cls, kubeconfig: bytes, name: str) -> Self:
        """A server whose kubeconfig came over the wire; raises as `kubeconfig.short_lived`."""
        with short_lived(kubeconfig, name) as configuration:
            return cls(configuration, name)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Object:
        """Read an object or a list; 404 is `not-found`. All methods raise `TrellisError` as `_failure` maps it."""
        return await self._call("GET", path, query=query)

    async def find(self, path: str, query: Mapping[str, str] | None = None) -> Object | None:
        """The object, or None once several looks have not found it: one alone may miss what was made a moment ago."""
        for pause in _LOOK_PAUSES:
            await asyncio.sleep(pause)
            with suppress_not_found():
                return await self.get(path, query)
        return None

    async def read_all(self, path: str, query: Mapping[str, str] | None = None) -> tuple[list[Object], str]:
        """All items, page by page, and the version of the whole to watch from."""
        items: list[Object] = []
        query = {"limit": "500", **(query or {})}
        while True:
            page = await self.get(path, query)
            items += page["items"]
            meta = page["metadata"]
            if not meta.get("continue"):
                return items, meta["resourceVersion"]
            query["continue"] = meta["continue"]

    async def post(self, path: str, body: Object) -> Object:
        """Create an object; 409 is `conflict`."""
        return await self._call("POST", path, body=body)

    async def patch(self, path: str, body: Object) -> Object:
        """Merge `body` into an object."""
        return await self._call("PATCH", path, body=body, content_type=_MERGE_PATCH)

    async def delete(self, path: str, uid: str | None = None) -> None:
        """Delete an object, only the one with this uid where it is given; gone already is success."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        with suppress_not_found():
            await self._call("DELETE", path, body={**body, "preconditions": {"uid": uid}} if uid else body)

    async def watch(self, path: str, version: str, seconds: int) -> AsyncGenerator[tuple[str, Object]]:
        """Events after `version` as (type, object), for at most so many seconds; first a bookmark: the server answers.

        Raises:
            ExpiredError: if the server does not remember that version any more.
        """
        query = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(seconds)
        try:
            response = await self._send("GET", path, query, timeout=seconds + 30)
            async with response:
                if response.status == 410:
                    raise ExpiredError
                await self._check("GET", path, response)
                yield "BOOKMARK", {"metadata": {"resourceVersion": version}}
                async for line in response.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        if event["object"].get("code") == 410:
                            raise ExpiredError
                        raise self._failure("GET", path, event["object"].get("code", 500), event["object"])
                    yield event["type"], event["object"]
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise self._unavailable("GET", path, error) from None

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        try:
            response = await self._send(method, path, query, body, content_type)
            async with response:
                await self._check(method, path, response)
                answer: Object = await response.json(content_type=None)
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise self._unavailable(method, path, error) from None

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Object | None = None,
        content_type: str = "application/json",
        timeout: float = _CALL_TIMEOUT,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        request = await self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        method, url, headers, body, _ = request
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=_CONNECT_TIMEOUT)
        answer = await self._client.call_api(method, url, headers, body, _request_timeout=limits)
        response: aiohttp.ClientResponse = answer.response
        return response

    async def _check(self, method: str, path: str, response: aiohttp.ClientResponse) -> None:
        if response.status < 400:
            return
        text = await response.text()
        try:
            status = json.loads(text)
        except ValueError:
            status = None
        raise self._failure(
            method, path, response.status, status if isinstance(status, dict) else {"message": text[:500]}
        )

    def _failure(self, method: str, path: str, code: int, status: Object) -> TrellisError:
        message = status.get("message") or f"HTTP status {code}"
        what = f"{method} {path} at {self._name}: {message}"
        match code:
            case 400 | 405 | 415 | 422:
                return TrellisError(Code.INVALID, f"{what}{_causes(status)}", "mend what the message names")
            case 401:
                return TrellisError(Code.FORBIDDEN, what, f"the credentials for {self._name} are refused: renew them")
            case 403:
                return _forbidden(what, message)
            case 404:
                return TrellisError(Code.NOT_FOUND, what)
            case 409 if status.get("reason") != "AlreadyExists":
                return TrellisError(Code.BUSY, what)  # somebody else wrote at the same time
            case 409:
                return TrellisError(Code.CONFLICT, what)
            case 429:
                return TrellisError(Code.THROTTLED, what)
            case _:
                return TrellisError(Code.UNAVAILABLE, what)

    def _unavailable(self, method: str, path: str, error: Exception) -> TrellisError:
        cause = str(error) or type(error).__name__
        return TrellisError(Code.UNAVAILABLE, f"{method} {path} at {self._name}: no answer: {cause}")


def _forbidden(what: str, message: str) -> TrellisError:
    """Admission plugins answer 403 whatever they dislike; the text tells what it is about."""
    if any(each in message.lower() for each in _QUOTA_ERRORS):
        return TrellisError(Code.QUOTA, what, "raise the garden project's quota, or delete what is not needed")
    if any(each in message for each in _FIELD_ERRORS):
        return TrellisError(Code.INVALID, what, "mend what the message names")
    return TrellisError(Code.FORBIDDEN, what, "give the worker's user the permission that the message names")


def _causes(status: Object) -> str:
    causes = (status.get("details") or {}).get("causes") or []
    texts = [f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in causes]
    missing = [text for text in texts if text not in status.get("message", "")]
    return f" [{'; '.join(missing)}]" if missing else ""
