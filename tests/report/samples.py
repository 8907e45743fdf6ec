# SPDX-License-Identifier: Apache-2.0
"""Reports of the whole corpus, made once for all tests of a process, and files with names that want to do harm."""

from __future__ import annotations

import io
from collections.abc import Iterable
from functools import cache
from typing import Any

import fdd
from corpus.build.kit import archive, eager, eager_records, ordered_dict, tensor, with_serialization_id
from fdd import api
from fdd.core.report import Report
from fdd.report import Style, Summary, new_writer
from tests.schemas import validator
from tests.test_corpus import MANIFEST, report_of

PATHS: list[str] = [entry["path"] for entry in MANIFEST]
SCHEMA = validator("report")
HOSTILE = "\x1b[2J\x1b]0;owned\x07\n\r\u202eevil\u2066\u200b\u2028\x9b31m"
"""Clears the screen, sets its title, breaks the line, turns the direction, hides, and colours."""


def report_on(path: str) -> Report:
    """The report on a file of the corpus, at the depth that the manifest asks for."""
    return report_of(next(entry for entry in MANIFEST if entry["path"] == path))


def some_reports() -> list[Report]:
    """Reports on a spread of the corpus."""
    return [report_on(path) for path in PATHS[::4]]


@cache
def hostile_file() -> bytes:
    """Keys, storages and records whose names are :data:`HOSTILE`."""
    value = ordered_dict([(HOSTILE, tensor([1.0])), (f"{HOSTILE}\ud800", tensor([2.0])), ("epoch", HOSTILE)])
    records = [*eager_records(value), (f"extra/{HOSTILE}", b"?"), (HOSTILE * 12, b"?")]
    return archive(with_serialization_id(records), "archive")


@cache
def hostile_reports() -> tuple[Report, ...]:
    """Every kind of report on them."""
    name = f"{HOSTILE}.pt"
    return (
        fdd.validate(hostile_file(), name=name),
        fdd.extract(hostile_file(), name=name),
        api.identify_report(hostile_file(), name=name),
        fdd.validate(HOSTILE.encode(), name=name),
        api.error_report(f"dir/{name}", HOSTILE),
    )


def good_file() -> bytes:
    """A valid file."""
    return eager(ordered_dict([("a", tensor([1.0, 2.0]))]))


def written(form: str, reports: Iterable[Report], sets: Iterable[dict[str, Any]] = (), **style: Any) -> str:
    """What the writer of a form makes of reports."""
    stream = io.StringIO()
    writer = new_writer(form, stream, Style(**style))
    summary = Summary()
    writer.begin()
    for report in reports:
        writer.write(report)
        summary.add(report)
    for facts in sets:
        writer.write_set(facts)
    writer.end(summary)
    return stream.getvalue()
