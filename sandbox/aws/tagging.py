"""Tags: what EC2 refuses, and that they go with their resource.

docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html (tag restrictions)
"""

from __future__ import annotations

from typing import Any

from .calls import Call, refuse

__all__ = ["check_tags", "forget_tags"]

# What a tag specification may name.
_TAGGED = {
    "AllocateAddress": "elastic-ip",
    "CreateDhcpOptions": "dhcp-options",
    "CreateEgressOnlyInternetGateway": "egress-only-internet-gateway",
    "CreateInternetGateway": "internet-gateway",
    "CreateNatGateway": "natgateway",
    "CreateNetworkAcl": "network-acl",
    "CreateNetworkInterface": "network-interface",
    "CreateRouteTable": "route-table",
    "CreateSecurityGroup": "security-group",
    "CreateSubnet": "subnet",
    "CreateVpc": "vpc",
    "CreateVpcPeeringConnection": "vpc-peering-connection",
}

# NAT gateways and peerings stay listed for a while, with their tags.
_REMOVED = {
    "DeleteDhcpOptions": "DhcpOptionsId",
    "DeleteInternetGateway": "InternetGatewayId",
    "DeleteNetworkInterface": "NetworkInterfaceId",
    "DeleteRouteTable": "RouteTableId",
    "DeleteSecurityGroup": "GroupId",
    "DeleteSubnet": "SubnetId",
    "DeleteVpc": "VpcId",
    "ReleaseAddress": "AllocationId",
}


def check_tags(call: Call) -> None:
    """Refuse tags that cannot be, in a tag specification or in CreateTags."""
    if kind := _TAGGED.get(call.action):
        for specification in call.get("TagSpecifications", []):
            if specification.get("ResourceType") != kind:
                refuse(
                    "InvalidParameterValue",
                    f"'{specification.get('ResourceType')}' is not a valid taggable resource type for this operation.",
                )
            _check(specification.get("Tags", []))
    elif call.action == "CreateTags":
        _check(call.get("Tags", []))


def forget_tags(call: Call) -> None:
    """After a deletion: the tags go with the resource."""
    if parameter := _REMOVED.get(call.action):
        call.cloud.tags.pop(call.get(parameter), None)


def _check(tags: list[dict[str, Any]]) -> None:
    keys = [str(tag.get("Key", "")) for tag in tags]
    for key, value in zip(keys, (str(tag.get("Value", "")) for tag in tags), strict=True):
        if not 1 <= len(key) <= 128:
            refuse("InvalidParameterValue", f"Tag key exceeds the maximum length of 128 characters: {key!r}")
        if len(value) > 256:
            refuse("InvalidParameterValue", f"Tag value exceeds the maximum length of 256 characters: {value!r}")
        if key.lower().startswith("aws:"):
            refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
    if len(set(keys)) != len(keys):
        refuse("InvalidParameterValue", "Duplicate tag keys found")
