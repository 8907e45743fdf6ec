# SPDX-License-Identifier: Apache-2.0
"""`fdd fixity`: manifests are made, files are held against them, and other tools get their lists."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fdd.fixity import FixityResult, Manifest, verify
from tests.cli.running import FOREIGN, Runner, broken, fill, good
from tests.cli.test_paths import Stdin
from tests.schemas import validator


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """Files as they came, one of another kind."""
    return fill(tmp_path / "files", **{"x__pt": good(), "sub/y__pt": broken(), "data__h5": FOREIGN})


def manifests(folder: Path) -> dict[str, Any]:
    return {name: json.loads((folder / name).read_text(encoding="utf-8")) for name in sorted(os.listdir(folder))}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_one_manifest_each(fdd: Runner, tmp_path: Path, collection: Path, jobs: str) -> None:
    code, out, err = fdd("fixity", "create", collection, "--output-dir", tmp_path / "m", "--jobs", jobs, "--digest", "sha256,md5")
    assert (code, out, err) == (0, "", "")
    found = manifests(tmp_path / "m")
    assert list(found) == ["data.h5.fixity.json", "sub%2Fy.pt.fixity.json", "x.pt.fixity.json"]
    assert found["sub%2Fy.pt.fixity.json"]["file"] == {
        "name": "y.pt", "path": "sub/y.pt", "size": len(broken()),
        "digests": {"sha256": hashlib.sha256(broken()).hexdigest(), "md5": hashlib.md5(broken()).hexdigest()},
    }  # fmt: skip


def test_a_single_manifest_goes_to_standard_output_or_a_file(fdd: Runner, tmp_path: Path, collection: Path) -> None:
    code, out, _ = fdd("fixity", "create", collection / "x.pt")
    assert code == 0
    assert fdd("fixity", "create", collection / "x.pt", "--output", tmp_path / "one").out == ""
    assert (tmp_path / "one").read_text(encoding="utf-8") == out
    assert "created" not in json.loads(out)
    assert "created" in fdd("fixity", "create", collection / "x.pt", "--created", "now").json


def test_a_manifest_of_standard_input(fdd: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(good()))
    ran = fdd("fixity", "create", "-", "--name", "x.pt", "--jobs", "2")
    assert ran.code == 0
    assert ran.json["file"] == {
        "name": "x.pt", "size": len(good()), "digests": {"sha256": hashlib.sha256(good()).hexdigest()},
    }  # fmt: skip


def test_same_names_from_two_places(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several paths, those below the folder that holds them all are recorded: ROOT for verification."""
    fill(tmp_path / "in", **{"a/x__pt": good(), "b/x__pt": broken()})
    for given in (
        [tmp_path / "in" / "a", tmp_path / "in" / "b"],
        [tmp_path / "in" / "a" / "x.pt", tmp_path / "in" / "b" / "x.pt"],
    ):
        assert fdd("fixity", "create", *given, "--output-dir", tmp_path / "m").code == 0
        assert {name: found["file"]["path"] for name, found in manifests(tmp_path / "m").items()} == {
            "a%2Fx.pt.fixity.json": "a/x.pt", "b%2Fx.pt.fixity.json": "b/x.pt",
        }  # fmt: skip
        code, out, _ = fdd("fixity", "verify", tmp_path / "m", tmp_path / "in")
        assert (code, [line.split(":")[0] for line in out.splitlines()[:2]]) == (0, ["intact  a/x.pt", "intact  b/x.pt"])
    monkeypatch.chdir(tmp_path / "in")
    assert fdd("fixity", "create", "a/x.pt", "b", "a/x.pt", "--output-dir", tmp_path / "n").code == 0
    assert sorted(manifests(tmp_path / "n")) == ["a%2Fx.pt.fixity.json", "a%2Fx.pt~2.fixity.json", "b%2Fx.pt.fixity.json"]


def test_manifests_beside_and_among_what_they_record(fdd: Runner, tmp_path: Path, collection: Path) -> None:
    """Only manifests are left out of what is read, wherever they go."""
    for folder in (collection, collection / "sub"):
        for _ in range(2):
            assert fdd("fixity", "create", collection, "--output-dir", folder).code == 0
            names = [name for name in sorted(os.listdir(folder)) if name.endswith(".fixity.json")]
            assert names == ["data.h5.fixity.json", "sub%2Fy.pt.fixity.json", "x.pt.fixity.json"]
        assert fdd("fixity", "verify", folder, collection, "--complete").code == 0
        for name in names:
            (folder / name).unlink()


def test_a_manifest_that_says_otherwise_is_kept(fdd: Runner, collection: Path, recorded: Path) -> None:
    """Recording again would make damage what ought to be."""
    before = manifests(recorded)
    (collection / "x.pt").write_bytes(good() + b"!")
    (recorded / "data.h5.fixity.json").write_text("{", encoding="utf-8")
    code, _, err = fdd("fixity", "create", collection, "--output-dir", recorded)
    assert code == 1
    assert [line.partition(".fixity.json ")[2].partition(":")[0] for line in err.splitlines()] == [
        "is no manifest of this file", "says otherwise",
    ]  # fmt: skip
    assert json.loads((recorded / "x.pt.fixity.json").read_text(encoding="utf-8")) == before["x.pt.fixity.json"]
    assert fdd("fixity", "verify", recorded / "x.pt.fixity.json", collection).code == 1
    assert fdd("fixity", "create", collection, "--output-dir", recorded, "--digest", "sha256,md5", "--replace").code == 0
    assert fdd("fixity", "create", collection, "--output-dir", recorded).code == 0
    assert fdd("fixity", "verify", recorded, collection).code == 0


def test_what_is_read_is_not_written_over(fdd: Runner, tmp_path: Path, collection: Path, recorded: Path) -> None:
    model, manifest = collection / "x.pt", recorded / "x.pt.fixity.json"
    (tmp_path / "link").symlink_to(model)
    text = tmp_path / "notes.txt"
    text.write_text("notes", encoding="utf-8")
    before = {path: path.read_bytes() for path in (model, manifest, text)}
    for words in (
        ["validate", model, "--output", model], ["validate", collection, "--output", model],
        ["identify", model, "--output", model], ["extract", model, "--output", tmp_path / "link"],
        ["validate", text, "--output", text], ["fixity", "create", model, "--output", model],
        ["compare", model, text, "--output", model], ["compare", model, text, "--output", text],
        ["fixity", "verify", manifest, model, "--output", model], ["fixity", "verify", recorded, collection, "--output", model],
        ["fixity", "verify", manifest, collection, "--output", manifest],
        ["fixity", "export", recorded, "--to", "sha256sum", "--output", manifest],
    ):  # fmt: skip
        code, _, err = fdd(*words)
        assert (code, "over" in err) == (2, True), words
        assert {path: path.read_bytes() for path in before} == before


def test_names_that_are_no_text(fdd: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    fill(folder, **{"100%__pt": good()})
    try:
        (folder / "sub").mkdir()
        (folder / os.fsdecode(b"sub/caf\xe9 %.pt")).write_bytes(good() + b"!")
    except OSError:
        pytest.skip("the file system takes text only")
    assert fdd("fixity", "create", folder, "--output-dir", tmp_path / "m").code == 0
    files = [found["file"] for found in manifests(tmp_path / "m").values()]
    assert sorted((file["path"], file.get("percent_encoded")) for file in files) == [
        ("100%.pt", None), ("sub/caf%E9%20%25.pt", True),
    ]  # fmt: skip
    assert fdd("fixity", "verify", tmp_path / "m", folder, "--complete").code == 0
    listing = tmp_path / "sums"
    assert fdd("fixity", "export", tmp_path / "m", "--to", "sha256sum", "--output", listing).code == 0
    assert b"sub/caf\xe9 %.pt" in listing.read_bytes()
    assert fdd("fixity", "verify", listing, folder).code == 0
    for form in ("bagit", "ocfl", "model-signing"):
        assert "not UTF-8" in fdd("fixity", "export", tmp_path / "m", "--to", form).err


def test_a_time_of_making_is_a_time(fdd: Runner, collection: Path) -> None:
    assert (
        fdd("fixity", "create", collection / "x.pt", "--created", "2026-11-29T12:00:00Z").json["created"]
        == "2026-11-29T12:00:00Z"
    )
    assert fdd("fixity", "create", collection / "x.pt", "--created", "yesterday").code == 2


def test_a_file_that_was_renamed(fdd: Runner, collection: Path, recorded: Path) -> None:
    (collection / "x.pt").rename(collection / "sub" / "new.pt")
    code, out, _ = fdd("fixity", "verify", recorded, collection, "--complete")
    assert code == 1
    assert (
        "unrecorded  sub/new.pt: it holds the bytes on record as x.pt, which is missing: it was renamed or moved"
        in out.splitlines()
    )


def test_where_the_files_of_a_list_are_looked_for(
    fdd: Runner, tmp_path: Path, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = hashlib.sha256(good()).hexdigest()
    listing = fill(tmp_path / "lists", sums=f"{digest}  x.pt\n".encode()) / "sums"
    assert fdd("fixity", "verify", listing).code == 1
    assert "give ROOT" in fdd("fixity", "verify", listing).err
    monkeypatch.chdir(collection)
    assert fdd("fixity", "verify", listing).code == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter every folder")
def test_a_folder_that_one_may_not_enter(fdd: Runner, collection: Path, recorded: Path) -> None:
    (collection / "sub").chmod(0)
    try:
        code, out, _ = fdd("fixity", "verify", recorded, collection)
    finally:
        (collection / "sub").chmod(0o755)
    assert (code, "unreadable  sub/y.pt: Permission denied" in out) == (3, True)


def test_files_that_cannot_be_recorded(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "in", x__pt=good())
    os.mkfifo(tmp_path / "in" / "pipe\x1b")
    code, out, err = fdd("fixity", "create", tmp_path / "in", tmp_path / "gone", "--output-dir", tmp_path / "m")
    assert (code, out) == (3, "")
    assert err.splitlines() == [
        f"fdd fixity create: {tmp_path}/in/pipe\\x1b: not a regular file but a named pipe (FIFO)",
        f"fdd fixity create: {tmp_path}/gone: No such file or directory",
    ]
    assert list(manifests(tmp_path / "m")) == ["in%2Fx.pt.fixity.json"]
    (tmp_path / "empty").mkdir()
    assert fdd("fixity", "create", tmp_path / "empty", "--output-dir", tmp_path / "m").code == 3
    from fdd.cli import fixity

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(fixity, "create", fail)
    code, _, err = fdd("fixity", "create", tmp_path / "in" / "x.pt")
    assert code == 70 and "internal error: ZeroDivisionError: oh" in err


@pytest.fixture
def recorded(fdd: Runner, tmp_path: Path, collection: Path) -> Path:
    """The folder of manifests of the collection."""
    assert fdd("fixity", "create", collection, "--output-dir", tmp_path / "m").code == 0
    return tmp_path / "m"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_intact(fdd: Runner, collection: Path, recorded: Path, jobs: str) -> None:
    ran = fdd("fixity", "verify", recorded, collection, "--format", "json", "--jobs", jobs)
    assert ran.code == 0
    assert [(result["name"], result["verdict"]) for result in ran.json["results"]] == [
        ("data.h5", "intact"), ("sub/y.pt", "intact"), ("x.pt", "intact"),
    ]  # fmt: skip
    assert ran.json["summary"] == {"files": 3, "verdicts": {"intact": 3}}


def test_damaged_and_missing(fdd: Runner, collection: Path, recorded: Path) -> None:
    data = bytearray(good())
    data[data.index(b"\x80\x3f")] ^= 1  # in the bytes of the tensor
    (collection / "x.pt").write_bytes(data)
    (collection / "data.h5").unlink()
    code, out, err = fdd("fixity", "verify", recorded, collection)
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith("missing  data.h5: ")
    assert lines[1].startswith("intact  sub/y.pt: ")
    assert lines[2].startswith("damaged  x.pt: ")
    assert '    tensor "a"' in lines
    assert lines[-1] == "3 files: 1 damaged, 1 intact, 1 missing"
    results = fdd("fixity", "verify", recorded, collection, "--format", "jsonl").lines
    assert results[2]["tensors"] == ["a"]


def test_one_manifest_and_one_file(fdd: Runner, tmp_path: Path, collection: Path, recorded: Path) -> None:
    shutil.copy(collection / "x.pt", tmp_path / "renamed")
    manifest = recorded / "x.pt.fixity.json"
    assert fdd("fixity", "verify", manifest, tmp_path / "renamed", "--format", "json").json["verdict"] == "intact"
    assert fdd("fixity", "verify", manifest, collection).code == 0
    assert fdd("fixity", "verify", manifest, collection / "sub" / "y.pt").code == 1


def test_files_and_manifests_that_cannot_be_read(fdd: Runner, tmp_path: Path, collection: Path, recorded: Path) -> None:
    (collection / "x.pt").unlink()
    (collection / "x.pt").mkdir()
    (recorded / "bad.fixity.json").write_text("{", encoding="utf-8")
    code, out, _ = fdd("fixity", "verify", recorded, collection)
    assert code == 3
    assert sum(line.startswith("unreadable  ") for line in out.splitlines()) == 2
    found = fdd("fixity", "verify", recorded, collection, "--format", "json").json
    validator("fixity-result").validate(found)
    assert found["summary"]["verdicts"]["unreadable"] == 2
    assert fdd("fixity", "verify", tmp_path / "none").code == 3
    (tmp_path / "empty").mkdir()
    assert fdd("fixity", "verify", tmp_path / "empty").code == 3


def test_a_fault_in_one_file_does_not_end_the_others(
    fdd: Runner, collection: Path, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(manifest: Manifest, path: str) -> FixityResult:
        if manifest.path == "x.pt":
            raise ZeroDivisionError("oh")
        return verify(manifest, path)

    monkeypatch.setattr("fdd.cli.fixity_verify.verify", fail)
    code, out, _ = fdd("fixity", "verify", recorded, collection)
    assert code == 70
    assert [line.split("  ")[0] for line in out.splitlines()[:-1]] == ["intact", "intact", "unreadable"]


def test_the_form_of_json_follows_what_is_asked_for(fdd: Runner, tmp_path: Path, collection: Path) -> None:
    folder = tmp_path / "one"
    assert fdd("fixity", "create", collection / "x.pt", "--output-dir", folder).code == 0
    one = fdd("fixity", "verify", folder / "x.pt.fixity.json", collection, "--format", "json").json
    assert one["verdict"] == "intact"
    several = fdd("fixity", "verify", folder, collection, "--format", "json").json
    assert several["results"] == [one]
    for document in (one, several):
        validator("fixity-result").validate(document)


def test_what_is_not_on_record(fdd: Runner, tmp_path: Path, collection: Path, recorded: Path) -> None:
    assert fdd("fixity", "verify", recorded, collection, "--complete").code == 0
    (collection / "new\x1b.pt").write_bytes(good())
    shutil.copy(recorded / "x.pt.fixity.json", collection / "sub")
    (collection / "link.pt").symlink_to("x.pt")
    assert fdd("fixity", "verify", recorded, collection).code == 0
    code, out, _ = fdd("fixity", "verify", recorded, collection, "--complete")
    assert code == 1
    assert out.splitlines()[-2:] == [
        "unrecorded  new\\x1b.pt: no record is of this file", "4 files: 3 intact, 1 unrecorded",
    ]  # fmt: skip
    found = fdd("fixity", "verify", recorded, collection, "--complete", "--format", "json").json
    validator("fixity-result").validate(found)
    assert found["results"][-1]["name"] == "new\x1b.pt"
    told = fdd("fixity", "verify", recorded, collection, "--complete", "--format", "premis")
    assert (told.code, "unrecorded  new\\x1b.pt" in told.err) == (1, True)
    for wrong in ([recorded], [recorded, collection / "x.pt"], [recorded / "x.pt.fixity.json"]):
        assert fdd("fixity", "verify", *wrong, "--complete").code == 2


def test_a_list_or_a_bag_that_is_complete(fdd: Runner, tmp_path: Path) -> None:
    digest = hashlib.sha256(good()).hexdigest()
    fill(tmp_path / "files", a__pt=good(), b__pt=good())
    listing = tmp_path / "files" / "SHA256SUMS"
    listing.write_text(f"{digest}  ./a.pt\n", encoding="utf-8")
    assert "unrecorded  b.pt" in fdd("fixity", "verify", listing, "--complete").out
    listing.write_text(f"{digest}  a.pt\n{digest}  b.pt\n", encoding="utf-8")
    assert fdd("fixity", "verify", listing, "--complete").code == 0
    bag = tmp_path / "bag"
    fill(bag / "data", a__pt=good())
    (bag / "bagit.txt").write_text("BagIt-Version: 1.0\n", encoding="utf-8")
    manifest = bag / "manifest-sha256.txt"
    manifest.write_text(f"{digest}  data/a.pt\n", encoding="utf-8")
    assert fdd("fixity", "verify", manifest, "--complete").code == 0
    fill(bag / "data", b__pt=good())
    code, out, _ = fdd("fixity", "verify", manifest, "--complete")
    assert (code, "unrecorded  data/b.pt" in out) == (1, True)


def test_lists_of_other_tools(fdd: Runner, tmp_path: Path, collection: Path) -> None:
    digest = hashlib.sha256(good()).hexdigest()
    listing = tmp_path / "sums"
    listing.write_text(f"{digest}  x.pt\n{digest}  sub/y.pt\n{digest}  none\n", encoding="utf-8")
    results = fdd("fixity", "verify", listing, collection, "--format", "jsonl")
    assert results.code == 1
    assert [result["verdict"] for result in results.lines] == ["intact", "damaged", "missing"]
    listing.write_text("hello\n", encoding="utf-8")
    code, _, err = fdd("fixity", "verify", listing, collection)
    assert (code, "line 1" in err) == (3, True)


def test_lists_that_sha256sum_understands(fdd: Runner, tmp_path: Path, collection: Path, recorded: Path) -> None:
    listing = tmp_path / "sums"
    code, out, _ = fdd("fixity", "export", recorded, "--to", "sha256sum", "--output", listing)
    assert (code, out) == (0, "")
    assert fdd("fixity", "verify", listing, collection).code == 0
    tool = shutil.which("sha256sum")
    if tool is None:
        pytest.skip("needs sha256sum")
    checked = subprocess.run([tool, "--strict", "--check", listing], cwd=collection, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("form", ["bagit", "hashdeep", "ocfl", "model-signing"])
def test_other_exports(fdd: Runner, recorded: Path, form: str) -> None:
    code, out, _ = fdd("fixity", "export", recorded, "--to", form)
    assert code == 0
    assert hashlib.sha256(good()).hexdigest() in out
    assert "sub/y.pt" in out


def test_exports_of_nothing(fdd: Runner, tmp_path: Path, recorded: Path) -> None:
    assert fdd("fixity", "export", tmp_path / "files", "--to", "bagit").code == 2
    assert fdd("fixity", "export", tmp_path / "none", "--to", "bagit").code == 3
    (recorded / "bad.fixity.json").write_text("[]", encoding="utf-8")
    assert fdd("fixity", "export", recorded, "--to", "bagit").code == 3
