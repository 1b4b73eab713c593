"""The Kubernetes clients for Python against the server."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import kubernetes
import pytest
from kubernetes import aio
from kubernetes.aio import watch
from kubernetes.aio.client import ApiClient, Configuration, CoreV1Api, CustomObjectsApi
from kubernetes.aio.client.exceptions import ApiException

from tests.sandbox.kube.conftest import Served

KIND: dict[str, Any] = {"group": "fleet.example.org", "version": "v1beta1", "plural": "vessels"}


def vessel(name: str, **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "fleet.example.org/v1beta1",
        "kind": "Vessel",
        "metadata": {"name": name, "labels": {"class": "ferry"}},
        "spec": spec,
    }


@pytest.fixture
async def client(served: Served) -> AsyncIterator[ApiClient]:
    async with ApiClient(Configuration(host=served.url)) as client:
        yield client


async def test_custom_objects_are_made_read_changed_and_deleted(client: ApiClient, namespace: str) -> None:
    api = CustomObjectsApi(client)
    where = {**KIND, "namespace": namespace}
    made = await api.create_namespaced_custom_object(**where, body=vessel("elbe", length=90))
    assert made["spec"] == {"length": 90, "port": "Hamburg"}
    got = await api.get_namespaced_custom_object(**where, name="elbe")
    assert got == made
    patched = await api.patch_namespaced_custom_object(
        **where, name="elbe", body={"spec": {"length": 91}}, _content_type="application/merge-patch+json"
    )
    assert patched["metadata"]["generation"] == 2
    got["spec"]["length"] = 92
    with pytest.raises(ApiException) as conflict:
        await api.replace_namespaced_custom_object(**where, name="elbe", body=got)
    assert (conflict.value.status, json.loads(conflict.value.body)["reason"]) == (409, "Conflict")
    status = await api.patch_namespaced_custom_object_status(
        **where, name="elbe", body={"status": {"phase": "Afloat"}, "spec": {"length": 1}}
    )
    assert status["status"] == {"phase": "Afloat"}
    assert (status["spec"]["length"], status["metadata"]["generation"]) == (91, 2)
    listed = await api.list_namespaced_custom_object(
        **where, label_selector="class=ferry", field_selector="spec.port=Hamburg"
    )
    assert listed["items"] == [status]
    gone = await api.delete_namespaced_custom_object(**where, name="elbe")
    assert gone["status"] == "Success"
    with pytest.raises(ApiException) as missing:
        await api.get_namespaced_custom_object(**where, name="elbe")
    assert missing.value.status == 404


async def test_apply_through_the_client(client: ApiClient, namespace: str) -> None:
    api = CustomObjectsApi(client)
    options = {**KIND, "namespace": namespace, "name": "elbe", "_content_type": "application/apply-patch+yaml"}
    body = vessel("elbe", flag="de", length=90)
    # The client has no type for the 201 of a creation, so it answers None.
    await api.patch_namespaced_custom_object(**options, body=body, field_manager="yard", force=True)
    first = await api.get_namespaced_custom_object(**KIND, namespace=namespace, name="elbe")
    assert first["metadata"]["generation"] == 1
    again = await api.patch_namespaced_custom_object(**options, body=body, field_manager="yard", force=True)
    assert again == first
    with pytest.raises(ApiException) as conflict:
        await api.patch_namespaced_custom_object(
            **options, body=vessel("elbe", length=91), field_manager="owner", force=False
        )
    assert conflict.value.status == 409
    assert 'conflict with "yard": .spec.length' in json.loads(conflict.value.body)["message"]


async def test_a_list_is_followed_by_a_watch(client: ApiClient, namespace: str) -> None:
    api = CustomObjectsApi(client)
    where = {**KIND, "namespace": namespace}
    await api.create_namespaced_custom_object(**where, body=vessel("elbe"))
    version = (await api.list_namespaced_custom_object(**where))["metadata"]["resourceVersion"]

    async def change() -> None:
        await api.create_namespaced_custom_object(**where, body=vessel("weser"))
        await api.delete_namespaced_custom_object(**where, name="elbe")

    changing = asyncio.create_task(change())
    seen = []
    async with watch.Watch() as watching:
        async for event in watching.stream(
            api.list_namespaced_custom_object, **where, resource_version=version, timeout_seconds=30
        ):
            seen.append((event["type"], event["object"]["metadata"]["name"]))
            if event["type"] == "DELETED":
                break
    await changing
    assert seen == [("ADDED", "weser"), ("DELETED", "elbe")]


async def test_a_watch_ends_when_it_was_told_to(client: ApiClient, namespace: str) -> None:
    async with watch.Watch() as watching:
        events = watching.stream(CoreV1Api(client).list_namespaced_secret, namespace, timeout_seconds=1)
        async with asyncio.timeout(20):
            assert [event async for event in events] == []


async def test_a_selector_watch_sees_objects_come_and_go(client: ApiClient, namespace: str) -> None:
    api = CoreV1Api(client)
    body = {"metadata": {"name": "s", "labels": {"on": "no"}}}
    await api.create_namespaced_config_map(namespace, body)

    async def change() -> None:
        for value in ("yes", "yes", "no"):
            labels = {"metadata": {"labels": {"on": value}}, "data": {"x": value}}
            await api.patch_namespaced_config_map("s", namespace, labels, _content_type="application/merge-patch+json")
        await api.delete_namespaced_config_map("s", namespace)
        await api.create_namespaced_config_map(namespace, {"metadata": {"name": "end", "labels": {"on": "yes"}}})

    changing = asyncio.create_task(change())
    seen = []
    async with watch.Watch() as watching:
        async for event in watching.stream(
            api.list_namespaced_config_map, namespace, label_selector="on=yes", timeout_seconds=30
        ):
            seen.append((event["type"], event["object"].metadata.name))
            if event["object"].metadata.name == "end":
                break
    await changing
    assert seen == [("ADDED", "s"), ("DELETED", "s"), ("ADDED", "end")]


async def test_typed_core_objects(client: ApiClient, namespace: str) -> None:
    api = CoreV1Api(client)
    made = await api.create_namespaced_secret(
        namespace,
        aio.client.V1Secret(metadata=aio.client.V1ObjectMeta(generate_name="key-"), string_data={"a": "b"}),
    )
    assert made.metadata.name.startswith("key-")
    assert (made.data, made.type, made.string_data) == ({"a": "Yg=="}, "Opaque", None)
    with pytest.raises(ApiException) as wrong:
        await api.create_namespaced_secret(namespace, {"metadata": {"name": "x"}, "data": {"a": "no base64!"}})
    assert wrong.value.status == 400
    assert [item.metadata.name for item in (await api.list_namespaced_secret(namespace)).items] == [made.metadata.name]
    status = await api.delete_collection_namespaced_secret(namespace)
    assert status
    assert (await api.list_namespaced_secret(namespace)).items == []
    namespaces = await api.list_namespace(field_selector=f"metadata.name={namespace}")
    assert [item.status.phase for item in namespaces.items] == ["Active"]


async def test_the_synchronous_client_lists_and_watches(served: Served, namespace: str) -> None:
    def read() -> list[tuple[str, str]]:
        with kubernetes.client.ApiClient(kubernetes.client.Configuration(host=served.url)) as client:
            api = kubernetes.client.CoreV1Api(client)
            api.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}, "data": {"x": "y"}})
            version = api.list_namespaced_config_map(namespace).metadata.resource_version
            api.delete_namespaced_config_map("a", namespace)
            events = kubernetes.watch.Watch().stream(
                api.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=1
            )
            return [(event["type"], event["object"].metadata.name) for event in events]

    assert await asyncio.to_thread(read) == [("DELETED", "a")]
