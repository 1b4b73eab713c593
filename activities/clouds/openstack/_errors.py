"""What OpenStack's errors mean, in one place.

Sources: docs.openstack.org/api-ref/network/v2 (response codes), neutron-lib's `neutron_lib.exceptions` (the `type` that
Neutron gives each error), and docs.openstack.org/keystoneauth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from keystoneauth1.exceptions import (
    AuthorizationFailure,
    AuthPluginException,
    ClientException,
    DiscoveryFailure,
    MissingAuthMethods,
)
from keystoneauth1.exceptions import ConnectionError as KeystoneConnectionError
from keystoneauth1.exceptions import EndpointNotFound as CatalogEndpointNotFound
from keystoneauth1.exceptions.http import HttpError
from openstack.exceptions import (
    EndpointNotFound,
    HttpException,
    InvalidResponse,
    NotSupported,
    SDKException,
    ServiceDisabledException,
    ServiceDiscoveryException,
)
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ConnectTimeout, ProxyError, SSLError
from urllib3.exceptions import MaxRetryError, NewConnectionError

from domain.errors import Code, TrellisError

__all__ = ["attempting"]

_BY_TYPE = {
    "OverQuota": Code.QUOTA,
    "QuotaResourceUnknown": Code.INVALID,
    # Used up as well: the addresses of an external network, and the numbers of networks.
    "IpAddressGenerationFailure": Code.QUOTA,
    "IpAddressGenerationFailureAllSubnets": Code.QUOTA,
    "NoNetworkAvailable": Code.QUOTA,
    "RevisionNumberConstraintFailed": Code.BUSY,
    "StaleDataError": Code.BUSY,
}
# 498 is what the rate limit middleware of some operators says.
_THROTTLED = (429, 498)
_BY_STATUS = {
    401: Code.FORBIDDEN,
    403: Code.FORBIDDEN,
    404: Code.NOT_FOUND,
    409: Code.CONFLICT,
    412: Code.BUSY,
} | dict.fromkeys(_THROTTLED, Code.THROTTLED)
_NO_ENDPOINT = (EndpointNotFound, CatalogEndpointNotFound)
_NO_LOG_IN = (AuthorizationFailure, AuthPluginException, MissingAuthMethods)
_NO_SERVICE = (DiscoveryFailure, ServiceDiscoveryException, ServiceDisabledException, NotSupported)
_OVERLAP = re.compile(r"overlap", re.IGNORECASE)

_HINTS = {
    Code.THROTTLED: "tried again by itself, more slowly",
    Code.BUSY: "tried again by itself",
    Code.UNAVAILABLE: "tried again by itself",
    Code.NOT_FOUND: "",
    Code.CONFLICT: "remove what is in the way, or choose other ranges",
    Code.FORBIDDEN: "give the user behind the credentials a role that may do this, then retry",
    Code.INVALID: "OpenStack refuses the request as it is: change the parameter it names",
    Code.QUOTA: "have it raised (`openstack quota show`), or remove what is no longer used; then retry",
}
_UNAUTHORIZED = 401
_SERVER_ERROR = 500
_MESSAGE_LIMIT = 300
# Fernet tokens, which Keystone gives out.
_TOKENS = re.compile(r"gAAAA[\w=-]+")


@contextmanager
def attempting(what: str, *, region: str, effect: bool = True) -> Iterator[None]:
    """Turns every error of OpenStack's SDK inside the block into a `TrellisError` that begins with what was tried.

    `effect` says whether the call changes anything: only then a lost answer leaves its effect unknown.
    What was not found has code `not-found`; the caller knows whether that is gone, lost, or not visible yet.
    """
    try:
        yield
    except (SDKException, ClientException) as error:
        raise _translated(what, region, error, effect=effect) from None


def _translated(what: str, region: str, error: Exception, *, effect: bool) -> TrellisError:
    status = _status_of(error)
    if isinstance(error, HttpError) and status < _SERVER_ERROR and status not in _THROTTLED:
        # The SDK passes on what Neutron answers in exceptions of its own; these are Keystone's.
        return _bad_credentials(what, str(status))
    if status:
        return _refused(what, status, *_type_and_text(error))
    if isinstance(error, _NO_ENDPOINT):
        return TrellisError(
            Code.INVALID,
            f"{what}: Keystone's catalog has no network service in region {region!r}",
            "use a region of this OpenStack: `openstack region list`",
        )
    if isinstance(error, _NO_LOG_IN):
        return _bad_credentials(what, type(error).__name__)
    if isinstance(error, _NO_SERVICE) or _never_arrived(error):
        return TrellisError(
            Code.UNAVAILABLE,
            f"{what}: OpenStack's endpoint in {region} cannot be reached ({type(error).__name__})",
            "tried again by itself; check the worker's network and the Secret's authURL if it stays so",
        )
    if isinstance(error, (KeystoneConnectionError, InvalidResponse)):
        return _unanswered(what, error, effect=effect)
    return TrellisError(Code.INVALID, f"{what}: {type(error).__name__}: {_safe(str(error))}", _HINTS[Code.INVALID])


def _status_of(error: Exception) -> int:
    """The HTTP status that an error stands for; zero where it stands for none."""
    if isinstance(error, HttpException):
        return int(error.status_code or 0)
    return int(error.http_status or 0) if isinstance(error, HttpError) else 0


def _type_and_text(error: Exception) -> tuple[str, str]:
    """Neutron's own type of an error, and its text; a type is missing where something else answered."""
    text = str(getattr(error, "details", None) or getattr(error, "message", None) or error)
    response = getattr(error, "response", None)
    try:
        body = response.json()["NeutronError"]  # type: ignore[union-attr]
        return str(body["type"]), str(body["message"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return "", text


def _refused(what: str, status: int, kind: str, text: str) -> TrellisError:
    if status == _UNAUTHORIZED:
        return _bad_credentials(what, "401")
    code = _code_of(status, kind, text)
    return TrellisError(code, f"{what}: {kind or status}: {_safe(text)}", _HINTS[code])


def _code_of(status: int, kind: str, text: str) -> Code:
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if "InUse" in kind:
        return Code.BUSY
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= _SERVER_ERROR:
        return Code.UNAVAILABLE
    return Code.CONFLICT if _OVERLAP.search(text) else Code.INVALID


def _bad_credentials(what: str, why: str) -> TrellisError:
    # The texts of these may repeat what was sent; they are never passed on.
    return TrellisError(
        Code.FORBIDDEN,
        f"{what}: OpenStack does not accept the credentials ({why})",
        "check the user, domain, project and password, or the application credential, in the Secret behind the "
        "CredentialsBinding",
    )


def _never_arrived(error: Exception) -> bool:
    """Whether no connection was made; keystoneauth tells that from a connection that broke in its context only."""
    cause = error.__context__
    if isinstance(cause, (ConnectTimeout, ProxyError, SSLError)):
        return True
    inner = cause.args[0] if isinstance(cause, RequestsConnectionError) and cause.args else None
    return isinstance(inner, MaxRetryError) and isinstance(inner.reason, NewConnectionError)


def _unanswered(what: str, error: Exception, *, effect: bool) -> TrellisError:
    if effect:
        return TrellisError(
            Code.LOST_RESPONSE,
            f"{what}: OpenStack's answer was lost ({type(error).__name__}), so its effect is unknown",
            "tried again by itself: what was made is looked up by its description and adopted",
        )
    text = f"{what}: no answer from OpenStack ({type(error).__name__})"
    return TrellisError(Code.UNAVAILABLE, text, "tried again by itself")


def _safe(text: str) -> str:
    text = _TOKENS.sub("***", text)
    return text if len(text) <= _MESSAGE_LIMIT else f"{text[:_MESSAGE_LIMIT]}…"
