"""`trellis cluster …`."""

from __future__ import annotations

import asyncio
from typing import Annotated

from typer import Option

from domain.errors import Code, TrellisError
from domain.messages import ClusterPhase, ClusterView
from domain.specs import DEFAULT_PODS, DEFAULT_SERVICES, DEFAULT_TENANT, ClusterSpec, OnFailure, Provider
from starter.client import Trellis
from starter.console import OutputFormat, err, out, print_json, usage
from starter.live import follow
from starter.options import ClusterName, Output, Tenant, Why, decision, group, settings, talk
from starter.progress import await_cluster, await_deletion, await_vpc_end, patiently
from starter.render import cluster_card, cluster_table
from worker.settings import Settings

__all__ = ["app"]

app = group("Clusters: create, watch, delete.")

Wait = Annotated[bool, Option("--wait", help="Return when it is done, and show what is going on meanwhile.")]


@app.command()
def create(
    name: ClusterName,
    provider: Annotated[Provider, Option(help="The cloud.")],
    region: Annotated[str, Option(help="The cloud's name of the region.")],
    vpc: Annotated[str | None, Option(help="The VPC to join, or to make. Left out: a VPC of its own.")] = None,
    vpc_cidr: Annotated[str | None, Option(help="The VPC's range, such as 10.0.0.0/16.")] = None,
    cluster_prefix: Annotated[int | None, Option(help="Size of every cluster's block, such as 22 for a /22.")] = None,
    block: Annotated[str | None, Option(help="Exactly this block, such as 10.0.8.0/22.")] = None,
    zones: Annotated[str | None, Option(help="Zones, with commas between. Left out: the region's first.")] = None,
    credentials: Annotated[str | None, Option(help="CredentialsBinding of the garden project.")] = None,
    machine_type: Annotated[str | None, Option(help="Machine type of the nodes.")] = None,
    kubernetes_version: Annotated[str | None, Option(help="Such as 1.34 or 1.34.2.")] = None,
    nodes_min: Annotated[int, Option(help="Fewest nodes.")] = 1,
    nodes_max: Annotated[int, Option(help="Most nodes.")] = 3,
    pods: Annotated[str, Option(help="Range of the pods.")] = str(DEFAULT_PODS),
    services: Annotated[str, Option(help="Range of the services.")] = str(DEFAULT_SERVICES),
    on_failure: Annotated[OnFailure, Option(help="Clean up at once, or wait for a person.")] = OnFailure.COMPENSATE,
    wait: Wait = False,
    tenant: Tenant = DEFAULT_TENANT,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a cluster in a VPC. The same request twice is one cluster."""
    with usage():
        spec = ClusterSpec.model_validate(
            {
                "tenant": tenant,
                "name": name,
                "provider": provider,
                "region": region,
                "vpc": vpc,
                "credentials": credentials,
                "vpc_cidr": vpc_cidr,
                "cluster_prefix": cluster_prefix,
                "block": block,
                "zones": tuple(zone.strip() for zone in zones.split(",")) if zones is not None else (),
                "pods": pods,
                "services": services,
                "machine_type": machine_type,
                "kubernetes_version": kubernetes_version,
                "nodes_min": nodes_min,
                "nodes_max": nodes_max,
                "on_failure": on_failure,
            }
        )
    asyncio.run(_check_landscape(spec, settings()))
    view = talk(lambda trellis: _create(trellis, spec, wait=wait), tenant=tenant)
    _show(view, output)


@app.command()
def delete(
    name: ClusterName,
    wait: Wait = False,
    why: Why = "",
    tenant: Tenant = DEFAULT_TENANT,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Delete a cluster; with the last one its VPC goes too. Also cleans up what a lost workflow left."""
    view = talk(lambda trellis: _delete(trellis, name, tenant, why, wait=wait), cluster=name, tenant=tenant)
    if view is not None and output is OutputFormat.JSON:
        print_json(view)


@app.command("list")
def list_(tenant: Tenant = DEFAULT_TENANT, output: Output = OutputFormat.TABLE) -> None:
    """All clusters that live."""
    views = talk(lambda trellis: trellis.clusters(tenant), tenant=tenant)
    if output is OutputFormat.JSON:
        print_json(views)
    elif views:
        out.print(cluster_table(views))
    else:
        err.print(f"no clusters of tenant {tenant}")


@app.command()
def show(name: ClusterName, tenant: Tenant = DEFAULT_TENANT, output: Output = OutputFormat.TABLE) -> None:
    """Everything about a cluster, also about one that failed."""
    _show(talk(lambda trellis: trellis.cluster(name, tenant), cluster=name, tenant=tenant), output)


@app.command()
def retry(name: ClusterName, why: Why = "", tenant: Tenant = DEFAULT_TENANT) -> None:
    """Let a held cluster try its failed step again."""
    talk(lambda trellis: trellis.retry(name, tenant, decision(why)), cluster=name, tenant=tenant)
    err.print(f"cluster {name} tries again")


@app.command()
def skip(name: ClusterName, why: Why = "", tenant: Tenant = DEFAULT_TENANT) -> None:
    """Let a held cluster go on without its failed step (connectivity only)."""
    talk(lambda trellis: trellis.skip(name, tenant, decision(why)), cluster=name, tenant=tenant)
    err.print(f"cluster {name} goes on without the step")


@app.command()
def abort(name: ClusterName, why: Why = "", tenant: Tenant = DEFAULT_TENANT) -> None:
    """Give up a held cluster: it is cleaned up and ends as failed."""
    talk(lambda trellis: trellis.abort(name, tenant, decision(why)), cluster=name, tenant=tenant)
    err.print(f"cluster {name} is given up and cleaned up")


async def _check_landscape(spec: ClusterSpec, configured: Settings) -> None:
    """Whether the garden has what is asked for; the worker asks again, this only saves the user a failed cluster."""
    if configured.garden_kubeconfig is None:
        return
    # Brings the clouds' SDKs along, which no other command needs.
    from activities.shoot import ShootActivities
    from worker.wiring import garden_of

    async with await garden_of(configured) as garden:
        with usage():
            await ShootActivities(garden, configured.cloud_profiles).plan(spec)


async def _create(trellis: Trellis, spec: ClusterSpec, *, wait: bool) -> ClusterView:
    new = await trellis.create_cluster(spec)
    err.print(f"cluster {spec.name} {'is asked for' if new else 'was asked for before'}, in VPC {spec.vpc_name}")
    if link := trellis.link(trellis.cluster_handle(spec.name, spec.tenant).id):
        err.print(f"  {link}")
    if not wait:
        return _requested(trellis, spec)
    await follow({f"cluster {spec.name}": await_cluster(trellis, spec.name, spec.tenant)})
    view = await patiently(lambda: trellis.last_of_cluster(spec.name, spec.tenant))
    if view.phase is ClusterPhase.READY:
        return view
    if view.failure is None:
        raise TrellisError(Code.CANCELLED, f"cluster {spec.name} was deleted before it was ready")
    held = view.phase is ClusterPhase.HELD
    hint = f"`trellis cluster retry {spec.name}`, or `abort`" if held else "nothing of it is left"
    raise TrellisError(view.failure.code, view.failure.message, view.failure.hint or hint)


def _requested(trellis: Trellis, spec: ClusterSpec) -> ClusterView:
    """The cluster as it is asked for: needs no worker that answers."""
    return ClusterView(
        name=spec.name,
        tenant=spec.tenant,
        provider=spec.provider,
        region=spec.region,
        vpc=spec.vpc_name,
        phase=ClusterPhase.JOINING,
        workflow_id=trellis.cluster_handle(spec.name, spec.tenant).id,
    )


async def _delete(trellis: Trellis, name: str, tenant: str, why: str, *, wait: bool) -> ClusterView | None:
    await trellis.delete_cluster(name, tenant, decision(why))
    err.print(f"the deletion of cluster {name} is asked for")
    if not wait:
        return None
    await follow({f"cluster {name}": await_deletion(trellis, name, tenant)})
    view = await patiently(lambda: trellis.last_of_cluster(name, tenant))
    if view.phase is not ClusterPhase.DELETED:
        what = f"the workflow of cluster {name} ended while the cluster was {view.phase}"
        raise TrellisError.of(view.failure) if view.failure else TrellisError(Code.INTERNAL, what)
    if view.vpc:
        await follow({f"VPC {view.vpc}": await_vpc_end(trellis, view)})
    err.print(f"cluster {name} is gone")
    return view


def _show(view: ClusterView, output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        print_json(view)
    else:
        out.print(cluster_card(view))
