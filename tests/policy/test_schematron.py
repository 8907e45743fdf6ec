# SPDX-License-Identifier: Apache-2.0
"""Schematron policies: what they find, what is refused, and that nothing comes of an attempt to reach beyond the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

import fdd
from fdd import api
from fdd.cli.exits import Exit
from fdd.cli.main import main
from fdd.core.errors import UsageError
from fdd.core.report import Report
from fdd.limits import Limits
from fdd.policy import running, worker
from fdd.policy.faults import MOST_BYTES, DemandError
from fdd.policy.schematron import ELEMENTS, NAMESPACE, Policy, level_of, read_policy
from fdd.report.xml_writer import report_element
from fdd.resources import corpus_dir, profiles_dir

ROOT = Path(__file__).resolve().parent.parent.parent
GOOD = corpus_dir() / "good/eager-2.7-state-dict.pth"
NS = '<ns prefix="f" uri="urn:x-fdd:report:1.0"/>'
XINCLUDE = "http://www.w3.org/2001/XInclude"
SLOW = "//*[//*[//*[//*[//*[//*[. = 'x']]]]]]"
"""Takes ages: every part asks for every part again."""
BOMB = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def schema(*inner: str, attributes: str = 'queryBinding="xslt"', head: str = NS) -> str:
    return f'<schema xmlns="{NAMESPACE}" {attributes}>\n{head}\n<pattern>\n' + "\n".join(inner) + "\n</pattern>\n</schema>\n"


def rule(*inner: str, context: str = "/f:report") -> str:
    return f'<rule context="{context}">\n' + "\n".join(inner) + "\n</rule>"


def demand(test: str, text: str = "No.", attributes: str = "") -> str:
    return rule(f'<assert test="{test}" {attributes}>{text}</assert>')


REFUSED: dict[str, tuple[str, int, str]] = {
    "xml-bomb": (f'<!DOCTYPE schema [<!ENTITY l0 "x">{BOMB}]>\n' + schema(demand("true()", "&l9;")), 1, "a DTD is refused"),
    "external-entity": (
        '<?xml version="1.0"?>\n<!-- <x> -->\n<!DOCTYPE schema [<!ENTITY e SYSTEM "file:///etc/hostname">]>\n'
        + schema(demand("true()", "&e;")),
        3,
        "a DTD is refused",
    ),
    "external-dtd": ('<!DOCTYPE schema SYSTEM "http://192.0.2.1/x.dtd">\n' + schema(demand("true()")), 1, "a DTD is refused"),
    "undeclared-entity": (schema(demand("true()", "&e;")), 5, "not XML"),
    "document-of-local-file": (schema(demand("document('file:///etc/hostname')")), 5, "document() is refused"),
    "document-with-space": (schema(demand("count( document  ('x')) = 0")), 5, "document() is refused"),
    "document-in-value": (schema(demand("true()", "<value-of select=\"document('x')\"/>")), 5, "document() is refused"),
    "document-in-let": (schema(demand("$x"), head=NS + "<let name=\"x\" value=\"document('x')\"/>"), 2, "document() is refused"),
    "include": (schema(demand("true()"), head=NS + '<include href="other.sch"/>'), 2, "include is refused"),
    "extends": (schema(rule('<extends rule="other"/>', '<assert test="true()"/>')), 5, "extends is refused"),
    "template-of-xslt": (
        schema(demand("true()"), head=NS + '<x:template xmlns:x="http://www.w3.org/1999/XSL/Transform" match="/"/>'),
        2,
        "holds elements of Schematron only",
    ),
    "endless-template-of-xslt": (
        schema(
            rule(
                '<assert test="true()"/>',
                '<x:call-template xmlns:x="http://www.w3.org/1999/XSL/Transform" name="x"/>',
            )
        ),
        6,
        "holds elements of Schematron only",
    ),
    "script-element": (schema(demand("true()"), head=NS + '<m:script xmlns:m="urn:microsoft"/>'), 2, "elements"),
    "xinclude": (schema(demand("true()"), head=f'{NS}<i:include xmlns:i="{XINCLUDE}" href="x"/>'), 2, "elements"),
    "extension-function": (
        schema(demand("e:evaluate('1')"), head=NS + '<ns prefix="e" uri="http://exslt.org/dynamic"/>'),
        5,
        "the function e:evaluate() is refused",
    ),
    "system-property": (schema(demand("system-property('xsl:vendor')")), 5, "the function system-property() is refused"),
    "braces-in-title": (schema(demand("true()"), head=NS + "<title>{document('x')}</title>"), 2, "braces in a title"),
    "braces-in-attribute": (schema(demand("true()", attributes="id=\"{document('x')}\"")), 5, "braces in id are refused"),
    "braces-in-expression": (schema(demand("'{document(0)}'")), 5, "braces in test are refused"),
    "braces-in-version": (schema(demand("true()"), attributes='schemaVersion="{1}"'), 1, "braces in schemaVersion"),
    "documents-of-pattern": (
        schema(demand("true()")).replace("<pattern>", "<pattern documents=\"'x'\">"),
        3,
        "the attribute documents of pattern is refused",
    ),
    "abstract-pattern": (schema(demand("true()")).replace("<pattern>", '<pattern abstract="true">'), 3, "abstract patterns"),
    "key": (schema(demand("true()"), head=NS + '<key name="k" match="*" use="."/>'), 2, "the element key is refused"),
    "binding-of-xslt-2": (schema(demand("true()"), attributes='queryBinding="xslt2"'), 1, "the query binding 'xslt2' is refused"),
    "undeclared-prefix": (schema(demand("g:x")), 5, "the prefix 'g' is nowhere declared"),
    "undeclared-variable": (schema(demand("$x")), 5, "the variable $x is nowhere declared"),
    "variable-in-context": (
        schema(rule('<assert test="true()"/>', context="f:x[$x]"), head=NS + '<let name="x" value="1"/>'),
        4,
        "rule/@context: the variable $x",
    ),
    "no-xpath": (schema(demand("f:x[")), 5, "not XPath"),
    "no-pattern": (schema(rule('<assert test="true()"/>', context="f:x/..")), 4, "no pattern of XSLT"),
    "strange-character": (schema(demand("f:x·y")), 5, "in an expression"),
    "long-expression": (schema(demand("1 + " * 2_000 + "1")), 5, "more than 4096 characters"),
    "unknown-role": (schema(demand("true()", attributes='role="purple"')), 5, "the role 'purple' means no level"),
    "no-test": (schema(rule("<assert>No.</assert>")), 5, "assert has no test"),
    "nothing-demanded": (schema(rule()), 1, "nothing is demanded"),
    "no-schema": ("<report/>", 1, "not a Schematron schema"),
    "no-xml": ("schema:\n  - assert\n", 1, "not XML"),
    "cut": (schema(demand("true()"))[:-12], 7, "not XML"),
    "other-encoding": ('<?xml version="1.0" encoding="UTF-7"?>\n' + schema(demand("true()")), 1, "the encoding 'UTF-7'"),
}  # fmt: skip


def write(folder: Path, text: str | bytes, name: str = "ours.sch") -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    running._close_all()


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_line(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, line, message = REFUSED[name]
    path = write(tmp_path, text)
    with pytest.raises(DemandError) as caught:
        read_policy(path)
    assert (caught.value.faults[0].line, len(caught.value.faults)) == (line, 1), caught.value
    assert message in caught.value.faults[0].message
    assert main(["validate", "--policy", path, str(GOOD)]) == Exit.USAGE
    said = capsys.readouterr()
    assert said.out == "" and f"ours.sch:{line}: " in said.err


def test_all_faults_of_policies_and_profiles_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = write(tmp_path, schema(demand("$a"), demand("g:x"), head=NS + '<include href="x"/>'))
    profile = tmp_path / "p.toml"
    profile.write_text("name = 1\n", encoding="utf-8")
    assert main(["profiles", "check", policy, str(profile)]) == Exit.USAGE
    said = capsys.readouterr().err
    lines = sorted(line.removeprefix("fdd profiles: ").rpartition(str(tmp_path))[2].split(": ")[0] for line in said.splitlines())
    assert lines == ["/ours.sch:2", "/ours.sch:5", "/ours.sch:8", "/p.toml:1", "/p.toml:1"]


def test_what_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no policy"):
        read_policy(str(tmp_path / "nowhere.sch"))
    with pytest.raises(DemandError, match="larger than"):
        read_policy(write(tmp_path, b"<" * (MOST_BYTES + 1)))
    with pytest.raises(DemandError, match="not UTF-8"):
        read_policy(write(tmp_path, schema(demand("true()")).encode("utf-16")))
    assert main(["validate", "--policy", "ingest", str(GOOD)]) == Exit.USAGE


def test_failed_assertions_and_fired_reports_are_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(
        tmp_path,
        schema(
            rule(
                "<assert test=\"f:status/f:verdict = 'valid'\">holds</assert>",
                '<assert id="a1" test="false()">The kind is\n <value-of select="f:identification/f:kind"/>.</assert>',
                '<report id="r1" test="true()" role="warning">Look.</report>',
                '<report test="false()">never</report>',
                '<report id="r2" test="1" role="INFO">Note.</report>',
            ),
            '<rule context="f:tensor" role="hint"><assert id="t" test="f:name != \'fc.bias\'">A bias.</assert></rule>',
            attributes='schemaVersion="7"',
        ),
    )
    report = fdd.validate(str(GOOD), profiles=[path])
    (entry,) = report.profiles
    assert (entry["name"], entry["version"], entry["conforms"], entry["changed"]) == ("ours", "7", False, [])
    assert entry["failed"] == [
        {"id": "a1", "message": "The kind is torch-zip.", "level": "error", "location": "/report"},
    ]
    assert [(item["id"], item["level"], item["message"], item["location"]) for item in entry["remarks"]] == [
        ("r1", "warning", "Look.", "/report"),
        ("r2", "info", "Note.", "/report"),
        ("t", "info", "A bias.", "/report/tensors/tensor[2]"),
    ]
    assert main(["validate", "--policy", path, str(GOOD)]) == Exit.BAD
    said = capsys.readouterr().out
    assert "  profile ours: does not conform\n    error a1 The kind is torch-zip.\n    warning r1 Look.\n" in said


def test_remarks_do_not_fail_a_policy(tmp_path: Path) -> None:
    path = write(tmp_path, schema(demand("false()", attributes='role="warning"')))
    (entry,) = fdd.validate(str(GOOD), profiles=[path]).profiles
    assert entry["conforms"] is True and entry["failed"] == [] and len(entry["remarks"]) == 1
    assert main(["validate", "--quiet", "--policy", path, str(GOOD)]) == Exit.GOOD


def test_roles() -> None:
    words = {None: "error", "": "error", "fatal": "error", "Warning": "warning", "information": "info"}
    assert {role: str(level_of(role)) for role in words} == words
    assert level_of("purple") is None


@pytest.mark.parametrize("path", sorted((profiles_dir() / "policies").glob("*.sch")), ids=lambda path: str(path.stem))
def test_examples_meet_and_fail(path: Path) -> None:
    assert fdd.validate(str(GOOD), profiles=[str(path)]).profiles[0]["conforms"] is True
    failing = {
        "no-accelerator": ("tensors/location-not-cpu.pt", ["saved-from-cpu"]),
        "ready-to-publish": ("safety/global-dangerous.pt", ["is-listed"]),
        "naming": ("tensors/attributes-pass.pt", ["plain-name"]),
    }
    corpus_file, ids = failing[path.stem]
    name = "my model.pt" if path.stem == "naming" else None
    (entry,) = fdd.validate(str(corpus_dir() / corpus_file), name=name, profiles=[str(path)]).profiles
    assert entry["conforms"] is False and [fault["id"] for fault in entry["failed"]] == ids


def test_a_policy_that_does_not_end_is_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limits = Limits(policy_seconds=2)
    slow, quick = write(tmp_path, schema(demand(f"not({SLOW})")), "slow.sch"), write(tmp_path, schema(demand("true()")))
    demands = api.load_demands([slow, quick], limits=Limits(policy_seconds=60))
    began = time.monotonic()
    report = fdd.validate(str(GOOD), profiles=demands, limits=limits)
    assert time.monotonic() - began < 60
    assert [entry["conforms"] for entry in report.profiles] == [None, True]
    (fault,) = report.profiles[0]["failed"]
    assert (fault["id"], fault["message"]) == ("timeout", "no answer within 2 seconds")
    stored = tmp_path / "report.json"
    stored.write_text(report.to_json(), encoding="utf-8")
    assert main(["convert", str(stored), "--format", "text"]) == Exit.GOOD
    assert "profile slow: could not be decided\n    error timeout no answer" in capsys.readouterr().out


def test_a_policy_that_fails_while_it_runs_is_undecided(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, schema(rule('<let name="x" value="$y"/>', '<let name="y" value="$x"/>', '<assert test="$x"/>')))
    (entry,) = fdd.validate(str(GOOD), profiles=[path]).profiles
    assert entry["conforms"] is None and entry["failed"][0]["id"] == "error"
    assert main(["validate", "--policy", path, str(GOOD)]) == Exit.UNDECIDED
    assert main(["archivematica", "policy", str(GOOD), "--policy", path]) == Exit.BAD
    assert "could not decide" in capsys.readouterr().err


def test_a_policy_whose_process_dies_is_undecided_and_starts_again(tmp_path: Path) -> None:
    demands = api.load_demands([write(tmp_path, schema(demand("true()")))])
    report = fdd.validate(str(GOOD))
    runner = running._runner(demands[0])  # type: ignore[arg-type]
    assert runner._process is not None
    runner._process.kill()
    assert api.rejudged(report, demands).profiles[0]["conforms"] is None
    assert api.rejudged(report, demands).profiles[0]["conforms"] is True


def test_many_findings_are_counted_not_listed(tmp_path: Path) -> None:
    path = write(tmp_path, schema('<rule context="*"><report test="true()" role="info">x</report></rule>'))
    (entry,) = fdd.validate(str(GOOD), profiles=[path], limits=Limits(findings_per_rule=3)).profiles
    assert len(entry["remarks"]) == 4 and entry["remarks"][-1]["id"] == "more"
    path = write(tmp_path, schema('<rule context="*"><assert test="false()">x</assert></rule>'))
    (entry,) = fdd.validate(str(GOOD), profiles=[path], limits=Limits(findings_per_rule=3)).profiles
    assert entry["conforms"] is False and len(entry["failed"]) == 4


def test_lists_that_a_stored_report_lacks_prove_nothing(tmp_path: Path) -> None:
    policy = str(profiles_dir() / "policies" / "naming.sch")
    report = fdd.validate(str(GOOD))
    whole, brief = Report.from_json(report.to_json()), Report.from_json(report.to_json(brief=True))
    assert api.rejudged(whole, [policy]).profiles == api.rejudged(report, [policy]).profiles
    (entry,) = api.rejudged(brief, [policy]).profiles
    assert entry["conforms"] is None and "--brief" in entry["failed"][0]["message"]
    other = str(profiles_dir() / "policies" / "no-accelerator.sch")
    assert api.rejudged(brief, [other]).profiles[0]["conforms"] is True


def test_names_from_files_reach_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, schema('<rule context="f:file"><report test="true()">N <value-of select="f:name"/></report></rule>'))
    main(["validate", "--policy", path, "--name", "x\u202e\x85y.pt", str(GOOD)])
    said = capsys.readouterr().out
    assert "\u202e" not in said and "\x85" not in said and "profile ours: does not conform" in said


# What follows goes round the checks, to see that each further wall holds on its own.

CANARY = "<secret>the canary sings</secret>"


def _reaching(tmp_path: Path) -> tuple[bytes, Path]:
    """A policy, unchecked, that tells what a local file holds."""
    canary = tmp_path / "canary.xml"
    canary.write_text(CANARY, encoding="utf-8")
    return schema(demand("false()", f"<value-of select=\"document('{canary.as_uri()}')\"/>")).encode(), canary


def _report_xml() -> bytes:
    return etree.tostring(report_element(fdd.validate(str(GOOD))), encoding="utf-8")


def test_wall_of_libxslt(tmp_path: Path) -> None:
    """The same stylesheet tells the file without the access control, so the wall is what keeps it from that."""
    unchecked, _ = _reaching(tmp_path)
    transform = worker.compile_policy(unchecked)
    report = etree.fromstring(_report_xml())
    with pytest.raises(etree.XSLTApplyError, match="denied"):
        transform(report)
    skeleton = etree.XSLT(etree.parse(str(Path(etree.__file__).parent / worker.SKELETON)))
    assert b"the canary sings" in bytes(etree.XSLT(skeleton(etree.fromstring(unchecked)))(report))


def test_wall_round_attributes_that_are_run() -> None:
    unchecked = schema(demand("true()"), head=NS + "<title>{count(/*)}</title>").encode()
    with pytest.raises(ValueError, match="would run an attribute"):
        worker.compile_policy(unchecked)


@pytest.mark.skipif(sys.platform == "win32", reason="the limit is one of POSIX")
def test_wall_of_the_system() -> None:
    program = (
        "import json, socket\n"
        "from fdd.policy import worker\n"
        "worker._lock()\n"
        "outcome = []\n"
        "for attempt in (lambda: open('/etc/hostname'), socket.socket):\n"
        "    try:\n"
        "        attempt()\n"
        "        outcome.append('open')\n"
        "    except OSError:\n"
        "        outcome.append('shut')\n"
        "print(json.dumps(outcome))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout) == ["shut", "shut"]


def test_the_process_of_a_policy_tells_nothing_of_a_file(tmp_path: Path) -> None:
    unchecked, canary = _reaching(tmp_path)
    before = canary.stat().st_atime_ns
    policy = Policy("reaching", "1", "", "0" * 64, unchecked)
    found = running.judge(fdd.validate(str(GOOD)), _report_xml(), policy, Limits())
    assert "canary sings" not in json.dumps(found)
    assert canary.stat().st_atime_ns == before


def test_no_file_and_no_connection_is_opened_by_a_policy(tmp_path: Path) -> None:
    """Seen from inside: what Python opens from the compiled policy to the last answer, in the process of the policy."""
    policy = write(tmp_path, schema(demand("count(//f:tensor) = 0", '<value-of select="//f:tensor[1]/f:name"/>')))
    program = (
        "import json, os, sys\n"
        "from fdd.policy import worker\n"
        "seen = []\n"
        "locked = worker._lock\n"
        "def lock():\n"
        "    locked()\n"
        "    sys.addaudithook(lambda event, data: seen.append(event) if event in ('open', 'import') or "
        "event.startswith(('socket.', 'subprocess.', 'os.')) else None)\n"
        "worker._lock = lock\n"
        "worker.main()\n"
        "os.write(2, json.dumps(seen).encode())\n"
    )
    schema_bytes, xml = read_policy(policy).schema, _report_xml()
    messages = b"".join(worker.LENGTH.pack(len(data)) + data for data in (schema_bytes, xml, xml))
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=ROOT, input=messages, capture_output=True, check=True)
    assert json.loads(result.stderr) == []
    stream = tmp_path / "answers"
    stream.write_bytes(result.stdout)
    with stream.open("rb") as answers:
        told = [worker.receive(answers) for _ in range(4)]
    assert told[:2] == [b"+", b"+"] and told[2] == told[3] and b"fc.weight" in (told[2] or b"")


def test_the_parent_reads_the_policy_and_nothing_else(tmp_path: Path) -> None:
    policy = write(tmp_path, schema(demand("true()")))
    program = (
        "import sys\n"
        "from fdd import api\n"
        "import fdd.policy.running, fdd.policy.schematron, fdd.policy.expressions\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, data: opened.append(str(data[0])) if event == 'open' else "
        "opened.append(event) if event.startswith('socket.') else None)\n"
        "api.load_demands([sys.argv[1]])\n"
        "paths = [path for path in opened if not path.endswith(('.py', '.pyc', '.so')) and not path.isdigit()]\n"
        "print('\\n'.join(dict.fromkeys(paths)))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, policy], cwd=ROOT, capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert [path for path in result.stdout.splitlines() if not path.startswith("/dev/null")] == [policy]


def test_elements_that_are_let_pass_are_of_schematron() -> None:
    assert not ELEMENTS & {"include", "extends", "param", "key"}
