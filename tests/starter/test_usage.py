"""What the command line refuses before anything is started, and how it says so."""

from __future__ import annotations

import json
import socket

import pytest

from starter.cli import run

CREATE = ("cluster", "create", "alpha", "--provider", "aws", "--region", "eu-central-1")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Temporal and no garden: whoever tries to start something fails with status 1."""
    for name in ("TRELLIS_GARDEN_KUBECONFIG", "TRELLIS_GARDEN_NAMESPACE", "TRELLIS_TENANT", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("TEMPORAL_ADDRESS", f"127.0.0.1:{unused.getsockname()[1]}")
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", "/nonexistent.toml")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--vpc-cidr", "10.0.0.5/16"), ("vpc_cidr", "10.0.0.5/16", "10.0.0.0/16")),
        (("--vpc-cidr", "10.0.0.0/8"), ("vpc_cidr", "10.0.0.0/8", "/16")),
        (("--vpc-cidr", "10.0.0.0/30"), ("vpc_cidr", "10.0.0.0/30", "/28")),
        (("--vpc-cidr", "10.96.0.0/16"), ("pods", "10.96.0.0/13", "vpc_cidr")),
        (("--vpc-cidr", "240.0.0.0/16"), ("vpc_cidr", "240.0.0.0/16", "240.0.0.0/8")),
        (("--vpc-cidr", "nonsense"), ("vpc_cidr", "nonsense", "10.0.0.0/16")),
        (("--services", "10.96.0.0/16"), ("services", "10.96.0.0/16", "pods")),
        (("--cluster-prefix", "10"), ("cluster_prefix", "/10", "/16")),
        (("--cluster-prefix", "30"), ("cluster_prefix", "/30", "/26")),
        (("--cluster-prefix", "x"), ("--cluster-prefix", "x")),
        (("--block", "10.0.1.0/22"), ("block", "10.0.1.0/22", "10.0.0.0/22")),
        (("--vpc-cidr", "10.1.0.0/16", "--block", "10.2.0.0/22"), ("block", "10.2.0.0/22", "10.1.0.0/16")),
        (("--block", "10.0.0.0/8"), ("block", "10.0.0.0/8", "/16")),
        (("--vpc", ""), ("vpc", "empty")),
        (("--vpc", "own--alpha"), ("vpc", "own--alpha")),
        (("--vpc", "x" * 300), ("vpc", "300")),
        (("--tenant", "Größe 1"), ("tenant", "Größe 1")),
        (("--zones", "eu-central-1a,eu-central-1a"), ("zones", "eu-central-1a", "twice")),
        (("--zones", ""), ("zones",)),
        (("--nodes-min", "5", "--nodes-max", "2"), ("nodes_min", "5", "2")),
        (("--nodes-min", "0"), ("nodes_min", "0")),
        (("--on-failure", "pray"), ("--on-failure", "pray", "compensate", "hold")),
        (("--region", ""), ("region",)),
        (("--provider", "ibm"), ("--provider", "ibm", "alicloud", "openstack")),
    ],
)
def test_bad_input_ends_with_status_2_and_names_field_value_and_fix(
    options: tuple[str, ...], named: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*CREATE, *options]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: invalid: ")
    assert said.out == ""
    flat = " ".join(said.err.split())
    assert [part for part in named if part not in flat] == []
    assert "Traceback" not in said.err


@pytest.mark.parametrize("name", ["", "Größe", "a--b", "-a", "a-", "1abc", "x" * 300, "own--alpha", "a b", "a/b"])
@pytest.mark.parametrize(
    "command", [("cluster", "show"), ("cluster", "delete"), ("cluster", "retry"), ("cluster", "abort")]
)
def test_no_command_takes_what_is_not_a_clusters_name(
    command: tuple[str, ...], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*command, "--", name]) == 2
    assert capsys.readouterr().err.startswith("error: invalid: ")


@pytest.mark.parametrize("command", ["show", "map", "explain", "retain", "delete"])
def test_no_vpc_command_takes_what_is_not_a_name(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["vpc", command, "Not A Name"]) == 2
    assert capsys.readouterr().err.startswith("error: invalid: ")


@pytest.mark.parametrize(
    "arguments",
    [(), ("cluster",), ("cluster", "create"), ("nonsense",), ("vpc", "show"), ("cluster", "list", "--nope")],
)
def test_an_incomplete_command_points_to_the_help(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: invalid: ")
    assert "--help" in said


def test_settings_that_make_no_sense_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRELLIS_GRACE_SECONDS", "soon")
    assert run(["cluster", "list"]) == 2
    assert "grace_seconds" in capsys.readouterr().err


def test_half_a_garden_is_no_garden(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TRELLIS_GARDEN_NAMESPACE", "garden-x")
    assert run(["cluster", "list"]) == 2
    assert "TRELLIS_GARDEN_KUBECONFIG" in capsys.readouterr().err


def test_a_good_request_without_temporal_fails_with_status_1_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(CREATE) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: unavailable: Temporal at 127.0.0.1:")
    assert "refused" in said
    assert "hint: check TEMPORAL_ADDRESS" in said


def test_a_garden_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRELLIS_GARDEN_KUBECONFIG", "/nonexistent/kubeconfig")
    monkeypatch.setenv("TRELLIS_GARDEN_NAMESPACE", "garden-x")
    assert run(CREATE) == 1
    assert "/nonexistent/kubeconfig" in capsys.readouterr().err


def test_a_profile_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEMPORAL_PROFILE", "elsewhere")
    assert run(["cluster", "list"]) == 1
    assert "elsewhere" in capsys.readouterr().err


def test_the_doctor_finds_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--output", "json"]) == 1
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert {name for name, check in checks.items() if not check["ok"]} == {"temporal", "garden"}
    assert all(check["hint"] for check in checks.values())


@pytest.mark.parametrize("command", ["env", "status"])
def test_a_sandbox_that_is_not_there_has_no_addresses(
    command: str, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sandbox", command, "--state-dir", f"{tmp_path}"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "no sandbox" in said.err
