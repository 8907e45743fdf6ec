# SPDX-License-Identifier: Apache-2.0
"""`fdd formats list` and `fdd formats show`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fdd.cli.exits import Exit
from fdd.cli.options import new_parser
from fdd.formats import by_name, installed


def run(argv: Sequence[str]) -> Exit:
    """List formats or show one."""
    parser = new_parser("formats", "List the installed formats, or show the description of one.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show")
    for action in ("list", "show"):
        sub = actions.add_parser(action, allow_abbrev=False)
        sub.add_argument("--format", choices=("text", "json"), default="text")
        if action == "show":
            sub.add_argument("name", metavar="NAME")
    arguments = parser.parse_args(argv)
    if arguments.action == "list":
        rows = [{"name": fmt.name, "title": fmt.title, "rules": len(fmt.catalogue)} for fmt in installed()]
        if arguments.format == "json":
            print(json.dumps(rows, ensure_ascii=False, indent=2))
        else:
            for row in rows:
                print(f"{row['name']}  {row['title']} ({row['rules']} rules)")
        return Exit.GOOD
    description = by_name(arguments.name).description()
    if arguments.format == "json":
        print(json.dumps(description, ensure_ascii=False, indent=2))
    else:
        print("\n".join(_lines(description, 0)))
    return Exit.GOOD


def _lines(table: Mapping[str, Any], depth: int) -> list[str]:
    lines: list[str] = []
    for key, value in table.items():
        indent = "  " * depth
        if isinstance(value, Mapping):
            lines += [f"{indent}{key}:", *_lines(value, depth + 1)]
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for item in value:
                lines += [f"{indent}{key}:", *_lines(item, depth + 1)]
        else:
            text = ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
            lines.append(f"{indent}{key}: {text}")
    return lines
