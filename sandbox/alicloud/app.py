"""The actions that this server has, and what all of them have in common: signature, permission, ClientToken, DryRun.

https://www.alibabacloud.com/help/en/sdk/product-overview/rpc-mechanism; for ClientToken,
https://www.alibabacloud.com/help/en/ecs/developer-reference/how-to-ensure-idempotence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import parse_qsl

from starlette.applications import Starlette

from sandbox.alicloud.accounts import Accounts
from sandbox.alicloud.asks import Ask
from sandbox.alicloud.eips import Eips
from sandbox.alicloud.errors import missing_parameter, new_request_id, refused, wording
from sandbox.alicloud.groups import Groups
from sandbox.alicloud.instances import Instances
from sandbox.alicloud.nats import Nats
from sandbox.alicloud.peerings import Peerings
from sandbox.alicloud.places import REGIONS, check_region, zones_of
from sandbox.alicloud.resources import Resources
from sandbox.alicloud.tables import Tables
from sandbox.alicloud.tags import ECS_TYPES, VPC_TYPES, Tags
from sandbox.alicloud.vpcs import Vpcs
from sandbox.alicloud.vswitches import VSwitches
from sandbox.clouds import Answer, Call, Cloud, Document, Refusal, Route

__all__ = ["BROKEN", "make_app"]

_Action: TypeAlias = Callable[[Ask], Document]

BROKEN = {"Code": "InternalError", "Message": "The request processing has failed due to some unknown error."}

_TOKENS = "client-tokens"
_READS = ("Describe", "List", "Get")
# What requests carry beside an action's own parameters.
_COMMON = {
    "AccessKeyId", "Action", "Format", "Signature", "SignatureMethod", "SignatureNonce", "SignatureType",
    "SignatureVersion", "Timestamp", "Version",
}  # fmt: skip
# By version: the product's name in policies.
_VPC, _PEER, _ECS, _STS = "2016-04-28", "2022-01-01", "2014-05-26", "2015-04-01"
_PRODUCTS = {_VPC: "vpc", _PEER: "vpc", _ECS: "ecs", _STS: "sts"}


def make_app(cloud: Cloud) -> Starlette:
    """The server of a cloud."""
    accounts = Accounts(cloud)
    server = _Server(cloud, accounts, _actions(Resources(cloud)))
    routes = [
        Route("POST", "/", server.answer),
        Route("GET", "/", server.answer),
        Route("POST", "/sandbox/keys", accounts.make_key),
    ]
    return cloud.app(routes, wording)


class _Server:
    """Finds the action that a request names."""

    def __init__(self, cloud: Cloud, accounts: Accounts, actions: Mapping[tuple[str, str], _Action]) -> None:
        self._cloud = cloud
        self._accounts = accounts
        self._actions = actions

    def answer(self, call: Call) -> Answer:
        """Answer a request."""
        given = {**call.query, **_form(call)}
        name = call.headers.get("x-acs-action") or given.get("Action")
        version = call.headers.get("x-acs-version") or given.get("Version")
        if not name or not version:
            raise missing_parameter("Version" if name else "Action")
        if version not in _PRODUCTS:
            raise refused(400, "InvalidVersion", "Specified parameter Version is not valid.")
        caller = self._accounts.caller(call, given)
        action = self._actions.get((version, name))
        if action is None:
            message = "Specified api is not found, please check your url and method."
            raise refused(404, "InvalidAction.NotFound", message)
        parameters = {key: value for key, value in given.items() if key not in _COMMON}
        ask = Ask(name, caller, parameters, call.received)
        # Who asks who they are needs no permission for it.
        if version != _STS:
            caller.check(f"{_PRODUCTS[version]}:{name}")
        if name.startswith(_READS):
            return _read(action, ask)
        with self._cloud.store.transaction():
            return self._change(action, ask)

    def _change(self, action: _Action, ask: Ask) -> Answer:
        token = ask.text("ClientToken")
        if token is None:
            return self._done(action, ask)
        if len(token) > 64 or not token.isascii():
            raise refused(400, "InvalidClientToken.Malformed", "The specified ClientToken is not valid.")
        key = f"{ask.caller.account}/{ask.action}/{token}"
        known = self._cloud.store.get(_TOKENS, key)
        if known is None:
            answer = self._done(action, ask)
            self._cloud.store.put(_TOKENS, key, {"asked": _digest(ask), "answer": answer.document})
            return answer
        if known["asked"] != _digest(ask):
            message = "The request uses the same client token as a previous, but non-identical request."
            raise refused(400, "IdempotentParameterMismatch", message)
        return Answer(known["answer"])

    def _done(self, action: _Action, ask: Ask) -> Answer:
        answer = _answer(action, ask)
        if ask.flag("DryRun"):
            raise refused(400, "DryRunOperation", "Request validation has been passed with DryRun flag set.")
        return answer


def _read(action: _Action, ask: Ask) -> Answer:
    try:
        return _answer(action, ask)
    except Refusal as refusal:
        # Not raised: a read that is refused has still been a read (see `Cloud.visible`).
        return refusal.answer


def _answer(action: _Action, ask: Ask) -> Answer:
    return Answer({"RequestId": new_request_id()} | action(ask))


def _digest(ask: Ask) -> str:
    text = json.dumps(dict(ask.parameters), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _form(call: Call) -> dict[str, str]:
    if not call.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    return dict(parse_qsl(call.content.decode(errors="replace"), keep_blank_values=True))


def _actions(resources: Resources) -> dict[tuple[str, str], _Action]:
    tables = Tables(resources)
    vpc_actions = _network_actions(resources, tables) | _address_actions(resources, tables)
    found: dict[str, dict[str, _Action]] = {
        _VPC: vpc_actions | {"DescribeRegions": _regions, "DescribeZones": _zones},
        _PEER: _peering_actions(Peerings(resources)),
        _ECS: _machine_actions(resources),
        _STS: {"GetCallerIdentity": _identity},
    }
    return {(version, name): action for version, actions in found.items() for name, action in actions.items()}


def _network_actions(resources: Resources, tables: Tables) -> dict[str, _Action]:
    vpcs, vswitches, tags = Vpcs(resources), VSwitches(resources), Tags(resources, VPC_TYPES)
    return {
        "CreateVpc": vpcs.create,
        "DescribeVpcs": vpcs.describe,
        "DescribeVpcAttribute": vpcs.describe_one,
        "ModifyVpcAttribute": vpcs.modify,
        "DeleteVpc": vpcs.delete,
        "AssociateVpcCidrBlock": vpcs.associate,
        "UnassociateVpcCidrBlock": vpcs.unassociate,
        "CreateVSwitch": vswitches.create,
        "DescribeVSwitches": vswitches.describe,
        "DescribeVSwitchAttributes": vswitches.describe_one,
        "DeleteVSwitch": vswitches.delete,
        "CreateRouteTable": tables.create,
        "DescribeRouteTableList": tables.describe,
        "DeleteRouteTable": tables.delete,
        "AssociateRouteTable": tables.associate,
        "UnassociateRouteTable": tables.unassociate,
        "CreateRouteEntry": tables.create_entry,
        "DeleteRouteEntry": tables.delete_entry,
        "DescribeRouteEntryList": tables.describe_entries,
        "TagResources": tags.add,
        "UnTagResources": tags.remove,
        "ListTagResources": tags.describe,
    }


def _address_actions(resources: Resources, tables: Tables) -> dict[str, _Action]:
    nats, eips = Nats(resources, tables), Eips(resources)
    return {
        "CreateNatGateway": nats.create,
        "DescribeNatGateways": nats.describe,
        "DeleteNatGateway": nats.delete,
        "ListEnhanhcedNatGatewayAvailableZones": nats.zones,
        "CreateSnatEntry": nats.create_snat,
        "DescribeSnatTableEntries": nats.describe_snat,
        "DeleteSnatEntry": nats.delete_snat,
        "AllocateEipAddress": eips.allocate,
        "DescribeEipAddresses": eips.describe,
        "ModifyEipAddressAttribute": eips.modify,
        "AssociateEipAddress": eips.associate,
        "UnassociateEipAddress": eips.unassociate,
        "ReleaseEipAddress": eips.release,
    }


def _peering_actions(peerings: Peerings) -> dict[str, _Action]:
    return {
        "CreateVpcPeerConnection": peerings.create,
        "AcceptVpcPeerConnection": peerings.accept,
        "RejectVpcPeerConnection": peerings.reject,
        "DeleteVpcPeerConnection": peerings.delete,
        "GetVpcPeerConnectionAttribute": peerings.describe_one,
        "ListVpcPeerConnections": peerings.describe,
    }


def _machine_actions(resources: Resources) -> dict[str, _Action]:
    groups, instances, tags = Groups(resources), Instances(resources), Tags(resources, ECS_TYPES)
    return {
        "RunInstances": instances.run,
        "DescribeInstances": instances.describe,
        "DeleteInstance": instances.delete,
        "DeleteInstances": instances.delete,
        "CreateSecurityGroup": groups.create,
        "DescribeSecurityGroups": groups.describe,
        "DescribeSecurityGroupAttribute": groups.describe_one,
        "AuthorizeSecurityGroup": groups.authorize,
        "AuthorizeSecurityGroupEgress": groups.authorize,
        "RevokeSecurityGroup": groups.revoke,
        "RevokeSecurityGroupEgress": groups.revoke,
        "DeleteSecurityGroup": groups.delete,
        "TagResources": tags.add,
        "UntagResources": tags.remove,
        "ListTagResources": tags.describe,
        "DescribeRegions": _regions,
    }


def _regions(ask: Ask) -> Document:
    del ask
    regions = [
        {"RegionId": region, "LocalName": region, "RegionEndpoint": f"vpc.{region}.aliyuncs.com"} for region in REGIONS
    ]
    return {"Regions": {"Region": regions}}


def _zones(ask: Ask) -> Document:
    zones = zones_of(check_region(ask.required("RegionId")))
    return {"Zones": {"Zone": [{"ZoneId": zone, "LocalName": zone} for zone in zones]}}


def _identity(ask: Ask) -> Document:
    caller = ask.caller
    return {
        "AccountId": caller.account,
        "IdentityType": "RAMUser",
        "UserId": f"2{caller.account[1:]}",
        "PrincipalId": f"2{caller.account[1:]}",
        "Arn": f"acs:ram::{caller.account}:user/{caller.user}",
    }
