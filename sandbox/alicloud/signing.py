"""Who signed a request, and with which key: ACS3-HMAC-SHA256, and the older HMAC-SHA1 of RPC requests.

https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature and
https://www.alibabacloud.com/help/en/sdk/product-overview/rpc-mechanism.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from sandbox.clouds import Call

__all__ = ["Signed", "signed"]

_ACS3 = "ACS3-HMAC-SHA256"
_AUTHORIZATION = re.compile(rf"{_ACS3} Credential=([^,]+),SignedHeaders=([^,]+),Signature=([0-9a-f]+)")


@dataclass(frozen=True)
class Signed:
    """A signature that came with a request.

    Attributes:
        key_id: The access key that it claims.
        signature: As it came.
        text: What was signed.
        date: When, as the request says: ISO 8601, in UTC.
        old: Whether it is an HMAC-SHA1 in the parameters.
    """

    key_id: str
    signature: str
    text: str
    date: str
    old: bool = False

    def is_by(self, secret: str) -> bool:
        """Whether the owner of the secret made it."""
        if self.old:
            digest = hmac.new(f"{secret}&".encode(), self.text.encode(), hashlib.sha1).digest()
            return hmac.compare_digest(base64.b64encode(digest).decode(), self.signature)
        made = hmac.new(secret.encode(), self.text.encode(), hashlib.sha256).hexdigest()
        return hmac.compare_digest(made, self.signature)


def signed(call: Call, parameters: Mapping[str, str]) -> Signed | None:
    """The request's signature; None where it has none.

    Args:
        call: The request.
        parameters: Those of the query and of the body.
    """
    found = _AUTHORIZATION.fullmatch(call.headers.get("authorization", ""))
    if found:
        key_id, names, signature = found.groups()
        return Signed(key_id, signature, _acs3_text(call, names), call.headers.get("x-acs-date", ""))
    if "Signature" in parameters and "AccessKeyId" in parameters:
        rest = {name: value for name, value in parameters.items() if name != "Signature"}
        text = f"{call.method}&{_encoded('/')}&{_encoded(_canonical(rest))}"
        key_id, signature = parameters["AccessKeyId"], parameters["Signature"]
        return Signed(key_id, signature, text, parameters.get("Timestamp", ""), old=True)
    return None


def _acs3_text(call: Call, names: str) -> str:
    headers = "".join(f"{name}:{call.headers.get(name, '').strip()}\n" for name in names.split(";"))
    payload = hashlib.sha256(call.content).hexdigest()
    request = "\n".join([call.method, call.path, _canonical(call.query), headers, names, payload])
    return f"{_ACS3}\n{hashlib.sha256(request.encode()).hexdigest()}"


def _canonical(parameters: Mapping[str, str]) -> str:
    return "&".join(f"{_encoded(name)}={_encoded(parameters[name])}" for name in sorted(parameters))


def _encoded(text: str) -> str:
    return quote(text, safe="~")
