"""All machines of all shoots, by address."""

from __future__ import annotations

from collections import defaultdict

from sandbox.garden.providers import Host, Order, Record

Key = tuple[str, str]
"""Namespace and name of a shoot."""


class Hosts:
    """Who has which address. Addresses of different networks may be equal."""

    def __init__(self) -> None:
        self._by_shoot: dict[Key, list[Host]] = {}
        self._by_address: dict[tuple[str, str], list[tuple[Key, Host]]] = defaultdict(list)

    def put(self, key: Key, provider: str, order: Order, record: Record) -> None:
        """The machines of a shoot, as its record has them."""
        self.drop(key, provider)
        self._by_shoot[key] = [Host(order, record, machine) for machine in record.machines]
        for host in self._by_shoot[key]:
            self._by_address[provider, host.machine.address].append((key, host))

    def drop(self, key: Key, provider: str) -> None:
        """Forgets a shoot."""
        for host in self._by_shoot.pop(key, []):
            place = (provider, host.machine.address)
            self._by_address[place] = [each for each in self._by_address[place] if each[0] != key]
            if not self._by_address[place]:
                del self._by_address[place]

    def of(self, key: Key) -> list[Host]:
        """The machines of a shoot."""
        return self._by_shoot.get(key, [])

    def at(self, provider: str, address: str) -> list[Host]:
        """Those with an address, in all networks of a provider."""
        return [host for _, host in self._by_address.get((provider, address), [])]

    def owner(self, provider: str, found: Host) -> Key | None:
        """Whose machine that is."""
        places = self._by_address.get((provider, found.machine.address), [])
        return next((key for key, host in places if host is found), None)
