# SPDX-License-Identifier: Apache-2.0
"""torch as the oracle: what it loads of the corpus has the names, shapes, types and bytes that fdd says."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from fdd.resources import corpus_dir
from tools import oracle

pytestmark = pytest.mark.oracle
pytest.importorskip("torch")

CORPUS = corpus_dir()
KINDS = ("torch-zip", "torch-legacy")
FILES = [
    entry
    for entry in tomllib.loads((CORPUS / "manifest.toml").read_text(encoding="utf-8"))["file"]
    if entry["kind"] in KINDS and entry["safety"] == "listed"
]
VALID = [entry for entry in FILES if entry["verdict"] == "valid"]
REFUSED = {
    "PT-REC-003", "PT-REC-004", "PT-REC-006", "PT-REC-009", "PT-REC-016", "PT-TEN-001", "PT-TEN-003", "PT-TEN-004",
    "PT-TEN-007", "PT-TEN-008", "PT-TEN-009", "PT-TEN-010", "PT-TEN-011", "PT-TEN-013", "PT-TEN-014", "PT-TEN-018",
}  # fmt: skip
"""Rules against whose faults torch defends itself when it loads a file."""
LOADED_ALL_THE_SAME = {
    "records/data-pkl-missing-case.pt",  # looked up without regard to case
    "tensors/packed-bytes-missing.pt",  # counted without rounding rows up, as torch's own writer does
}


@pytest.mark.parametrize("entry", VALID, ids=lambda entry: str(entry["path"]))
def test_torch_loads_what_fdd_says(entry: dict[str, Any]) -> None:
    outcome = oracle.compare(CORPUS / entry["path"])
    if outcome is None:
        pytest.skip("torch does not load this file")
    assert outcome[1] == []


def test_torch_loads_most_valid_files() -> None:
    outcomes = [oracle.compare(CORPUS / entry["path"]) for entry in VALID]
    loaded = [outcome for outcome in outcomes if outcome is not None]
    assert len(loaded) > len(VALID) * 0.75
    assert sum(tensors for tensors, _ in loaded) > len(loaded)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in FILES if {finding.split()[0] for finding in entry["findings"]} & REFUSED],
    ids=lambda entry: str(entry["path"]),
)
def test_torch_refuses_what_fdd_says_it_refuses(entry: dict[str, Any]) -> None:
    assert (oracle.compare(CORPUS / entry["path"]) is not None) == (entry["path"] in LOADED_ALL_THE_SAME)
