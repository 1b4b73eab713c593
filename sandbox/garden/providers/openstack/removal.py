"""Takes away what was made for one shoot (provider-openstack, `infraflow/delete.go` and `infraflow/utils.go`)."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from sandbox.garden.providers import Order, Record
from sandbox.garden.providers.openstack.config import InfrastructureConfig
from sandbox.garden.providers.openstack.infrastructure import interfaces
from sandbox.garden.providers.openstack.session import Session

__all__ = ["delete_infrastructure"]


def delete_infrastructure(session: Session, order: Order, record: Record) -> None:
    """Security group, routes, router interface and subnet. The user's network and router stay.

    What others put into the shoot's subnet stops it: one or more ports have an IP allocation from it.
    """
    networks, tid = InfrastructureConfig.model_validate(order.infrastructure).networks, order.technical_id
    if group := session.existing("security_group", record.get("securityGroup"), tid):
        session.gone("delete_security_group", group.id)
    router = record.get("router")
    network = record.get("network")
    subnet = session.existing("subnet", record.get("subnet"), tid, network_id=network) if network else None
    if router:
        _delete_routes(session, router, networks.nodes)
    if router and subnet and interfaces(session, router, subnet.id):
        session.done("remove_interface_from_router", router, subnet=subnet.id)
    if networks.id is not None and subnet:
        session.gone("delete_subnet", subnet.id)
    if networks.id is None and network:
        session.gone("delete_network", network)
    if networks.router is None and router:
        session.gone("delete_router", router)


def _delete_routes(session: Session, router_id: str, workers: str) -> None:
    """Those to the shoot's nodes; the list is read, and written back as a whole: others may write it in between."""
    router = session.found("router", router_id)
    if router is None:
        return
    left = [each for each in router.routes if ip_address(each["nexthop"]) not in ip_network(workers)]
    if len(left) != len(router.routes):
        session.done("update_router", router_id, routes=left)
