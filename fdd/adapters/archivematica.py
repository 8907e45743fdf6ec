# SPDX-License-Identifier: Apache-2.0
"""The answers that the commands of Archivematica's format policy registry expect.

Validation and policy answers are one literal that both JSON and Python's literal parser read: only texts in it, no
`true`, no `null`, no escapes that one of the two does not know. The process exits 0 on every verdict, because any other
code means to Archivematica that the tool broke.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fdd._version import __version__
from fdd.core.finding import Level, Verdict
from fdd.core.report import Report
from fdd.core.text import printable
from fdd.report.premis_terms import ARCHIVEMATICA_OUTCOMES

PASS, FAIL = "pass", "fail"
MOST_TOLD = 10


def validation_answer(report: Report) -> dict[str, str]:
    """Outcome and note for a validation command. The report must have a decided verdict."""
    assert report.verdict is not None and report.status is not None
    return {
        "eventOutcomeInformation": ARCHIVEMATICA_OUTCOMES[report.verdict],
        "eventOutcomeDetailNote": _note(report),
        "stdout": _findings(report),
    }


def policy_answer(report: Report) -> dict[str, str]:
    """Outcome and note for a policy check: pass only if the file conforms to every profile it was judged by; without any,
    only if it is valid. A profile that could not be decided is not met."""
    answer = validation_answer(report)
    failed = [str(profile.get("name")) for profile in report.profiles if profile.get("conforms") is not True]
    if not report.profiles:
        answer["eventOutcomeInformation"] = PASS if report.verdict is Verdict.VALID else FAIL
        return answer
    answer["eventOutcomeInformation"] = FAIL if failed else PASS
    met = f"not met: {', '.join(failed)}" if failed else "met"
    answer["eventOutcomeDetailNote"] += f'; profiles="{_value(met)}"'
    answer["stdout"] += _text("".join(f"\n{line}" for profile in report.profiles for line in _demands(profile)))
    return answer


def identification_answer(report: Report) -> str:
    """The one token that identification prints: the Library's number for kinds of the format, else the kind."""
    assert report.identification is not None
    return report.identification.format or f"fdd:{report.identification.kind}"


def _note(report: Report) -> str:
    """`format="..."; version="..."; result="..."` and what JHOVE's command has no room for."""
    identification, status = report.identification, report.status
    assert identification is not None and status is not None
    parts = {
        "format": identification.name,
        "version": identification.version or "unknown",
        "result": status.text,
        "kind": identification.kind,
        "tool": f"fdd {__version__}",
    }
    if status.safety is not None:
        parts["safety"] = status.safety.value
    errors = [finding for finding in report.findings if finding.level is Level.ERROR][:MOST_TOLD]
    if errors:
        parts["errors"] = " | ".join(f"{finding.rule} {finding.message}" for finding in errors)
    return "; ".join(f'{name}="{_value(text)}"' for name, text in parts.items())


def _findings(report: Report) -> str:
    return _text("\n".join(f"{finding.level} {finding.rule}: {finding.message}" for finding in report.findings) or "no findings")


def _demands(profile: Mapping[str, Any]) -> Iterator[str]:
    """What a profile found wanting, a line each."""
    for fault in profile.get("failed", ())[:MOST_TOLD]:
        reason = f" ({fault['reason']})" if fault.get("reason") else ""
        yield f"profile {profile.get('name')}: {fault.get('id')}: {fault.get('message')}{reason}"


def _value(text: str) -> str:
    """A text inside double quotes, between semicolons."""
    return _text(text).replace('"', "'").replace(";", ",")


def _text(text: str) -> str:
    return "\n".join(printable(line, most=2_000) for line in text.split("\n"))


def literal(answer: dict[str, str]) -> str:
    """The answer as one literal of JSON and of Python at once.

    Characters beyond ASCII are written as they are: an escaped one above U+FFFF would be two halves to Python. Of the
    escapes only those stay that both languages read alike.
    """
    return "{" + ", ".join(f"{_quoted(key)}: {_quoted(value)}" for key, value in answer.items()) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return '"' + re.sub(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]", lambda match: f"\\u{ord(match.group()):04x}", escaped) + '"'
