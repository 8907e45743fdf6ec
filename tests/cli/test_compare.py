# SPDX-License-Identifier: Apache-2.0
"""`fdd compare`, `fdd fixity create --content` and `--stats` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from corpus.build.kit import eager, state_dict, tensor
from fdd.tensors.content import CONTENT_ALGORITHM
from tests.cli.running import FOREIGN, Runner, broken, good
from tests.cli.test_paths import Stdin
from tests.schemas import validator


def write(folder: Path, name: str, **tensors: object) -> Path:
    path = folder / name
    path.write_bytes(eager(state_dict(tensors)))
    return path


def test_the_same(fdd: Runner, tmp_path: Path) -> None:
    first, second = write(tmp_path, "a.pt", x=tensor([1.0])), write(tmp_path, "b.pt", x=tensor([1.0]))
    code, out, err = fdd("compare", first, second)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == f"same  {first}  {second}"
    assert CONTENT_ALGORITHM in lines[1]
    assert lines[1].partition(": ")[2] == lines[2].partition(": ")[2]
    assert "not covered by this comparison:" in out
    assert "    sharing of storages: equal" in lines


def test_different(fdd: Runner, tmp_path: Path) -> None:
    first = write(tmp_path, "a.pt", x=tensor([1.0, 2.0]), y=tensor([1.0]), z=tensor([4.0]))
    second = write(tmp_path, "b.pt", x=tensor([1.0, float("nan")]), y=tensor([1.0], dtype="float16"), w=tensor([4.0]))
    code, out, _ = fdd("compare", first, second)
    assert code == 1
    for line in (
        '  differs: "x" float32 2 in 1 of 2 values, 1 of them NaN or infinite',
        '  differs: "y" is float32 1 in A and float16 1 in B',
        '  only in A: "z" float32 1, the same as "w" in B',
        '  only in B: "w" float32 1, the same as "z" in A',
    ):
        assert line in out.splitlines()
    assert fdd("compare", first, second, "--exit-zero").code == 0
    told = fdd("compare", first, second, "--format", "json", "--output", tmp_path / "c.json")
    assert (told.code, told.out) == (1, "")
    found = fdd("compare", first, second, "--format", "json").json
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8")) == found
    validator("comparison").validate(found)
    assert (found["outcome"], [entry["name"] for entry in found["different"]]) == ("different", ["x", "y"])


def test_long_lists_are_cut(fdd: Runner, tmp_path: Path) -> None:
    first = write(tmp_path, "a.pt", **{f"t{number:02}": tensor([1.0]) for number in range(30)})
    second = write(tmp_path, "b.pt", **{f"t{number:02}": tensor([2.0]) for number in range(30)})
    assert "  ... and 10 more (--verbose lists all)" in fdd("compare", first, second).out.splitlines()
    assert fdd("compare", first, second, "--verbose").out.count("differs: ") == 30


def test_names_from_files_are_made_visible(fdd: Runner, tmp_path: Path) -> None:
    first = write(tmp_path, "a.pt", **{"\x1b[2J\n": tensor([1.0])})
    second = write(tmp_path, "b.pt")
    assert '  only in A: "\\x1b[2J\\x0a" float32 1' in fdd("compare", first, second).out.splitlines()


def test_undetermined_unreadable_and_usage(fdd: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.pt").write_bytes(good())
    (tmp_path / "b.pt").write_bytes(broken())
    (tmp_path / "c.h5").write_bytes(FOREIGN)
    assert fdd("compare", tmp_path / "a.pt", tmp_path / "c.h5").code == 3
    missing = fdd("compare", tmp_path / "a.pt", tmp_path / "none.pt")
    assert (missing.code, "none.pt: No such file" in missing.err) == (3, True)
    assert fdd("compare", tmp_path / "a.pt", tmp_path).code == 3
    assert fdd("compare", tmp_path / "a.pt").code == 2
    assert fdd("compare", "-", "-").code == 2
    assert fdd("compare", tmp_path / "a.pt", tmp_path / "a.pt", "--format", "csv").code == 2


def test_standard_input(fdd: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pt"
    path.write_bytes(good())
    monkeypatch.setattr(sys, "stdin", Stdin(good()))
    ran = fdd("compare", path, "-")
    assert (ran.code, ran.out.splitlines()[0]) == (0, f"same  {path}  -")


def test_content_in_manifests(fdd: Runner, tmp_path: Path) -> None:
    path = write(tmp_path, "a.pt", x=tensor([1.0]))
    found = fdd("fixity", "create", path, "--content").json
    assert found["content_digest"]["algorithm"] == CONTENT_ALGORITHM
    assert len(found["tensors"][0]["content"]["digest"]) == 64
    assert "content_digest" not in fdd("fixity", "create", path).json
    fdd("fixity", "create", path, "--content", "--output", tmp_path / "a.pt.fixity.json")
    assert fdd("fixity", "verify", tmp_path / "a.pt.fixity.json").code == 0
    (tmp_path / "b.pt").write_bytes(broken())
    ran = fdd("fixity", "create", tmp_path / "b.pt", "--content")
    assert (ran.code, "no content digest" in ran.err) == (0, "content_digest" not in ran.json)


def test_statistics_on_request(fdd: Runner, tmp_path: Path) -> None:
    path = write(tmp_path, "a.pt", x=tensor([1.0, 0.0, float("inf")]))
    line = '  values of "x": 0.0 to 1.0, 1 zeros, 0 NaN, 1 Inf among 3'
    assert line in fdd("validate", path, "--stats").out.splitlines()
    assert line in fdd("extract", path, "--stats").out.splitlines()
    assert "values of" not in fdd("validate", path).out
    assert "values of" not in fdd("validate", path, "--stats", "--brief").out
    assert fdd("validate", path, "--stats", "--depth", "structure").code == 2
    found = fdd("validate", path, "--stats", "--format", "json").json
    assert (found["options"]["stats"], len(found["statistics"])) == (True, 2)
