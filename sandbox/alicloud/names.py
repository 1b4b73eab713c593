"""Names and descriptions: "1 to 128 characters in length and cannot start with http:// or https://", 256 likewise.

https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-createvpc (VpcName, Description).
"""

from __future__ import annotations

from sandbox.alicloud.asks import Ask
from sandbox.alicloud.errors import refused

__all__ = ["check_description", "check_name"]

_NAME, _DESCRIPTION = 128, 256


def check_name(ask: Ask, parameter: str, code: str) -> str:
    """The name that a request gives; empty where it gives none."""
    return _checked(ask, parameter, _NAME, code)


def check_description(ask: Ask, code: str) -> str:
    """The description likewise."""
    return _checked(ask, "Description", _DESCRIPTION, code)


def _checked(ask: Ask, parameter: str, most: int, code: str) -> str:
    text = ask.text(parameter) or ""
    if len(text) > most or text.startswith(("http://", "https://")):
        raise refused(400, code, f"Specified {parameter} is not valid.")
    return text
