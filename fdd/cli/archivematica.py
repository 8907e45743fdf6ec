# SPDX-License-Identifier: Apache-2.0
"""`fdd archivematica identify|validate|characterize|policy PATH`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fdd import api
from fdd.adapters.archivematica import identification_answer, literal, policy_answer, validation_answer
from fdd.cli.exits import Exit
from fdd.cli.options import add_demands, demands_of, new_parser
from fdd.cli.output import output_stream
from fdd.core.errors import SourceError, UsageError
from fdd.core.finding import Verdict
from fdd.core.text import printable

if TYPE_CHECKING:
    from fdd.policy.judging import Demand


def run(argv: Sequence[str]) -> Exit:
    """Answer one question of Archivematica about one file: exit 0 with an answer, 1 where there is none."""
    parser = new_parser("archivematica", "Answer in the form that commands of Archivematica's registry expect.")
    parser.add_argument("question", choices=("identify", "validate", "characterize", "policy"))
    parser.add_argument("path", metavar="PATH")
    parser.add_argument("--name", metavar="ORIGINAL", help="the file's own name, where the path has lost it")
    add_demands(parser)
    arguments = parser.parse_args(argv)
    demands = demands_of(arguments)
    if demands and arguments.question != "policy":
        raise UsageError("--profile and --policy belong to `fdd archivematica policy`")
    try:
        answer = _answer(arguments.question, arguments.path, arguments.name, demands)
    except SourceError as error:
        print(f"fdd archivematica: {printable(arguments.path, 4096)}: {error}", file=sys.stderr)
        return Exit.BAD
    if answer is None:
        print(f"fdd archivematica: {printable(arguments.path, 4096)}: could not decide", file=sys.stderr)
        return Exit.BAD
    with output_stream(None) as stream:
        stream.write(answer + "\n")
    return Exit.GOOD


def _answer(question: str, path: str, name: str | None, demands: Sequence[Demand]) -> str | None:
    if question == "identify":
        return identification_answer(api.identify_report(path, name=name))
    if question == "characterize":
        from lxml import etree

        from fdd.report.premis_objects import technical_metadata

        element = technical_metadata(api.extract(path, name=name))
        return etree.tostring(element, encoding="utf-8", xml_declaration=True).decode("utf-8")
    report = api.validate(path, name=name, profiles=demands)
    if report.verdict is Verdict.UNDETERMINED or any(profile["conforms"] is None for profile in report.profiles):
        return None
    return literal(validation_answer(report) if question == "validate" else policy_answer(report))
