"""What Gardener's provider extensions do: one package or module per cloud, behind one Protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from sandbox.garden.problems import Problem
from sandbox.kube import Object

__all__ = ["CloudError", "Host", "Machine", "Order", "Provider", "Record"]


@dataclass(frozen=True)
class Order:
    """A shoot, as its provider sees it.

    Attributes:
        technical_id: `shoot--<project>--<name>`: prefix or name of everything that is made for it.
        region: The cloud's region.
        infrastructure: `spec.provider.infrastructureConfig`.
        networking: `spec.networking`.
        workers: `spec.provider.workers`.
        credentials: The data of the Secret behind the CredentialsBinding, decoded.
        offers: The spec of the CloudProfile.
    """

    technical_id: str
    region: str
    infrastructure: Object
    networking: Object
    workers: Sequence[Object]
    credentials: Mapping[str, str]
    offers: Object


@dataclass(frozen=True)
class Machine:
    """A virtual machine of a worker pool that exists in the cloud.

    Attributes:
        name: The node's name.
        pool: The worker pool.
        zone: The zone, as the node's label says it.
        address: The private IPv4 address.
        provider_id: `spec.providerID` of the node; ends with the cloud's own id of the machine.
        type: The machine type.
    """

    name: str
    pool: str
    zone: str
    address: str
    provider_id: str
    type: str

    def as_dict(self) -> dict[str, str]:
        """For the record."""
        return asdict(self)


class Record(dict[str, Any]):
    """What a provider remembers of a shoot between its steps, as the Infrastructure resource of a seed does.

    An empty record means: nothing was ever made. Call `save` before the first thing is made.
    """

    def __init__(self, content: Mapping[str, Any], write: Callable[[Mapping[str, Any]], None]) -> None:
        super().__init__(content)
        self._write = write

    def save(self) -> None:
        """Keeps the content over a restart; may be called from any thread."""
        self._write(dict(self))

    @property
    def machines(self) -> list[Machine]:
        """The machines that exist."""
        return [Machine(**each) for each in self.get("machines", [])]

    @machines.setter
    def machines(self, machines: Sequence[Machine]) -> None:
        self["machines"] = [each.as_dict() for each in machines]


@dataclass(frozen=True)
class Host:
    """A machine together with the shoot that it belongs to."""

    order: Order
    record: Record
    machine: Machine


class CloudError(Exception):
    """The cloud, or what the user made in it, stands in the way.

    Attributes:
        codes: Gardener's error codes for `lastErrors`.
    """

    def __init__(self, message: str, codes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.codes = tuple(codes)


class Provider(Protocol):
    """One cloud. Everything but the rules blocks and is called in a thread; every step may be repeated at any time.

    The steps raise CloudError for whatever the cloud refuses.
    """

    type: str

    def fill_in(self, shoot: Object, old: Object | None) -> None:
        """Defaults, as the extension's mutating webhook sets them."""

    def problems(self, shoot: Object, old: Object | None, profile: Object) -> list[Problem]:
        """What the extension's validating webhook refuses."""

    def reconcile(self, order: Order, record: Record) -> None:
        """Makes the infrastructure, or mends it. Puts `egressCIDRs` into the record."""

    def reconcile_machines(self, order: Order, record: Record) -> None:
        """Makes as many machines as the worker pools want at least, and puts them into the record."""

    def delete_machines(self, order: Order, record: Record) -> None:
        """Removes the machines."""

    def delete(self, order: Order, record: Record) -> None:
        """Removes the infrastructure: only what was made for this shoot."""

    def reached(self, source: Host, address: str, port: int, candidates: Sequence[Host]) -> Host | None:
        """The candidate that gets a TCP packet from `source` to `address:port`; None if it is dropped on the way.

        All candidates have that address, in whatever network.
        """
