"""Takes away what was made for one shoot, and what is named alike (provider-azure, `infraflow/flow_context.go`)."""

from __future__ import annotations

from sandbox.garden.providers import Order, Record
from sandbox.garden.providers.azure.session import Session

__all__ = ["delete_infrastructure"]


def delete_infrastructure(session: Session, order: Order, record: Record) -> None:
    """The subnets in the user's network, then the shoot's resource group with all that is in it.

    What others put into the shoot's subnets stops it: InUseSubnetCannotBeDeleted.
    """
    vnet, tid = record.get("vnet"), order.technical_id
    if vnet and vnet["group"].lower() != tid.lower():
        _delete_subnets(session, vnet["group"], vnet["name"], tid)
    if session.found(session.groups.get, tid) is not None:
        session.gone(session.groups.begin_delete, tid)


def _delete_subnets(session: Session, group: str, vnet: str, technical_id: str) -> None:
    """Every subnet of the network whose name begins with the technical id, with nothing to end it.

    So `c1` takes the subnets of `c10` with it (`DeleteSubnetsInForeignGroup`: `HasShootPrefix`).
    """
    for subnet in session.listed(session.network.subnets.list, group, vnet):
        if subnet.name.startswith(technical_id):
            session.gone(session.network.subnets.begin_delete, group, vnet, subnet.name)
