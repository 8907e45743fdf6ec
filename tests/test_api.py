# SPDX-License-Identifier: Apache-2.0
"""The public calls: what they take, what they give, and the two errors they may raise."""

from __future__ import annotations

import io
import os
import types
from collections.abc import Callable
from pathlib import Path

import pytest

import fdd
from fdd import api
from fdd.core.finding import Safety, Verdict
from fdd.core.source import ByteSource
from fdd.formats.probe import make_probe
from tests.cli.running import broken, dangerous, good


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "x.pt"
    target.write_bytes(good())
    return target


def test_every_way_to_give_a_file_gives_the_same(path: Path) -> None:
    with path.open("rb") as stream:
        given = (str(path), path, good(), bytearray(good()), memoryview(good()), io.BytesIO(good()), stream)
        reports = [fdd.validate(source, name="x.pt").without_run().to_json(verbose=True) for source in given]
    assert len(set(reports)) == 1


def test_what_is_said_of_the_file(path: Path) -> None:
    os.utime(path, (0, 86_400))
    assert fdd.validate(path).file == {"path": str(path), "name": "x.pt", "size": len(good()), "modified": "1970-01-02T00:00:00Z"}
    assert fdd.validate(path, name="other.pt").file["name"] == "other.pt"
    assert fdd.validate(good()).file == {"size": len(good())}
    assert fdd.validate(good(), name="x\ud800.pt").file["name"] == "x%ED%A0%80.pt"
    with path.open("rb") as stream:
        assert fdd.validate(stream).file == {"size": len(good())}


def test_the_answers_have_types(path: Path) -> None:
    report = fdd.validate(path)
    assert (report.verdict, report.valid, report.safety) == (Verdict.VALID, True, Safety.LISTED)
    assert fdd.validate(dangerous()).safety is Safety.DANGEROUS
    assert fdd.validate(broken()).verdict is Verdict.NOT_WELL_FORMED
    assert fdd.identify(path).kind == "torch-zip"
    extracted = fdd.extract(path)
    assert extracted.status is None and extracted.properties["content"] == "state_dict"
    assert api.sources(path) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda path: fdd.validate(path, depth="abyss"),
        lambda path: fdd.validate(path, digests=["crc7"]),
        lambda path: fdd.validate(path, as_format="fdd000000"),
        lambda path: fdd.extract(path, as_format="fdd000000"),
        lambda path: fdd.validate_many([path], depth="abyss"),
        lambda path: fdd.Report.from_json("{}"),
    ],
    ids=range(6),
)
def test_wrong_requests(path: Path, call: Callable[[Path], object]) -> None:
    with pytest.raises(fdd.UsageError):
        call(path)


SOURCES: list[object] = ["missing", "", "a\0b", ".", "/dev/null", io.StringIO("text")]
CALLS = [fdd.validate, fdd.identify, fdd.extract, api.identify_report, api.sources]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("source", SOURCES, ids=range(len(SOURCES)))
def test_what_cannot_be_read(call: Callable[[object], object], source: object) -> None:
    with pytest.raises(fdd.SourceError):
        call(source)


@pytest.mark.parametrize("call", [fdd.validate, fdd.identify, fdd.extract], ids=lambda call: call.__name__)
@pytest.mark.parametrize("change", ["grow", "shrink", "touch"])
def test_files_that_change_while_they_are_looked_at(
    path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[Path], object], change: str
) -> None:
    def look_and_change(source: ByteSource, **options: object) -> object:
        probe = make_probe(source, **options)  # type: ignore[arg-type]
        if change == "grow":
            with path.open("ab") as stream:
                stream.write(b"more")
        elif change == "shrink":
            os.truncate(path, 10)
        else:
            os.utime(path, (1, 1))
        return probe

    monkeypatch.setattr(api, "make_probe", look_and_change)
    with pytest.raises(fdd.SourceError, match=r"was changed while it was read|became shorter"):
        call(path)


def test_no_file_stays_open(path: Path) -> None:
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    before = os.listdir("/proc/self/fd")
    for call in CALLS:
        call(path)  # type: ignore[operator]
    with path.open("rb") as stream:
        fdd.validate(stream)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_many_files(tmp_path: Path, path: Path, jobs: int) -> None:
    (tmp_path / "b.pt").write_bytes(broken())
    given = [str(path), str(tmp_path / "missing"), str(tmp_path / "b.pt")] * 3
    reports = list(fdd.validate_many(iter(given), jobs=jobs, digests=iter(["md5"])))
    assert [report.file["path"] for report in reports] == given
    assert [report.verdict for report in reports] == [Verdict.VALID, None, Verdict.NOT_WELL_FORMED] * 3
    assert reports[1].error == "No such file or directory"
    assert [list(report.digests) for report in reports[-3::2]] == [["md5"], ["md5"]]


def test_a_fault_of_fdd_is_an_error_of_one_report(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RecursionError("deep")

    monkeypatch.setattr(api, "_validate", fail)
    (report,) = fdd.validate_many([str(path)])
    assert report.internal
    assert (report.error or "").startswith("internal error: RecursionError: deep (tests.test_api:")


def test_nothing_is_loaded_before_it_is_used() -> None:
    assert isinstance(fdd, types.ModuleType)
    assert set(fdd.__all__) <= {*dir(fdd), *fdd._HOMES}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fdd.nonsense
