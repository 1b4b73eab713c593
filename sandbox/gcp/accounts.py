"""Service accounts: keys, tokens, and who may do what.

https://developers.google.com/identity/protocols/oauth2/service-account (a signed assertion is exchanged for a token at
`token_uri`, or is the token itself: a self-signed JWT) and
https://cloud.google.com/compute/docs/access/iam-permissions.
"""

from __future__ import annotations

import json
import secrets
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt
from pydantic import BaseModel, ConfigDict, ValidationError

from sandbox.clouds import Answer, Call, Cloud, Document, Refusal
from sandbox.gcp.errors import refused

__all__ = ["Accounts"]

_ACCOUNTS = "accounts"
_TOKENS = "tokens"
_LIFE = 3600
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class _NewKey(BaseModel):
    """What is asked for: patterns of permissions, such as `compute.networks.*`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    account: str = "trellis"
    permissions: tuple[str, ...] = ("compute.*",)


class Accounts:
    """Knows the callers."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._store = cloud.store

    def make_key(self, call: Call) -> Answer:
        """A new key of an account of a project, as the JSON file that the SDKs read.

        `POST /sandbox/projects/{project}/keys`, with `account` and `permissions` in the body, both optional.
        """
        try:
            wanted = _NewKey.model_validate(json.loads(call.content or b"{}"))
        except (ValidationError, ValueError) as error:
            raise Refusal(Answer({"error": f"this is no request for a key: {error}"}, 400)) from None
        project, key_id = call.at["project"], secrets.token_hex(20)
        email = f"{wanted.account}@{project}.iam.gserviceaccount.com"
        private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        public = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        account = {"project": project, "permissions": list(wanted.permissions), "email": email, "key": public.decode()}
        self._store.put(_ACCOUNTS, key_id, account)
        pem = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        host = call.headers["host"]
        return Answer(
            {
                "type": "service_account",
                "project_id": project,
                "private_key_id": key_id,
                "private_key": pem.decode(),
                "client_email": email,
                "client_id": str(int(key_id[:16], 16)),
                "auth_uri": f"http://{host}/o/oauth2/auth",
                "token_uri": f"http://{host}/token",
                "universe_domain": "googleapis.com",
            }
        )

    def token(self, call: Call) -> Answer:
        """The OAuth token endpoint: a signed assertion for an access token."""
        form = _form(call.content)
        if form.get("grant_type") != _GRANT:
            return _grant_error("unsupported_grant_type", "Only the JWT bearer grant is supported.")
        try:
            key_id, _ = self._verified(form.get("assertion", ""))
        except ValueError as error:
            return _grant_error("invalid_grant", f"Invalid JWT: {error}")
        token = f"ya29.{secrets.token_urlsafe(32)}"
        self._store.put(_TOKENS, token, {"key": key_id, "until": self._cloud.now() + _LIFE})
        return Answer({"access_token": token, "expires_in": _LIFE - 1, "token_type": "Bearer"})

    def check(self, call: Call, permissions: tuple[str, ...], resource: str) -> None:
        """Refuse callers who are unknown, or may not.

        Args:
            call: The call.
            permissions: All that the method needs.
            resource: The path of what it is about.
        """
        header = call.headers.get("authorization")
        if header is None and self._cloud.settings.anonymous:
            return
        account = self._account(header or "")
        for permission in permissions:
            allowed = any(fnmatchcase(permission, pattern) for pattern in account["permissions"])
            if not allowed or call.at.get("project", account["project"]) != account["project"]:
                raise refused(403, "forbidden", f"Required '{permission}' permission for '{resource}'")

    def _account(self, header: str) -> Document:
        token = header.removeprefix("Bearer ").strip()
        key_id = self._key_of(token)
        account = self._store.get(_ACCOUNTS, key_id) if key_id else None
        if account is None:
            message = (
                "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
                "valid authentication credential."
            )
            raise refused(401, "authError", message, location="Authorization", locationType="header")
        return account

    def _key_of(self, token: str) -> str | None:
        issued = self._store.get(_TOKENS, token)
        if issued is not None:
            return str(issued["key"]) if self._cloud.now() < issued["until"] else None
        try:
            return self._verified(token)[0]
        except ValueError:
            return None

    def _verified(self, assertion: str) -> tuple[str, dict[str, Any]]:
        """The key that signed an assertion, and its claims; ValueError where it is not to be trusted."""
        try:
            key_id = str(jwt.decode_header(assertion).get("kid"))  # type: ignore[no-untyped-call]
        except (ValueError, TypeError) as error:
            raise ValueError("it cannot be read.") from error
        account = self._store.get(_ACCOUNTS, key_id)
        if account is None:
            raise ValueError("its key is unknown.")
        claims = jwt.decode(assertion, certs=account["key"])  # type: ignore[no-untyped-call]
        if claims.get("iss") != account["email"]:
            raise ValueError("it was issued by another account.")
        return key_id, dict(claims)


def _form(content: bytes) -> dict[str, str]:
    return dict(parse_qsl(content.decode(errors="replace")))


def _grant_error(code: str, description: str) -> Answer:
    return Answer({"error": code, "error_description": description}, 400)
