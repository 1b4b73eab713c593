"""Makes shoots what their specs say, as gardenlet and the extensions do together.

All state is in the store: after a crash every unfinished operation begins again, and every step may be repeated.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, TypeVar

from sandbox.garden import status
from sandbox.garden.hosts import Hosts, Key
from sandbox.garden.insides import Insides
from sandbox.garden.kinds import CLOUD_PROFILES, CREDENTIALS_BINDINGS, GARDEN, SHOOTS_KEY
from sandbox.garden.providers import CloudError, Order, Provider, Record
from sandbox.garden.settings import Operation, Settings
from sandbox.kube import Object, Store, lookup, record_event

_log = logging.getLogger("sandbox.garden")
T = TypeVar("T")
_SEED, _RECORDS = "seed", "infrastructures.extensions.gardener.cloud"
_LONGEST_PAUSE = 60.0
_INFRASTRUCTURE_TASK = "Waiting until shoot infrastructure has been reconciled"
_WORKER_TASK = "Waiting until shoot worker nodes have been reconciled"
_WORKERS_GONE_TASK = "Waiting until shoot worker nodes have been terminated"
_DESTROY_TASK = "Waiting until shoot infrastructure has been deleted"


class _Interrupted(Exception):  # noqa: N818 - no error: the shoot wants something else now
    """The operation is overtaken by a newer wish."""


class _TaskError(Exception):
    """A step that failed, with the name that Gardener gives it."""

    def __init__(self, task: str, message: str, codes: tuple[str, ...]) -> None:
        super().__init__(message)
        self.task = task
        self.codes = codes


class ShootController:
    """Watches the garden's shoots; one task for each that has something to be done."""

    def __init__(
        self,
        store: Store,
        providers: Mapping[str, Provider],
        settings: Settings,
        executor: Executor,
        hosts: Hosts,
        insides: Insides,
        api_server: Callable[[Key], str],
    ) -> None:
        self._store = store
        self._providers = providers
        self._settings = settings
        self._executor = executor
        self._hosts = hosts
        self._insides = insides
        self._api_server = api_server
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._news: dict[Key, asyncio.Event] = {}
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Until cancelled."""
        since = self._store.version
        for shoot in self._store.list(GARDEN, SHOOTS_KEY):
            self._recall(shoot)
            self._look_at(_key(shoot))
        try:
            async for event in self._store.watch(GARDEN, SHOOTS_KEY, since=since):
                if event.type != "BOOKMARK":
                    self._look_at(_key(event.object))
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _recall(self, shoot: Object) -> None:
        """What an earlier life of this process knew in memory."""
        record = self._record(shoot)
        if record.machines:
            with suppress(_TaskError):
                self._hosts.put(_key(shoot), shoot["spec"]["provider"]["type"], self._order(shoot), record)

    def _look_at(self, key: Key) -> None:
        if key in self._tasks:
            self._news[key].set()
            return
        shoot = self._store.get(GARDEN, SHOOTS_KEY, *key)
        if shoot is None or not status.is_due(shoot):
            return
        self._news[key] = asyncio.Event()
        task = self._loop.create_task(self._attend(key), name=f"shoot {key[1]}")
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))

    def _ended(self, key: Key, task: asyncio.Task[None]) -> None:
        del self._tasks[key], self._news[key]
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            _log.error("shoot %s is left alone", key[1], exc_info=error)
            return
        self._look_at(key)

    async def _attend(self, key: Key) -> None:
        """Operations on one shoot, until nothing more is due."""
        pause = self._settings.retry_seconds
        while True:
            shoot = self._store.get(GARDEN, SHOOTS_KEY, *key)
            if shoot is None or not status.is_due(shoot):
                return
            try:
                await self._operate(key, shoot)
            except _Interrupted:
                pause = self._settings.retry_seconds
                continue
            except _TaskError as error:
                if not self._report(key, error):
                    continue
                generation = self._generation(key)
                with suppress(_Interrupted):
                    await self._sleep(key, pause, generation)
                pause = min(2 * pause, _LONGEST_PAUSE)

    async def _operate(self, key: Key, shoot: Object) -> None:
        if status.operation_type(shoot) != "Delete":
            await self._reconcile(key)
        elif not lookup(shoot, "status.uid") or status.is_forced(shoot):
            self._let_go(key)
        else:
            await self._delete(key)

    async def _reconcile(self, key: Key) -> None:
        shoot = self._change(key, status.begin)
        # Binding it to a seed has changed the spec.
        shoot = self._change(key, status.begin) if not _observed(shoot) else shoot
        generation = shoot["metadata"]["generation"]
        provider = self._provider(shoot)
        order, record = self._order(shoot), self._record(shoot)
        self._fail_on_purpose(key, "reconcile", _INFRASTRUCTURE_TASK)
        self._advance(key, 20, "Deploying shoot infrastructure, Deploying internal domain DNS record")
        resource = f"Infrastructure {order.technical_id}/{key[1]}"
        await self._step(
            _INFRASTRUCTURE_TASK,
            f"Error while waiting for {resource} to become ready: error during reconciliation: "
            "Error reconciling Infrastructure: ",
            lambda: provider.reconcile(order, record),
        )
        self._advance(key, 65, "Configuring shoot worker pools, Waiting until shoot worker nodes have been reconciled")
        await self._sleep(key, self._settings.shoot_seconds, generation)
        resource = f"Worker {order.technical_id}/{key[1]}"
        await self._step(
            _WORKER_TASK,
            f"Error while waiting for {resource} to become ready: error during reconciliation: "
            "Error reconciling Worker: ",
            lambda: provider.reconcile_machines(order, record),
        )
        self._hosts.put(key, provider.type, order, record)
        self._insides.furnish(key, shoot, record.machines)
        egress = record.get("egressCIDRs") or []
        shoot = self._change(key, lambda each: status.succeed(each, egress, self._api_server(key)))
        self._tell(shoot, "Reconciled", "Reconciled Shoot cluster")

    async def _delete(self, key: Key) -> None:
        shoot = self._change(key, status.begin)
        shoot = self._change(key, status.begin) if not _observed(shoot) else shoot
        generation = shoot["metadata"]["generation"]
        provider = self._provider(shoot)
        order, record = self._order(shoot), self._record(shoot)
        self._fail_on_purpose(key, "delete", _DESTROY_TASK)
        self._advance(key, 30, "Destroying Shoot workers, Waiting until shoot worker nodes have been terminated")
        if record.machines:
            await self._sleep(key, self._settings.shoot_seconds, generation)
        resource = f"Worker {order.technical_id}/{key[1]}"
        await self._step(
            _WORKERS_GONE_TASK,
            f"Failed to delete {resource}: Error deleting Worker: ",
            lambda: provider.delete_machines(order, record),
        )
        self._hosts.drop(key, provider.type)
        self._insides.clear(key)
        self._advance(key, 80, "Destroying shoot infrastructure, Waiting until shoot infrastructure has been deleted")
        resource = f"Infrastructure {order.technical_id}/{key[1]}"
        await self._step(
            _DESTROY_TASK,
            f"Failed to delete {resource}: Error deleting Infrastructure: ",
            lambda: provider.delete(order, record),
        )
        self._change(key, status.end)
        self._let_go(key)

    def _let_go(self, key: Key) -> None:
        """The Shoot goes, and whatever the garden knows of it; what is in the cloud stays."""
        shoot = self._store.get(GARDEN, SHOOTS_KEY, *key)
        if shoot is None:
            return
        self._hosts.drop(key, shoot["spec"]["provider"]["type"])
        self._insides.clear(key)
        technical_id = lookup(shoot, "status.technicalID") or ""
        if self._store.get(_SEED, _RECORDS, technical_id, key[1]):
            self._store.delete(_SEED, _RECORDS, technical_id, key[1])
        for event in self._store.list(GARDEN, "events", key[0]):
            if event["involvedObject"].get("uid") == shoot["metadata"]["uid"]:
                self._store.delete(GARDEN, "events", key[0], event["metadata"]["name"])
        finalizers = [each for each in shoot["metadata"].get("finalizers") or [] if each != status.FINALIZER]
        shoot["metadata"]["finalizers"] = finalizers
        self._store.update(GARDEN, SHOOTS_KEY, shoot)

    async def _step(self, task: str, prefix: str, work: Callable[[], T]) -> T:
        """Work in a thread; what the cloud refuses becomes the error of the task."""
        try:
            return await self._loop.run_in_executor(self._executor, work)
        except CloudError as error:
            raise _TaskError(task, prefix + str(error), error.codes) from error
        except Exception as error:
            _log.exception("a provider failed in an unforeseen way")
            raise _TaskError(task, f"{prefix}{type(error).__name__}: {error}", ()) from error

    async def _sleep(self, key: Key, seconds: float, generation: int) -> None:
        """Waits, unless the shoot gets a new generation meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                while self._generation(key) == generation:
                    self._news[key].clear()
                    await self._news[key].wait()
        except TimeoutError:
            return
        raise _Interrupted

    def _generation(self, key: Key) -> int:
        shoot = self._store.get(GARDEN, SHOOTS_KEY, *key)
        return int(shoot["metadata"]["generation"]) if shoot else -1

    def _fail_on_purpose(self, key: Key, operation: Operation, task: str) -> None:
        failure = self._settings.failure(key[1], operation)
        if failure is not None:
            raise _TaskError(task, failure.message, failure.codes)

    def _report(self, key: Key, error: _TaskError) -> bool:
        """Writes the error down; tells whether the operation is to be tried again."""
        retried: list[bool] = []
        shoot = self._change(key, lambda each: retried.append(status.fail(each, error.task, str(error), error.codes)))
        self._tell(shoot, "ReconcileError", lookup(shoot, "status.lastOperation.description") or "", warning=True)
        return retried[0]

    def _advance(self, key: Key, progress: int, description: str) -> None:
        self._change(key, lambda shoot: status.advance(shoot, progress, description))

    def _change(self, key: Key, change: Callable[[Object], object]) -> Object:
        """Reads, changes and writes without a pause between: nobody else can come in between."""
        shoot = self._store.get(GARDEN, SHOOTS_KEY, *key)
        if shoot is None:
            raise _Interrupted
        change(shoot)
        return self._store.update(GARDEN, SHOOTS_KEY, shoot)

    def _tell(self, shoot: Object, reason: str, message: str, *, warning: bool = False) -> None:
        record_event(self._store, GARDEN, shoot, reason, message, warning=warning, source="shoot-controller")

    def _provider(self, shoot: Object) -> Provider:
        return self._providers[shoot["spec"]["provider"]["type"]]

    def _order(self, shoot: Object) -> Order:
        spec = shoot["spec"]
        profile = self._store.get(GARDEN, CLOUD_PROFILES.key, None, spec["cloudProfile"]["name"])
        return Order(
            technical_id=shoot["status"]["technicalID"],
            region=spec["region"],
            infrastructure=spec["provider"]["infrastructureConfig"],
            networking=spec["networking"],
            workers=spec["provider"]["workers"],
            credentials=self._credentials(shoot),
            offers=profile["spec"] if profile else {},
        )

    def _credentials(self, shoot: Object) -> dict[str, str]:
        namespace, name = shoot["metadata"]["namespace"], shoot["spec"]["credentialsBindingName"]
        binding = self._store.get(GARDEN, CREDENTIALS_BINDINGS.key, namespace, name)
        reference = (binding or {}).get("credentialsRef") or {}
        secret = self._store.get(GARDEN, "secrets", reference.get("namespace"), str(reference.get("name")))
        if secret is None:
            text = f"the Secret of CredentialsBinding {name} is missing"
            raise _TaskError("Deploying cloud provider account secret", text, ())
        return {key: base64.b64decode(value).decode() for key, value in (secret.get("data") or {}).items()}

    def _record(self, shoot: Object) -> Record:
        namespace, name = lookup(shoot, "status.technicalID") or "", shoot["metadata"]["name"]
        found = self._store.get(_SEED, _RECORDS, namespace, name)

        def write(content: Mapping[str, Any]) -> None:
            asyncio.run_coroutine_threadsafe(self._write_record(namespace, name, dict(content)), self._loop).result(10)

        return Record(found["record"] if found else {}, write)

    async def _write_record(self, namespace: str, name: str, content: dict[str, Any]) -> None:
        found = self._store.get(_SEED, _RECORDS, namespace, name)
        if found is None:
            obj = {"metadata": {"namespace": namespace, "name": name}, "record": content}
            self._store.create(_SEED, _RECORDS, obj)
        else:
            self._store.update(_SEED, _RECORDS, {**found, "record": content})


def _key(shoot: Object) -> Key:
    return shoot["metadata"]["namespace"], shoot["metadata"]["name"]


def _observed(shoot: Object) -> bool:
    return bool(shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"])
