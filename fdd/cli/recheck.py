# SPDX-License-Identifier: Apache-2.0
"""`fdd recheck`: stored reports judged by profiles and policies, without the files they speak of."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from fdd.api import rejudged
from fdd.cli.convert import Stored
from fdd.cli.exits import Exit, exit_of
from fdd.cli.options import add_demands, add_form_options, add_judgement, demands_of, new_parser
from fdd.cli.output import check_not_read, output_stream
from fdd.core.errors import UsageError
from fdd.core.report import Report
from fdd.core.text import printable
from fdd.report import WRITERS, Style, Summary, new_writer


def run(argv: Sequence[str]) -> Exit:
    """Judge stored reports again; the exit code is the one that `validate` with these profiles would have had."""
    parser = new_parser("recheck", "Judge stored JSON reports by profiles and policies, without the files they speak of.")
    parser.add_argument(
        "reports", nargs="+", metavar="REPORT", help="report, document of several, or JSON lines; - is standard input"
    )
    add_demands(parser)
    add_judgement(parser)
    parser.add_argument("--format", choices=tuple(WRITERS), default="text", help="form of the output (default: text)")
    parser.add_argument("--output", metavar="FILE", help="write to FILE, whole or not at all")
    parser.add_argument("--verbose", action="store_true", help="list passed rules too, where the report has them")
    parser.add_argument("--brief", action="store_true", help="leave out long lists (records, tensors)")
    parser.add_argument("--exit-zero", action="store_true", help="exit 0 instead of 1")
    add_form_options(parser)
    arguments = parser.parse_args(argv)
    demands = demands_of(arguments)
    if not demands:
        raise UsageError("nothing to judge by: give --profile or --policy")
    check_not_read(arguments.output, arguments.reports)
    stored = Stored(arguments.reports)
    style = Style("validate", stored.single, arguments.verbose, arguments.brief, options=vars(arguments))
    summary, code = Summary(), Exit.GOOD
    with output_stream(arguments.output) as stream:
        writer = new_writer(arguments.format, stream, style)
        writer.begin()
        for report in stored.reports():
            judged = rejudged(report, demands)
            writer.write(judged)
            summary.add(judged)
            code = max(code, _exit_of(judged, arguments.fail_on))
        for facts in stored.sets:
            writer.write_set(facts)
        summary.skipped = stored.skipped
        writer.end(summary)
    if summary.files == 0:
        print("fdd: nothing to do: no report in what was given", file=sys.stderr)
        code = Exit.UNDECIDED
    return Exit.GOOD if code is Exit.BAD and arguments.exit_zero else code


def _exit_of(report: Report, fail_on: str) -> Exit:
    if report.status is None and report.error is None:
        path = printable(str(report.file.get("path", report.file.get("name", "?"))), most=4096)
        print(f"fdd recheck: {path}: the report holds no judgement (of `identify` or `extract`)", file=sys.stderr)
        return Exit.UNDECIDED
    return exit_of(report, command="validate", fail_on=fail_on)
