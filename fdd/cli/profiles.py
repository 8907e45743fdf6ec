# SPDX-License-Identifier: Apache-2.0
"""`fdd profiles list|show|check|diff`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from fdd.cli.exits import Exit
from fdd.cli.options import new_parser
from fdd.core.profile import Profile
from fdd.policy.explain import difference, explained
from fdd.policy.judging import POLICY_SUFFIX, load_demands
from fdd.policy.load import load, shipped


def run(argv: Sequence[str]) -> Exit:
    """List profiles, show what one demands, check files, or compare two."""
    parser = new_parser("profiles", "Profiles: which there are, what each demands, whether one is sound, how two differ.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|check|diff")
    for action in ("list", "show", "check", "diff"):
        sub = actions.add_parser(action, allow_abbrev=False)
        sub.add_argument("--format", choices=("text", "json"), default="text")
        if action == "show":
            sub.add_argument("name", metavar="NAME", help="name of a profile that comes with fdd, or a .toml file")
        if action == "check":
            sub.add_argument("files", nargs="+", metavar="FILE", help="profile (.toml, or a name) or policy (.sch)")
        if action == "diff":
            sub.add_argument("first", metavar="A")
            sub.add_argument("second", metavar="B")
    arguments = parser.parse_args(argv)
    as_json = arguments.format == "json"
    if arguments.action == "list":
        return _list(as_json)
    if arguments.action == "show":
        return _show(load(arguments.name), as_json)
    if arguments.action == "check":
        return _check(arguments.files, as_json)
    return _diff(load(arguments.first), load(arguments.second), as_json)


def _list(as_json: bool) -> Exit:
    profiles = [load(name) for name in shipped()]
    if as_json:
        rows = [{"name": p.name, "version": p.version, "title": p.title, "sha256": p.sha256} for p in profiles]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for profile in profiles:
            print(f"{profile.name:18} {profile.version:5} {profile.title}")
    return Exit.GOOD


def _show(profile: Profile, as_json: bool) -> Exit:
    if as_json:
        print(json.dumps(asdict(profile), ensure_ascii=False, indent=2, default=sorted))
    else:
        print("\n".join(explained(profile)))
    return Exit.GOOD


def _check(files: Sequence[str], as_json: bool) -> Exit:
    """Faults leave as one usage error with a line for each."""
    demands = load_demands(files)
    rows = [{"name": d.name, "version": d.version, "title": d.title, "sha256": d.sha256} for d in demands]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for demand, row in zip(demands, rows, strict=True):
            kind = "profile" if isinstance(demand, Profile) else f"policy ({POLICY_SUFFIX})"
            print(f"sound: {kind} {row['name']} {row['version']} sha256 {row['sha256']}")
    return Exit.GOOD


def _diff(first: Profile, second: Profile, as_json: bool) -> Exit:
    """Exit code 1 where they differ in what they demand."""
    lost, gained = difference(first, second)
    if as_json:
        print(json.dumps({"only_first": lost, "only_second": gained}, ensure_ascii=False, indent=2))
    else:
        for sign, lines in (("-", lost), ("+", gained)):
            for line in lines:
                print(f"{sign} {line}")
    return Exit.BAD if lost or gained else Exit.GOOD
