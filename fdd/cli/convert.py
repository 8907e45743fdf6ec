# SPDX-License-Identifier: Apache-2.0
"""`fdd convert`: a stored JSON report in any other form, without the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fdd.cli.exits import Exit
from fdd.cli.options import add_form_options, new_parser
from fdd.cli.output import STDIN, output_stream
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
    documents = [document for path in arguments.reports for document in read_documents(path)]
    sets = [_set(document["set"]) for document in documents if "set" in document]
    single = len(documents) == 1 and "set" not in documents[0]
    style = Style("validate", single, arguments.verbose, arguments.brief, options=vars(arguments))
    summary = Summary()
    reports = [Report.from_dict(document) for document in documents if "set" not in document]
    with output_stream(arguments.output) as stream:
        writer = new_writer(arguments.format, stream, style)
        writer.begin()
        for report in reports:
            summary.add(report)
            writer.write(report)
        for facts in sets:
            writer.write_set(facts)
        writer.end(summary)
    return Exit.GOOD


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
    try:
        with open(0 if path == STDIN else path, encoding="utf-8", closefd=path != STDIN) as stream:
            text = stream.read()
    except (OSError, ValueError) as error:
        raise SourceError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        document = json.loads(text)
    except ValueError:
        yield from _lines(path, text)
        return
    except RecursionError:
        raise UsageError(f"{path}: not a report of fdd") from None
    several = document.get("reports") if isinstance(document, dict) else None
    sets = document.get("sets", []) if several is not None else []
    found = [document] if several is None else several
    for items in (found, sets):
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise UsageError(f"{path}: not a report of fdd")
    yield from found
    yield from ({"set": facts} for facts in sets)


def _lines(path: str, text: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(document, dict):
            raise UsageError(f"{path}, line {number}: not a report of fdd")
        yield document
