# SPDX-License-Identifier: Apache-2.0
"""Answers for Archivematica: both of its parsers read them, and they say what its registry needs."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from fdd.adapters.archivematica import literal
from fdd.cli.main import main
from fdd.resources import corpus_dir
from tests.test_corpus import MANIFEST

OUTCOME = {"valid": "pass", "well-formed-not-valid": "partial pass", "not-well-formed": "fail", "not-this-format": "fail"}


@pytest.mark.parametrize("entry", MANIFEST[::17], ids=lambda entry: str(entry["path"]))
def test_validation_is_one_literal_for_both_parsers(entry: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    path = str(corpus_dir() / entry["path"])
    if entry["verdict"] not in OUTCOME or "name" in entry or "depth" in entry:
        pytest.skip("judged another way")
    assert main(["archivematica", "validate", path]) == 0
    text = capsys.readouterr().out
    answer = json.loads(text)
    assert ast.literal_eval(text.strip()) == answer
    assert answer["eventOutcomeInformation"] == OUTCOME[entry["verdict"]]
    assert answer["eventOutcomeDetailNote"].startswith('format="') and "fdd " in answer["eventOutcomeDetailNote"]
    assert all(isinstance(value, str) for value in answer.values())


@given(st.dictionaries(st.text(max_size=5), st.text(), max_size=3))
def test_any_text_is_read_alike_by_json_and_python(answer: dict[str, str]) -> None:
    text = literal(answer)
    assert json.loads(text) == ast.literal_eval(text) == answer


def test_identification_is_one_token(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["archivematica", "identify", str(corpus_dir() / "real" / "torch-2.13.0-tensor.pt")]) == 0
    assert capsys.readouterr().out == "fdd000644\n"
    (tmp_path / "x.pt").write_text("hello")
    assert main(["archivematica", "identify", str(tmp_path / "x.pt")]) == 0
    assert len(capsys.readouterr().out.split()) == 1


def test_characterization_is_one_xml_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["archivematica", "characterize", str(corpus_dir() / "real" / "torch-2.13.0-state_dict.pth")]) == 0
    root = etree.fromstring(capsys.readouterr().out.encode())
    assert etree.QName(root).localname == "report"
    assert root.findtext(".//{*}properties/{*}content") == "state_dict"


def test_an_invalid_file_still_exits_0_and_a_missing_one_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["archivematica", "policy", str(corpus_dir() / "zip" / "end-record-missing.pt")]) == 0
    assert json.loads(capsys.readouterr().out)["eventOutcomeInformation"] == "fail"
    assert main(["archivematica", "validate", "/nowhere/x.pt"]) == 1
    assert capsys.readouterr().out == ""
