"""The garden as the real kubectl sees it."""

import base64
import json
from pathlib import Path

from tests.sandbox.garden.garden_server import Cloud, Garden, manifest


def test_kubectl_applies_shows_and_deletes_a_shoot(garden: Garden, cloud: Cloud, tmp_path: Path) -> None:
    vpc = cloud.vpc()
    applied = garden.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest("byhand", vpc)))
    assert applied.returncode == 0, applied.stderr
    garden.settled("byhand")
    again = garden.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest("byhand", vpc)))
    assert again.returncode == 0, again.stderr
    assert garden.shoot("byhand")["metadata"]["generation"] == 2
    table = garden.kubectl("get", "shoots", "byhand").stdout.splitlines()
    header, row = (" ".join(line.split()) for line in table)
    assert header == "NAME CLOUDPROFILE PROVIDER REGION K8S VERSION HIBERNATION LAST OPERATION STATUS AGE"
    assert row.startswith("byhand aws aws eu-central-1 1.35.4 Awake Create Succeeded (100%) healthy")
    described = garden.kubectl("describe", "shoot", "byhand").stdout
    assert "Reconciled Shoot cluster" in described
    asked = garden.kubeconfig_of("byhand").json()["status"]["kubeconfig"]
    inside = tmp_path / "inside.kubeconfig"
    inside.write_bytes(base64.b64decode(asked))
    nodes = garden.kubectl("--kubeconfig", str(inside), "get", "nodes", "-o", "wide")
    assert "10.0.0." in nodes.stdout, nodes.stderr
    refused = garden.kubectl("delete", "shoot", "byhand")
    assert refused.returncode == 1
    assert 'must have a "confirmation.gardener.cloud/deletion" annotation to delete' in refused.stderr
    garden.kubectl("annotate", "shoot", "byhand", "confirmation.gardener.cloud/deletion=true")
    deleted = garden.kubectl("delete", "shoot", "byhand")
    assert deleted.returncode == 0, deleted.stderr
    assert "NotFound" in garden.kubectl("get", "shoot", "byhand").stderr


def test_the_garden_is_furnished(garden: Garden) -> None:
    bindings = garden.kubectl("get", "credentialsbindings", "-o", "name").stdout.split()
    names = {each.rsplit("/", 1)[1] for each in bindings}
    assert names == {"aws", "aws-other"}, "nobody is let in where there is no cloud"
    regions = {
        each["metadata"]["name"]: {region["name"] for region in each["spec"]["regions"]}
        for each in json.loads(garden.kubectl("get", "cloudprofiles", "-o", "json").stdout)["items"]
    }
    assert regions["aws"] >= {"eu-central-1", "eu-west-1", "us-east-1"}
    assert "europe-west3" in regions["gcp"]
    assert "westeurope" in regions["azure"]
    assert "eu-central-1" in regions["alicloud"]
    assert "eu-de-1" in regions["openstack"]


def test_a_wrong_shoot_is_refused_with_the_field_that_is_wrong(garden: Garden, cloud: Cloud) -> None:
    wrong = manifest("wrong", "vpc-1")
    wrong["spec"]["networking"]["pods"] = "10.96.0.1/13"
    refused = garden.kubectl("create", "-f", "-", stdin=json.dumps(wrong))
    assert refused.returncode == 1
    assert 'The Shoot "wrong" is invalid: spec.networking.pods' in refused.stderr
    assert "must be valid canonical CIDR" in refused.stderr
