"""The network of one shoot (provider-openstack, `pkg/controller/infrastructure/infraflow/reconcile.go`)."""

from __future__ import annotations

from typing import Any

from sandbox.garden.problems import Path, joined, missing
from sandbox.garden.providers import CloudError, Order, Record
from sandbox.garden.providers.openstack.codes import cloud_error
from sandbox.garden.providers.openstack.config import InfrastructureConfig
from sandbox.garden.providers.openstack.session import Session

__all__ = ["Infrastructure", "interfaces"]

_NODE_PORTS = {"port_range_min": 30000, "port_range_max": 32767, "remote_ip_prefix": "0.0.0.0/0"}
_SHAPE = ("direction", "ether_type", "protocol", "port_range_min", "port_range_max", "remote_ip_prefix")


class Infrastructure:
    """One pass that makes what is missing."""

    def __init__(self, session: Session, order: Order, record: Record) -> None:
        self._session = session
        self._order = order
        self._record = record
        self._tid = order.technical_id
        self._config = InfrastructureConfig.model_validate(order.infrastructure)

    def ensure(self) -> None:
        """All of it, in the order of Gardener's flow."""
        pool = self._floating_pool()
        self._record["begun"] = True
        self._record.save()
        router = self._router(pool)
        network = self._network()
        subnet = self._subnet(network)
        if not interfaces(self._session, router.id, subnet.id):
            self._session.done("add_interface_to_router", router.id, subnet=subnet.id)
        self._security_group()
        self._record["egressCIDRs"] = [f"{each}/32" for each in _addresses(router)]
        self._record.save()

    def _remember(self, kind: str, thing: Any) -> Any:
        self._record[kind] = thing.id
        self._record.save()
        return thing

    def _floating_pool(self) -> Any:
        name = self._config.floatingPoolName
        found = self._session.listed("networks", is_router_external=True, name=name)
        if not found:
            raise CloudError(joined([missing(Path("floatingPoolName"), name)]), ("ERR_CONFIGURATION_PROBLEM",))
        return found[0]

    def _router(self, pool: Any) -> Any:
        given = self._config.networks.router
        if given is None:
            router = self._session.existing("router", self._record.get("router"), self._tid)
            router = router or self._session.done(
                "create_router", name=self._tid, external_gateway_info={"network_id": pool.id}
            )
        else:
            router = self._session.found("router", given.id)
            if router is None:
                raise cloud_error(f"missing expected router {given.id}")
        if not _addresses(router):
            raise cloud_error("expected at least one external fixed ip")
        return self._remember("router", router)

    def _network(self) -> Any:
        given = self._config.networks.id
        if given is None:
            network = self._session.existing("network", self._record.get("network"), self._tid)
            return self._remember("network", network or self._session.done("create_network", name=self._tid))
        network = self._session.found("network", given)
        if network is None:
            raise CloudError(f"network with ID '{given}' was not found", ("ERR_INFRA_DEPENDENCIES",))
        return self._remember("network", network)

    def _subnet(self, network: Any) -> Any:
        found = self._session.existing("subnet", self._record.get("subnet"), self._tid, network_id=network.id)
        if found is None:
            found = self._session.done(
                "create_subnet",
                name=self._tid,
                network_id=network.id,
                ip_version=4,
                cidr=self._config.networks.nodes,
                dns_nameservers=self._order.offers["providerConfig"].get("dnsServers") or [],
            )
        return self._remember("subnet", found)

    def _security_group(self) -> None:
        known = self._record.get("securityGroup")
        group = self._session.existing("security_group", known, self._tid)
        if group is None:
            group = self._session.done("create_security_group", name=self._tid, description="Cluster Nodes")
        self._remember("securityGroup", group)
        present = [_shape(rule) for rule in group.security_group_rules]
        # Unknown rules are kept (`UpdateSecurityGroupRules`).
        for rule in _wanted_rules(group.id):
            if _shape(rule) not in present:
                self._session.done("create_security_group_rule", security_group_id=group.id, **rule)


def interfaces(session: Session, router_id: str, subnet_id: str) -> list[Any]:
    """The ports by which a subnet hangs on a router."""
    ports = session.listed("ports", device_id=router_id)
    return [port for port in ports if any(each["subnet_id"] == subnet_id for each in port.fixed_ips)]


def _addresses(router: Any) -> list[str]:
    return [each["ip_address"] for each in (router.external_gateway_info or {}).get("external_fixed_ips", [])]


def _wanted_rules(group_id: str) -> list[dict[str, Any]]:
    ingress = {"direction": "ingress", "ether_type": "IPv4"}
    return [
        {**ingress, "remote_group_id": group_id,
         "description": "IPv4: allow all incoming traffic within the same security group"},
        {"direction": "egress", "ether_type": "IPv4", "description": "IPv4: allow all outgoing traffic"},
        {"direction": "egress", "ether_type": "IPv6", "description": "IPv6: allow all outgoing traffic"},
        *({**ingress, "protocol": protocol, **_NODE_PORTS,
           "description": f"IPv4: allow all incoming {protocol} traffic with port range 30000-32767"}
          for protocol in ("tcp", "udp")),
    ]  # fmt: skip


def _shape(rule: Any) -> tuple[Any, ...]:
    """What counts in a rule. Neutron says `ethertype`; anywhere is no prefix, or one of all addresses."""
    rule = rule if isinstance(rule, dict) else rule.to_dict()
    rule = {"ether_type": rule.get("ethertype"), **rule}
    shape = [rule.get(field) for field in _SHAPE]
    return (*shape[:-1], None if shape[-1] == "0.0.0.0/0" else shape[-1], rule.get("remote_group_id"))
