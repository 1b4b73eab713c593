"""docker-compose.yml, rendered by the library that docker compose itself is made of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROFILES = ("cloud", "sandbox", "tools")


def _renderer() -> list[str] | None:
    """`docker compose`, or compose-go's own command where TRELLIS_COMPOSE_GO names it."""
    if command := os.environ.get("TRELLIS_COMPOSE_GO"):
        return [command, "-format", "json", "docker-compose.yml"]
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0:
        return [docker, "compose", "-f", "docker-compose.yml", "config", "--format", "json"]
    return None


@pytest.fixture(scope="module")
def rendered() -> dict[str, Any]:
    command = _renderer()
    if command is None:
        pytest.skip("neither docker compose nor compose-go is installed")
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "COMPOSE_PROFILES": ",".join(PROFILES)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_it_renders_with_every_profile(rendered: dict[str, Any]) -> None:
    written = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    always = {name for name, service in written.items() if "profiles" not in service}
    assert always <= set(rendered["services"]) | set(rendered.get("disabledServices", {}))


def test_everything_is_published_on_loopback_alone(rendered: dict[str, Any]) -> None:
    for name, service in rendered["services"].items():
        for port in service.get("ports", []):
            assert port["host_ip"] == "127.0.0.1", name


def test_every_image_is_pinned_or_built_here(rendered: dict[str, Any]) -> None:
    for name, service in rendered["services"].items():
        image = service["image"]
        assert image == "trellis" or ":" in image, name
        assert not image.endswith(":latest"), name


def test_every_variable_that_a_worker_is_given_is_a_setting() -> None:
    from worker.settings import Settings

    known = {f"TRELLIS_{name.upper()}" for name in Settings.model_fields}
    written = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for name in ("worker", "sandbox-worker"):
        given = {variable for variable in written[name]["environment"] if variable.startswith("TRELLIS_")}
        assert given <= known, name


def test_the_image_copies_every_package_and_installs_the_lock() -> None:
    lines = (ROOT / "Dockerfile").read_text()
    for package in ("domain", "activities", "workflows", "worker", "starter", "sandbox"):
        assert f"COPY {package} {package}" in lines
    assert "--require-hashes -r requirements.lock" in lines
    assert "USER 10001" in lines


@pytest.mark.parametrize("script", sorted((ROOT / "deploy" / "compose").glob("*.sh")), ids=lambda path: path.name)
def test_the_scripts_are_valid_shell(script: Path) -> None:
    subprocess.run(["sh", "-n", str(script)], check=True)
