"""Regions and zones: https://www.alibabacloud.com/help/en/ecs/product-overview/regions-and-zones."""

from __future__ import annotations

from sandbox.alicloud.errors import refused

__all__ = ["REGIONS", "check_region", "check_zone", "zones_of"]

# A region's zones by their letters. Those in China have a hyphen before the letter.
REGIONS = {
    "ap-northeast-1": "abc",
    "ap-southeast-1": "abc",
    "cn-beijing": "cdefghijkl",
    "cn-hangzhou": "bghijk",
    "cn-shanghai": "abefgklmn",
    "eu-central-1": "abc",
    "eu-west-1": "ab",
    "us-east-1": "ab",
    "us-west-1": "ab",
}


def check_region(region: str) -> str:
    """The region, which must exist."""
    if region not in REGIONS:
        raise refused(404, "InvalidRegionId.NotFound", "The specified RegionId does not exist in our records.")
    return region


def zones_of(region: str) -> list[str]:
    """The region's zones."""
    separator = "-" if region.startswith("cn-") else ""
    return [f"{region}{separator}{letter}" for letter in REGIONS[region]]


def check_zone(region: str, zone: str) -> str:
    """The zone, which must be one of the region's."""
    if zone not in zones_of(region):
        raise refused(404, "InvalidZoneId.NotFound", "Specified zone does not exist.")
    return zone
