"""The HTTP answers themselves."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from tests.sandbox.kube.conftest import Served

MERGE = {"content-type": "application/merge-patch+json"}


@pytest.fixture
def vessels(namespace: str) -> str:
    return f"/apis/fleet.example.org/v1beta1/namespaces/{namespace}/vessels"


@contextlib.asynccontextmanager
async def watching(http: httpx.AsyncClient, path: str, **query: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    async def lines(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
        async for line in response.aiter_lines():
            yield json.loads(line)

    async with http.stream("GET", path, params={"watch": "true", **query}) as response, asyncio.timeout(20):
        assert response.status_code == 200
        yield lines(response)


def refusal(response: httpx.Response) -> tuple[int, str, str]:
    status = response.json()
    assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", response.status_code)
    return response.status_code, status["reason"], status["message"]


@pytest.mark.parametrize(
    ("change", "code", "reason", "text"),
    [
        ({"kind": "Boat"}, 400, "BadRequest", "the kind in the data (Boat) does not match"),
        ({"apiVersion": "v1"}, 400, "BadRequest", "the apiVersion in the data (v1) does not match"),
        ({"metadata": {"name": "Elbe"}}, 422, "Invalid", 'metadata.name: Invalid value: "Elbe"'),
        ({"metadata": {}}, 422, "Invalid", "name or generateName is required"),
        ({"metadata": "elbe"}, 400, "BadRequest", "metadata must be an object"),
        ({"metadata": {"name": "a", "namespace": "b"}}, 400, "BadRequest", "does not match the namespace"),
        ({"metadata": {"name": "a", "labels": {"x": "a b"}}}, 422, "Invalid", 'metadata.labels: Invalid value: "a b"'),
        ({"metadata": {"name": "a", "annotations": {"x": 1}}}, 400, "BadRequest", "must map strings to strings"),
        ({"spec": {"length": -1}}, 422, "Invalid", "spec.length: must not be negative"),
    ],
)
async def test_a_bad_object_is_refused_with_reason_and_place(
    http: httpx.AsyncClient, vessels: str, change: dict[str, Any], code: int, reason: str, text: str
) -> None:
    body = {"metadata": {"name": "elbe"}, "spec": {}} | change
    found = refusal(await http.post(vessels, json=body))
    assert found[:2] == (code, reason)
    assert text in found[2]


@pytest.mark.parametrize(
    ("method", "path", "content", "media", "code"),
    [
        ("POST", "", "{", "application/json", 400),
        ("POST", "", "[]", "application/json", 400),
        ("POST", "", "a: [", "application/yaml", 400),
        ("POST", "", "x", "application/vnd.kubernetes.protobuf", 400),
        ("POST", "", "k8s\0\x0a\x0f\x0a\x02v1\x12\x09Something", "application/vnd.kubernetes.protobuf", 415),
        ("POST", "", "x", "application/cbor", 415),
        ("PATCH", "/elbe", "{}", "application/json", 415),
        ("PATCH", "/elbe", "{}", "application/json-patch+json", 400),
        ("PATCH", "/elbe", "[]", "application/merge-patch+json", 400),
        ("PATCH", "/elbe", '[{"op": "remove", "path": "/spec/none"}]', "application/json-patch+json", 422),
        ("PATCH", "/elbe", "{}", "application/apply-patch+yaml", 422),
        ("PATCH", "/elbe", '{"metadata": {"name": "other"}}', "application/merge-patch+json", 400),
        ("PUT", "/elbe", '{"metadata": {"name": "elbe"}}', "application/json", 422),
        ("PUT", "/none", '{"metadata": {"resourceVersion": "1"}}', "application/json", 404),
        ("POST", "/elbe", "{}", "application/json", 405),
        ("PUT", "", "{}", "application/json", 405),
        ("POST", "/elbe/status", "{}", "application/json", 405),
        ("GET", "/elbe/scale", "", "application/json", 404),
        ("GET", "?labelSelector=a+in+b", "", "application/json", 400),
        ("GET", "?fieldSelector=spec.length%3D1", "", "application/json", 400),
        ("GET", "?continue=abc", "", "application/json", 400),
        ("GET", "?limit=many", "", "application/json", 400),
        ("GET", "?watch=true&resourceVersion=x", "", "application/json", 400),
        ("GET", "?watch=true&sendInitialEvents=true", "", "application/json", 422),
        ("DELETE", "/elbe?dryRun=Some", "", "application/json", 422),
        ("DELETE", "/elbe", '{"preconditions": {"uid": "another"}}', "application/json", 409),
    ],
)
async def test_a_bad_request_is_refused(
    http: httpx.AsyncClient, vessels: str, method: str, path: str, content: str, media: str, code: int
) -> None:
    made = (await http.post(vessels, json={"metadata": {"name": "elbe"}, "spec": {}})).json()
    response = await http.request(method, vessels + path, content=content, headers={"content-type": media})
    assert refusal(response)[0] == code
    assert (await http.get(f"{vessels}/elbe")).json() == made


@pytest.mark.parametrize(
    "path", ["/", "/apis/none", "/apis/none/v1", "/apis/fleet.example.org/v2/vessels", "/api/v1/vessels", "/openapi/v2"]
)
async def test_unknown_paths_are_not_found(http: httpx.AsyncClient, path: str) -> None:
    assert refusal(await http.get(path)) == (404, "NotFound", "the server could not find the requested resource")


async def test_only_json_is_answered(http: httpx.AsyncClient, vessels: str) -> None:
    only = {"accept": "application/vnd.kubernetes.protobuf"}
    assert refusal(await http.get(vessels, headers=only))[:2] == (406, "NotAcceptable")
    either = {"accept": "application/vnd.kubernetes.protobuf,application/json"}
    assert (await http.get(vessels, headers=either)).json()["kind"] == "VesselList"
    partial = {"accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    assert (await http.get(vessels, headers=partial)).json()["kind"] == "PartialObjectMetadataList"


async def test_objects_need_a_living_namespace(http: httpx.AsyncClient) -> None:
    path = "/apis/fleet.example.org/v1beta1/namespaces/nowhere/vessels"
    body = {"metadata": {"name": "elbe"}, "spec": {}}
    assert refusal(await http.post(path, json=body)) == (404, "NotFound", 'namespaces "nowhere" not found')
    everywhere = await http.post("/apis/fleet.example.org/v1beta1/vessels", json=body)
    assert refusal(everywhere)[0] == 400


async def test_yaml_is_read_as_json_is(http: httpx.AsyncClient, vessels: str) -> None:
    text = "metadata: {name: elbe, generateName: x-}\nspec: {built: 2001-02-03, flag: de}"
    made = await http.post(vessels, content=text, headers={"content-type": "application/yaml"})
    assert made.json()["spec"]["built"] == "2001-02-03"
    assert made.status_code == 201


async def test_generated_names_differ(http: httpx.AsyncClient, vessels: str) -> None:
    body = {"metadata": {"generateName": "elbe-"}, "spec": {}}
    names = {(await http.post(vessels, json=body)).json()["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("elbe-") and len(name) == 10 for name in names)


async def test_the_status_and_the_rest_are_written_apart(http: httpx.AsyncClient, vessels: str) -> None:
    made = (await http.post(vessels, json={"metadata": {"name": "elbe"}, "spec": {}, "status": {"a": 1}})).json()
    assert "status" not in made
    path = f"{vessels}/elbe"
    both = {"spec": {"length": 5}, "status": {"b": 2}}
    status = (await http.patch(f"{path}/status", json=both, headers=MERGE)).json()
    assert (status["spec"], status["status"]) == ({"port": "Hamburg"}, {"b": 2})
    spec = (await http.patch(path, json={**both, "status": {"b": 3}}, headers=MERGE)).json()
    assert (spec["spec"]["length"], spec["status"], spec["metadata"]["generation"]) == (5, {"b": 2}, 2)
    put = (await http.put(f"{path}/status", json={**spec, "status": {"c": 4}})).json()
    assert (put["status"], put["spec"]) == ({"c": 4}, spec["spec"])
    assert (await http.get(f"{path}/status")).json() == put


async def test_a_client_cannot_set_what_the_server_sets(http: httpx.AsyncClient, vessels: str) -> None:
    made = (await http.post(vessels, json={"metadata": {"name": "elbe"}, "spec": {}})).json()
    forged = {"generation": 9, "deletionTimestamp": "2020-01-01T00:00:00Z", "creationTimestamp": None}
    found = (await http.patch(f"{vessels}/elbe", json={"metadata": forged}, headers=MERGE)).json()
    assert found == made


async def test_subresources_answer_for_their_object(http: httpx.AsyncClient, vessels: str) -> None:
    assert refusal(await http.post(f"{vessels}/elbe/papers", json={"pages": 2}))[0] == 404
    await http.post(vessels, json={"metadata": {"name": "elbe"}, "spec": {}})
    papers = await http.post(f"{vessels}/elbe/papers", json={"pages": 2})
    assert (papers.status_code, papers.json()) == (201, {"kind": "Papers", "for": "elbe", "pages": 2})


async def test_the_proxy_passes_method_path_query_and_body(http: httpx.AsyncClient, namespace: str) -> None:
    answer = await http.post(f"/api/v1/namespaces/{namespace}/pods/web/proxy/a/b?c=d", content="hello")
    assert answer.json() == {
        "method": "POST",
        "to": ["main", namespace, "http", "web", "", "a/b"],
        "query": "c=d",
        "body": "hello",
    }
    refused = await http.get(f"/api/v1/namespaces/{namespace}/secrets/web/proxy/")
    assert refusal(refused)[0] == 404


async def test_pages_join_to_the_whole_list(http: httpx.AsyncClient, vessels: str) -> None:
    for number in range(7):
        await http.post(vessels, json={"metadata": {"name": f"v{number}"}, "spec": {}})
    names: list[str] = []
    query = {"limit": "3"}
    versions, remaining = set(), []
    while True:
        page = (await http.get(vessels, params=query)).json()
        names += [obj["metadata"]["name"] for obj in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        remaining.append(page["metadata"].get("remainingItemCount"))
        if "continue" not in page["metadata"]:
            break
        await http.delete(f"{vessels}/v6")
        query["continue"] = page["metadata"]["continue"]
    assert names == [f"v{number}" for number in range(6)]
    assert remaining == [4, None]
    assert len(versions) == 1


async def test_a_watch_list_ends_its_first_events_with_a_bookmark(http: httpx.AsyncClient, vessels: str) -> None:
    await http.post(vessels, json={"metadata": {"name": "elbe"}, "spec": {}})
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with watching(http, vessels, **options) as events:
        first, bookmark = await anext(events), await anext(events)
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "elbe")
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await http.delete(f"{vessels}/elbe")
        assert (await anext(events))["type"] == "DELETED"


async def test_a_watch_resumes_where_it_left(http: httpx.AsyncClient, vessels: str) -> None:
    versions = []
    for name in ("a", "b", "c"):
        made = await http.post(vessels, json={"metadata": {"name": name}, "spec": {}})
        versions.append(made.json()["metadata"]["resourceVersion"])
    async with watching(http, vessels, resourceVersion=versions[0], fieldSelector="metadata.name!=b") as events:
        assert (await anext(events))["object"]["metadata"]["name"] == "c"
    async with watching(http, vessels, resourceVersion="1000000000") as events:
        error = await anext(events)
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_hundreds_of_watches_hear_of_a_change(served: Served, namespace: str, vessels: str) -> None:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=served.url, limits=limits) as http, contextlib.AsyncExitStack() as stack:
        streams = [
            await stack.enter_async_context(watching(http, vessels, resourceVersion=str(served.store.version)))
            for _ in range(300)
        ]
        await http.post(vessels, json={"metadata": {"name": "elbe"}, "spec": {}})
        heard = await asyncio.gather(*(anext(stream) for stream in streams))
        assert {event["object"]["metadata"]["name"] for event in heard} == {"elbe"}


async def test_selected_objects_are_deleted_together(http: httpx.AsyncClient, vessels: str) -> None:
    for name, yard in (("a", "x"), ("b", "x"), ("c", "y")):
        await http.post(vessels, json={"metadata": {"name": name, "labels": {"yard": yard}}, "spec": {}})
    dry = await http.delete(vessels, params={"labelSelector": "yard=x", "dryRun": "All"})
    assert [obj["metadata"]["name"] for obj in dry.json()["items"]] == ["a", "b"]
    await http.delete(vessels, params={"labelSelector": "yard=x"})
    left = (await http.get(vessels)).json()["items"]
    assert [obj["metadata"]["name"] for obj in left] == ["c"]


async def test_delete_options_of_the_body_count(http: httpx.AsyncClient, vessels: str) -> None:
    made = (await http.post(vessels, json={"metadata": {"name": "elbe"}, "spec": {}})).json()
    dry = await http.request("DELETE", f"{vessels}/elbe", json={"kind": "DeleteOptions", "dryRun": ["All"]})
    assert dry.status_code == 200
    assert (await http.get(f"{vessels}/elbe")).json() == made
    right = {"preconditions": {"uid": made["metadata"]["uid"]}}
    gone = (await http.request("DELETE", f"{vessels}/elbe", json=right)).json()
    assert gone["details"] == {
        "name": "elbe",
        "kind": "vessels",
        "group": "fleet.example.org",
        "uid": made["metadata"]["uid"],
    }


async def test_a_token_decides_what_its_bearer_may_do(http: httpx.AsyncClient) -> None:
    path = "/guarded/apis/fleet.example.org/v1beta1/namespaces/default/vessels"
    anne, bob = ({"authorization": f"Bearer token-of-{name}"} for name in ("anne", "bob"))
    stranger = await http.get(path)
    assert refusal(stranger)[:2] == (401, "Unauthorized")
    assert stranger.headers["www-authenticate"] == "Bearer"
    body = {"metadata": {"name": "elbe"}, "spec": {}}
    assert refusal(await http.post(path, json=body, headers=bob))[:2] == (403, "Forbidden")
    assert (await http.post(path, json=body, headers=anne)).status_code == 201
    assert len((await http.get(path, headers=bob)).json()["items"]) == 1
    assert refusal(await http.post(f"{path}/elbe/papers", json={"pages": 1}, headers=bob))[0] == 403
    who = await http.post("/guarded/apis/authentication.k8s.io/v1/selfsubjectreviews", json={}, headers=bob)
    assert who.json()["status"] == {"userInfo": {"username": "bob"}}
    for verb, allowed in (("list", True), ("delete", False)):
        asked = {"spec": {"resourceAttributes": {"group": "fleet.example.org", "resource": "vessels", "verb": verb}}}
        may = await http.post("/guarded/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=asked, headers=bob)
        assert may.json()["status"]["allowed"] is allowed


@pytest.fixture(params=["", "/islands/sylt"])
def root(request: pytest.FixtureRequest) -> Iterator[str]:
    return request.param


async def test_discovery_says_the_same_in_both_forms(http: httpx.AsyncClient, root: str) -> None:
    plain = set()
    groups = (await http.get(f"{root}/apis")).json()["groups"]
    for version in ["api/v1", *(f"apis/{entry['groupVersion']}" for group in groups for entry in group["versions"])]:
        kinds = (await http.get(f"{root}/{version}")).json()["resources"]
        plain |= {(version, kind["name"], tuple(kind["verbs"])) for kind in kinds}
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
    joined = set()
    for path in ("api", "apis"):
        answer = await http.get(f"{root}/{path}", headers=accept)
        assert "as=APIGroupDiscoveryList" in answer.headers["content-type"]
        for group in answer.json()["items"]:
            for version in group["versions"]:
                name = "/".join(filter(None, [path, group["metadata"].get("name"), version["version"]]))
                for kind in version["resources"]:
                    joined.add((name, kind["resource"], tuple(kind["verbs"])))
                    joined |= {
                        (name, f"{kind['resource']}/{sub['subresource']}", tuple(sub["verbs"]))
                        for sub in kind["subresources"]
                    }
    assert joined == plain
    assert ("apis/fleet.example.org/v1beta1", "vessels/papers", ("create",)) in joined
