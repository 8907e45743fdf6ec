# SPDX-License-Identifier: Apache-2.0
"""`fdd rules list` and `fdd rules show`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence

from fdd.cli.exits import Exit
from fdd.cli.options import new_parser
from fdd.core.errors import UsageError
from fdd.core.rule import Rule
from fdd.formats import installed


def run(argv: Sequence[str]) -> Exit:
    """List rules or show one."""
    parser = new_parser("rules", "List the rules of all formats, or show one.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show")
    for action in ("list", "show"):
        sub = actions.add_parser(action, allow_abbrev=False)
        sub.add_argument("--format", choices=("text", "json"), default="text")
        if action == "show":
            sub.add_argument("rules", nargs="+", metavar="ID", help="id or name of a rule")
    arguments = parser.parse_args(argv)
    found = _all() if arguments.action == "list" else [_find(name) for name in arguments.rules]
    if arguments.format == "json":
        print(json.dumps([rule_dict(rule) for rule in found], ensure_ascii=False, indent=2))
    elif arguments.action == "list":
        for rule in found:
            print(f"{rule.id}  {rule.axis:11} {rule.level:7} {rule.name:36} {rule.title}")
    else:
        print("\n\n".join(_page(rule) for rule in found))
    return Exit.GOOD


def _all() -> list[Rule]:
    return [rule for fmt in installed() for rule in fmt.catalogue]


def _find(name: str) -> Rule:
    for rule in _all():
        if name in (rule.id, rule.name):
            return rule
    raise UsageError(f"no rule {name!r}; `fdd rules list` names them")


def rule_dict(rule: Rule) -> dict[str, object]:
    """A rule as plain data."""
    return {
        "id": rule.id,
        "name": rule.name,
        "axis": rule.axis.value,
        "level": rule.level.value,
        "clause": rule.clause,
        "title": rule.title,
        "message": rule.message,
        "remedy": rule.remedy,
        "needs": list(rule.needs),
        "kinds": sorted(rule.kinds),
        "documentation": inspect.cleandoc(rule.documentation),
    }


def _page(rule: Rule) -> str:
    return "\n".join(
        (
            f"{rule.id}  {rule.name}",
            f"  {rule.title}",
            f"  axis {rule.axis}, level {rule.level}, clause {rule.clause}",
            f"  kinds: {', '.join(sorted(rule.kinds))}",
            f"  says: {rule.message}",
            f"  remedy: {rule.remedy}",
            "",
            *(f"  {line}" for line in inspect.cleandoc(rule.documentation).splitlines()),
        )
    )
