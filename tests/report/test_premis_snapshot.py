# SPDX-License-Identifier: Apache-2.0
"""A whole PREMIS document, as a reader sees it: any change of the form shows up as a difference to the file kept here.

After a change that is meant: FDD_UPDATE_SNAPSHOTS=1 pytest tests/report/test_premis_snapshot.py, and read the difference.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from lxml import etree

import fdd
from fdd.core.report import Report
from fdd.report.premis_check import check
from fdd.resources import corpus_dir
from tests.report.official_schemas import premis_schema
from tests.report.premis_documents import document

SNAPSHOT = Path(__file__).parent / "snapshots" / "archive-comment.premis.xml"


def fixed(report: Report) -> Report:
    """The report without what differs from place to place and from release to release."""
    file = {**report.file, "path": "objects/archive-comment.pt", "modified": "2024-05-31T12:00:00Z"}
    tool = {"name": "fdd", "version": "0.0.0", "catalogue": "fdd000644/1", "catalogue_sha256": "0" * 64}
    return replace(report, file=file, tool=tool, run={"started": "2026-11-29T12:30:00Z"})


def test_a_whole_document() -> None:
    report = fixed(fdd.validate(str(corpus_dir() / "zip" / "archive-comment.pt"), digests=("md5", "sha256")))
    root = document("premis", [report])
    assert check(root) == []
    text = etree.tostring(root, encoding="unicode", pretty_print=True)
    if os.environ.get("FDD_UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text.splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()
    premis_schema().assertValid(root)
