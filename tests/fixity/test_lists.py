# SPDX-License-Identifier: Apache-2.0
"""Checksum lists of other tools: read as those tools write them, and checked as they check them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from shutil import which

import pytest

from fdd.core.errors import SourceError
from fdd.fixity.lists import ListedFile, read_list, verify_listed
from fdd.fixity.result import Fixity

DATA = b"hello"
SHA256 = hashlib.sha256(DATA).hexdigest()
MD5 = hashlib.md5(DATA).hexdigest()


def listed(folder: Path, text: str | bytes, name: str = "sums") -> list[ListedFile]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_list(str(path))


@pytest.mark.parametrize(
    ("line", "path", "algorithm"),
    [
        (f"{SHA256}  x.pt", "x.pt", "sha256"),
        (f"{SHA256} *x.pt", "x.pt", "sha256"),
        (f"{SHA256.upper()}  x.pt", "x.pt", "sha256"),
        (f"{SHA256} x.pt", "x.pt", "sha256"),
        (f"{SHA256}   x.pt", " x.pt", "sha256"),
        (f"{SHA256}  x.pt\r", "x.pt", "sha256"),
        (f"\ufeff{SHA256}  x.pt", "x.pt", "sha256"),
        (f"{SHA256}  a b\x0bc\x85d\u2028.pt", "a b\x0bc\x85d\u2028.pt", "sha256"),
        (f"\\{SHA256}  a\\nb\\\\n.pt", "a\nb\\n.pt", "sha256"),
        (f"\\{SHA256}  a\\rb.pt", "a\rb.pt", "sha256"),
        (f"{SHA256}  a\\nb.pt", "a\\nb.pt", "sha256"),
        (f"{MD5}  x.pt", "x.pt", "md5"),
        (f"{'0' * 40}  x.pt", "x.pt", "sha1"),
        (f"{'0' * 96}  x.pt", "x.pt", "sha384"),
        (f"{'0' * 128}  x.pt", "x.pt", "sha512"),
        (f"SHA256 (x.pt) = {SHA256}", "x.pt", "sha256"),
        (f"SHA256 (a) = b (c).pt) = {SHA256}", "a) = b (c).pt", "sha256"),
        (f"\\SHA256 (a\\nb.pt) = {SHA256}", "a\nb.pt", "sha256"),
        (f"MD5 (x.pt) = {MD5}", "x.pt", "md5"),
        (f"BLAKE2b (x.pt) = {'0' * 128}", "x.pt", "blake2b"),
        (f"SHA256(x.pt)= {SHA256}", "x.pt", "sha256"),
        (f"SHA2-256(x.pt)= {SHA256}", "x.pt", "sha256"),
    ],
)  # fmt: skip
def test_lines_of_sums(tmp_path: Path, line: str, path: str, algorithm: str) -> None:
    (row,) = listed(tmp_path, f"# comment\n\n{line}\n" if not line.startswith("\ufeff") else line)
    assert (row.path, [name for name, _ in row.digests], row.size) == (path, [algorithm], None)
    assert row.digests[0][1] == row.digests[0][1].lower()


@pytest.mark.parametrize(
    ("name", "digits", "algorithm"),
    [
        ("B2SUMS", 128, "blake2b"),
        ("SHA512SUMS", 128, "sha512"),
        ("files.blake3", 64, "blake3"),
        ("files.b3", 64, "blake3"),
        ("x.md5", 64, "sha256"),
    ],
)
def test_the_name_of_a_list_tells_digests_of_one_length_apart(tmp_path: Path, name: str, digits: int, algorithm: str) -> None:
    (row,) = listed(tmp_path, f"{'0' * digits}  x.pt\n", name)
    assert row.digests[0][0] == algorithm


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("hello\n", "sums", "line 1: neither"),
        (f"{SHA256}  x\n{SHA256}\n", "sums", "line 2: neither"),
        (f"{'0' * 50}  x\n", "sums", "50 digits"),
        (f"SHA3-256 (x) = {SHA256}\n", "sums", "unknown digest sha3256"),
        (f"MD5 (x) = {SHA256}\n", "sums", "64 digits"),
        ("hello\n", "manifest-sha256.txt", "line 1: not a digest"),
        (f"{MD5}  data/x\n", "manifest-sha256.txt", "32 digits"),
        (f"{MD5}  data/x\n", "manifest-crc32.txt", "unknown digest crc32"),
        ("%%%% HASHDEEP-1.0\n1,2,x\n", "known", "line 2: 0 values"),
        ("%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n## c\n5,00\n", "known", "line 4: 2 values for 3 columns"),
        ("%%%% HASHDEEP-1.0\n%%%% size,tiger,filename\n", "known", "no digest that is known"),
        ("%%%% HASHDEEP-1.0\n%%%% size,md5,filename\n5,00,x\n", "known", "2 digits"),
    ],
)
def test_what_is_no_list(tmp_path: Path, text: str, name: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        listed(tmp_path, text, name)


def test_lists_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        read_list(str(tmp_path / "none"))


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_manifests_of_bags(tmp_path: Path, line_end: str) -> None:
    lines = [
        f"{SHA256}  data/x.pt",
        f"{SHA256.upper()}\tdata/50%25.pt",
        f"{SHA256} *data/a%0Ab%0d.pt",
        f"{SHA256}  data/a%2Fb c.pt",
    ]
    rows = listed(tmp_path, line_end.join(lines) + line_end, "manifest-sha256.txt")
    assert [row.path for row in rows] == ["data/x.pt", "data/50%.pt", "data/a\nb\r.pt", "data/a%2Fb c.pt"]
    assert {row.digests for row in rows} == {(("sha256", SHA256),)}
    (tag,) = listed(tmp_path, f"{MD5} bagit.txt\n", "tagmanifest-md5.txt")
    assert tag.digests == (("md5", MD5),)


def test_a_bag_whose_writer_left_the_percent_sign(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a%25b").write_bytes(DATA)
    (row,) = listed(tmp_path, f"{SHA256}  data/a%25b\n", "manifest-sha256.txt")
    assert row.path == "data/a%b"
    assert verify_listed(row, str(tmp_path)).intact
    (tmp_path / "data" / "a%b").write_bytes(b"hallo")
    assert verify_listed(row, str(tmp_path)).verdict is Fixity.DAMAGED


def test_hashdeep(tmp_path: Path) -> None:
    text = (
        "%%%% HASHDEEP-1.0\n%%%% size,md5,sha256,tiger,filename\n## Invoked from: /somewhere\n## $ hashdeep -r .\n## \n"
        f'5,{MD5},{SHA256},{"0" * 48},./a, "b", c.pt\n'
    )
    (row,) = listed(tmp_path, text)
    assert row == ListedFile('./a, "b", c.pt', (("md5", MD5), ("sha256", SHA256)), 5)


def test_files_against_their_lines(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(DATA)
    good = ListedFile("x", (("sha256", SHA256), ("md5", MD5)), 5)
    assert verify_listed(good, str(tmp_path)).intact
    assert verify_listed(ListedFile("y", good.digests), str(tmp_path)).verdict is Fixity.MISSING
    longer = verify_listed(ListedFile("x", good.digests, 6), str(tmp_path))
    assert (longer.verdict, longer.detail) == (Fixity.DAMAGED, "5 bytes instead of 6")
    wrong = verify_listed(ListedFile("x", (("sha256", SHA256), ("md5", "0" * 32))), str(tmp_path))
    assert (wrong.verdict, wrong.detail) == (Fixity.DAMAGED, "the md5 digest differs")
    with pytest.raises(SourceError, match="a directory"):
        verify_listed(ListedFile(".", good.digests), str(tmp_path))


def test_names_that_are_no_text(tmp_path: Path) -> None:
    name = b"caf\xe9.pt"
    try:
        (tmp_path / os.fsdecode(name)).write_bytes(DATA)
    except OSError:
        pytest.skip("this file system takes text only")
    (row,) = listed(tmp_path, SHA256.encode() + b"  " + name + b"\n")
    result = verify_listed(row, str(tmp_path))
    assert (result.verdict, result.name) == (Fixity.INTACT, "caf%E9.pt")


@pytest.mark.parametrize(
    "tool",
    [
        ["sha256sum"],
        ["sha256sum", "--tag"],
        ["md5sum", "-b"],
        ["b2sum"],
        ["shasum", "-a", "384"],
        ["sha1sum"],
        ["openssl", "dgst", "-sha512"],
        ["hashdeep", "-l"],
    ],
)
def test_lists_as_the_tools_write_them(tmp_path: Path, tool: list[str]) -> None:
    program = which(tool[0])
    if program is None:
        pytest.skip(f"needs {tool[0]}")
    names = ["x.pt", "two  words.pt", "a (b) = c.pt", "ünï,.pt"] + (["new\nline\\.pt"] if tool[0].endswith("sum") else [])
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(DATA * number)
    written = subprocess.run([program, *tool[1:], *names], cwd=tmp_path, capture_output=True, check=True).stdout
    rows = listed(tmp_path, written, "b2sums" if tool == ["b2sum"] else "list")
    assert sorted(row.path for row in rows) == sorted(names)
    assert all(verify_listed(row, str(tmp_path)).intact for row in rows)
    (tmp_path / "x.pt").write_bytes(b"other")
    assert sum(not verify_listed(row, str(tmp_path)).intact for row in rows) == 1


@pytest.mark.parametrize(
    "name",
    [
        "efficientnet_b3.pth.sha256", "vit_b32.pt.sha256", "net_b2.sums", "web2b3list.txt", "SHA256SUMS",
        "b2.sha256sum.txt", "v1.0-efficientnet-b3",
        "md5-of-b3.sha256",
    ],
)  # fmt: skip
def test_names_of_models_are_no_names_of_algorithms(tmp_path: Path, name: str) -> None:
    digest = hashlib.sha256(b"hello").hexdigest()
    (tmp_path / name).write_text(f"{digest}  x\n", encoding="utf-8")
    assert read_list(str(tmp_path / name))[0].digests == (("sha256", digest),)


@pytest.mark.parametrize("name", ["B2SUMS", "x.blake2b", "b2sums.txt", "model.b2", "x-blake2b-list"])
def test_names_that_say_blake2b(tmp_path: Path, name: str) -> None:
    digest = hashlib.blake2b(b"hello").hexdigest()
    (tmp_path / name).write_text(f"{digest}  x\n", encoding="utf-8")
    assert read_list(str(tmp_path / name))[0].digests == (("blake2b", digest),)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_lists_of_windows(tmp_path: Path, encoding: str) -> None:
    digest = hashlib.sha256(b"hello").hexdigest()
    text = f"{digest}  caf\xe9.pt\r\n"
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    (tmp_path / "sums").write_bytes((mark + text).encode(encoding))
    assert [row.path for row in read_list(str(tmp_path / "sums"))] == ["caf\xe9.pt"]
