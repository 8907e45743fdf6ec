# SPDX-License-Identifier: Apache-2.0
"""`fdd validate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fdd import api
from fdd.cli.exits import Exit
from fdd.cli.options import add_demands, add_judgement, add_output, add_paths, demands_of, is_single, new_parser
from fdd.cli.reporting import run_reports
from fdd.core.digests import check_algorithms
from fdd.core.errors import UsageError
from fdd.core.report import Report
from fdd.formats import by_name
from fdd.formats.probe import DEPTHS


def run(argv: Sequence[str]) -> Exit:
    """Judge each path."""
    parser = new_parser("validate", "Judge each path: is it well-formed, valid, and what could loading it run?")
    add_paths(parser)
    add_output(parser)
    add_judgement(parser)
    add_demands(parser)
    parser.add_argument("--depth", choices=DEPTHS, default="full", help="how much of a file is read (default: full)")
    parser.add_argument(
        "--digest", default="sha256", metavar="NAMES", help="digests to compute, comma-separated (default: sha256)"
    )
    parser.add_argument("--stats", action="store_true", help="statistics of the stored numbers: NaN, Inf, zeros, min, max")
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="sha256:HEX",
        help="the digest that the file should have (repeatable); without it, that in a file PATH.sha256 beside it",
    )
    arguments = parser.parse_args(argv)
    digests = check_algorithms(name.strip() for name in arguments.digest.split(",") if name.strip())
    if arguments.as_format is not None:
        by_name(arguments.as_format)
    if arguments.stats and arguments.depth != "full":
        raise UsageError("--stats needs --depth full")
    if arguments.expect and not is_single(arguments):
        raise UsageError("--expect is the digest of one file: give one PATH")
    options = {
        "depth": arguments.depth,
        "digests": digests,
        "as_format": arguments.as_format,
        "stats": arguments.stats,
        "profiles": demands_of(arguments),
        "expect": _expectations(arguments.expect),
        "neighbours": True,
    }
    return run_reports(arguments, "validate", partial(_validate, options))


def _expectations(texts: Sequence[str]) -> dict[str, str]:
    """One digest an algorithm. Raises UsageError where two contradict each other."""
    found: dict[str, str] = {}
    for algorithm, digest in map(_expectation, texts):
        if found.setdefault(algorithm, digest).lower() != digest.lower():
            raise UsageError(f"--expect gives two different digests of {algorithm}")
    return found


def _expectation(text: str) -> tuple[str, str]:
    algorithm, colon, digest = text.partition(":")
    if not colon:
        raise UsageError(f"--expect takes an algorithm and a digest, as in sha256:HEX, not {text!r}")
    return algorithm.strip().lower(), digest.strip()


def _validate(options: Mapping[str, Any], source: api.Source, name: str | None) -> Report:
    return api.validate(source, name=name, **options)
