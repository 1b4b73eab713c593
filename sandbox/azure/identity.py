"""Entra ID: service principals, their tokens, and who may do what.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow,
https://learn.microsoft.com/entra/identity-platform/reference-error-codes and
https://learn.microsoft.com/azure/role-based-access-control/troubleshooting (AuthorizationFailed).
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
import uuid
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl

import jwt
from pydantic import BaseModel, ConfigDict, ValidationError

from sandbox.azure.errors import refused
from sandbox.clouds import Answer, Call, Cloud, Document, Refusal

__all__ = ["Identity", "base_url"]

_PRINCIPALS = "principals"
_KEYS = "signing-keys"
_LIFE = 3600


class _NewPrincipal(BaseModel):
    """What is asked for: patterns of actions, such as `Microsoft.Network/virtualNetworks/*`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    actions: tuple[str, ...] = ("*",)


class Identity:
    """Knows the callers. The token of one that it does not know is good for everything, while that is allowed."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._store = cloud.store
        stored = self._store.get(_KEYS, "")
        if stored is None:
            stored = {"key": secrets.token_hex(32)}
            self._store.put(_KEYS, "", stored)
        self._key: str = stored["key"]

    def make_principal(self, call: Call) -> Answer:
        """A new service principal of a subscription, as the keys of the Secret that Gardener reads.

        `POST /sandbox/subscriptions/{subscription}/principals`, with `actions` in the body, optional.
        """
        try:
            wanted = _NewPrincipal.model_validate(json.loads(call.content or b"{}"))
        except (ValidationError, ValueError) as error:
            raise Refusal(Answer({"error": f"this is no request for a principal: {error}"}, 400)) from None
        client, tenant, secret = str(uuid.uuid4()), str(uuid.uuid4()), secrets.token_urlsafe(30)
        subscription = call.at["subscription"]
        principal = {
            "tenant": tenant,
            "secret": secret,
            "subscription": subscription,
            "object": str(uuid.uuid4()),
            "actions": [action.lower() for action in wanted.actions],
        }
        self._store.put(_PRINCIPALS, client, principal)
        return Answer(
            {"clientID": client, "clientSecret": secret, "subscriptionID": subscription, "tenantID": tenant}, 201
        )

    def instances(self, call: Call) -> Answer:
        """Instance discovery: this authority is known under its own name."""
        host = call.headers["host"]
        entry = {"preferred_network": host, "preferred_cache": host, "aliases": [host]}
        endpoint = f"{base_url(call)}/common/v2.0/.well-known/openid-configuration"
        return Answer({"tenant_discovery_endpoint": endpoint, "api-version": "1.1", "metadata": [entry]})

    def configuration(self, call: Call) -> Answer:
        """The OpenID metadata of a tenant."""
        tenant, base = call.at["tenant"], base_url(call)
        return Answer(
            {
                "token_endpoint": f"{base}/{tenant}/oauth2/v2.0/token",
                "authorization_endpoint": f"{base}/{tenant}/oauth2/v2.0/authorize",
                "device_authorization_endpoint": f"{base}/{tenant}/oauth2/v2.0/devicecode",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
                "response_types_supported": ["code", "id_token"],
                "scopes_supported": ["openid", "profile", "email", "offline_access"],
                "subject_types_supported": ["pairwise"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "issuer": f"{base}/{tenant}/v2.0",
                "jwks_uri": f"{base}/{tenant}/discovery/v2.0/keys",
            }
        )

    def token(self, call: Call) -> Answer:
        """The token endpoint: client credentials for an access token."""
        form = dict(parse_qsl(call.content.decode(errors="replace")))
        client, tenant = form.get("client_id", ""), call.at["tenant"]
        if form.get("grant_type") != "client_credentials":
            return self._refuse(call, 400, "unsupported_grant_type", 70003, "The app requested an unsupported grant.")
        if not form.get("scope", "").endswith("/.default"):
            message = (
                "The provided value for scope is not valid. Client credential flows must have a scope value with "
                "/.default suffixed to the resource identifier."
            )
            return self._refuse(call, 400, "invalid_scope", 1002012, message)
        principal = self._store.get(_PRINCIPALS, client)
        if principal is None and not self._cloud.settings.anonymous:
            message = f"Application with identifier '{client}' was not found in the directory '{tenant}'."
            return self._refuse(call, 400, "unauthorized_client", 700016, message)
        if principal is not None and principal["tenant"] != tenant:
            message = f"Application with identifier '{client}' was not found in the directory '{tenant}'."
            return self._refuse(call, 400, "unauthorized_client", 700016, message)
        if principal is not None and not hmac.compare_digest(principal["secret"], form.get("client_secret", "")):
            message = (
                "Invalid client secret provided. Ensure the secret being sent in the request is the client secret "
                f"value, not the client secret ID, for a secret added to app '{client}'."
            )
            return self._refuse(call, 401, "invalid_client", 7000215, message)
        now = int(time.time())
        claims = {
            "aud": form["scope"].removesuffix("/.default"),
            "iss": f"https://sts.windows.net/{tenant}/",
            "iat": now,
            "nbf": now,
            "exp": now + _LIFE,
            "appid": client,
            "oid": principal["object"] if principal else client,
            "tid": tenant,
        }
        token = jwt.encode(claims, self._key, algorithm="HS256")
        return Answer({"token_type": "Bearer", "expires_in": _LIFE, "ext_expires_in": _LIFE, "access_token": token})

    def check(self, call: Call, action: str) -> None:
        """Refuse callers who are unknown, or may not.

        Args:
            call: The call.
            action: What the method needs, such as `Microsoft.Network/virtualNetworks/write`.
        """
        header = call.headers.get("authorization")
        if header is None:
            message = "Authentication failed. The 'Authorization' header is missing."
            raise self._unauthenticated(call, "AuthenticationFailed", message)
        claims = self._claims(call, header.removeprefix("Bearer ").strip())
        principal = self._store.get(_PRINCIPALS, claims["appid"])
        if principal is None:
            return  # it got its token while everybody was let in
        allowed = any(fnmatchcase(action.lower(), pattern) for pattern in principal["actions"])
        subscription = call.at.get("subscription", principal["subscription"])
        if not allowed or subscription.lower() != principal["subscription"].lower():
            message = (
                f"The client '{claims['appid']}' with object id '{claims['oid']}' does not have authorization to "
                f"perform action '{action}' over scope '{call.path}' or the scope is invalid. If access was recently "
                "granted, please refresh your credentials."
            )
            raise refused(403, "AuthorizationFailed", message)

    def seen_by(self, call: Call) -> tuple[str, str | None]:
        """The caller's tenant, and the subscription that it has a role in; None for one that may see all."""
        claims = self._claims(call, call.headers["authorization"].removeprefix("Bearer ").strip())
        principal = self._store.get(_PRINCIPALS, claims["appid"])
        return claims["tid"], principal["subscription"] if principal else None

    def _claims(self, call: Call, token: str) -> Document:
        try:
            options = {"verify_aud": False, "verify_exp": False, "verify_nbf": False, "verify_iat": False}
            claims: Document = jwt.decode(token, self._key, algorithms=["HS256"], options=options)  # type: ignore[arg-type]
        except jwt.InvalidTokenError:
            raise self._unauthenticated(call, "InvalidAuthenticationToken", "The access token is invalid.") from None
        # By the machine's clock, as its clients go: a server whose clock is set ahead would lock all of them out.
        if claims["exp"] <= time.time():
            message = "The access token expiry is earlier than current time. Please provide a new access token."
            raise self._unauthenticated(call, "ExpiredAuthenticationToken", message)
        return claims

    def _unauthenticated(self, call: Call, code: str, message: str) -> Refusal:
        challenge = f'Bearer authorization_uri="{base_url(call)}/common", error="invalid_token"'
        return refused(401, code, message, headers={"WWW-Authenticate": challenge})

    def _refuse(self, call: Call, status: int, error: str, number: int, message: str) -> Answer:
        trace, correlation = str(uuid.uuid4()), str(uuid.uuid4())
        stamp = datetime.fromtimestamp(self._cloud.now(), UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        text = f"AADSTS{number}: {message} Trace ID: {trace} Correlation ID: {correlation} Timestamp: {stamp}"
        return Answer(
            {
                "error": error,
                "error_description": text,
                "error_codes": [number],
                "timestamp": stamp,
                "trace_id": trace,
                "correlation_id": correlation,
                "error_uri": f"{base_url(call)}/error?code={number}",
            },
            status,
        )


def base_url(call: Call) -> str:
    """Where the caller found this server, perhaps through a proxy: links lead back there."""
    return f"https://{call.headers['host']}"
