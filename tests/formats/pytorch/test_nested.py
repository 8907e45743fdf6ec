# SPDX-License-Identifier: Apache-2.0
"""Torch files inside files: how deep they are followed, what they show in the outer file, and rows of archives."""

from __future__ import annotations

import zipfile

import pytest

import fdd
from corpus.build.kit import Call, Global, eager, state_dict, tensor
from corpus.build.package_files import manifest, model_archive, package
from corpus.build.program_files import native, native_records
from corpus.build.shard_files import FIRST, SECOND
from fdd.core.finding import Reason, State
from fdd.core.report import Report
from fdd.core.source import BytesSource
from fdd.core.span import Span
from fdd.formats import by_name
from fdd.formats.probe import make_probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.shards import split_archives
from fdd.limits import Limits
from fdd.resources import corpus_dir

CORPUS = corpus_dir()
CALL = Call(Global("posix", "getcwd"))


def _document(data: bytes, name: str | None = None, limits: Limits = Limits()) -> TorchDocument:
    fmt = by_name("fdd000644")
    probe = make_probe(BytesSource(data), name=name, path=None, limits=limits, depth="full")
    identification = fmt.identify(probe)
    assert identification is not None
    document = fmt.open(probe, identification)
    assert isinstance(document, TorchDocument)
    return document


def _report(data: bytes, name: str | None = None, limits: Limits = Limits()) -> Report:
    report = fdd.validate(data, name=name, limits=limits)
    assert not [outcome for outcome in report.outcomes if outcome.reason is Reason.CRASH]
    return report


def _verdict(report: Report) -> tuple[str | None, str | None]:
    verdict, safety = report.verdict, report.safety
    return verdict.value if verdict is not None else None, safety.value if safety is not None else None


def _in_mar(model: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    rows = [("net.pt", model), ("MAR-INF/MANIFEST.json", manifest(handler="image_classifier"))]
    return model_archive(rows, method)


def _deep(levels: int, inside: bytes) -> bytes:
    """A file in a model archive in a model archive ..."""
    for _ in range(levels):
        inside = _in_mar(inside)
    return inside


# Depth


def test_files_are_followed_to_the_limit_and_what_lies_below_leaves_the_verdict_open() -> None:
    most = Limits().nested_files
    good, bad = eager({"w": tensor([1.0])}), eager({"x": CALL})
    assert _verdict(_report(_deep(most, good))) == ("valid", "listed")
    assert _verdict(_report(_deep(most, bad))) == ("valid", "dangerous")
    assert _verdict(_report(_deep(most + 1, good))) == ("undetermined", "undetermined")
    assert _verdict(_report(_deep(most + 1, bad))) == ("undetermined", "undetermined")


def test_a_violation_that_is_found_stands_whatever_the_limit_cuts_off() -> None:
    rows = [("a.pt", _deep(Limits().nested_files, eager({"w": tensor([1.0])}))), ("net.pt", eager({})[:-30])]
    data = model_archive([*rows, ("MAR-INF/MANIFEST.json", manifest(handler="x"))], zipfile.ZIP_STORED)
    assert _verdict(_report(data))[0] == "well-formed-not-valid"


def test_files_that_only_travel_along_leave_the_verdict_alone_and_safety_open() -> None:
    data = package(
        state_dict({"w": tensor([1.0])}), sources=(), more=(("deep.bin", _deep(Limits().nested_files, eager({"x": CALL}))),)
    )
    assert _verdict(_report(data)) == ("valid", "undetermined")


@pytest.mark.parametrize(("limit", "verdict"), [(1 << 20, "valid"), (200, "undetermined")])
def test_a_deflated_file_is_inflated_up_to_the_limit(limit: int, verdict: str) -> None:
    data = _in_mar(eager({"w": tensor([1.0])}), zipfile.ZIP_DEFLATED)
    report = _report(data, limits=Limits(inflated_bytes=limit))
    assert _verdict(report)[0] == verdict


def test_a_damaged_deflate_stream_is_the_containers_fault() -> None:
    data = bytearray(_in_mar(eager({"w": tensor([float(n) for n in range(99)])}), zipfile.ZIP_DEFLATED))
    data[60:64] = b"\xff\xff\xff\xff"
    verdict, safety = _verdict(_report(bytes(data)))
    assert (verdict, safety) == ("not-well-formed", "undetermined")


# What the outer file shows


def test_storages_are_placed_in_the_outer_file() -> None:
    inner = eager({"w": tensor([1.0, 2.0])})
    data = native(native_records(inputs=inner))
    document = _document(data)
    (storage,), (shown,) = document.nested_storages, document.nested_tensors
    assert storage.span is not None and data[storage.span.offset : storage.span.end] == inner[_payload(inner)]
    assert shown.name == "data/sample_inputs/model.pt/w" and shown.storage is storage


def _payload(data: bytes) -> slice:
    storage = _document(data).storages[0]
    assert storage.span is not None
    return slice(storage.span.offset, storage.span.end)


def test_deflated_ones_have_no_place_there() -> None:
    (storage,) = _document(_in_mar(eager({"w": tensor([1.0] * 40)}), zipfile.ZIP_DEFLATED)).nested_storages
    assert storage.span is None and storage.byte_count == 160


def test_byte_orders_are_those_of_the_files_inside() -> None:
    inner = eager({"w": tensor([1.0], byteorder="big")}, byteorder="big", platform="linux-big-endian")
    (storage,) = _document(_in_mar(inner)).nested_storages
    assert storage.byte_order == "big"


# Rows of archives


def test_archives_in_a_row_are_found_from_the_back() -> None:
    row = (FIRST, SECOND, FIRST)
    found = split_archives(BytesSource(b"".join(row)), Limits())
    assert found == [Span(0, len(FIRST)), Span(len(FIRST), len(SECOND)), Span(len(FIRST) + len(SECOND), len(FIRST))]


@pytest.mark.parametrize("data", [b"", b"x", FIRST[:-30], b"x" + FIRST, FIRST + b"x", FIRST + b"x" + SECOND])
def test_anything_else_is_no_row(data: bytes) -> None:
    assert split_archives(BytesSource(data), Limits()) == []


def test_a_row_is_a_shard_by_its_name_only() -> None:
    data = FIRST + SECOND
    assert _verdict(_report(data, "__0_0.distcp")) == ("valid", "listed")
    assert _verdict(_report(data, "x.pt"))[0] == "not-well-formed"


def test_a_row_that_is_cut_within_its_last_archive_is_not_well_formed() -> None:
    report = _report(FIRST + SECOND[:-1], "__0_0.distcp")
    assert report.identification is not None and report.identification.kind == "distcp"
    assert _verdict(report)[0] == "not-well-formed"


def test_tensors_of_a_row_have_the_number_of_their_archive() -> None:
    names = [(tensor.name, tensor.shape) for tensor in _document(FIRST + SECOND, "__0_0.distcp").nested_tensors]
    assert names == [("archive 0", (3,)), ("archive 1", (2,))]


@pytest.mark.parametrize("count", [2, 40])
def test_every_archive_of_a_row_is_judged(count: int) -> None:
    data = FIRST * (count - 1) + eager({"x": CALL})
    report = _report(data, "__0_0.distcp")
    assert _verdict(report) == ("valid", "dangerous")
    passed = {outcome.rule for outcome in report.outcomes if outcome.state is State.PASSED}
    assert {"PT-NST-001", "PT-NST-002"} <= passed


def test_a_file_of_several_archives_says_what_they_agree_in() -> None:
    old, new = eager(tensor([1.0]), era="1.9"), eager(tensor([1.0]))
    both = fdd.extract(new + new, name="__0_0.distcp").properties
    assert both is not None
    assert both["torch_releases"] == {"min": "2.7", "max": None, "basis": [".format_version"]}
    assert (both["byte_order"], both["archive_version"], both["record_count"]) == ("little", 3, 14)
    mixed = fdd.extract(old + new, name="__0_0.distcp").properties
    assert mixed is not None
    assert "torch_releases" not in mixed
    assert (mixed["byte_order"], mixed["archive_version"]) == ("unknown", 3)


def test_a_save_that_was_stopped_is_of_any_later_release() -> None:
    stopped = fdd.extract((CORPUS / "identification/save-incomplete.pt").read_bytes()).properties
    assert stopped is not None
    assert stopped["torch_releases"] == {"min": "2.1", "max": None, "basis": ["byteorder"]}
