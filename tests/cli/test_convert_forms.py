# SPDX-License-Identifier: Apache-2.0
"""`fdd convert` gives, in every form, byte for byte what the run itself would have written."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import fdd
from fdd import api
from fdd.core.report import Report
from fdd.report import WRITERS
from fdd.resources import corpus_dir
from tests.cli.running import Runner, fill, good
from tests.report.samples import hostile_reports, written

PATHS = (
    "real/torch-2.13.0-state_dict.pth",
    "zip/archive-comment.pt",
    "zip/end-record-missing.pt",
    "damage/encrypted.pt",
    "good/torchscript-module.pt",
    "safetensors/good.safetensors",
)
SET = {"kind": "sharded-model", "root": "a", "members": ["b"], "missing": ["c"], "extra": [], "complete": False}
OPTIONS: dict[str, list[tuple[dict[str, Any], list[str]]]] = {
    "premis": [
        ({}, []),
        (
            {"premis_bitstreams": "all", "premis_links": "all", "premis_prefix": "objects/", "created": "2024"},
            ["--premis-bitstreams", "all", "--premis-links", "all", "--premis-prefix", "objects/", "--created", "2024"],
        ),
    ],
    "csv": [({}, []), ({"csv_records": True}, ["--csv-records"])],
}
"""Form -> options of the writer, and the same on the command line."""


@cache
def reports() -> tuple[Report, ...]:
    """Of several commands and depths, with profiles, statistics, hostile names and errors."""
    found = [fdd.validate(str(corpus_dir() / path)) for path in PATHS]
    model = str(corpus_dir() / PATHS[0])
    found.append(fdd.validate(model, profiles=["ingest", "torchscript"], digests=("md5", "sha512", "sha256"), stats=True))
    found.append(fdd.validate(model, depth="structure"))
    found += [*hostile_reports(), api.error_report("gone.pt", "No such file")]
    return tuple(found)


def stored(folder: Path, text: str) -> Path:
    (folder / "stored").write_text(text, encoding="utf-8")
    return folder / "stored"


def told(fdd: Runner, path: Path, form: str, *options: str) -> str:
    code, out, err = fdd("convert", path, "--format", form, *options)
    assert (code, err) == (0, "")
    return out


@pytest.mark.parametrize("form", WRITERS)
def test_one_report(fdd: Runner, tmp_path: Path, form: str) -> None:
    for report in reports():
        command = "validate" if report.status is not None or report.error else "extract" if report.options else "identify"
        path = stored(tmp_path, written("json", [report], single=True, verbose=True))
        for options, words in OPTIONS.get(form, [({}, [])]):
            direct = written(form, [report], single=True, command=command, options=options)
            assert told(fdd, path, form, *words) == direct


@pytest.mark.parametrize("form", [form for form in WRITERS if form != "fits"])
@pytest.mark.parametrize("storing", ["json", "jsonl"])
def test_several_reports(fdd: Runner, tmp_path: Path, form: str, storing: str) -> None:
    path = stored(tmp_path, written(storing, reports(), [SET], verbose=True))
    assert told(fdd, path, form) == written(form, reports(), [SET])


@pytest.mark.parametrize("word", ["extract", "identify"])
def test_reports_of_other_commands(fdd: Runner, tmp_path: Path, word: str) -> None:
    fill(tmp_path, x__pt=good())
    path = stored(tmp_path, fdd(word, tmp_path / "x.pt", "--format", "json").out)
    assert told(fdd, path, "text") == fdd(word, tmp_path / "x.pt").out


def test_a_folder_of_one_file_stays_a_folder(fdd: Runner, tmp_path: Path) -> None:
    fill(tmp_path / "in", x__pt=good())
    (tmp_path / "in" / "link.pt").symlink_to("x.pt")
    whole = fdd("validate", tmp_path / "in", "--format", "json", "--quiet")
    assert whole.json["summary"]["skipped"] == 1
    path = stored(tmp_path, whole.out)
    assert told(fdd, path, "json") == whole.out, "with what was skipped"
    assert "<reports " in told(fdd, path, "xml")
    assert fdd("convert", path, "--format", "fits").code == 2


def test_lines_are_converted_as_they_are_read(fdd: Runner, tmp_path: Path) -> None:
    """What can be read is written before a line further down turns out to be none."""
    report = dataclasses.replace(reports()[0], tensors=(), records=())
    line = report.to_json(indent=None)
    path = stored(tmp_path, f"{line}\n\n{line}\n{line}\n7\n")
    code, out, err = fdd("convert", path, "--format", "jsonl")
    assert (code, [json.loads(text) for text in out.splitlines()]) == (2, [report.to_dict()] * 3)
    assert "line 5" in err
    code, _, _ = fdd("convert", path, "--format", "jsonl", "--output", tmp_path / "out")
    assert (code, (tmp_path / "out").exists()) == (2, False)
