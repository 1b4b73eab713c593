"""Accounts, their access keys, and what the holders of these may do.

https://www.alibabacloud.com/help/en/ram/user-guide/create-an-accesskey-pair and, for the names of actions in policies,
https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-ram.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sandbox.alicloud.errors import refused
from sandbox.alicloud.signing import Signed, signed
from sandbox.clouds import Answer, Call, Cloud, Refusal

__all__ = ["Accounts", "Caller"]

_KEYS = "access-keys"
_DEFAULT_ACCOUNT = "1234567890123456"
_TOLERANCE = timedelta(minutes=15)


class _NewKey(BaseModel):
    """What is asked for: patterns of actions as policies name them, such as `vpc:Describe*`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    account: str = Field(_DEFAULT_ACCOUNT, pattern=r"^[0-9]{16}$")
    user: str = "trellis"
    accessKeyID: str | None = Field(None, pattern=r"^LTAI[A-Za-z0-9]+$")  # noqa: N815 - Gardener's own names
    accessKeySecret: str | None = Field(None, min_length=1)  # noqa: N815
    permissions: tuple[str, ...] = ("*",)


@dataclass(frozen=True)
class Caller:
    """Who calls."""

    account: str
    user: str
    permissions: tuple[str, ...]

    def check(self, action: str) -> None:
        """Refuse an action (`vpc:CreateVpc`) that the caller may not take."""
        if not any(fnmatchcase(action, pattern) for pattern in self.permissions):
            message = "User not authorized to operate on the specified resource, or this API doesn't support RAM."
            raise refused(403, "Forbidden.RAM", message)


class Accounts:
    """Knows the callers."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def make_key(self, call: Call) -> Answer:
        """`POST /sandbox/keys`, with `account`, `user`, `permissions` and the key itself in the body, all optional.

        The answer has the members of the Secret that Gardener wants, and `accountID`. A key that is there already is
        replaced.
        """
        try:
            wanted = _NewKey.model_validate(json.loads(call.content or b"{}"))
        except (ValidationError, ValueError) as error:
            raise Refusal(Answer({"error": f"this is no request for a key: {error}"}, 400)) from None
        key_id = wanted.accessKeyID or f"LTAI5t{secrets.token_hex(9)}"
        secret = wanted.accessKeySecret or secrets.token_urlsafe(23)[:30]
        known = {"account": wanted.account, "user": wanted.user, "permissions": list(wanted.permissions)}
        self._cloud.store.put(_KEYS, key_id, known | {"secret": secret})
        return Answer({"accessKeyID": key_id, "accessKeySecret": secret, "accountID": wanted.account})

    def caller(self, call: Call, parameters: Mapping[str, str]) -> Caller:
        """Who signed a request.

        Raises:
            Refusal: nobody did, an unknown key, the wrong secret, or long ago.
        """
        signature = signed(call, parameters)
        if signature is None:
            if self._cloud.settings.anonymous:
                return Caller(_DEFAULT_ACCOUNT, "anonymous", ("*",))
            raise refused(400, "MissingSignature", "Signature is mandatory for this action.")
        key = self._cloud.store.get(_KEYS, signature.key_id)
        if key is None:
            raise refused(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
        if not signature.is_by(key["secret"]):
            raise refused(400, "SignatureDoesNotMatch", _mismatch(signature))
        _check_date(signature.date)
        return Caller(key["account"], key["user"], tuple(key["permissions"]))


def _mismatch(signature: Signed) -> str:
    # The real server repeats the string that it signed itself.
    text = "Specified signature is not matched with our calculation."
    return f"{text} server string to sign is:{signature.text}"


def _check_date(text: str) -> None:
    try:
        date = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        message = 'The input parameter "Timestamp" that is mandatory for processing this request is not supplied.'
        raise refused(400, "InvalidTimeStamp.Format", message) from None
    # By the machine's clock: that of the cloud may be ahead on purpose.
    if abs(datetime.now(UTC) - date) > _TOLERANCE:
        raise refused(400, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.")
