# SPDX-License-Identifier: Apache-2.0
"""The pages for repositories: commands that exist, and a PAR file of the shape that PAR 1.1 documents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from functools import cache
from pathlib import Path

import jsonschema
import pytest

import fdd
from fdd.cli.main import COMMANDS, main
from fdd.resources import corpus_dir

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted((DOCS / "repositories").glob("*.md")), *(DOCS / f"{name}.md" for name in ("premis", "xml-report", "csv"))]
PAR_IDENTIFIER = {
    "type": "object",
    "required": ["guid"],
    "additionalProperties": False,
    "properties": {name: {"type": "string"} for name in ("guid", "name", "namespace")},
}
PAR_TOOL = {
    "type": "object",
    "required": ["id", "toolName"],
    "additionalProperties": False,
    "properties": {
        "id": PAR_IDENTIFIER,
        "localLastModifiedDate": {"type": "string", "format": "date-time"},
        "toolAcceptedParameters": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {name: {"type": "string"} for name in ("description", "type", "value")},
            },
        },
        **{name: {"type": "string"} for name in ("toolLabel", "toolName", "toolPublisher", "toolVersion")},
        "toolOperatingEnvironments": {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
    },
}
"""What the schema of PAR 1.1 says of a tool (draft-06, openpreserve/par, docs/schema/1.1), in our own spelling."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@cache
def help_of(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "fdd", *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, words
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_commands_and_options_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for line in re.findall(r"\bfdd (?!stands|is\b|in\b|knows)([a-z]+)\b", " ".join(blocks(page, "sh"))):
        assert line in COMMANDS, line
    known = "".join(help_of(*words) for words in (["validate"], ["convert"], ["fixity", "verify"], ["archivematica"]))
    foreign = {"--file-full-name"}
    for option in set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - foreign:
        assert option in known or option in ("--version",), option


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_par_file() -> None:
    tool = json.loads((DOCS / "repositories" / "preservica" / "fdd-tool.json").read_text(encoding="utf-8"))
    jsonschema.Draft6Validator(PAR_TOOL).validate(tool)
    assert tool["toolVersion"] == fdd.__version__
    namespace = uuid.uuid5(uuid.NAMESPACE_URL, tool["id"]["namespace"])
    assert tool["id"]["guid"] == str(uuid.uuid5(namespace, tool["id"]["name"]))
    for parameter in tool["toolAcceptedParameters"]:
        word = parameter["value"].split()[0]
        assert word in COMMANDS or word == "PATH" or word in help_of("validate"), word


def test_every_schema_is_listed_with_its_version() -> None:
    text = (ROOT / "schemas" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "schemas").glob("*.*"):
        assert path.name == "README.md" or re.search(rf"^\| `{re.escape(path.name)}` \|.*\b\d+\.\d+\b", text, re.MULTILINE), (
            path.name
        )


def script(beginning: str) -> str:
    """The script of the page for Archivematica that has these words."""
    return next(text for text in blocks(DOCS / "repositories" / "archivematica.md", "sh") if beginning in text)


@pytest.mark.skipif(sys.platform == "win32", reason="scripts of a Unix shell")
@pytest.mark.parametrize(
    ("beginning", "arguments", "expected"),
    [
        ("archivematica validate", ["{}"], '{"eventOutcomeInformation": "pass"'),
        ("archivematica characterize", ["--file-uuid=1", "--file-full-name={}"], "<?xml"),
        ("archivematica policy", ["{}", "policies"], '{"eventOutcomeInformation": '),
        ("archivematica identify", ["{}"], "fdd000644\n"),
    ],
)
def test_scripts_for_archivematica(tmp_path: Path, beginning: str, arguments: list[str], expected: str) -> None:
    program = tmp_path / "bin" / "fdd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" -m fdd "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    (tmp_path / "script").write_text(script(beginning), encoding="utf-8")
    path = str(corpus_dir() / "real" / "torch-2.13.0-tensor.pt")
    done = subprocess.run(
        ["sh", str(tmp_path / "script"), *(argument.format(path) for argument in arguments)],
        env={"PATH": f"{program.parent}:/usr/bin:/bin"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(expected)


def test_the_service_for_islandora(capsys: pytest.CaptureFixture[str]) -> None:
    """The arguments of the page, but for the PATH: standard input of a test is none."""
    (text,) = blocks(DOCS / "repositories" / "islandora.md", "yaml")
    arguments = re.findall(r'^      - "(.*)"$', text, re.MULTILINE)
    path = str(corpus_dir() / "zip" / "end-record-missing.pt")
    assert main([path if argument == "-" else argument for argument in arguments]) == 0
    assert "<fits " in capsys.readouterr().out
