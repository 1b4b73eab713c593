"""Short-lived tokens for the API servers of shoots: signed, so that nothing needs to be kept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Role = Literal["admin", "viewer"]


@dataclass(frozen=True)
class Claims:
    """What a token says.

    Attributes:
        shoot: The uid of the shoot.
        user: Who asked for it.
        role: What it opens.
        expires: Seconds since the epoch.
    """

    shoot: str
    user: str
    role: Role
    expires: float


class Tokens:
    """Signs and reads tokens; the key is kept in a file."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(secrets.token_hex(32))
        self._key = path.read_text().encode()

    def sign(self, claims: Claims) -> str:
        """The token."""
        body = base64.urlsafe_b64encode(json.dumps(asdict(claims)).encode()).decode()
        return f"{body}.{self._seal(body)}"

    def read(self, token: str | None) -> Claims | None:
        """What it says; None if it is not one of ours, or too old."""
        body, _, seal = (token or "").partition(".")
        if not hmac.compare_digest(seal, self._seal(body)):
            return None
        claims = Claims(**json.loads(base64.urlsafe_b64decode(body)))
        return claims if claims.expires > time.time() else None

    def _seal(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), hashlib.sha256).hexdigest()
