"""The real kubectl against the server."""

import asyncio
import json

import yaml

from sandbox.kube import record_event
from tests.sandbox.kube.conftest import Kubectl, Served

VESSEL = """
apiVersion: fleet.example.org/v1beta1
kind: Vessel
metadata:
  name: elbe
  labels: {class: ferry}
spec:
  flag: de
  length: 90
  holds: [{name: a}, {name: b}]
"""


async def ok(kubectl: Kubectl, *arguments: str, **options: str) -> str:
    result = await kubectl(*arguments, **options)
    assert result.code == 0, result.err
    return result.out


async def refused(kubectl: Kubectl, *arguments: str, **options: str) -> str:
    result = await kubectl(*arguments, **options)
    assert result.code != 0, result.out
    return result.err


async def manifest(kubectl: Kubectl, *what: str) -> dict:
    return json.loads(await ok(kubectl, "get", *what, "-o", "json", "--show-managed-fields"))


async def test_version_and_kinds_are_told(kubectl: Kubectl) -> None:
    assert "Server Version: v1.32" in await ok(kubectl, "version")
    kinds = await ok(kubectl, "api-resources", "--no-headers")
    assert any(
        line.split() == ["vessels", "vs", "fleet.example.org/v1beta1", "true", "Vessel"] for line in kinds.splitlines()
    )
    assert "fleet.example.org/v1beta1" in await ok(kubectl, "api-versions")
    assert "Vessel" in await ok(kubectl, "explain", "vessel")


async def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    assert "created" in await ok(kubectl, "apply", "-f", "-", stdin=VESSEL)
    first = await manifest(kubectl, "vessel", "elbe")
    assert first["spec"]["port"] == "Hamburg"
    assert first["metadata"]["generation"] == 1
    assert "unchanged" in await ok(kubectl, "apply", "-f", "-", stdin=VESSEL)
    assert (await manifest(kubectl, "vessel", "elbe")) == first
    shorter = VESSEL.replace("length: 90", "").replace("class: ferry", "class: tug")
    assert "configured" in await ok(kubectl, "apply", "-f", "-", stdin=shorter)
    second = await manifest(kubectl, "vessel", "elbe")
    assert "length" not in second["spec"]
    assert second["metadata"]["labels"] == {"class": "tug"}
    assert second["metadata"]["generation"] == 2
    assert second["metadata"]["uid"] == first["metadata"]["uid"]


async def test_diff_and_dry_run_change_nothing(kubectl: Kubectl) -> None:
    await ok(kubectl, "apply", "-f", "-", stdin=VESSEL)
    before = await manifest(kubectl, "vessel", "elbe")
    longer = VESSEL.replace("90", "91")
    assert "server dry run" in await ok(kubectl, "apply", "--dry-run=server", "-f", "-", stdin=longer)
    difference = await kubectl("diff", "-f", "-", stdin=longer)
    assert difference.code == 1, difference.err
    assert "+  length: 91" in difference.out
    assert "server dry run" in await ok(kubectl, "delete", "vessel", "elbe", "--dry-run=server")
    assert await manifest(kubectl, "vessel", "elbe") == before


async def test_get_prints_tables_of_the_kinds_columns(kubectl: Kubectl, namespace: str) -> None:
    await ok(kubectl, "apply", "-f", "-", stdin=VESSEL)
    ready = '{"status": {"conditions": [{"type": "Up", "status": "x"}, {"type": "Ready", "status": "True"}]}}'
    await ok(kubectl, "patch", "vessel", "elbe", "--subresource=status", "--type=merge", "-p", ready)
    header, row = (await ok(kubectl, "get", "vs")).splitlines()
    assert header.split() == ["NAME", "PORT", "READY", "AGE"]
    assert row.split()[:3] == ["elbe", "Hamburg", "True"]
    header, row = (await ok(kubectl, "get", "all", "-o", "wide")).splitlines()
    assert header.split() == ["NAME", "PORT", "READY", "LENGTH", "AGE"]
    assert row.split()[:4] == ["elbe", "Hamburg", "True", "90"]
    everywhere = await ok(kubectl, "get", "vessels", "-A", "--no-headers")
    assert [namespace, "elbe"] in [line.split()[:2] for line in everywhere.splitlines()]
    assert (await ok(kubectl, "get", "vessels", "-o", "name", "-l", "class in (ferry, tug)")) != ""
    assert (await ok(kubectl, "get", "vessels", "-o", "name", "-l", "class!=ferry")) == ""
    assert (await ok(kubectl, "get", "vessels", "-o", "name", "--field-selector", "spec.port=Hamburg")) != ""
    shown = yaml.safe_load(await ok(kubectl, "get", "vessel", "elbe", "-o", "yaml"))
    assert shown["spec"]["holds"] == [{"name": "a"}, {"name": "b"}]


async def test_server_side_apply_owns_its_fields(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    assert "serverside-applied" in await ok(kubectl, *apply, stdin=VESSEL)
    first = await manifest(kubectl, "vessel", "elbe")
    assert [entry["manager"] for entry in first["metadata"]["managedFields"]] == ["kubectl"]
    await ok(kubectl, *apply, stdin=VESSEL)
    assert await manifest(kubectl, "vessel", "elbe") == first
    await ok(kubectl, "patch", "vessel", "elbe", "--type=merge", "-p", '{"spec": {"length": 95}}')
    conflict = await refused(kubectl, *apply, stdin=VESSEL)
    assert 'conflict with "kubectl-patch"' in conflict
    assert ".spec.length" in conflict
    await ok(kubectl, *apply, "--force-conflicts", stdin=VESSEL)
    assert (await manifest(kubectl, "vessel", "elbe"))["spec"]["length"] == 90
    await ok(kubectl, *apply, stdin=VESSEL.replace("length: 90", ""))
    assert "length" not in (await manifest(kubectl, "vessel", "elbe"))["spec"]


async def test_client_side_apply_can_migrate_to_server_side(kubectl: Kubectl) -> None:
    await ok(kubectl, "apply", "-f", "-", stdin=VESSEL)
    await ok(kubectl, "apply", "--server-side", "-f", "-", stdin=VESSEL)
    managers = (await manifest(kubectl, "vessel", "elbe"))["metadata"]["managedFields"]
    assert "kubectl-client-side-apply" not in [entry["manager"] for entry in managers]
    await ok(kubectl, "apply", "--server-side", "-f", "-", stdin=VESSEL.replace("length: 90", "length: 91"))
    assert (await manifest(kubectl, "vessel", "elbe"))["spec"]["length"] == 91


async def test_create_edit_patch_label_and_annotate(kubectl: Kubectl) -> None:
    await ok(kubectl, "create", "-f", "-", stdin=VESSEL)
    assert "already exists" in await refused(kubectl, "create", "-f", "-", stdin=VESSEL)
    await ok(kubectl, "label", "vessel", "elbe", "yard=blohm", "class-")
    await ok(kubectl, "annotate", "vessel", "elbe", "note=hello world")
    await ok(kubectl, "edit", "vessel", "elbe", EDITOR="sed -i s/Hamburg/Rostock/")
    change = '[{"op": "test", "path": "/spec/port", "value": "Rostock"}, {"op": "remove", "path": "/spec/holds/0"}]'
    await ok(kubectl, "patch", "vessel", "elbe", "--type=json", "-p", change)
    vessel = await manifest(kubectl, "vessel", "elbe")
    assert vessel["metadata"]["labels"] == {"yard": "blohm"}
    assert vessel["metadata"]["annotations"]["note"] == "hello world"
    assert vessel["spec"] == {"flag": "de", "length": 90, "holds": [{"name": "b"}], "port": "Rostock"}
    stale = change.replace("Rostock", "Hamburg")
    assert "cannot be applied" in await refused(kubectl, "patch", "vessel", "elbe", "--type=json", "-p", stale)
    assert "spec.flag: is immutable" in await refused(
        kubectl, "patch", "vessel", "elbe", "--type=merge", "-p", '{"spec": {"flag": "dk"}}'
    )


async def test_replace_needs_the_latest_version(kubectl: Kubectl) -> None:
    await ok(kubectl, "create", "-f", "-", stdin=VESSEL)
    stale = await ok(kubectl, "get", "vessel", "elbe", "-o", "json")
    await ok(kubectl, "replace", "-f", "-", stdin=stale.replace('"length": 90', '"length": 91'))
    assert "the object has been modified" in await refused(kubectl, "replace", "-f", "-", stdin=stale)


async def test_a_refused_deletion_tells_why(kubectl: Kubectl) -> None:
    await ok(kubectl, "create", "-f", "-", stdin=VESSEL)
    await ok(kubectl, "annotate", "vessel", "elbe", "moored=true")
    assert "Forbidden): vessel elbe is moored" in await refused(kubectl, "delete", "vessel", "elbe")
    await ok(kubectl, "annotate", "vessel", "elbe", "moored-")
    await ok(kubectl, "delete", "vessel", "elbe")
    assert 'vessels.fleet.example.org "elbe" not found' in await refused(kubectl, "get", "vessel", "elbe")


async def test_delete_waits_for_the_finalizers(kubectl: Kubectl, served: Served, namespace: str) -> None:
    await ok(kubectl, "create", "-f", "-", stdin=VESSEL.replace("name: elbe", "name: elbe\n  finalizers: [crew]"))
    marked = served.store.watch("main", "vessels.fleet.example.org", namespace)
    deletion = asyncio.create_task(kubectl("delete", "vessel", "elbe", "--wait", "--timeout=30s"))
    event = await anext(marked)
    assert event.object["metadata"]["deletionTimestamp"]
    assert event.object["metadata"]["generation"] == 2
    assert not deletion.done()
    assert "no new finalizers" in await refused(
        kubectl, "patch", "vessel", "elbe", "--type=merge", "-p", '{"metadata": {"finalizers": ["crew", "cook"]}}'
    )
    await ok(kubectl, "patch", "vessel", "elbe", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    result = await deletion
    assert result.code == 0, result.err
    assert served.store.get("main", "vessels.fleet.example.org", namespace, "elbe") is None


async def test_get_watch_prints_changes_as_they_come(kubectl: Kubectl) -> None:
    await ok(kubectl, "create", "-f", "-", stdin=VESSEL)
    watching = await kubectl.start("get", "vessels", "--watch")
    assert watching.stdout

    async def row() -> list[str]:
        async with asyncio.timeout(30):
            return (await watching.stdout.readline()).decode().split()[:2]

    try:
        assert [await row(), await row()] == [["NAME", "PORT"], ["elbe", "Hamburg"]]
        await ok(kubectl, "patch", "vessel", "elbe", "--type=merge", "-p", '{"spec": {"port": "Bremen"}}')
        assert await row() == ["elbe", "Bremen"]
        await ok(kubectl, "delete", "vessel", "elbe")
        assert await row() == ["elbe", "Bremen"]
        await ok(kubectl, "create", "-f", "-", stdin=VESSEL)
        assert await row() == ["elbe", "Hamburg"]
    finally:
        watching.kill()
        await watching.communicate()


async def test_wait_sees_a_condition_come(kubectl: Kubectl) -> None:
    await ok(kubectl, "create", "-f", "-", stdin=VESSEL)
    waiting = asyncio.create_task(kubectl("wait", "vessel/elbe", "--for=condition=Ready", "--timeout=30s"))
    ready = '{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}'
    await ok(kubectl, "patch", "vessel", "elbe", "--subresource=status", "--type=merge", "-p", ready)
    assert "condition met" in (await waiting).out


async def test_describe_shows_events(kubectl: Kubectl, served: Served, namespace: str) -> None:
    await ok(kubectl, "create", "-f", "-", stdin=VESSEL)
    vessel = served.store.get("main", "vessels.fleet.example.org", namespace, "elbe")
    assert vessel
    for _ in range(3):
        record_event(served.store, "main", vessel, "Leaking", "water in hold a", warning=True, source="crew")
    record_event(served.store, "main", vessel, "Sailing", "all well")
    text = await ok(kubectl, "describe", "vessel", "elbe")
    assert "water in hold a" in text
    assert "(x3 over" in text
    rows = (await ok(kubectl, "get", "events", "--no-headers", "--field-selector", "type=Warning")).splitlines()
    assert [row.split()[1:4] for row in rows] == [["Warning", "Leaking", "vessel/elbe"]]
    assert "all well" in await ok(kubectl, "events", "--for", "vessel/elbe")


async def test_core_objects_made_by_kubectl_itself(kubectl: Kubectl) -> None:
    await ok(kubectl, "create", "secret", "generic", "keys", "--from-literal=a=b=c", "--type=example.org/x")
    await ok(kubectl, "create", "configmap", "settings", "--from-literal=colour=blue")
    secret = await manifest(kubectl, "secret", "keys")
    assert (secret["data"], secret["type"]) == ({"a": "Yj1j"}, "example.org/x")
    assert (await manifest(kubectl, "configmap", "settings"))["data"] == {"colour": "blue"}
    assert "colour" in await ok(kubectl, "describe", "configmap", "settings")
    assert "a:  3 bytes" in await ok(kubectl, "describe", "secret", "keys")
    assert "field is immutable" in await refused(
        kubectl, "patch", "secret", "keys", "--type=merge", "-p", '{"type": "Opaque"}'
    )


async def test_strategic_patches_merge_lists_by_key(kubectl: Kubectl) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "one"}, {"name": "b", "image": "two"}]},
    }
    await ok(kubectl, "apply", "-f", "-", stdin=json.dumps(pod))
    pod["spec"] = {"containers": [{"name": "c", "image": "three"}, {"name": "a", "image": "uno"}]}
    await ok(kubectl, "apply", "-f", "-", stdin=json.dumps(pod))
    assert (await manifest(kubectl, "pod", "p"))["spec"] == pod["spec"]
    await ok(kubectl, "set", "image", "pod/p", "a=eins")
    images = [container["image"] for container in (await manifest(kubectl, "pod", "p"))["spec"]["containers"]]
    assert images == ["three", "eins"]


async def test_a_namespace_takes_its_contents_along(kubectl: Kubectl, served: Served) -> None:
    await ok(kubectl, "create", "namespace", "doomed")
    for name in ("held", "free", "moored"):
        text = VESSEL.replace("name: elbe", f"name: {name}\n  namespace: doomed").replace("doomed\n", "doomed\n", 1)
        if name == "held":
            text = text.replace("namespace: doomed", "namespace: doomed\n  finalizers: [crew]")
        await ok(kubectl, "create", "-n", "doomed", "-f", "-", stdin=text)
    await ok(kubectl, "annotate", "-n", "doomed", "vessel", "moored", "moored=true")
    await ok(kubectl, "delete", "namespace", "doomed", "--wait=false")
    assert "Terminating" in await ok(kubectl, "get", "namespace", "doomed")
    assert "being terminated" in await refused(
        kubectl, "create", "configmap", "late", "--from-literal=a=b", "-n", "doomed"
    )
    left = await ok(kubectl, "get", "vessels", "-n", "doomed", "-o", "name")
    assert left.split() == ["vessel.fleet.example.org/held", "vessel.fleet.example.org/moored"]
    await ok(kubectl, "annotate", "-n", "doomed", "vessel", "moored", "moored-")
    await ok(kubectl, "delete", "-n", "doomed", "vessel", "moored")
    gone = asyncio.create_task(kubectl("wait", "namespace/doomed", "--for=delete", "--timeout=30s"))
    await ok(
        kubectl, "patch", "-n", "doomed", "vessel", "held", "--type=json",
        "-p", '[{"op": "remove", "path": "/metadata/finalizers"}]',
    )  # fmt: skip
    assert (await gone).code == 0
    assert "not found" in await refused(kubectl, "get", "namespace", "doomed")


async def test_servers_under_a_path_have_their_own_objects(kubectl: Kubectl, served: Served) -> None:
    for island in ("sylt", "amrum"):
        await ok(kubectl, "create", "namespace", "harbour", path=f"/islands/{island}")
        text = VESSEL.replace("90", str(len(island)))
        await ok(kubectl, "apply", "-n", "harbour", "-f", "-", stdin=text, path=f"/islands/{island}")
    for island in ("sylt", "amrum"):
        length = await ok(
            kubectl, "get", "vs", "elbe", "-n", "harbour", "-o", "jsonpath={.spec.length}", path=f"/islands/{island}"
        )
        assert length == str(len(island))
    raw = await ok(kubectl, "get", "--raw", "/islands/sylt/api/v1/namespaces/n/pods/https:web:8443/proxy/a/b?c=d")
    assert json.loads(raw)["to"] == ["island/sylt", "n", "https", "web", "8443", "a/b"]
    assert "there is no island atlantis" in await refused(kubectl, "get", "--raw", "/islands/atlantis/api")


async def test_kubectl_can_ask_who_it_is_and_what_it_may(kubectl: Kubectl) -> None:
    assert "system:anonymous" in await ok(kubectl, "auth", "whoami")
    assert (await ok(kubectl, "auth", "can-i", "list", "vessels")).strip() == "yes"


async def test_long_lists_come_in_pages(kubectl: Kubectl, served: Served, namespace: str) -> None:
    amount = 620  # kubectl asks for 500 at a time
    for number in range(amount):
        meta = {"name": f"c{number:04}", "namespace": namespace}
        served.store.create("main", "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
    names = (await ok(kubectl, "get", "configmaps", "-o", "name")).split()
    assert names == [f"configmap/c{number:04}" for number in range(amount)]
    assert "deleted" in await ok(kubectl, "delete", "configmaps", "--all", "--wait=false")
    assert served.store.list("main", "configmaps", namespace) == []
