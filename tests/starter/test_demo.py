"""The demo is told to its end, in time, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from starter.cli import run

CHAPTERS = ("A small world", "Three clusters, one VPC", "Who has which addresses", "The same from outside", "A crash",
            "The last one out", "Nothing is left")  # fmt: skip


@pytest.mark.xdist_group("supervisor")
@pytest.mark.parametrize("arguments", [(), ("--provider", "gcp")], ids=["aws", "gcp"])
def test_the_story_is_told_to_its_end(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    told = subprocess.run(
        [str(Path(sys.executable).parent / "trellis"), "demo", *arguments],
        env=os.environ | {"CI": "true", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=540,
    )
    assert told.returncode == 0, told.stdout + told.stderr
    places = [told.stdout.index(chapter) for chapter in CHAPTERS]
    assert places == sorted(places)
    for proof in (
        "ready: alpha, beta, gamma",
        "one VPC for 3 clusters",
        "kill -9",
        "nothing was done twice",
        "VPC is gone",
    ):
        assert proof in told.stdout
    assert "nothing is left in the cloud" in told.stdout
    assert "trellis sandbox start --detach" in told.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_cloud_without_a_story_is_refused_with_those_that_have_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--provider", "vapour"]) == 2
    said = capsys.readouterr().err
    assert "vapour" in said
    assert "alicloud" in said
