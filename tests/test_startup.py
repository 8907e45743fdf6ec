# SPDX-License-Identifier: Apache-2.0
"""What is loaded for nothing makes every call slow: the large libraries come only when they are needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fdd.resources import corpus_dir

ROOT = Path(__file__).resolve().parent.parent
HEAVY = {"lxml", "numpy", "jsonschema", "rich", "isal", "multiprocessing", "concurrent", "importlib.metadata", "email", "asyncio"}
ALWAYS_ALLOWED = {"isal"}
PROGRAM = """
import json, sys
from fdd.cli.main import main
code = main(json.loads(sys.argv[1]))
sys.stdout.flush()
print(json.dumps([int(code), sorted(sys.modules)]), file=sys.stderr)
"""
SAMPLE = str(corpus_dir() / "good" / "eager-2.7-state-dict.pth")


def modules_after(*arguments: str) -> set[str]:
    command = [sys.executable, "-c", PROGRAM, json.dumps(arguments)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    code, modules = json.loads(ran.stderr)
    assert code == 0
    assert ran.stdout
    return set(modules)


def test_version_loads_next_to_nothing() -> None:
    modules = modules_after("--version")
    assert modules & HEAVY == set()
    assert {name for name in modules if name.split(".")[0] == "fdd"} == {"fdd", "fdd._version", "fdd.cli", "fdd.cli.main"}


def test_one_file_loads_no_large_library() -> None:
    modules = modules_after("validate", SAMPLE, "--format", "json")
    assert modules & HEAVY <= ALWAYS_ALLOWED
    assert not any(name.startswith(("fdd.formats.safetensors", "fdd.formats.foreign.identify")) for name in modules)
    assert not any(name.startswith(("fdd.report.xml", "fdd.report.premis", "fdd.fixity", "fdd.policy")) for name in modules)
