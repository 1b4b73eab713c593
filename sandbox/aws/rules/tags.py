"""Tags of resources that moto does not look up."""

from __future__ import annotations

from moto.core.responses import ActionResult

from sandbox.aws.calls import Call, refuse, rule


@rule("CreateTags")
def create_tags(call: Call) -> ActionResult:
    """Only what exists can be tagged. docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html."""
    known = {
        "nat": (call.cloud.nat_gateways, "NatGatewayNotFound", "NatGateway"),
        "eipalloc": (
            {address.allocation_id for address in call.cloud.addresses},
            "InvalidAllocationID.NotFound",
            "allocation ID",
        ),
        "eni": (call.cloud.enis, "InvalidNetworkInterfaceID.NotFound", "networkInterface ID"),
        "acl": (call.cloud.network_acls, "InvalidNetworkAclID.NotFound", "networkAcl ID"),
    }
    for resource_id in call.get("Resources", []):
        present, code, kind = known.get(resource_id.split("-")[0], ({resource_id}, "", ""))
        if resource_id not in present:
            refuse(code, f"The {kind} '{resource_id}' does not exist")
    return call.proceed()
