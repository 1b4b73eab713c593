"""The network of one shoot (provider-gcp, `pkg/controller/infrastructure/infraflow`: ensure.go and ensure_utils.go).

Nodes have no service account of their own: as in landscapes with the feature gate
DisableGardenerServiceAccountCreation.
"""

from __future__ import annotations

from typing import Any

from google.cloud import compute_v1

from sandbox.garden.problems import Path, invalid, joined, missing
from sandbox.garden.providers import CloudError, Order, Record
from sandbox.garden.providers.gcp.codes import cloud_error
from sandbox.garden.providers.gcp.config import CloudNat, InfrastructureConfig
from sandbox.garden.providers.gcp.session import Session, short

__all__ = ["FIREWALLS", "Infrastructure"]

_NODE_PORTS = "30000-32767"
# https://cloud.google.com/load-balancing/docs/health-check-concepts#ip-ranges
_HEALTH_CHECKS = ("35.191.0.0/16", "209.85.204.0/22", "209.85.152.0/22", "130.211.0.0/22")
_INTERNAL, _HEALTH = "allow-internal-access", "allow-health-checks"
# The rules that every shoot has, by the end of their names.
FIREWALLS = (_INTERNAL, _HEALTH)


class Infrastructure:
    """One pass that makes what is missing and mends what differs."""

    def __init__(self, session: Session, order: Order, record: Record) -> None:
        self._session = session
        self._order = order
        self._record = record
        self._tid = order.technical_id
        self._networks = InfrastructureConfig.model_validate(order.infrastructure).networks

    def ensure(self) -> None:
        """All of it, in the order of Gardener's flow."""
        addresses = self._nat_addresses()
        network = self._network()
        self._record["network"] = network.name
        self._record.save()
        # Read now, and written back with one gateway more when the subnetworks are there: whatever others write into
        # the list of gateways meanwhile is lost, as it is with Gardener (`updater.NAT`).
        router = self._router(network)
        nodes = self._subnetwork(network, "nodes", self._networks.nodes)
        if self._networks.internal:
            self._subnetwork(network, "internal", self._networks.internal)
        else:
            self._session.gone(self._session.subnetworks.delete_unary, **self._at(subnetwork=f"{self._tid}-internal"))
        self._nat(router, nodes, addresses)
        self._firewalls(network)
        self._record["subnetwork"] = nodes.name
        self._record["egressCIDRs"] = [f"{each.address}/32" for each in addresses]
        self._record.save()

    def _at(self, **fields: Any) -> dict[str, Any]:
        return {"region": self._order.region, **fields}

    def _network(self) -> Any:
        session, vpc = self._session, self._networks.vpc
        name = vpc.name if vpc else self._tid
        found = session.found(session.networks.get, network=name)
        if found is None and vpc:
            raise cloud_error(f"failed to locate user-managed VPC [Name={name}]")
        if found is None:
            self._record["network"] = name
            self._record.save()
            network = compute_v1.Network(name=name, auto_create_subnetworks=False)
            if self._networks.mtu:
                network.mtu = self._networks.mtu
            session.done(session.networks.insert_unary, network_resource=network)
            found = session.found(session.networks.get, network=name)
        return _there(found, name)

    def _router(self, network: Any) -> Any:
        session, name = self._session, self._router_name()
        found = session.found(session.routers.get, **self._at(router=name))
        if found is None and self._networks.vpc:
            raise cloud_error(f"failed to locate user-managed CloudRouter [Name={name}]: <nil>")
        if found is None:
            router = compute_v1.Router(name=name, description="gardener-managed router", network=network.self_link)
            session.done(session.routers.insert_unary, **self._at(router_resource=router))
            found = session.found(session.routers.get, **self._at(router=name))
        self._record["router"] = name
        self._record.save()
        return _there(found, name)

    def _router_name(self) -> str:
        vpc = self._networks.vpc
        return vpc.cloudRouter.name if vpc and vpc.cloudRouter else f"{self._tid}-cloud-router"

    def _subnetwork(self, network: Any, purpose: str, cidr: str) -> Any:
        session, name = self._session, f"{self._tid}-{purpose}"
        found = session.found(session.subnetworks.get, **self._at(subnetwork=name))
        if found is None:
            description = f"gardener-managed {'worker' if purpose == 'nodes' else purpose} subnet"
            resource = compute_v1.Subnetwork(
                name=name, description=description, ip_cidr_range=cidr, network=network.self_link
            )
            session.done(session.subnetworks.insert_unary, **self._at(subnetwork_resource=resource))
        elif found.ip_cidr_range != cidr:
            body = compute_v1.SubnetworksExpandIpCidrRangeRequest(ip_cidr_range=cidr)
            fields = self._at(subnetwork=name, subnetworks_expand_ip_cidr_range_request_resource=body)
            session.done(session.subnetworks.expand_ip_cidr_range_unary, **fields)
        else:
            return found
        return _there(session.found(session.subnetworks.get, **self._at(subnetwork=name)), name)

    def _nat_addresses(self) -> list[Any]:
        """The user's addresses for the NAT gateway (`pkg/controller/infrastructure/configvalidator.go`)."""
        wanted = [each.name for each in (self._networks.cloudNAT or CloudNat()).natIPNames or ()]
        if not wanted:
            return []
        found = self._session.listed(self._session.addresses.list, **self._at())
        known = {each.name: each for each in found if each.address_type == "EXTERNAL"}
        problems = []
        for index, name in enumerate(wanted):
            path = (Path("networks") / "cloudNAT" / "natIPNames")[index] / "name"
            users = [short(user) for user in known[name].users] if name in known else []
            if name not in known:
                problems.append(missing(path, name))
            elif users and users != [self._router_name()]:
                problems.append(invalid(path, name, f"external IP address is already in use by {','.join(users)}"))
        if problems:
            raise CloudError(joined(problems), ("ERR_CONFIGURATION_PROBLEM",))
        return [known[name] for name in wanted]

    def _nat(self, router: Any, subnetwork: Any, addresses: list[Any]) -> None:
        session, nat = self._session, self._target_nat(subnetwork, addresses)
        others = [each for each in router.nats if each.name != nat.name]
        # Without a look whether anything differs: Gardener compares a pointer with a value, and so always writes.
        patch = compute_v1.Router(nats=[*others, nat])
        session.done(session.routers.patch_unary, **self._at(router=router.name, router_resource=patch))
        now = session.found(session.routers.get, **self._at(router=router.name))
        if nat.name not in [each.name for each in _there(now, router.name).nats]:
            raise cloud_error("failed to locate CloudNAT in router")

    def _target_nat(self, subnetwork: Any, addresses: list[Any]) -> Any:
        given = self._networks.cloudNAT or CloudNat()
        mapping = given.endpointIndependentMapping
        return compute_v1.RouterNat(
            name=f"{self._tid}-cloud-nat",
            nat_ip_allocate_option="MANUAL_ONLY" if addresses else "AUTO_ONLY",
            nat_ips=[each.self_link for each in addresses],
            source_subnetwork_ip_ranges_to_nat="LIST_OF_SUBNETWORKS",
            subnetworks=[
                compute_v1.RouterNatSubnetworkToNat(
                    name=subnetwork.self_link, source_ip_ranges_to_nat=["ALL_IP_RANGES"]
                )
            ],
            log_config=compute_v1.RouterNatLogConfig(enable=True, filter="ERRORS_ONLY"),
            enable_dynamic_port_allocation=given.enableDynamicPortAllocation,
            enable_endpoint_independent_mapping=bool(mapping and mapping.enabled),
            min_ports_per_vm=_given(given.minPortsPerVM, 2048),
            max_ports_per_vm=_given(given.maxPortsPerVM, 65536),
            icmp_idle_timeout_sec=_given(given.icmpIdleTimeoutSec, 30),
            tcp_established_idle_timeout_sec=_given(given.tcpEstablishedIdleTimeoutSec, 1200),
            tcp_time_wait_timeout_sec=_given(given.tcpTimeWaitTimeoutSec, 120),
            tcp_transitory_idle_timeout_sec=_given(given.tcpTransitoryIdleTimeoutSec, 30),
            udp_idle_timeout_sec=_given(given.udpIdleTimeoutSec, 30),
        )

    def _firewalls(self, network: Any) -> None:
        everything = [_allowed("icmp"), _allowed("ipip"), _allowed("tcp", "1-65535"), _allowed("udp", "1-65535")]
        checks = [_allowed("udp", _NODE_PORTS), _allowed("tcp", _NODE_PORTS)]
        sources = [self._order.networking.get("pods"), self._networks.internal, self._networks.nodes]
        self._firewall(network, _INTERNAL, everything, [each for each in sources if each])
        self._firewall(network, _HEALTH, checks, list(_HEALTH_CHECKS))

    def _firewall(self, network: Any, suffix: str, allowed: list[Any], sources: list[str]) -> None:
        session, name = self._session, f"{self._tid}-{suffix}"
        wanted = compute_v1.Firewall(
            name=name,
            network=network.self_link,
            direction="INGRESS",
            priority=1000,
            allowed=allowed,
            source_ranges=sources,
            disabled=False,
        )
        found = session.found(session.firewalls.get, firewall=name)
        if found is None:
            session.done(session.firewalls.insert_unary, firewall_resource=wanted)
        elif _substance(found) != _substance(wanted):
            session.done(session.firewalls.patch_unary, firewall=name, firewall_resource=wanted)


def _there(found: Any | None, name: str) -> Any:
    """What was made a moment ago; whoever takes it away at once gets an error for it."""
    if found is None:
        raise cloud_error(f"could not locate required key: {name}")
    return found


def _given(value: int | None, default: int) -> int:
    return default if value is None else value


def _allowed(protocol: str, *ports: str) -> Any:
    return compute_v1.Allowed(I_p_protocol=protocol, ports=list(ports))


def _substance(rule: Any) -> tuple[Any, ...]:
    """What counts in a firewall rule (`shouldPatchFirewallRule`)."""
    allowed = sorted((each.I_p_protocol, sorted(each.ports)) for each in rule.allowed)
    return allowed, sorted(rule.source_ranges), rule.direction, rule.priority, rule.disabled, rule.network
