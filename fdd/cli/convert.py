# SPDX-License-Identifier: Apache-2.0
"""`fdd convert`: a stored JSON report in any other form, without the file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from fdd.cli.exits import Exit
from fdd.cli.options import add_form_options, new_parser
from fdd.cli.output import STDIN, check_not_read, output_stream
from fdd.core.errors import SourceError, UsageError
from fdd.core.report import Report
from fdd.report import WRITERS, Style, Summary, new_writer


def run(argv: Sequence[str]) -> Exit:
    """Write stored reports in another form."""
    parser = new_parser("convert", "Write stored JSON reports in any other form, without the files they speak of.")
    parser.add_argument(
        "reports", nargs="+", metavar="REPORT", help="report, document of several, or JSON lines; - is standard input"
    )
    parser.add_argument("--format", choices=tuple(WRITERS), required=True, help="form of the output")
    parser.add_argument("--output", metavar="FILE", help="write to FILE, whole or not at all")
    parser.add_argument("--verbose", action="store_true", help="list passed rules too, where the report has them")
    parser.add_argument("--brief", action="store_true", help="leave out long lists (records, tensors)")
    add_form_options(parser)
    arguments = parser.parse_args(argv)
    check_not_read(arguments.output, arguments.reports)
    stored = Stored(arguments.reports)
    style = Style(stored.command, stored.single, arguments.verbose, arguments.brief, options=vars(arguments))
    summary = Summary()
    with output_stream(arguments.output) as stream:
        writer = new_writer(arguments.format, stream, style)
        writer.begin()
        for report in stored.reports():
            summary.add(report)
            writer.write(report)
        for facts in stored.sets:
            writer.write_set(facts)
        summary.skipped = stored.skipped
        writer.end(summary)
    return Exit.GOOD


class Stored:
    """What was stored, read as it is asked for: of lines, no more than two reports are in memory at a time.

    ``single``: there is one report, and it stood alone. ``command``: the one that the reports came from, as far as they
    show it. ``sets`` and ``skipped`` are whole once all reports are read.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.sets: list[Mapping[str, Any]] = []
        self.skipped = 0
        self._enclosed = False
        self._rest = self._read(paths)
        self._first = list(islice(self._rest, 2))
        self.single = len(self._first) == 1 and not self._enclosed
        self.command = _command(self._first[0]) if self._first else "validate"

    def reports(self) -> Iterator[Report]:
        """Every report, once."""
        yield from map(Report.from_dict, chain(self._first, self._rest))

    def _read(self, paths: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        for path in paths:
            for document in _documents(path):
                if "set" in document:
                    self.sets.append(_set(document["set"]))
                    self._enclosed = True
                elif "summary" in document:
                    skipped = document["summary"].get("skipped", 0)
                    self.skipped += skipped if isinstance(skipped, int) else 0
                    self._enclosed = True
                else:
                    yield document


def _command(document: Mapping[str, Any]) -> str:
    """`identify` has no options, `extract` no status."""
    if "status" in document or "error" in document:
        return "validate"
    return "extract" if document.get("options") else "identify"


def _set(facts: Any) -> Mapping[str, Any]:
    """Facts about several files, as :class:`fdd.batch.sets.SetCollector` states them."""
    lists = ("members", "missing", "extra")
    if not isinstance(facts, dict) or not {"kind", "root", *lists} <= set(facts):
        raise UsageError("not a report of fdd: facts about several files lack what they should state")
    if not all(isinstance(facts[name], list) and all(isinstance(item, str) for item in facts[name]) for name in lists):
        raise UsageError("not a report of fdd: members of a set are no list of names")
    return facts


def read_documents(path: str) -> Iterator[Mapping[str, Any]]:
    """The reports and sets in a file: one JSON report, a document with `reports`, or JSON lines.

    Raises :class:`SourceError` where the file cannot be read, :class:`UsageError` where it holds something else.
    """
    return (document for document in _documents(path) if "summary" not in document)


def _documents(path: str) -> Iterator[Mapping[str, Any]]:
    """As :func:`read_documents`, and of a document with `reports` its summary too, last."""
    try:
        with open(0 if path == STDIN else path, encoding="utf-8", closefd=path != STDIN) as stream:
            head = next((line for line in stream if line.strip()), "")
            if _is_line(head):
                yield from _lines(path, chain([head], stream))
            else:
                yield from _document(path, head + stream.read())
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _is_line(text: str) -> bool:
    """Whether a first line is a report of its own. A line that only looks like one is told when all of it is read."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "reports" not in document


def _document(path: str, text: str) -> Iterator[Mapping[str, Any]]:
    try:
        document = json.loads(text)
    except ValueError:
        yield from _lines(path, text.split("\n"))
        return
    except RecursionError:
        raise UsageError(f"{path}: not a report of fdd") from None
    if not isinstance(document, dict):
        raise UsageError(f"{path}: not a report of fdd")
    if "reports" not in document:
        yield document
        return
    found, sets, summary = document["reports"], document.get("sets", []), document.get("summary", {})
    for items in (found, sets, [summary]):
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise UsageError(f"{path}: not a report of fdd")
    yield from found
    yield from ({"set": facts} for facts in sets)
    yield {"summary": summary}


def _lines(path: str, lines: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(document, dict):
            raise UsageError(f"{path}, line {number}: not a report of fdd")
        yield document
