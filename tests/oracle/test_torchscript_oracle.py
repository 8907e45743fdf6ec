# SPDX-License-Identifier: Apache-2.0
"""torch as the oracle of scripts: what it loads of the corpus has the names, shapes, types and bytes that fdd says."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from fdd.resources import corpus_dir
from tools import oracle_script

pytestmark = pytest.mark.oracle
pytest.importorskip("torch")

CORPUS = corpus_dir()
FILES = [
    entry
    for entry in tomllib.loads((CORPUS / "manifest.toml").read_text(encoding="utf-8"))["file"]
    if entry["kind"] in oracle_script.KINDS and entry["safety"] == "listed"
]
VALID = [entry for entry in FILES if entry["verdict"] == "valid"]
REFUSED = {"PT-TS-001", "PT-TS-002", "PT-TS-004", "PT-TS-011", "PT-REC-016", "PT-MOB-003"}
"""Rules against whose faults torch defends itself when it loads a file."""
LOADED_ALL_THE_SAME = {
    "mobile/index-wrong-kind.ptl",
    "mobile/index-wrong-attributes.ptl",
}
"""The reader of mobile modules does not look at what a method is, nor at the number of attributes."""


@pytest.mark.parametrize("entry", VALID, ids=lambda entry: str(entry["path"]))
def test_torch_loads_what_fdd_says(entry: dict[str, Any]) -> None:
    outcome = oracle_script.compare(CORPUS / entry["path"])
    if outcome is None:
        pytest.skip("torch does not load this file")
    assert outcome[1] == []


def test_torch_loads_most_valid_files() -> None:
    outcomes = [oracle_script.compare(CORPUS / entry["path"]) for entry in VALID if entry["kind"] != "torchscript-json"]
    loaded = [outcome for outcome in outcomes if outcome is not None]
    assert len(loaded) > len(outcomes) * 0.75
    assert sum(tensors for tensors, _ in loaded) > len(loaded)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in FILES if {finding.split()[0] for finding in entry["findings"]} & REFUSED],
    ids=lambda entry: str(entry["path"]),
)
def test_torch_refuses_what_fdd_says_it_refuses(entry: dict[str, Any]) -> None:
    assert (oracle_script.compare(CORPUS / entry["path"]) is not None) == (entry["path"] in LOADED_ALL_THE_SAME)
