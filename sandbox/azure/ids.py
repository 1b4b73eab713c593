"""Resource ids, names, tags and locations.

https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules,
https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources#limitations and
https://learn.microsoft.com/azure/reliability/regions-list. Ids are compared without regard to case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sandbox.azure.errors import bad_request, refused
from sandbox.clouds import Refusal

__all__ = ["LOCATIONS", "Id", "check_group_name", "check_name", "check_tags", "location_of"]

# A selection of the real ones.
LOCATIONS = {
    "westeurope": "West Europe",
    "northeurope": "North Europe",
    "germanywestcentral": "Germany West Central",
    "swedencentral": "Sweden Central",
    "eastus": "East US",
    "eastus2": "East US 2",
    "westus2": "West US 2",
}
_ID = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)/providers/Microsoft\.Network"
    r"/(?P<type>[^/]+)/(?P<name>[^/]+)(?:/(?P<child_type>[^/]+)/(?P<child>[^/]+))?",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z0-9](?:[\w.-]*\w)?", re.ASCII)
_GROUP = re.compile(r"[-\w.()]{0,89}[-\w()]")
_NO_TAG = re.compile(r"[<>%&\\?/]")
_MOST_TAGS, _TAG_NAME, _TAG_VALUE = 50, 512, 256
# VNets may be shorter than other resources, and two characters long at least.
_LENGTHS = {"virtualNetworks": (2, 64)}
_LENGTH = (1, 80)


@dataclass(frozen=True)
class Id:
    """The id of a resource of Microsoft.Network, or of a child of one, such as a subnet."""

    subscription: str
    group: str
    type: str
    name: str
    child_type: str = ""
    child: str = ""

    def __str__(self) -> str:
        child = f"/{self.child_type}/{self.child}" if self.child_type else ""
        return f"{self.root_text}{child}"

    @property
    def root_text(self) -> str:
        """The id of the resource itself, or of a child's parent."""
        return (
            f"/subscriptions/{self.subscription}/resourceGroups/{self.group}/providers/Microsoft.Network"
            f"/{self.type}/{self.name}"
        )

    @property
    def key(self) -> str:
        """What the store knows the resource by."""
        return str(self).lower()

    @property
    def root_key(self) -> str:
        """The key of the resource itself, or of a child's parent."""
        return self.root_text.lower()

    @property
    def own_name(self) -> str:
        """The resource's, or the child's."""
        return self.child or self.name

    @classmethod
    def parse(cls, text: str) -> Id | None:
        """The id that a text is, or None."""
        match = _ID.fullmatch(text)
        return cls(**{name: value or "" for name, value in match.groupdict().items()}) if match else None


def location_of(given: str | None) -> str:
    """The location's name; its display name is one, too.

    Raises:
        Refusal: there is none of that name, or none was given.
    """
    if not given:
        raise refused(400, "LocationRequired", "The location property is required for this definition.")
    name = given.replace(" ", "").lower()
    if name not in LOCATIONS:
        message = (
            f"The provided location '{given}' is not available for resource type. "
            f"List of available regions for the resource type is '{','.join(LOCATIONS)}'."
        )
        raise refused(400, "LocationNotAvailableForResourceType", message)
    return name


def check_name(type_: str, name: str) -> None:
    """Refuses what is no name of a resource of Microsoft.Network."""
    shortest, longest = _LENGTHS.get(type_, _LENGTH)
    if not (shortest <= len(name) <= longest and _NAME.fullmatch(name)):
        message = (
            f"Resource name {name} is invalid. The name can be up to {longest} characters long. It must begin with a "
            "word character, and it must end with a word character or with '_'. The name may contain word characters "
            "or '.', '-', '_'."
        )
        raise bad_request("InvalidResourceName", message)


def check_group_name(name: str) -> None:
    """Refuses what is no name of a resource group."""
    if not _GROUP.fullmatch(name):
        message = (
            f"The provided resource group name '{name}' is invalid. It can have up to 90 characters: letters, digits, "
            "'-', '.', '(', ')' or '_', and does not end with '.'."
        )
        raise refused(400, "InvalidResourceGroup", message)


def check_tags(tags: dict[str, str]) -> None:
    """Refuses tags that cannot be."""
    if len(tags) > _MOST_TAGS:
        raise _bad_tags("InvalidTags", f"The number of tags {len(tags)} exceeds the maximum of {_MOST_TAGS}.")
    for name, value in tags.items():
        if _NO_TAG.search(name):
            message = f"The tag names '{name}' have reserved characters '<,>,%,&,\\,?,/' or control characters."
            raise _bad_tags("InvalidTagNameCharacters", message)
        if not name or len(name) > _TAG_NAME or len(value) > _TAG_VALUE:
            message = (
                f"The tag '{name}' is too long: names have up to {_TAG_NAME}, values up to {_TAG_VALUE} characters."
            )
            raise _bad_tags("InvalidTags", message)


def _bad_tags(code: str, message: str) -> Refusal:
    return refused(400, code, message)
