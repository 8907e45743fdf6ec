# SPDX-License-Identifier: Apache-2.0
"""Writes the files that are made from the code, so that each fact keeps one home.

``python tools/generate.py`` brings them up to date; ``--check`` changes nothing and exits 1 with the names of stale files.
A generator is one function that returns texts, and one line in ``GENERATORS``.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from fdd import limits
from fdd.core.profile import Profile
from fdd.core.rule import Rule
from fdd.core.shapes import ListOf, Shape, Struct, json_schema
from fdd.formats import installed
from fdd.formats.vocabulary import PROPERTIES
from fdd.policy.explain import demands_of
from fdd.policy.load import load, shipped
from fdd.report.xsd import report_xsd

ROOT = Path(__file__).resolve().parent.parent
NOTICE = "<!-- Written by tools/generate.py: change the source, not this file. -->"


@dataclass(frozen=True, slots=True)
class Generator:
    """``render`` gives the text of each file by its path below the root, written with slashes.

    ``owns`` are glob patterns below the root: a file that matches and is not rendered is left over from before, and stale.
    """

    owns: tuple[str, ...]
    render: Callable[[], Mapping[str, str]]


def limits_page() -> Mapping[str, str]:
    """A table of every limit of ``fdd.limits.Limits``: its name, its default, the docstring below it."""
    definition = ast.parse(inspect.getsource(limits.Limits)).body[0]
    assert isinstance(definition, ast.ClassDef)
    meanings: dict[str, str] = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            meanings[field.target.id] = inspect.cleandoc(ast.literal_eval(text.value))
    rows = (f"| `{field.name}` | {field.default:,} | {meanings[field.name]} |" for field in fields(limits.Limits))
    introduction = inspect.cleandoc(limits.Limits.__doc__ or "")
    page = ["# Limits", "", NOTICE, "", introduction, "", "| limit | default | meaning |", "|---|---|---|", *rows]
    return {"docs/limits.md": "\n".join(page) + "\n"}


def rule_pages() -> Mapping[str, str]:
    """A page for each family of rules of each format, and an index with the corpus files that fail each rule."""
    failing = _failing_files()
    pages: dict[str, str] = {}
    index = [
        "# Rules",
        "",
        NOTICE,
        "",
        "| rule | name | axis | level | what must hold | corpus files that fail it |",
        "|---|---|---|---|---|---|",
    ]
    for fmt in installed():
        families: dict[str, list[Rule]] = {}
        for rule in sorted(fmt.catalogue, key=lambda rule: rule.id):
            families.setdefault(rule.id.rpartition("-")[0], []).append(rule)
        for family, rules in sorted(families.items()):
            pages[f"docs/rules/{family}.md"] = _family_page(family, fmt.title, rules, fmt.description()["clauses"])
            for rule in rules:
                files = len(failing.get(rule.id, ()))
                link = f"[{rule.id}]({family}.md#{rule.id.lower()})"
                index.append(f"| {link} | {rule.name} | {rule.axis} | {rule.level} | {_cell(rule.title)} | {files} |")
    pages["docs/rules/README.md"] = "\n".join(index) + "\n"
    return pages


def _failing_files() -> dict[str, set[str]]:
    manifest = tomllib.loads((ROOT / "corpus" / "manifest.toml").read_text(encoding="utf-8"))
    failing: dict[str, set[str]] = {}
    for entry in manifest["file"]:
        for finding in entry["findings"]:
            failing.setdefault(finding.split(" ")[0], set()).add(entry["path"])
    return failing


def _family_page(family: str, title: str, rules: list[Rule], clauses: Mapping[str, Mapping[str, object]]) -> str:
    lines = [f"# Rules {family}", "", NOTICE, "", f"Format: {title}.", ""]
    for rule in rules:
        clause = clauses[rule.clause]
        lines += [
            f"## {rule.id}",
            "",
            f"**{rule.name}** ({rule.axis}, {rule.level}): {rule.title}",
            "",
            f"- clause `{rule.clause}`: {clause['text']}",
            f"- sources: {', '.join(map(str, clause['sources']))}" if isinstance(clause["sources"], list) else "",
            f"- kinds: {', '.join(sorted(rule.kinds))}",
            f"- looks at: {', '.join(rule.needs) or 'the identification'}",
            f"- says: `{rule.message}`",
            f"- remedy: {rule.remedy}",
            "",
            inspect.cleandoc(rule.documentation),
            "",
        ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def report_schema() -> Mapping[str, str]:
    """The JSON Schema of reports: a hand-written frame, in which the part on properties comes from the vocabulary."""
    path = ROOT / "schemas" / "report.schema.json"
    frame = json.loads(path.read_text(encoding="utf-8"))
    frame["properties"]["properties"] = json_schema(PROPERTIES)
    return {"schemas/report.schema.json": json.dumps(frame, indent=2, ensure_ascii=False) + "\n"}


def xml_schema() -> Mapping[str, str]:
    """The XML Schema of reports."""
    return {"schemas/report-1.0.xsd": report_xsd()}


def vocabulary_page() -> Mapping[str, str]:
    """A table of every property of the vocabulary."""
    lines = ["# Technical metadata", "", NOTICE, "", "The properties of a report, by name. Types are those of JSON.", ""]
    lines += ["| property | type | unit | meaning |", "|---|---|---|---|"]
    for name, field in PROPERTIES.fields.items():
        lines.append(f"| `{name}` | {_type_word(field.shape)} | {field.unit} | {_cell(field.meaning)} |")
        inner = field.shape.shape if isinstance(field.shape, ListOf) else field.shape
        for part, piece in inner.fields.items() if isinstance(inner, Struct) else ():
            lines.append(f"| `{name}.{part}` | {_type_word(piece.shape)} | {piece.unit} | {_cell(piece.meaning)} |")
    return {"docs/properties.md": "\n".join(lines) + "\n"}


def profile_pages() -> Mapping[str, str]:
    """A page for each profile that comes with fdd, and a list of them. All of it stands in the profile itself."""
    profiles = [load(name) for name in shipped()]
    index = ["# Profiles that come with fdd", "", NOTICE, "", "| profile | version | what it is for |", "|---|---|---|"]
    index += [f"| [{p.name}]({p.name}.md) | {p.version} | {_cell(p.title)} |" for p in profiles]
    index += ["", "[Profiles and policies](../profiles.md) tells how to use them and how to write your own."]
    pages = {f"docs/profiles/{profile.name}.md": _profile_page(profile) for profile in profiles}
    return pages | {"docs/profiles/README.md": "\n".join(index) + "\n"}


def _profile_page(profile: Profile) -> str:
    lines = [f"# {profile.title}", "", NOTICE, "", f"Profile `{profile.name}`, version {profile.version}."]
    if profile.ancestors:
        lines[-1] += f" It extends {', '.join(f'[{name}]({name}.md)' for name, *_ in profile.ancestors)}."
    lines += ["", profile.description, "", "## What it demands", ""]
    demands = list(demands_of(profile))
    stated = any(statement for _, _, statement, _ in demands)
    lines += ["| statement | test | where it fails | note |", "|---|---|---|---|"] if stated else ["| test | why |", "|---|---|"]
    for sentence, reason, statement, note in demands:
        cells = (statement, _linked(sentence), reason, note) if stated else (_linked(sentence), " ".join((reason, note)).strip())
        lines.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    if profile.untestable:
        lines += ["", "## What no test can decide", "", "| statement | why | note |", "|---|---|---|"]
        lines += [f"| {_cell(entry.statement)} | {_cell(entry.reason)} | {_cell(entry.note)} |" for entry in profile.untestable]
    return "\n".join(lines) + "\n"


def _linked(sentence: str) -> str:
    """A demand on a rule with a link to the page of the rule, and with its name where the profile has the id, or the other
    way round; patterns of several rules stay as they are."""
    head, _, treatment = sentence.removeprefix("rule ").partition(": ")
    rule = next((rule for fmt in installed() for rule in fmt.catalogue if head in (rule.id, rule.name)), None)
    if rule is None or not sentence.startswith("rule "):
        return sentence
    return f"rule [{rule.id}](../rules/{rule.id.rpartition('-')[0]}.md#{rule.id.lower()}) {rule.name}: {treatment}"


def _type_word(shape: Shape) -> str:
    if isinstance(shape, ListOf):
        return f"list of {_type_word(shape.shape)}"
    words = {"Text": "text", "Integer": "integer", "Number": "number", "Flag": "boolean", "Counts": "object of integers"}
    return words.get(type(shape).__name__, "object" if isinstance(shape, Struct) else "any")


GENERATORS: tuple[Generator, ...] = (
    Generator(("docs/limits.md",), limits_page),
    Generator(("docs/rules/*.md",), rule_pages),
    Generator(("schemas/report.schema.json",), report_schema),
    Generator(("schemas/report-1.0.xsd",), xml_schema),
    Generator(("docs/properties.md",), vocabulary_page),
    Generator(("docs/profiles/*.md",), profile_pages),
)


def wanted(generators: Iterable[Generator], root: Path) -> dict[Path, str | None]:
    """The text of every generated file, None for one that should no longer exist."""
    files: dict[Path, str | None] = {}
    for generator in generators:
        files |= {path: None for pattern in generator.owns for path in root.glob(pattern)}
        files |= {root / name: text for name, text in generator.render().items()}
    return files


def stale(files: Mapping[Path, str | None]) -> list[Path]:
    """The files whose text on disk is not the wanted one, sorted."""
    return sorted(path for path, text in files.items() if (path.read_text(encoding="utf-8") if path.is_file() else None) != text)


def write(path: Path, text: str | None) -> None:
    """Write a generated file with line feeds on every system, or remove it where ``text`` is None."""
    if text is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments: list[str] | None = None) -> int:
    """Run as a command; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write the files that are made from the code.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 and name the stale files, if any")
    check: bool = parser.parse_args(arguments).check
    files = wanted(GENERATORS, ROOT)
    names = stale(files)
    for path in names:
        print(f"{'stale' if check else 'written'}: {path.relative_to(ROOT).as_posix()}")
        if not check:
            write(path, files[path])
    print(f"{len(files)} generated files, {len(names)} {'stale' if check else 'brought up to date'}")
    return 1 if check and names else 0


if __name__ == "__main__":
    sys.exit(main())
