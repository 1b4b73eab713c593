"""Connections to Alibaba Cloud, shared by all shoots with the same credentials and region."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import httpx
from alibabacloud_tea_openapi.client import Client
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
from alibabacloud_tea_openapi.utils_models import Config, OpenApiRequest, Params
from darabonba.runtime import RuntimeOptions
from Tea.exceptions import TeaException, UnretryableException

from sandbox.garden.providers import CloudError
from sandbox.garden.providers.alicloud.codes import cloud_error, go_text
from sandbox.kube import Object

__all__ = ["Json", "Listing", "Session", "Sessions", "register_key", "tag_of", "tagged"]

Json: TypeAlias = dict[str, Any]
# The members of an answer that lead to a list.
Listing: TypeAlias = tuple[str, str]

_VERSIONS = {"vpc": "2016-04-28", "vpcpeer": "2022-01-01", "ecs": "2014-05-26"}
_HOSTS = {"vpc": "vpc.{region}.aliyuncs.com", "vpcpeer": "vpcpeer.aliyuncs.com", "ecs": "ecs.{region}.aliyuncs.com"}
_PAGE = 50
# What Gardener tries again by itself (`callApi`). It does so four times, every five seconds; here it is oftener and
# sooner, since things take less time here.
_AGAIN = ("Throttling.User", "TaskConflict")
_AGAIN_SECONDS = 30.0
_WAIT_SECONDS = 180.0
# How long a deletion may be refused for what was inside until a moment ago.
_SETTLE_SECONDS = 5.0
_LONGEST_NAP = 1.0
_START_SECONDS = 30.0


class Session:
    """One account in one region. Every method raises CloudError for what the cloud refuses."""

    def __init__(self, endpoint: str | None, region: str, credentials: Mapping[str, str]) -> None:
        split = urlsplit(endpoint or "")
        self.region = region
        self._clients = {
            product: Client(
                Config(
                    access_key_id=credentials["accessKeyID"],
                    access_key_secret=credentials["accessKeySecret"],
                    endpoint=split.netloc or host.format(region=region),
                    protocol=(split.scheme or "https").upper(),
                    connect_timeout=5_000,
                    read_timeout=30_000,
                )
            )
            for product, host in _HOSTS.items()
        }

    def call(self, product: str, action: str, **query: Any) -> Json:
        """The answer to an action of a product; a parameter `Tag__1__Key` is called `Tag.1.Key`."""
        deadline, nap = time.monotonic() + _AGAIN_SECONDS, 0.05
        while True:
            try:
                return self._once(product, action, query)
            except AlibabaCloudException as error:
                if error.code not in _AGAIN or time.monotonic() > deadline:
                    raise cloud_error(go_text(error)) from error
            except (UnretryableException, TeaException) as error:
                raise cloud_error(f"{type(error).__name__}: {error}") from error
            # Those who got into each other's way must not meet again.
            time.sleep(nap * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            nap = min(2 * nap, _LONGEST_NAP)

    def listed(self, product: str, action: str, listing: Listing, **query: Any) -> list[Json]:
        """All pages of a list."""
        found: list[Json] = []
        number = 1
        while True:
            answer = self.call(product, action, PageNumber=number, PageSize=_PAGE, **query)
            page = answer[listing[0]][listing[1]]
            found += page
            if not page or len(found) >= answer["TotalCount"]:
                return found
            number += 1

    def found(self, look: Callable[[], list[Json]], what: str) -> Json:
        """The only one of a list, which must be there: it was made a moment ago."""
        return self.until(look, what, None)

    def until(self, look: Callable[[], list[Json]], what: str, status: str | None) -> Json:
        """The only one of a list, once it is there and (unless None) in a status."""
        deadline, nap = time.monotonic() + _WAIT_SECONDS, 0.02
        while True:
            found = look()
            if found and status in (None, found[0].get("Status")):
                return found[0]
            if time.monotonic() > deadline:
                state = found[0].get("Status") if found else "not there"
                raise cloud_error(f"timeout while waiting for state to become {status or 'present'}: {what} is {state}")
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)

    def delete(self, product: str, action: str, look: Callable[[], list[Json]], **query: Any) -> None:
        """Delete something and see it gone; gone already is fine."""
        deadline, nap = time.monotonic() + _SETTLE_SECONDS, 0.05
        while look():
            try:
                self.call(product, action, **query)
            except CloudError as error:
                if not _passes(error) or time.monotonic() > deadline:
                    if "NotFound" in str(error):
                        return
                    raise
            else:
                break
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)
        self.await_gone(look, action)

    def await_gone(self, look: Callable[[], list[Json]], what: str) -> None:
        """Wait until a list is empty."""
        deadline, nap = time.monotonic() + _WAIT_SECONDS, 0.02
        while look():
            if time.monotonic() > deadline:
                raise cloud_error(f"timeout while waiting for state to become absent: {what}")
            time.sleep(nap)
            nap = min(2 * nap, _LONGEST_NAP)

    def _once(self, product: str, action: str, query: Mapping[str, Any]) -> Json:
        parameters = Params(
            action=action,
            version=_VERSIONS[product],
            protocol="HTTPS",
            pathname="/",
            method="POST",
            auth_type="AK",
            style="RPC",
            req_body_type="formData",
            body_type="json",
        )
        plain = {name.replace("__", "."): str(value) for name, value in query.items() if value is not None}
        request = OpenApiRequest(query={"RegionId": self.region, **plain})
        body: Json = self._clients[product].call_api(parameters, request, RuntimeOptions())["body"]
        return body


class Sessions:
    """All sessions with one endpoint; None is Alibaba Cloud itself."""

    def __init__(self, endpoint: str | None) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, ...], Session] = {}

    def get(self, region: str, credentials: Mapping[str, str]) -> Session:
        """The session for these credentials; made when first asked for. Raises CloudError if they are incomplete."""
        for field in ("accessKeyID", "accessKeySecret"):
            if not credentials.get(field):
                raise CloudError(f'missing "{field}" field in secret')
        key = (region, credentials["accessKeyID"], credentials["accessKeySecret"])
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = Session(self._endpoint, region, credentials)
            return self._sessions[key]


def register_key(endpoint: str, credentials: Mapping[str, str]) -> None:
    """Makes a key known to a sandbox's Alibaba Cloud, which may still be about to start."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            answer = httpx.post(f"{endpoint}/sandbox/keys", json=dict(credentials), trust_env=False)
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            answer.raise_for_status()
            return


def tagged(tags: Mapping[str, str]) -> Object:
    """Tags as parameters of a call."""
    parameters: Object = {}
    for number, (key, value) in enumerate(tags.items(), 1):
        parameters |= {f"Tag__{number}__Key": key, f"Tag__{number}__Value": value}
    return parameters


def tag_of(thing: Json, key: str) -> str:
    """The value of a tag of something listed; "" without it."""
    for each in thing["Tags"]["Tag"]:
        if (each.get("Key") or each.get("TagKey")) == key:
            return str(each.get("Value") or each.get("TagValue") or "")
    return ""


def _passes(error: CloudError) -> bool:
    return "DependencyViolation" in str(error) or "ErrorCode: Incorre" in str(error)
