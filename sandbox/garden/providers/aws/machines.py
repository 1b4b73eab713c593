"""The virtual machines of a shoot's worker pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox.garden.providers import CloudError, Machine, Order, Record
from sandbox.garden.providers.aws.inventory import machines_of, specification, tag_of
from sandbox.garden.providers.aws.removal import gone_is_fine
from sandbox.garden.providers.aws.session import Session

_POOL_TAG = "worker.gardener.cloud/pool"


def reconcile_machines(session: Session, order: Order, record: Record) -> None:
    """Starts what is missing of each pool and zone, stops what is too much."""
    ec2: Any = session.ec2
    running = machines_of(session, order.technical_id) if record.get("hadMachines") else []
    record["hadMachines"] = True
    record.save()
    kept = []
    for worker, zone, count in _shares(order):
        present = [
            each
            for each in running
            if tag_of(each, _POOL_TAG) == worker["name"] and each["Placement"]["AvailabilityZone"] == zone
        ]
        kept += present[:count]
        kept += [_start(ec2, order, record, worker, zone) for _ in range(count - len(present))]
    surplus = {each["InstanceId"] for each in running} - {each["InstanceId"] for each in kept}
    if surplus:
        ec2.terminate_instances(InstanceIds=sorted(surplus))
    record.machines = [_machine(session, each) for each in kept]


def delete_machines(session: Session, order: Order, record: Record) -> None:
    """Terminates all of them."""
    if record.get("hadMachines"):
        ids = [each["InstanceId"] for each in machines_of(session, order.technical_id)]
        if ids:
            gone_is_fine(session.ec2.terminate_instances, InstanceIds=ids)
            session.ec2.get_waiter("instance_terminated").wait(
                InstanceIds=ids, WaiterConfig={"Delay": 1, "MaxAttempts": 180}
            )
    record.machines = []


def _shares(order: Order) -> Iterator[tuple[Any, str, int]]:
    """How many machines of a pool go into which zone: its minimum, spread over its zones, the first ones first."""
    for worker in order.workers:
        zones = worker["zones"]
        for index, zone in enumerate(zones):
            yield worker, zone, (worker["minimum"] + len(zones) - 1 - index) // len(zones)


def _start(ec2: Any, order: Order, record: Record, worker: Any, zone: str) -> Any:
    """One machine, asked for as machine-controller-manager does: its interface goes with it."""
    tid = order.technical_id
    specs = specification("instance", tid, worker["name"], {_POOL_TAG: worker["name"]})
    interface = {
        "DeviceIndex": 0,
        "SubnetId": record["subnets"][zone],
        "Groups": [record["securityGroup"]],
        "DeleteOnTermination": True,
    }
    # The instance profile is made for the nodes, but not named here: the sandbox's AWS forgets IAM when it ends, and
    # could not bring back an instance that asks for it.
    started = ec2.run_instances(
        ImageId=_image(order, worker["machine"]),
        InstanceType=worker["machine"]["type"],
        MinCount=1,
        MaxCount=1,
        NetworkInterfaces=[interface],
        KeyName=f"{tid}-ssh-publickey",
        TagSpecifications=specs,
    )["Instances"][0]
    return {**started, "Tags": specs[0]["Tags"]}


def _image(order: Order, machine: Any) -> str:
    wanted = machine["image"]
    architecture = machine.get("architecture", "amd64")
    for image in order.offers["providerConfig"]["machineImages"]:
        for version in image["versions"]:
            if (image["name"], version["version"]) != (wanted["name"], wanted["version"]):
                continue
            for region in version["regions"]:
                if region["name"] == order.region and region.get("architecture", "amd64") == architecture:
                    return str(region["ami"])
    text = f"could not find an AMI for region {order.region} and machine image {wanted['name']}/{wanted['version']}"
    raise CloudError(text, ("ERR_CONFIGURATION_PROBLEM",))


def _machine(session: Session, instance: Any) -> Machine:
    address, zone = instance["PrivateIpAddress"], instance["Placement"]["AvailabilityZone"]
    return Machine(
        name=f"ip-{address.replace('.', '-')}.{session.region}.compute.internal",
        pool=tag_of(instance, _POOL_TAG),
        zone=zone,
        address=address,
        provider_id=f"aws:///{zone}/{instance['InstanceId']}",
        type=instance["InstanceType"],
    )
