# SPDX-License-Identifier: Apache-2.0
"""`fdd fixity` over folders and lists: nothing that is read or recorded is lost, nothing that is there is overlooked."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.cli.running import Runner, fill, good
from tests.schemas import validator

DIGEST = hashlib.sha256(good()).hexdigest()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two models and a text."""
    return fill(tmp_path / "data", a__pt=good(), b__pt=good() + b"!", notes__txt=b"my notes\n")


@pytest.fixture
def recorded(fdd: Runner, tmp_path: Path, data: Path) -> Path:
    assert fdd("fixity", "create", data, "--output-dir", tmp_path / "m").code == 0
    return tmp_path / "m"


def test_output_never_takes_the_place_of_what_lies_in_folders_that_are_read(
    fdd: Runner, tmp_path: Path, data: Path, recorded: Path
) -> None:
    sums = tmp_path / "SUMS"
    sums.write_text(f"{DIGEST}  a.pt\n", encoding="utf-8")
    (data / "a.pt.sha256").write_text(f"{DIGEST}  a.pt\n", encoding="utf-8")
    fill(tmp_path, w__gguf=b"GGUF" + bytes(60))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for words in (
        ["validate", data, "--output", data / "notes.txt"],
        ["validate", data / "a.pt", "--output", data / "a.pt.sha256"],
        ["validate", data / "a.pt", "--output", tmp_path / "w.gguf"],
        ["validate", "--files-from", sums, "--output", sums],
        ["fixity", "verify", recorded, data, "--output", data / "notes.txt"],
        ["fixity", "verify", sums, data, "--output", data / "notes.txt"],
    ):
        assert fdd(*words).code == 2, words
    report = tmp_path / "r.json"
    assert fdd("validate", data / "a.pt", "--format", "json", "--output", report).code == 0
    assert fdd("validate", data / "a.pt", "--format", "json", "--output", report).code == 0
    assert fdd("convert", report, "--format", "csv", "--output", report).code == 2
    assert fdd("recheck", report, "--profile", "read", "--output", report).code == 2
    assert {path: path.read_bytes() for path in before} == before


def test_files_that_are_named_like_reports_are_read_and_kept(fdd: Runner, data: Path) -> None:
    fill(data, a__pt__json=b'{"config": 1}')
    code, _, err = fdd("validate", data, "--output-dir", data, "--format", "json")
    assert code == 3
    assert "a.pt.json: is there and is no report of fdd" in err
    assert (data / "a.pt.json").read_bytes() == b'{"config": 1}'
    assert json.loads((data / "a.pt.json.json").read_text(encoding="utf-8"))["identification"]["kind"] == "json"
    assert "output of fdd" in fdd("validate", data, "--output-dir", data, "--format", "json").err


def test_a_manifest_in_one_file_is_kept_too_and_a_richer_one(fdd: Runner, tmp_path: Path, data: Path) -> None:
    one = tmp_path / "one.fixity.json"
    rich = ("fixity", "create", data / "a.pt", "--output", one, "--digest", "sha256,sha512", "--content")
    assert fdd(*rich).code == 0
    before = one.read_bytes()
    code, _, err = fdd("fixity", "create", data / "a.pt", "--output", one)
    assert (code, "holds more" in err) == (0, True)
    (data / "a.pt").write_bytes(good() + b"?")
    assert fdd(*rich).code == 1
    assert one.read_bytes() == before
    assert fdd(*rich, "--replace").code == 0
    assert one.read_bytes() != before


def test_lists_with_absolute_paths_and_lists_kept_elsewhere(
    fdd: Runner, tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = hashlib.sha256(good() + b"!").hexdigest()
    third = hashlib.sha256(b"my notes\n").hexdigest()
    rows = ((DIGEST, "a.pt"), (second, "b.pt"), (third, "notes.txt"))
    absolute = tmp_path / "lists" / "absolute"
    fill(tmp_path / "lists", absolute="".join(f"{digest}  {data / name}\n" for digest, name in rows).encode())
    monkeypatch.chdir(tmp_path)
    assert fdd("fixity", "verify", absolute, "data", "--complete").code == 0
    fill(tmp_path / "lists", near="".join(f"{digest}  {name}\n" for digest, name in rows).encode())
    monkeypatch.chdir(data)
    assert fdd("fixity", "verify", tmp_path / "lists" / "near", "--complete").code == 0
    (data / "b.pt").rename(data / "c.pt")
    out = fdd("fixity", "verify", tmp_path / "lists" / "near", "--complete").out
    assert "unrecorded  c.pt: it holds the bytes on record as b.pt" in out


def test_a_folder_of_manifests_is_no_bag(fdd: Runner, tmp_path: Path, data: Path) -> None:
    fill(tmp_path / "all", **{"data/x__pt": good(), "y__pt": good()})
    assert fdd("fixity", "create", tmp_path / "all" / "data", "--output-dir", tmp_path / "manifest-2026").code == 0
    assert "unrecorded  y.pt" in fdd("fixity", "verify", tmp_path / "manifest-2026", tmp_path / "all", "--complete").out


def test_manifests_that_lead_out_of_their_folder(fdd: Runner, tmp_path: Path, data: Path, recorded: Path) -> None:
    manifest = recorded / "a.pt.fixity.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    for file in (
        {"name": "a.pt", "path": "%2E%2E/a.pt", "percent_encoded": True},
        {"name": "../a.pt"}, {"name": "a.pt", "path": "C:\\a.pt"},
        {"name": "a.pt", "path": "x\\..\\a.pt"}, {"name": "a.pt", "path": "a.pt", "percent_encoded": "yes"},
    ):  # fmt: skip
        changed = document | {"file": {key: document["file"][key] for key in ("size", "digests")} | file}
        manifest.write_text(json.dumps(changed), encoding="utf-8")
        ran = fdd("fixity", "verify", manifest, data, "--format", "json")
        assert (ran.code, ran.json["verdict"]) == (3, "unreadable"), file
        validator("fixity-result").validate(ran.json)


def test_names_of_manifests_that_are_no_text(fdd: Runner, tmp_path: Path, data: Path, recorded: Path) -> None:
    try:
        (recorded / os.fsdecode(b"x\xe9.fixity.json")).write_text("{", encoding="utf-8")
    except OSError:
        pytest.skip("the file system takes text only")
    ran = fdd("fixity", "verify", recorded, data, "--format", "json")
    assert (ran.code, ran.json["summary"]["verdicts"]) == (3, {"intact": 3, "unreadable": 1})


def test_names_that_claim_to_be_models(fdd: Runner, tmp_path: Path) -> None:
    for number, name in enumerate(("pytorch_model_1.bin", "diffusion_pytorch_model.bin", "optimizer_1.bin", "model.safetensors")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / name).write_text("Entry not found", encoding="utf-8")
        assert fdd("validate", folder).code == 1, name
        (folder / name).rename(folder / "readme.md")
        assert fdd("validate", folder).code == 0
