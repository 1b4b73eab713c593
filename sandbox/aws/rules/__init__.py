"""The rules of EC2 that moto lacks: importing this package fills the table `calls.RULES`.

| module | actions |
|---|---|
| vpcs | CreateVpc, DeleteVpc, ModifyVpcAttribute, AssociateVpcCidrBlock, DisassociateVpcCidrBlock |
| subnets | CreateSubnet, DeleteSubnet |
| gateways | CreateInternetGateway, AttachInternetGateway, DetachInternetGateway |
| nat | CreateNatGateway, DeleteNatGateway, DescribeNatGateways |
| addresses | Allocate-, Release-, DisassociateAddress, Create-, DeleteNetworkInterface |
| routes | Create-, Associate-, DeleteRouteTable, Create-, Replace-, DeleteRoute |
| groups | CreateSecurityGroup, DeleteSecurityGroup, Authorize..., Revoke... |
| peerings | Create-, Accept-, Reject-, Delete-, DescribeVpcPeeringConnection(s) |
| dhcp | CreateDhcpOptions, AssociateDhcpOptions, DeleteDhcpOptions |
| tags | CreateTags |

What holds for every action (DryRun, filters, ids, tags, client tokens) is in `guard`, `lookups`, `tagging` and `world`.
"""

from sandbox.aws.calls import RULES

from . import addresses, dhcp, gateways, groups, nat, peerings, routes, subnets, tags, vpcs

__all__ = ["RULES", "addresses", "dhcp", "gateways", "groups", "nat", "peerings", "routes", "subnets", "tags", "vpcs"]
