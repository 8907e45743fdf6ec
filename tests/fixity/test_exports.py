# SPDX-License-Identifier: Apache-2.0
"""Exports are held against the tools they are for; each test is skipped where the tool is not installed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from corpus.build.kit import eager, ordered_dict, tensor
from fdd.core.errors import UsageError
from fdd.fixity import Manifest, create
from fdd.fixity.exports import EXPORTS, bagit, hashdeep, model_signing, ocfl, sha256sum
from fdd.fixity.lists import read_list, verify_listed

MODEL = eager(ordered_dict([("a", tensor([1.0, 2.0])), ("b", tensor([3.0] * 40))]))
NAMES = ("plain.pt", "sub/with two  spaces.pt", "ünï.pt", 'comma, and "quotes".pt', "#hash.pt", " leading.pt", "*star.pt")
LINE_ENDS = ("new\nline.pt", "back\\slash.pt", "back\\nslash.pt", "carriage\rreturn.pt", "next\x85line\u2028.pt")


def collection(folder: Path, names: Sequence[str], digests: Sequence[str] = ("sha256",)) -> list[Manifest]:
    """Files with these names, all of other bytes, and their manifests."""
    manifests = []
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(MODEL + bytes(number))
        manifests.append(create(path, path=name, digests=digests))
    return manifests


def ran(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool, or skip the test where there is none."""
    tool = shutil.which(str(command[0]))
    if tool is None:
        pytest.skip(f"needs {command[0]}")
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run([tool, *command[1:]], cwd=folder, capture_output=True, text=True, check=False, env=environment)


def spoil(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def test_sha256sum_checks_our_lists(tmp_path: Path) -> None:
    names = NAMES + LINE_ENDS
    (tmp_path / "sums").write_text(sha256sum(collection(tmp_path, names)), encoding="utf-8", newline="")
    checked = ran("sha256sum", "--strict", "--check", "sums", folder=tmp_path)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.count(": OK\n") == len(names)
    spoil(tmp_path / NAMES[1])
    checked = ran("sha256sum", "--strict", "--check", "sums", folder=tmp_path)
    assert checked.returncode == 1
    assert checked.stdout.count(": FAILED\n") == 1


def test_sha256sum_writes_what_we_write(tmp_path: Path) -> None:
    """Line by line the same, carriage returns apart: only later coreutils escape them."""
    names = [name for name in NAMES + LINE_ENDS if "\r" not in name]
    manifests = collection(tmp_path, names)
    written = ran("sha256sum", "--", *names, folder=tmp_path)
    assert written.stdout == sha256sum(manifests)


def bag_of(folder: Path, names: Sequence[str]) -> Path:
    """A bag with our manifest of the payload, and with the fixity manifests as tag files."""
    bag = folder / "bag"
    manifests = collection(bag / "data", names)
    (bag / "bagit.txt").write_text("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n", encoding="utf-8")
    (bag / "manifest-sha256.txt").write_text(bagit(manifests), encoding="utf-8", newline="")
    (bag / "fixity").mkdir()
    for number, manifest in enumerate(manifests):
        (bag / "fixity" / f"{number}.fixity.json").write_text(manifest.to_json(), encoding="utf-8")
    tags = sorted(path.relative_to(bag).as_posix() for path in bag.rglob("*") if path.is_file() and "data" not in path.parts)
    rows = [f"{hashlib.sha256((bag / tag).read_bytes()).hexdigest()}  {tag}\n" for tag in tags]
    (bag / "tagmanifest-sha256.txt").write_text("".join(rows), encoding="utf-8")
    return bag


BAG_NAMES = ("plain.pt", "sub/with two  spaces.pt", "new\nline.pt", "carriage\rreturn.pt", "comma,.pt", "ünï.pt")


@pytest.mark.filterwarnings("default")
def test_bagit_validates_a_bag_with_our_manifest(tmp_path: Path) -> None:
    library: Any = pytest.importorskip("bagit")
    bag = bag_of(tmp_path, BAG_NAMES)
    assert library.Bag(str(bag)).is_valid()
    spoil(bag / "data" / "plain.pt")
    assert not library.Bag(str(bag)).is_valid()


@pytest.mark.filterwarnings("default")
def test_the_tag_manifest_protects_the_fixity_manifest(tmp_path: Path) -> None:
    library: Any = pytest.importorskip("bagit")
    bag = bag_of(tmp_path, BAG_NAMES)
    spoil(bag / "fixity" / "0.fixity.json")
    with pytest.raises(library.BagValidationError, match=r"fixity/0\.fixity\.json"):
        library.Bag(str(bag)).validate()


def test_paths_in_bags_are_encoded_as_the_rfc_says(tmp_path: Path) -> None:
    manifests = collection(tmp_path, ["50%.pt", "a%0Ab.pt", "new\nline.pt"])
    lines = bagit(manifests).splitlines()
    assert [line.partition("  ")[2] for line in lines] == ["data/50%25.pt", "data/a%250Ab.pt", "data/new%0Aline.pt"]


def test_hashdeep_audits_our_lists(tmp_path: Path) -> None:
    files = tmp_path / "files"
    names = (*NAMES, "back\\slash.pt")
    listing = tmp_path / "known"
    listing.write_text(hashdeep(collection(files, names, ("md5", "sha256"))), encoding="utf-8")
    audit: tuple[str | Path, ...] = (
        "hashdeep",
        "-a",
        "-vv",
        "-r",
        "-l",
        "-k",
        listing,
        *sorted({name.partition("/")[0] for name in names}),
    )
    checked = ran(*audit, folder=files)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "Audit passed" in checked.stdout
    assert f"Files matched: {len(names)}" in checked.stdout
    spoil(files / "plain.pt")
    checked = ran(*audit, folder=files)
    assert checked.returncode != 0 and "Audit failed" in checked.stdout


def test_what_hashdeep_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line end"):
        hashdeep(collection(tmp_path, ["new\nline.pt"]))
    with pytest.raises(UsageError, match="needs md5, sha1 or sha256"):
        hashdeep(collection(tmp_path, ["x.pt"], ["sha512"]))


def test_ocfl_validates_an_object_with_our_fixity_block(tmp_path: Path) -> None:
    library: Any = pytest.importorskip("ocfl")
    root = tmp_path / "object"
    names = ("v1/content/x.pt", "v1/content/sub/y.pt")
    manifests = collection(root, names, ("sha512", "sha256", "md5", "blake2b"))
    state = {row.digests["sha512"]: [str(row.path)] for row in manifests}
    version = {
        "created": "2026-11-29T12:00:00Z",
        "message": "made",
        "user": {"name": "fdd", "address": "mailto:fdd@example.org"},
        "state": {digest: [path.removeprefix("v1/content/") for path in paths] for digest, paths in state.items()},
    }
    inventory = {
        "id": "info:fdd/test",
        "type": "https://ocfl.io/1.1/spec/#inventory",
        "digestAlgorithm": "sha512",
        "head": "v1",
        "manifest": state,
        "versions": {"v1": version},
    }
    (root / "0=ocfl_object_1.1").write_text("ocfl_object_1.1\n", encoding="utf-8")

    def is_valid(block: dict[str, Any]) -> bool:
        text = json.dumps(inventory | block)
        for folder in (root, root / "v1"):
            (folder / "inventory.json").write_text(text, encoding="utf-8")
            digest = hashlib.sha512(text.encode()).hexdigest()
            (folder / "inventory.json.sha512").write_text(f"{digest} inventory.json\n", encoding="utf-8")
        valid, _ = library.Object().validate(str(root))
        return bool(valid)

    block = json.loads(ocfl(manifests))
    assert set(block["fixity"]) == {"sha512", "sha256", "md5", "blake2b-512"}
    assert is_valid(block)
    wrong = json.loads(json.dumps(block).replace(manifests[0].digests["md5"], "0" * 32))
    assert not is_valid(wrong)


@pytest.mark.filterwarnings("default")
def test_model_signing_makes_the_same_resources(tmp_path: Path) -> None:
    """Files by their digest, parts by name and digest: its own parts are of equal size, ours follow the records."""
    hashing: Any = pytest.importorskip("model_signing.hashing")
    names = ["plain.pt", "sub/other.pt"]
    manifests = collection(tmp_path, names)
    resources = {row["name"]: row["digest"] for row in json.loads(model_signing(manifests))["resources"]}
    files = hashing.Config().use_file_serialization(hashing_algorithm="sha256").hash(tmp_path)
    theirs = {row.identifier: row.digest.digest_hex for row in files.resource_descriptors()}
    assert theirs == {name: resources[name] for name in names}
    first = manifests[0].segments[0]
    parts = hashing.Config().use_shard_serialization(hashing_algorithm="sha256", shard_size=first.span.length).hash(tmp_path)
    name = f"plain.pt:0:{first.span.length}"
    assert {row.identifier: row.digest.digest_hex for row in parts.resource_descriptors()}[name] == resources[name]


def test_resources_are_ranges_of_the_file(tmp_path: Path) -> None:
    (manifest,) = collection(tmp_path, ["sub/x.pt"])
    data = (tmp_path / "sub/x.pt").read_bytes()
    rows = json.loads(model_signing([manifest]))["resources"]
    assert rows[0] == {"name": "sub/x.pt", "algorithm": "sha256", "digest": hashlib.sha256(data).hexdigest()}
    position = 0
    for row in rows[1:]:
        path, start, end = row["name"].split(":")
        assert (path, int(start)) == ("sub/x.pt", position)
        assert row["digest"] == hashlib.sha256(data[int(start) : int(end)]).hexdigest()
        position = int(end)
    assert position == len(data)
    with pytest.raises(UsageError, match="colon"):
        model_signing(collection(tmp_path, ["a:b.pt"]))


@pytest.mark.parametrize("form", ["sha256sum", "bagit", "model-signing"])
def test_exports_need_their_digest(tmp_path: Path, form: str) -> None:
    with pytest.raises(UsageError, match="has no sha256"):
        EXPORTS[form](collection(tmp_path, ["x.pt"], ["md5"]))


@pytest.mark.parametrize(("form", "name"), [("sha256sum", "sums"), ("bagit", "manifest-sha256.txt"), ("hashdeep", "known")])
def test_what_we_write_we_read(tmp_path: Path, form: str, name: str) -> None:
    """Names of every sort come through, but for line ends in hashdeep."""
    names = [*NAMES, "50%.pt", "a%0Ab.pt", *(LINE_ENDS if form != "hashdeep" else LINE_ENDS[1:3])]
    manifests = collection(tmp_path / "data", names)
    listing = tmp_path / ("data" if form != "bagit" else "") / name
    listing.write_bytes(EXPORTS[form](manifests).encode())
    listed = read_list(str(listing))
    assert [row.path.removeprefix("data/") for row in listed] == names
    assert all(verify_listed(row, str(listing.parent)).intact for row in listed)
    spoil(tmp_path / "data" / names[2])
    assert [verify_listed(row, str(listing.parent)).intact for row in listed] == [place != 2 for place in range(len(names))]
