# SPDX-License-Identifier: Apache-2.0
"""Rules on the ZIP container where a corpus file cannot reach: beyond 4 GiB, and at depth `directory`."""

from __future__ import annotations

import os
from pathlib import Path

import fdd
from corpus.build.zip_base import STORAGE, base, broken_record
from fdd.core.finding import Level, State
from fdd.core.report import Report
from fdd.formats.pytorch.canonical_layout import CanonicalRecord, Piece, layout

HUGE = (1 << 32) + 64
TAIL = b"3\n"


def weighty(report: Report, family: str = "PT-ZIP") -> set[str]:
    """Rules of a family that gave a warning or an error."""
    return {row.rule for row in report.findings if row.level is not Level.INFO and row.rule.startswith(family)}


def huge(path: Path) -> list[Piece]:
    """Write a sparse archive in torch's form: one record over 4 GiB, an empty one and a small one beyond it."""
    rows = [
        CanonicalRecord(b"huge/data.pkl", 2, 2, 1),
        CanonicalRecord(b"huge/data/0", HUGE, HUGE, 1),
        CanonicalRecord(b"huge/data/1", 0, 0, 0),
        CanonicalRecord(b"huge/version", len(TAIL), len(TAIL), 1),
    ]
    pieces = layout(rows)
    with path.open("wb") as file:
        for piece in pieces:
            file.seek(piece.span.offset)
            file.write(piece.data)
    return pieces


def test_the_zip64_form_of_torch_breaks_no_rule(tmp_path: Path) -> None:
    huge(tmp_path / "huge.pt")
    for depth in ("directory", "structure"):
        assert weighty(fdd.validate(tmp_path / "huge.pt", depth=depth)) == set()


def test_a_wrong_number_in_a_local_zip64_field_is_found_there(tmp_path: Path) -> None:
    path = tmp_path / "huge.pt"
    header = next(piece for piece in huge(path) if piece.what == "local-header" and piece.record == 3)
    field = header.span.offset + 30 + len(b"huge/version")
    with path.open("r+b") as file:
        file.seek(field + 4)
        file.write(os.urandom(1) + b"\1")
    report = fdd.validate(path, depth="structure")
    places = {(row.offset, row.length) for row in report.findings if row.rule == "PT-ZIP-044"}
    assert places == {(field, 12)}


def test_depth_directory_reads_the_pickle_and_leaves_storages_alone() -> None:
    def change(member: object) -> None:
        member.local.flags ^= 2  # type: ignore[attr-defined]

    spoiled = broken_record(change)
    assert weighty(fdd.validate(spoiled, depth="structure")) == {"PT-ZIP-014", "PT-ZIP-035"}
    report = fdd.validate(spoiled, depth="directory")
    assert weighty(report) == set()
    assert {row.rule: row.state for row in report.outcomes}["PT-ZIP-014"] is State.NOT_REQUESTED
    assert report.properties["content"] == "tensor"


def test_depth_directory_looks_closer_where_a_header_contradicts_the_directory() -> None:
    def change(member: object) -> None:
        member.local.flags |= 1  # type: ignore[attr-defined]

    report = fdd.validate(broken_record(change, b"data.pkl"), depth="directory")
    assert "PT-ZIP-014" in weighty(report)
    assert not [row for row in report.outcomes if row.open]


def test_a_file_of_many_faults_leaves_no_rule_crashed() -> None:
    data = base()
    for start in range(0, len(data), 97):
        spoiled = data[:start] + b"\xff" * 40 + data[start + 40 :]
        report = fdd.validate(spoiled, name="x.pt", as_format="fdd000644")
        assert not [(row.rule, row.detail) for row in report.outcomes if row.open], start
    assert STORAGE in data
