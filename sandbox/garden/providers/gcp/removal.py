"""Takes away what was made for one shoot, and what is named alike (provider-gcp, `infraflow/ensure.go`)."""

from __future__ import annotations

from typing import Any

from google.cloud import compute_v1

from sandbox.garden.providers import Order, Record
from sandbox.garden.providers.gcp.config import InfrastructureConfig
from sandbox.garden.providers.gcp.infrastructure import FIREWALLS
from sandbox.garden.providers.gcp.session import Session, short

__all__ = ["delete_infrastructure"]

_SHOOTS, _KUBERNETES = "shoot--", "k8s"


def delete_infrastructure(session: Session, order: Order, record: Record) -> None:
    """Routes, firewall rules, the NAT gateway and the subnetworks. The user's network and router stay.

    What others put into the shoot's subnetworks stops it: "is already being used by".
    """
    network, region = record["network"], order.region
    own = InfrastructureConfig.model_validate(order.infrastructure).networks.vpc is None
    for route in _routes(session, network, order.technical_id):
        session.gone(session.routes.delete_unary, route=route)
    for rule in _rules(session, network, order.technical_id):
        session.gone(session.firewalls.delete_unary, firewall=rule)
    _delete_nat(session, order, record)
    session.gone(session.subnetworks.delete_unary, region=region, subnetwork=f"{order.technical_id}-internal")
    if own and record.get("router"):
        session.gone(session.routers.delete_unary, region=region, router=record["router"])
    session.gone(session.subnetworks.delete_unary, region=region, subnetwork=f"{order.technical_id}-nodes")
    if own:
        session.gone(session.networks.delete_unary, network=network)


def _routes(session: Session, network: str, technical_id: str) -> list[str]:
    """The routes to all machines whose names begin with the technical id, with nothing to end it.

    So `c1` takes the routes of `c10` with it (`ensureKubernetesRoutesDeleted`).
    """
    return [
        route.name
        for route in session.listed(session.routes.list, filter=_of(network))
        if route.name.startswith(_SHOOTS)
        and route.network.endswith(network)
        and short(route.next_hop_instance).startswith(technical_id)
    ]


def _rules(session: Session, network: str, technical_id: str) -> list[str]:
    """The shoot's own rules by name, and the cloud controller's for its services by target tag."""
    own = {f"{technical_id}-{suffix}" for suffix in FIREWALLS}
    return [
        rule.name
        for rule in session.listed(session.firewalls.list, filter=_of(network))
        if rule.name in own or (rule.name.startswith(_KUBERNETES) and technical_id in rule.target_tags)
    ]


def _of(network: str) -> str:
    return f'network eq ".*({network}).*"'


def _delete_nat(session: Session, order: Order, record: Record) -> None:
    """The list of gateways is read, and written back without one; others may write it in between (`DeleteNAT`)."""
    name, router = f"{order.technical_id}-cloud-nat", record.get("router", "")
    found: Any = session.found(session.routers.get, region=order.region, router=router) if router else None
    if found is None or name not in [nat.name for nat in found.nats]:
        return
    left = [nat for nat in found.nats if nat.name != name]
    if left:
        patch = compute_v1.Router(nats=left)
        session.done(session.routers.patch_unary, region=order.region, router=router, router_resource=patch)
    else:
        # This SDK leaves an empty list out of a PATCH; a PUT without a list empties it.
        found.nats = []
        session.done(session.routers.update_unary, region=order.region, router=router, router_resource=found)
