"""The insides of shoots, and who reaches whom."""

import subprocess
import sys
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.aws.server import REGION, Server, by, make_group
from tests.sandbox.garden.garden_server import EMPTY, MERGE, Api, Cloud, Garden, eventually, inside_vpc, manifest

PODS, SERVICES = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services"


def pod(name: str, *arguments: str, image: str = "registry.k8s.io/e2e-test-images/agnhost:2.53") -> dict[str, Any]:
    container = {"name": "main", "image": image, "args": ["netexec", *arguments], "ports": [{"containerPort": 8080}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "probe"}},
        "spec": {"containers": [container]},
    }


def service(**spec: Any) -> dict[str, Any]:
    port = {"port": 80, "targetPort": 8080} | spec.pop("port", {})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": spec.pop("name", "probe")},
        "spec": {"type": "NodePort", "selector": {"app": "probe"}, "ports": [port], **spec},
    }


class Cluster:
    """A shoot with a probe in it."""

    def __init__(self, garden: Garden, name: str, vpc: str, block: str = "10.0.0.0/22", **changes: Any) -> None:
        garden.made(manifest(name, vpc, block, **changes))
        self.garden, self.name = garden, name
        self.api = garden.inside(name)
        self.api.make(PODS, pod(f"on-{name}"))
        self.port = self.api.make(SERVICES, service())["spec"]["ports"][0]["nodePort"]
        self.pod = running(self.api, f"on-{name}")

    @property
    def address(self) -> str:
        return str(self.pod["status"]["hostIP"])

    def dial(self, host: str, port: int, request: str = "hostname", **extra: str) -> dict[str, Any]:
        query = {"host": host, "port": str(port), "request": request, "protocol": "http", "tries": "1"} | extra
        answer = self.api("GET", f"{PODS}/on-{self.name}:8080/proxy/dial", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def reaches(self, other: "Cluster") -> bool:
        answer = self.dial(other.address, other.port)
        assert answer == {"responses": [f"on-{other.name}"]} or answer == {
            "errors": [timeout(other.address, other.port)]
        }
        return "responses" in answer

    def remove(self) -> None:
        self.api.close()
        self.garden.removed(self.name)


def running(api: Api, name: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = api.get(f"{PODS}/{name}")
        return found if found["status"]["phase"] == "Running" else None

    return dict(eventually(look))


def timeout(host: str, port: int) -> str:
    return f'Get "http://{host}:{port}/hostname": dial tcp {host}:{port}: i/o timeout'


def refused(host: str, port: int) -> str:
    return f'Get "http://{host}:{port}/hostname": dial tcp {host}:{port}: connect: connection refused'


def test_neighbours_in_one_vpc_reach_each_others_node_ports_and_nothing_else(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    one = Cluster(garden, "near1", vpc, "10.0.0.0/22")
    two = Cluster(garden, "near2", vpc, "10.0.4.0/22")
    assert one.reaches(two)
    assert two.reaches(one)
    assert one.dial(two.address, 10250) == {"errors": [timeout(two.address, 10250)]}
    unused = 30000 if two.port != 30000 else 30001
    assert one.dial(two.address, unused) == {"errors": [refused(two.address, unused)]}
    assert one.dial("10.0.5.200", two.port) == {"errors": [timeout("10.0.5.200", two.port)]}
    # Both have the same pod range: there, each finds only itself.
    assert one.pod["status"]["podIP"] == two.pod["status"]["podIP"]
    assert one.dial(two.pod["status"]["podIP"], 8080) == {"responses": ["on-near1"]}
    one.remove()
    two.remove()


def test_without_the_rule_of_its_group_a_node_port_is_out_of_reach(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    one = Cluster(garden, "rule1", vpc, "10.0.0.0/22")
    two = Cluster(garden, "rule2", vpc, "10.0.4.0/22")
    name = by(group_name="shoot--trellis--rule2-nodes")
    group = cloud.ec2.describe_security_groups(Filters=name)["SecurityGroups"][0]
    tcp = [each for each in group["IpPermissions"] if each["IpProtocol"] == "tcp"]
    cloud.ec2.revoke_security_group_ingress(GroupId=group["GroupId"], IpPermissions=tcp)
    assert not one.reaches(two)
    assert two.reaches(one)
    cloud.ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=tcp)
    assert one.reaches(two)
    cloud.ec2.revoke_security_group_egress(GroupId=group["GroupId"], IpPermissions=group["IpPermissionsEgress"])
    assert one.reaches(two), "answers need no rule"
    assert not two.reaches(one)
    one.remove()
    two.remove()


def test_a_shared_group_with_a_rule_for_itself_opens_all_ports(garden: Garden, cloud: Cloud) -> None:
    vpc = cloud.vpc()
    group = make_group(cloud.ec2, vpc, "shared")
    own = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    cloud.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=own)
    one = Cluster(garden, "share1", vpc, "10.0.0.0/22", networks={"nodesSecurityGroupID": group})
    two = Cluster(garden, "share2", vpc, "10.0.4.0/22", networks={"nodesSecurityGroupID": group})
    assert one.reaches(two)
    # The kubelet's port is open; this sandbox has no kubelet behind it.
    assert one.dial(two.address, 10250) == {"errors": [refused(two.address, 10250)]}
    cloud.ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=own)
    assert not one.reaches(two)
    one.remove()
    two.remove()


def test_the_same_address_in_another_vpc_is_somebody_else(garden: Garden, cloud: Cloud) -> None:
    here, there = cloud.vpc(), cloud.vpc()
    one = Cluster(garden, "here1", here, "10.0.0.0/22")
    two = Cluster(garden, "here2", here, "10.0.4.0/22")
    twin = Cluster(garden, "twin2", there, "10.0.4.0/22")
    assert two.address == twin.address
    assert one.reaches(two)
    two.remove()
    assert one.dial(twin.address, twin.port) == {"errors": [timeout(twin.address, twin.port)]}
    one.remove()
    twin.remove()


def test_peered_vpcs_need_routes_on_both_sides(garden: Garden, cloud: Cloud) -> None:
    left, right = cloud.vpc("10.0.0.0/16"), cloud.vpc("10.1.0.0/16")
    one = Cluster(garden, "peer1", left, "10.0.0.0/22")
    two = Cluster(garden, "peer2", right, "10.1.0.0/22")
    assert not one.reaches(two)
    peering = cloud.ec2.create_vpc_peering_connection(VpcId=left, PeerVpcId=right)["VpcPeeringConnection"]
    peering_id = peering["VpcPeeringConnectionId"]
    cloud.ec2.accept_vpc_peering_connection(VpcPeeringConnectionId=peering_id)
    eventually(lambda: _state(cloud, peering_id) == "active")
    assert not one.reaches(two)
    _route(cloud, "peer1", "10.1.0.0/16", peering_id)
    assert not one.reaches(two), "there is no way back"
    _route(cloud, "peer2", "10.0.0.0/16", peering_id)
    assert one.reaches(two)
    assert two.reaches(one)
    cloud.ec2.delete_vpc_peering_connection(VpcPeeringConnectionId=peering_id)
    assert not one.reaches(two)
    one.remove()
    two.remove()


def _state(cloud: Cloud, peering: str) -> str:
    found = cloud.ec2.describe_vpc_peering_connections(VpcPeeringConnectionIds=[peering])["VpcPeeringConnections"]
    return str(found[0]["Status"]["Code"])


def _route(cloud: Cloud, shoot: str, destination: str, peering: str) -> None:
    name = [{"Name": "tag:Name", "Values": [f"shoot--trellis--{shoot}-private-{REGION}a"]}]
    table = cloud.ec2.describe_route_tables(Filters=name)["RouteTables"][0]["RouteTableId"]
    cloud.ec2.create_route(RouteTableId=table, DestinationCidrBlock=destination, VpcPeeringConnectionId=peering)


class _SteadyServer(Server):
    """It has the same port in every life."""

    _port = "0"

    def start(self) -> None:
        command = [sys.executable, "-m", "sandbox.aws", "--port", self._port, "--state-dir", str(self.state_dir)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]
        self._port = self.url.rsplit(":", 1)[1]


def test_a_cloud_that_dies_and_comes_back_has_the_machines_still(tmp_path: Path) -> None:
    cloud = Cloud(_SteadyServer(tmp_path / "aws"))
    garden = Garden(tmp_path / "garden", cloud.server.url)
    vpc = cloud.vpc()
    one = Cluster(garden, "alive1", vpc, "10.0.0.0/22")
    two = Cluster(garden, "alive2", vpc, "10.0.4.0/22")
    cloud.server.kill()
    cloud.server.start()
    assert one.reaches(two)
    one.remove()
    two.remove()
    assert inside_vpc(cloud.names(vpc)) == EMPTY
    assert garden.stop() == 0
    cloud.server.stop()


@pytest.fixture(scope="module")
def cluster(garden: Garden, cloud: Cloud) -> Any:
    cluster = Cluster(garden, "inside", cloud.vpc())
    yield cluster
    cluster.remove()


def test_netexec_answers_as_agnhost_does(cluster: Cluster) -> None:
    own = f"{PODS}/on-inside:8080/proxy"
    assert cluster.api("GET", f"{own}/hostname").text == "on-inside"
    assert cluster.api("GET", f"{PODS}/on-inside/proxy/hostName").text == "on-inside"
    assert cluster.api("GET", f"{own}/healthz").text == ""
    assert cluster.api("GET", f"{SERVICES}/probe:80/proxy/hostname").text == "on-inside"
    assert cluster.api("GET", f"{own}/").text.startswith("NOW: ")
    host, port = cluster.address, cluster.port
    assert cluster.dial(host, port, "echo?msg=hi", tries="3") == {"responses": ["hi", "hi", "hi"]}
    clusterip = cluster.api.get(f"{SERVICES}/probe")["spec"]["clusterIP"]
    assert cluster.dial(clusterip, 80) == {"responses": ["on-inside"]}
    bad = cluster.api("GET", f"{own}/dial", params={"host": host, "port": str(port)})
    assert (bad.status_code, bad.text) == (400, "request parameter not specified. <nil>\n")
    bad = cluster.api("GET", f"{own}/dial", params={"host": host, "port": "1", "request": "x", "tries": "many"})
    assert bad.status_code == 400
    assert "tries parameter is invalid" in bad.text
    assert cluster.api("GET", f"{PODS}/on-inside:9/proxy/hostname").status_code == 503
    assert cluster.api("GET", f"{PODS}/nobody:8080/proxy/hostname").status_code == 404


def test_a_service_leads_only_to_running_pods_that_it_selects_and_that_listen_there(cluster: Cluster) -> None:
    api, host = cluster.api, cluster.address
    port = api.make(SERVICES, service(name="other", selector={"app": "other"}))["spec"]["ports"][0]["nodePort"]
    assert cluster.dial(host, port) == {"errors": [refused(host, port)]}
    other = pod("other", "--http-port", "9090")
    other["metadata"]["labels"] = {"app": "other"}
    other["spec"]["hostname"] = "known-as"
    api.make(PODS, other)
    running(api, "other")
    assert cluster.dial(host, port) == {"errors": [refused(host, port)]}, "it listens on another port"
    changed = {"spec": {"ports": [{"port": 80, "targetPort": 9090, "nodePort": port}]}}
    assert api("PATCH", f"{SERVICES}/other", changed, headers=MERGE).is_success
    assert cluster.dial(host, port) == {"responses": ["known-as"]}
    assert api("DELETE", f"{PODS}/other").status_code == 200
    assert cluster.dial(host, port) == {"errors": [refused(host, port)]}, "it is on its way out"
    eventually(lambda: api("GET", f"{PODS}/other").status_code == 404)
    api.make(PODS, pod("silent", image="nginx"))
    running(api, "silent")
    assert api("GET", f"{PODS}/silent:8080/proxy/hostname").status_code == 503
    api("DELETE", f"{PODS}/silent")
    api("DELETE", f"{SERVICES}/other")


def test_node_ports_are_unique_and_in_their_range(cluster: Cluster) -> None:
    taken = cluster.api("POST", SERVICES, service(name="taken", port={"nodePort": cluster.port}))
    assert taken.status_code == 422
    assert "provided port is already allocated" in taken.json()["message"]
    low = cluster.api("POST", SERVICES, service(name="low", port={"nodePort": 8080}))
    assert "The range of valid ports is 30000-32767" in low.json()["message"]
    free = 30123 if cluster.port != 30123 else 30124
    made = cluster.api.make(SERVICES, service(name="fixed", port={"nodePort": free}))
    assert made["spec"]["ports"][0]["nodePort"] == free
    assert ip_address(made["spec"]["clusterIP"]) in ip_network("10.104.0.0/13")
    cluster.api("DELETE", f"{SERVICES}/fixed")


def test_nodes_are_ready_and_stand_in_the_workers_subnet(cluster: Cluster) -> None:
    (node,) = cluster.api.get("/api/v1/nodes")["items"]
    assert {"type": "InternalIP", "address": cluster.address} in node["status"]["addresses"]
    assert cluster.address.startswith("10.0.0.")
    assert {each["type"]: each["status"] for each in node["status"]["conditions"]}["Ready"] == "True"
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == f"{REGION}a"
    assert node["spec"]["providerID"].startswith(f"aws:///{REGION}a/i-")


def test_a_kubeconfig_opens_its_own_shoot_only_as_long_as_it_says(garden: Garden, cluster: Cluster) -> None:
    short = garden.kubeconfig_of("inside", expirationSeconds=60)
    assert short.status_code == 422
    assert "may not specify a duration less than 10 minutes" in short.json()["message"]
    with garden.having(kubeconfig_max_seconds=0.5):
        brief = garden.inside("inside")
    assert brief("GET", PODS).status_code in (200, 401)
    eventually(lambda: brief("GET", PODS).status_code == 401)
    brief.close()
    wrong = cluster.api("GET", cluster.api.server.replace("/inside", "/elsewhere") + PODS)
    assert wrong.status_code in (401, 404)
    assert garden.api("GET", f"/shoots/garden-trellis/inside{PODS}").status_code == 401
    assert garden.kubeconfig_of("nobody").status_code == 404


def test_a_viewer_reads_all_but_secrets(garden: Garden, cluster: Cluster) -> None:
    viewer = garden.inside("inside", "viewer")
    assert viewer("GET", PODS).status_code == 200
    assert viewer("GET", "/api/v1/namespaces/default/secrets").status_code == 403
    assert viewer("POST", PODS, pod("mine")).status_code == 403
    assert viewer("GET", f"{PODS}/on-inside:8080/proxy/hostname").status_code == 403
    viewer.close()


def test_a_shoot_that_is_not_ready_gives_no_kubeconfig(garden: Garden, cloud: Cloud) -> None:
    with garden.having(shoot_seconds=30.0):
        garden.create(manifest("young", cloud.vpc()))
        answer = garden.kubeconfig_of("young")
        assert answer.status_code == 422
        assert "no suitable advertised address for kube-apiserver" in answer.json()["message"]
        garden.removed("young")
