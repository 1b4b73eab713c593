"""`trellis vpc …`."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from domain.specs import DEFAULT_TENANT
from starter.client import Trellis
from starter.console import OutputFormat, err, out, print_json
from starter.options import Output, Tenant, VpcName, Why, decision, group, talk
from starter.render import vpc_card, vpc_table
from starter.space_map import SpaceMap, space_map

__all__ = ["app"]

app = group("VPCs: who holds which addresses, and why.")


@app.command("list")
def list_(tenant: Tenant = DEFAULT_TENANT, output: Output = OutputFormat.TABLE) -> None:
    """All VPCs."""
    views = talk(lambda trellis: trellis.vpcs(tenant), tenant=tenant)
    if output is OutputFormat.JSON:
        print_json(views)
    elif views:
        out.print(vpc_table(views))
    else:
        err.print(f"no VPCs of tenant {tenant}")


@app.command()
def show(name: VpcName, tenant: Tenant = DEFAULT_TENANT, output: Output = OutputFormat.TABLE) -> None:
    """Everything about a VPC."""
    view = talk(lambda trellis: trellis.vpc(name, tenant), vpc=name, tenant=tenant)
    if output is OutputFormat.JSON:
        print_json(view)
    else:
        out.print(vpc_card(view))


@app.command("map")
def map_(name: VpcName, tenant: Tenant = DEFAULT_TENANT, output: Output = OutputFormat.TABLE) -> None:
    """Draw a VPC's addresses: who holds what, and what is free."""
    drawn = talk(lambda trellis: _map(trellis, name, tenant), vpc=name, tenant=tenant)
    if output is OutputFormat.JSON:
        print_json(drawn)
    else:
        out.print(space_map(drawn, out.width))


@app.command()
def explain(name: VpcName, tenant: Tenant = DEFAULT_TENANT, output: Output = OutputFormat.TABLE) -> None:
    """Who holds a VPC, since when, and why it is or is not deletable."""
    lines = talk(lambda trellis: trellis.explain(name, tenant), vpc=name, tenant=tenant)
    if output is OutputFormat.JSON:
        print_json({"name": name, "tenant": tenant, "lines": lines})
    else:
        out.print("\n".join(lines))


@app.command()
def retain(name: VpcName, why: Why = "", tenant: Tenant = DEFAULT_TENANT) -> None:
    """Keep a VPC when its last cluster has left."""
    talk(lambda trellis: trellis.retain_vpc(name, tenant, decision(why)), vpc=name, tenant=tenant)
    err.print(f"VPC {name} stays when its last cluster has left, until `trellis vpc delete {name}`")


@app.command()
def release(
    name: VpcName,
    cluster: Annotated[str, Argument(metavar="CLUSTER", help="The member that can no longer leave by itself.")],
    why: Why = "",
    tenant: Tenant = DEFAULT_TENANT,
) -> None:
    """Free the block of a cluster that can no longer do so itself."""
    talk(
        lambda trellis: trellis.release_member(name, cluster, tenant, decision(why)),
        vpc=name,
        cluster=cluster,
        tenant=tenant,
    )
    err.print(f"the block of {cluster} in VPC {name} is free again")


@app.command()
def delete(name: VpcName, why: Why = "", tenant: Tenant = DEFAULT_TENANT) -> None:
    """Remove an empty VPC that was retained. Refused while clusters hold it."""
    talk(lambda trellis: trellis.delete_vpc(name, tenant, decision(why)), vpc=name, tenant=tenant)
    err.print(f"VPC {name} is being removed")


async def _map(trellis: Trellis, name: str, tenant: str) -> SpaceMap:
    view = await trellis.vpc(name, tenant)
    space = await trellis.space(name, tenant)
    clusters = {cluster.name: cluster for cluster in await trellis.clusters(tenant) if cluster.vpc == name}
    return SpaceMap.of(view, space, clusters)
