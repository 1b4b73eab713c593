"""The SDK, as a shoot's credentials open it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from keystoneauth1.exceptions import ClientException
from keystoneauth1.identity import v3
from keystoneauth1.session import Session as KeystoneSession
from openstack.connection import Connection
from openstack.exceptions import HttpException, NotFoundException, SDKException

from sandbox.garden.providers import CloudError, Order
from sandbox.garden.providers.openstack.codes import cloud_error, go_text

__all__ = ["Session", "Sessions"]

_SECONDS = 60


class Session:
    """Neutron in one region, with its errors as Gardener reports them."""

    def __init__(self, connection: Connection) -> None:
        self.project = str(connection.session.get_project_id())
        self._network: Any = connection.network

    def done(self, call: str, *arguments: Any, **fields: Any) -> Any:
        """What a method of the SDK's network client returns."""
        return self._called(lambda: getattr(self._network, call)(*arguments, **fields))

    def gone(self, call: str, thing: str) -> None:
        """Deletes something: what is not there is deleted."""
        self._called(lambda: getattr(self._network, call)(thing, ignore_missing=False), absent=True)

    def found(self, kind: str, thing: str) -> Any | None:
        """One by its id; None where there is none."""
        return self._called(lambda: getattr(self._network, f"get_{kind}")(thing), absent=True)

    def listed(self, kinds: str, **filters: Any) -> list[Any]:
        """All that pass the filters."""
        return list(self._called(lambda: list(getattr(self._network, kinds)(**filters))))

    def existing(self, kind: str, known: str | None, name: str, **filters: Any) -> Any | None:
        """One by its recorded id, else by its name (`infraflow/utils.go`, findExisting)."""
        if known and (found := self.found(kind, known)):
            return found
        named = self.listed(f"{kind}s", name=name, project_id=self.project, **filters)
        if len(named) > 1:
            raise CloudError(f'error multiple matches: found {len(named)} matches for name "{name}"')
        return named[0] if named else None

    def _called(self, call: Callable[[], Any], *, absent: bool = False) -> Any:
        try:
            return call()
        except NotFoundException as error:
            if absent:
                return None
            raise cloud_error(go_text(error)) from error
        except HttpException as error:
            raise cloud_error(go_text(error)) from error
        except (SDKException, ClientException) as error:
            raise cloud_error(f"{type(error).__name__}: {error}") from error


class Sessions:
    """All sessions; `auth_url` is Keystone's for all of them, where it is given."""

    def __init__(self, auth_url: str | None) -> None:
        self._auth_url = auth_url
        self._lock = threading.Lock()
        self._sessions: dict[tuple[Any, ...], Session] = {}

    def get(self, order: Order) -> Session:
        """The session for a shoot's credentials. Raises CloudError if they open nothing."""
        url = self._auth_url or order.credentials.get("authURL") or _url_of(order)
        key = (url, order.region, *sorted(order.credentials.items()))
        with self._lock:
            if key not in self._sessions:
                try:
                    plugin = _plugin(url, order.credentials)
                    session = KeystoneSession(auth=plugin, timeout=_SECONDS)
                    self._sessions[key] = Session(Connection(session=session, region_name=order.region))
                except (ClientException, SDKException) as error:
                    raise cloud_error(f"Authentication failed: {error}") from error
            return self._sessions[key]


def _url_of(order: Order) -> str:
    urls = order.offers["providerConfig"].get("keystoneURLs") or []
    url = next((each["url"] for each in urls if each["region"] == order.region), None)
    if url is None:
        raise CloudError(f"cannot find keystone URL for region {order.region!r}", ("ERR_CONFIGURATION_PROBLEM",))
    return str(url)


def _plugin(url: str, secret: Mapping[str, str]) -> Any:
    """As provider-openstack reads a Secret (`pkg/openstack/credentials.go`)."""
    for key in ("domainName", "tenantName"):
        if not secret.get(key):
            raise CloudError(f'missing "{key}" data key in secret data')
    if secret.get("password"):
        return v3.Password(
            url,
            username=secret.get("username"),
            password=secret["password"],
            user_domain_name=secret["domainName"],
            project_name=secret["tenantName"],
            project_domain_name=secret["domainName"],
        )
    if not secret.get("applicationCredentialSecret"):
        raise CloudError("must either specify 'password' or 'applicationCredentialSecret'")
    by_id = secret.get("applicationCredentialID")
    return v3.ApplicationCredential(
        url,
        application_credential_secret=secret["applicationCredentialSecret"],
        application_credential_id=by_id,
        application_credential_name=None if by_id else secret.get("applicationCredentialName"),
        username=None if by_id else secret.get("username"),
        user_domain_name=None if by_id else secret["domainName"],
    )
