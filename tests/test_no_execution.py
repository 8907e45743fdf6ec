# SPDX-License-Identifier: Apache-2.0
"""Whatever is in a file, looking at it executes, unpickles, connects and writes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fdd.resources import corpus_dir
from tests.guard import ACTS, CAUGHT

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = "FDD_SAMPLES"
"""Environment variable with a folder of more files to look at."""


def guarded(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.guard", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def corpus_rows() -> list[tuple[str, str | None]]:
    corpus = corpus_dir()
    entries = tomllib.loads((corpus / "manifest.toml").read_text(encoding="utf-8"))["file"]
    return [(str(corpus / entry["path"]), entry.get("name")) for entry in entries]


def sample_rows() -> list[tuple[str, str | None]]:
    folder = os.environ.get(SAMPLES)
    if not folder:
        return []
    return [(str(path), None) for path in sorted(Path(folder).rglob("*")) if path.is_file() and path.stat().st_size < 1 << 28]


def test_nothing_is_executed(tmp_path: Path) -> None:
    rows = [*corpus_rows(), *sample_rows()]
    (tmp_path / "rows").write_text(json.dumps(rows), encoding="utf-8")
    ran = guarded(str(tmp_path / "rows"))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) == len(rows) > 100


@pytest.mark.parametrize("act", ACTS)
def test_the_guard_catches(act: str) -> None:
    ran = guarded("--act", act)
    assert ran.returncode == CAUGHT
    assert ran.stderr.startswith("forbidden: ")
