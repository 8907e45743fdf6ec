# SPDX-License-Identifier: Apache-2.0
"""`fixity create` killed at any moment leaves a whole manifest or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fdd.fixity import Manifest
from tests.cli.running import ROOT, Runner, good

SLOWED = """
import os, sys, time
from fdd.cli.main import main

def slowed(step):
    def run(*arguments):
        with open(sys.argv[2], "w"):
            pass
        time.sleep(60)
        return step(*arguments)
    return run

if sys.argv[1] == "read":
    from fdd.core.source import FileSource
    FileSource.read_into = slowed(FileSource.read_into)
elif sys.argv[1] == "fsync":
    os.fsync = slowed(os.fsync)
else:
    os.replace = slowed(os.replace)
sys.exit(main(sys.argv[3:]))
"""
"""Runs fdd, and stays where it is told to: the reader, the write to disk, the change of name."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """So large that it is read through the ring."""
    path = tmp_path / "in" / "x.pt"
    path.parent.mkdir()
    path.write_bytes(good())
    with path.open("ab") as stream:
        stream.truncate(9 << 20)
    return path


def kill_at(step: str, mark: Path, *arguments: str | Path) -> None:
    """Start `fixity create`, wait until it stands at the step, and kill it."""
    command = [sys.executable, "-c", SLOWED, step, str(mark), "fixity", "create", *map(str, arguments)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        while not mark.exists():
            assert process.poll() is None, "it ended without coming there"
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL


@pytest.mark.parametrize("step", ["read", "fsync", "replace"])
@pytest.mark.parametrize("option", ["--output-dir", "--output"])
def test_no_half_manifest(fdd: Runner, tmp_path: Path, file: Path, step: str, option: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    target = out / "x.pt.fixity.json"
    place = out if option == "--output-dir" else target
    kill_at(step, tmp_path / "mark", file, option, place)
    assert not target.exists()
    assert all(name.startswith(".fdd-") and name.endswith(".part") for name in os.listdir(out))
    assert fdd("fixity", "verify", out, file.parent).code == 3  # nothing there to verify: a part of a manifest is none
    assert fdd("fixity", "create", file, option, place).code == 0
    assert fdd("fixity", "verify", out, file.parent).code == 0


@pytest.mark.parametrize("step", ["read", "fsync", "replace"])
def test_an_older_manifest_stays_whole(tmp_path: Path, file: Path, fdd: Runner, step: str) -> None:
    out = tmp_path / "out"
    assert fdd("fixity", "create", file, "--output-dir", out).code == 0
    before = (out / "x.pt.fixity.json").read_text(encoding="utf-8")
    with file.open("r+b") as stream:
        stream.write(b"other")
    kill_at(step, tmp_path / "mark", file, "--output-dir", out, "--replace")
    assert (out / "x.pt.fixity.json").read_text(encoding="utf-8") == before
    assert Manifest.from_json(before).to_json() == before
