# SPDX-License-Identifier: Apache-2.0
"""Cut files of every family: never a crash, the kind kept once its decisive bytes are there, and never valid.

The files are those of the corpus that are valid; the same over the large samples is done by tools and by hand.
"""

from __future__ import annotations

from functools import cache

import pytest

import fdd
from fdd.core.finding import Reason
from fdd.core.report import Report
from fdd.resources import corpus_dir

FILES = [
    "good/eager-2.7-state-dict.pth",
    "good/legacy-state-dict.pth",
    "torchscript/script-2.1-pass.pt",
    "torchscript/script-1.3-pass.pt",
    "torchscript/traced-2.1-pass.pt",
    "torchscript/mobile-2.1-pass.ptl",
    "torchscript/model-json-1.2-pass.pt",
    "package/package-2.1-pass.pt",
    "package/package-1.9-pass.pt",
    "package/package-with-script-pass.pt",
    "package/model-archive-pass.mar",
    "program/plain-2.7-pass.pt2",
    "program/native-2.8-pass.pt2",
    "program/native-2.9-pass.pt2",
    "mobile/module-pass.ptl",
    "shards/one-archive-pass.distcp",
    "shards/two-archives-pass.distcp",
]
CUTS = 20
"""Lengths tried a file, spread evenly, and each of the last bytes."""
COMPLETE = {("shards/two-archives-pass.distcp", 1577)}
"""Lengths at which what is left is a complete shorter file: the first archive of the row."""
STOPPED_BEFORE = frozenset({"torch-zip", "torchscript", "incomplete-save", "zip", "unknown", "pickle", "empty", "text", "distcp"})
"""What a part is taken for whose decisive names are cut off: another torch file, or none."""


@cache
def data_of(path: str) -> bytes:
    return (corpus_dir() / path).read_bytes()


@cache
def report_on(path: str, size: int) -> Report:
    return fdd.validate(data_of(path)[:size], name=path.rpartition("/")[2])


def decisive_end(path: str) -> int:
    """Where the evidence that decides the kind ends: the headers of the records that tell it."""
    whole = report_on(path, len(data_of(path)))
    assert whole.identification is not None
    records = [basis.offset for basis in whole.identification.basis if basis.what.startswith("record ")]
    return max(records, default=max(basis.offset + basis.length for basis in whole.identification.basis))


def sizes_of(path: str) -> list[int]:
    size = len(data_of(path))
    return sorted({1 + number * size // CUTS for number in range(CUTS)} | set(range(size - 4, size)) - {size})


@pytest.mark.parametrize("path", FILES)
def test_a_part_of_a_file_keeps_its_kind_and_is_never_valid(path: str) -> None:
    whole = report_on(path, len(data_of(path)))
    assert whole.identification is not None and whole.verdict is not None and whole.verdict.value == "valid"
    decided = decisive_end(path)
    for size in sizes_of(path):
        report = report_on(path, size)
        assert report.identification is not None and report.verdict is not None
        assert not [outcome for outcome in report.outcomes if outcome.reason is Reason.CRASH], size
        kind = report.identification.kind
        if size >= decided:
            assert kind == whole.identification.kind, size
        else:
            assert kind in STOPPED_BEFORE | {whole.identification.kind}, (size, kind)
        if (path, size) not in COMPLETE:
            assert report.verdict.value != "valid", size


@pytest.mark.parametrize(("path", "size"), sorted(COMPLETE))
def test_complete_shorter_files_are_valid(path: str, size: int) -> None:
    report = report_on(path, size)
    assert report.verdict is not None and report.verdict.value == "valid"


@pytest.mark.parametrize("path", FILES)
def test_parts_have_no_tensors_that_the_whole_has_not(path: str) -> None:
    whole = report_on(path, len(data_of(path))).properties.get("tensor_count") or 0
    for size in sizes_of(path)[:: CUTS // 5]:
        assert (report_on(path, size).properties.get("tensor_count") or 0) <= whole
