"""Requests as the actions read them: https://www.alibabacloud.com/help/en/sdk/product-overview/rpc-mechanism."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Any, TypeAlias

from sandbox.alicloud.accounts import Caller
from sandbox.alicloud.errors import missing_parameter, refused
from sandbox.alicloud.places import check_region
from sandbox.clouds import Document, parse_cidr

__all__ = ["Ask", "Tags", "json_list"]

Tags: TypeAlias = dict[str, str]

_MOST_TAGS = 20
_TAG = re.compile(r"Tag\.[0-9]{1,3}\.(Key|Value)")


@dataclass(frozen=True)
class Ask:
    """One request.

    Attributes:
        action: Such as `CreateVpc`.
        caller: Who asks.
        parameters: Those of the query and of the body, flat: `Tag.1.Key`.
        now: When it came, by the server's clock.
    """

    action: str
    caller: Caller
    parameters: Mapping[str, str]
    now: float

    @property
    def place(self) -> str:
        """The account and region that it is about; both begin the keys of what is stored.

        Raises:
            Refusal: no region is named, or there is no such region.
        """
        return f"{self.caller.account}/{check_region(self.required('RegionId'))}"

    def text(self, name: str) -> str | None:
        """A parameter; an empty one counts as not given."""
        return self.parameters.get(name) or None

    def required(self, name: str) -> str:
        """A parameter that must be there."""
        value = self.text(name)
        if value is None:
            raise missing_parameter(name)
        return value

    def flag(self, name: str) -> bool:
        """A boolean; not given is false."""
        return (self.text(name) or "false").lower() == "true"

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A number between two others, both included."""
        text = self.text(name) or str(default)
        if not text.isdigit() or not low <= int(text) <= high:
            raise refused(400, "InvalidParameter", f'Specified value of "{name}" is not valid.')
        return int(text)

    def several(self, name: str) -> list[str]:
        """A list: `Name.1`, `Name.2` ..., or one parameter with commas."""
        numbered = {int(key.rpartition(".")[2]): value for key, value in self.parameters.items() if _item(name, key)}
        if numbered:
            return [numbered[number] for number in sorted(numbered)]
        text = self.text(name)
        return [part.strip() for part in text.split(",")] if text else []

    def cidr(self, name: str, code: str = "InvalidCidrBlock.Malformed") -> IPv4Network:
        """A range without host bits."""
        network = parse_cidr(self.required(name))
        if network is None:
            raise refused(400, code, "Specified CIDR block is not valid.")
        return network

    def tags(self) -> Tags:
        """The tags of a new resource, or of a TagResources.

        https://www.alibabacloud.com/help/en/vpc/developer-reference/api-vpc-2016-04-28-createvpc (Tag): at most 20;
        keys and values of at most 128 characters; no key begins with `aliyun` or `acs:`; none contains `http://`.
        """
        tags = {key: value or "" for key, value in self.wanted_tags()}
        if len(tags) > _MOST_TAGS:
            raise refused(400, "SizeLimitExceeded.Tag", "The number of tags exceeds the limit.")
        for key, value in tags.items():
            if not 0 < len(key) <= 128 or key.startswith(("aliyun", "acs:")) or "http://" in key or "https://" in key:
                raise refused(400, "InvalidTagKey.Malformed", "The specified Tag.n.Key is not valid.")
            if len(value) > 128 or "http://" in value or "https://" in value:
                raise refused(400, "InvalidTagValue.Malformed", "The specified Tag.n.Value is not valid.")
        return tags

    def wanted_tags(self) -> list[tuple[str, str | None]]:
        """The tags that a look-up asks for; one without a value asks for the key only."""
        numbers = {int(key.split(".")[1]) for key in self.parameters if _TAG.fullmatch(key)}
        pairs = [(self.text(f"Tag.{number}.Key"), self.text(f"Tag.{number}.Value")) for number in sorted(numbers)]
        return [(key, value) for key, value in pairs if key is not None]

    def has_wanted_tags(self, document: Document) -> bool:
        """Whether a resource carries all tags that the request asks for."""
        tags = document.get("_tags", {})
        return all(key in tags and value in (None, tags[key]) for key, value in self.wanted_tags())


def json_list(ask: Ask, name: str) -> list[str]:
    """A list that ECS takes as JSON."""
    text = ask.text(name)
    if text is None:
        return []
    try:
        found: Any = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise refused(400, f"InvalidParameter.{name}", f"The specified {name} is not valid.")
    return [str(one) for one in found]


def _item(name: str, key: str) -> bool:
    return re.fullmatch(rf"{name}\.[0-9]{{1,3}}", key) is not None
