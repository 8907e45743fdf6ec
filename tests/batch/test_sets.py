# SPDX-License-Identifier: Apache-2.0
"""Facts about several files: shards of one model, checkpoints of several processes, and what they lack."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fdd import api
from fdd.batch import sets
from fdd.batch.sets import SetCollector
from fdd.core.model import Identification
from fdd.core.report import Report

READ = Report(tool={}, options={}, file={}, identification=Identification("zip", "ZIP"))


def collected(*paths: Path | str, report: Report = READ) -> list[dict[str, Any]]:
    collector = SetCollector()
    for path in paths:
        collector.add(str(path), report)
    return list(collector.sets())


def shards(folder: Path, total: int, *numbers: int, stem: str = "model", suffix: str = ".bin") -> list[Path]:
    return [folder / f"{stem}-{number:05}-of-{total:05}{suffix}" for number in numbers]


def facts(root: Path, *, kind: str = "sharded-model", members: list[str], missing: list[str], extra: list[str]) -> dict[str, Any]:
    return {"kind": kind, "root": str(root), "members": members, "missing": missing, "extra": extra, "complete": not missing}


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def test_all_shards(tmp_path: Path) -> None:
    paths = shards(tmp_path, 3, 1, 2, 3)
    assert collected(*paths) == [facts(tmp_path / "model.bin", members=names(paths), missing=[], extra=[])]


def test_a_shard_is_missing(tmp_path: Path) -> None:
    paths = shards(tmp_path, 3, 1, 3)
    missing = names(shards(tmp_path, 3, 2))
    assert collected(*paths) == [facts(tmp_path / "model.bin", members=names(paths), missing=missing, extra=[])]


def test_a_shard_that_was_not_asked_for_but_lies_there_is_not_missing(tmp_path: Path) -> None:
    paths = shards(tmp_path, 2, 1, 2)
    paths[1].write_bytes(b"")
    assert collected(paths[0]) == [facts(tmp_path / "model.bin", members=names(paths[:1]), missing=[], extra=[])]


def test_models_and_folders_are_kept_apart(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    paths = [*shards(tmp_path / "b", 1, 1), *shards(tmp_path / "a", 1, 1), *shards(tmp_path / "a", 1, 1, stem="other")]
    assert [found["root"] for found in collected(*paths)] == [
        str(tmp_path / "a" / "model.bin"), str(tmp_path / "a" / "other.bin"), str(tmp_path / "b" / "model.bin"),
    ]  # fmt: skip


def index(folder: Path, weight_map: Any, name: str = "model.bin.index.json") -> Path:
    path = folder / name
    path.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}), encoding="utf-8")
    return path


def test_an_index_names_the_shards(tmp_path: Path) -> None:
    paths = shards(tmp_path, 2, 1, 2)
    known = index(tmp_path, {"a": paths[0].name, "b": paths[1].name})
    (found,) = collected(known, paths[0])
    assert found == facts(tmp_path / "model.bin", members=names(paths[:1]), missing=names(paths[1:]), extra=[])


def test_an_index_that_names_another_file(tmp_path: Path) -> None:
    known = index(tmp_path, {"a": "weights.bin", "b": "../up.bin", "c": 7, "d": "sub/x.bin"})
    (found,) = collected(known)
    assert found == facts(tmp_path / "model.bin", members=[], missing=["weights.bin"], extra=[])


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"weight_map": 7}', "[" * 100_000, '{"weight_map": {"a": "\\ud800\\u0000"}}']
)
def test_an_index_may_hold_anything(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.bin.index.json"
    path.write_text(text, encoding="utf-8")
    for found in collected(path):
        json.dumps(found).encode()


def test_an_index_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "model.bin.index.json"
    os.mkfifo(path)
    assert collected(path) == []
    assert collected(path, report=api.error_report(str(path), "a named pipe")) == []


def test_totals_out_of_all_measure_are_not_believed(tmp_path: Path) -> None:
    (found,) = collected(*shards(tmp_path, 99_999, 1))
    assert (found["missing"], found["complete"]) == ([], False)


def test_large_sets_are_written_out_once(tmp_path: Path) -> None:
    total = sets.MOST_EXPECTED
    paths = shards(tmp_path, total, *range(1, total))
    (found,) = collected(*paths)
    assert (len(found["members"]), found["missing"]) == (total - 1, names(shards(tmp_path, total, total)))


def checkpoint_index(*files: str) -> Report:
    return Report(
        tool={}, options={}, file={}, identification=Identification("pickle", "P", details={"shard_files": list(files)})
    )


def test_distributed_checkpoints(tmp_path: Path) -> None:
    collector = SetCollector()
    collector.add(str(tmp_path / ".metadata"), checkpoint_index("__0_0.distcp", "__1_0.distcp", "../x"))
    collector.add(str(tmp_path / "__0_0.distcp"), READ)
    collector.add(str(tmp_path / "__7_0.distcp"), READ)
    (found,) = collector.sets()
    assert found == facts(
        tmp_path,
        kind="distributed-checkpoint",
        members=[".metadata", "__0_0.distcp", "__7_0.distcp"],
        missing=["__1_0.distcp"],
        extra=["__7_0.distcp"],
    )


def test_parts_without_their_index(tmp_path: Path) -> None:
    (found,) = collected(tmp_path / "__0_0.distcp")
    assert found == facts(tmp_path, kind="distributed-checkpoint", members=["__0_0.distcp"], missing=[".metadata"], extra=[])


def test_an_index_that_cannot_be_understood_completes_nothing(tmp_path: Path) -> None:
    collector = SetCollector()
    collector.add(str(tmp_path / ".metadata"), READ)
    (found,) = collector.sets()
    assert (found["missing"], found["extra"], found["complete"]) == ([], [], False)


def test_other_files_make_no_set() -> None:
    assert collected("model.pt", "a-1-of-2.pt", "x.json", "-") == []


def test_names_that_are_no_text(tmp_path: Path) -> None:
    (found,) = collected(tmp_path / "caf\udce9-00001-of-00001.bin")
    assert found["members"] == ["caf%E9-00001-of-00001.bin"]
    json.dumps(found).encode()
