# SPDX-License-Identifier: Apache-2.0
"""Text for people: verdict and safety first, then a line a finding with its place and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from fdd.core.finding import Finding, Level, Safety, State, Verdict
from fdd.core.report import Report
from fdd.core.text import printable
from fdd.report import Style, Summary

_COLORS = {"good": "32", "warn": "33", "bad": "31", "dim": "2"}
_ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.INFO: 2}
_GOOD = (Verdict.VALID, Verdict.STRUCTURE_VALID)
_CONFORMS = {True: ("conforms", "good"), False: ("does not conform", "bad"), None: ("could not be decided", "warn")}
MOST_TENSORS = 20
"""Tensors listed by `extract` unless `--verbose`."""


EXPLAINING = "-DMG-"
"""Mark of the rules that say what happened to a damaged file: their findings come first."""


def _urgency(finding: Finding) -> tuple[bool, int]:
    """What happened, then what is wrong, by weight."""
    explains = EXPLAINING in finding.rule and finding.level is not Level.INFO
    return not explains, _ORDER[finding.level]


class TextWriter:
    """Writes what a person reads on a terminal. Every name from a file passes :func:`fdd.core.text.printable`."""

    def __init__(self, stream: TextIO, style: Style) -> None:
        self._stream = stream
        self._style = style

    def begin(self) -> None:
        """Nothing in front."""

    def write(self, report: Report) -> None:
        for line in self._lines(report):
            self._stream.write(line + "\n")

    def write_set(self, facts: Mapping[str, Any]) -> None:
        state = "complete" if facts.get("complete") else "INCOMPLETE"
        self._line(f"{state} {facts['kind']}  {printable(str(facts['root']))}: {_members(len(facts['members']))}")
        for word in ("missing", "extra"):
            for name in facts.get(word, ()):
                self._line(f"  {word}: {printable(name)}")

    def end(self, summary: Summary) -> None:
        if summary.files > 1:
            counts = _counts(summary.verdicts or summary.kinds)
            noted = _counts({word: count for word, count in summary.safety.items() if word != "listed"})
            counts += f"; safety: {noted}" if noted else ""
            problems = f"; {summary.errors} could not be read" if summary.errors else ""
            self._line(f"{summary.files} files: {counts}{problems}")

    def _line(self, line: str) -> None:
        self._stream.write(line + "\n")

    def _paint(self, text: str, color: str) -> str:
        return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if self._style.color else text

    def _lines(self, report: Report) -> Iterator[str]:
        path = printable(str(report.file.get("path") or report.file.get("name") or "-"), most=4096)
        if report.error is not None:
            what = "not judged" if report.internal else "cannot be read"
            yield f"{self._paint(what, 'bad')}  {path}: {printable(report.error, most=2000)}"
            return
        identification = report.identification
        assert identification is not None
        if report.status is None:
            version = f", version {printable(identification.version)}" if identification.version else ""
            yield f"{identification.kind}  {path}"
            yield f"  {printable(identification.name)}{version}"
        else:
            yield f"{self._headline(report)}  {path}"
            if report.status.verdict is Verdict.NOT_THIS_FORMAT:
                yield f"  {identification.kind}: {printable(identification.name)}"
        if identification.note:
            yield f"  {printable(identification.note, most=2000)}"
        if self._style.command == "identify":
            yield from self._basis(report)
        if self._style.command == "extract":
            yield from self._properties(report)
        yield from self._fixity(report)
        yield from self._statistics(report)
        told: set[str] = set()
        for finding in sorted(report.findings, key=_urgency):
            yield from self._finding(finding, remedy=finding.remedy not in told)
            told.add(finding.remedy)
        yield from self._open(report)
        for entry in report.profiles:
            yield from self._profile(entry)

    def _headline(self, report: Report) -> str:
        status = report.status
        assert status is not None
        color = "good" if status.verdict in _GOOD else "bad"
        words = self._paint(status.verdict.value, color)
        if status.safety not in (None, Safety.LISTED):
            assert status.safety is not None
            dangerous = status.safety is Safety.DANGEROUS
            text = status.safety.value.upper() if dangerous else f"safety {status.safety.value}"
            words += ", " + self._paint(text, "bad" if dangerous else "warn")
        return words

    def _fixity(self, report: Report) -> Iterator[str]:
        """Of digests that were expected: each one, and whether the file has it."""
        where = {"neighbour": "by the .sha256 file beside it"}.get(str(report.fixity.get("source")), "by --expect")
        if "problem" in report.fixity:
            yield f"  {self._paint('fixity not checked', 'warn')}: {_shown(report.fixity, 'problem')}"
        for name, value in report.fixity.get("expected", {}).items():
            if report.digests.get(name) == value:
                yield f"  {self._paint('fixity', 'good')}: {printable(name)} is as expected {where}"
            else:
                found = f"{report.digests.get(name, 'not computed')}, expected {where}: {printable(value)}"
                yield f"  {self._paint('fixity differs', 'bad')}: {printable(name)} is {found}"

    def _finding(self, finding: Finding, *, remedy: bool) -> Iterator[str]:
        place = []
        if finding.record is not None:
            place.append(f"record {printable(finding.record)}")
        if finding.tensor is not None:
            place.append(f'tensor "{printable(finding.tensor)}"')
        if finding.offset is not None:
            place.append(f"at {finding.offset}" + (f"+{finding.length}" if finding.length else ""))
        times = f" ({finding.count} times)" if finding.count > 1 else ""
        color = {Level.ERROR: "bad", Level.WARNING: "warn", Level.INFO: "dim"}[finding.level]
        level = self._paint(finding.level.value, color)
        yield f"  {level} {finding.rule} {', '.join(place)}{': ' if place else ''}{finding.message}{times}"
        if remedy and finding.level is not Level.INFO and finding.remedy:
            yield f"      {finding.remedy}"

    def _open(self, report: Report) -> Iterator[str]:
        still_open = [outcome for outcome in report.not_evaluated() if self._style.verbose or outcome.open]
        for outcome in still_open:
            reason = outcome.reason.value if outcome.reason is not None else "?"
            why = f" by {outcome.by}" if outcome.by else f" ({printable(outcome.detail)})" if outcome.detail else ""
            yield f"  not evaluated {outcome.rule}: {reason}{why}"
        if self._style.verbose:
            passed = [outcome.rule for outcome in report.outcomes if outcome.state is State.PASSED]
            if passed:
                yield f"  passed: {' '.join(passed)}"

    def _profile(self, entry: Mapping[str, Any]) -> Iterator[str]:
        """What a profile or policy makes of the file: each demand that is not met, each reason once."""
        words, color = _CONFORMS[entry.get("conforms")]
        yield f"  profile {_shown(entry, 'name')}: {self._paint(words, color)}"
        told: set[str] = set()
        for fault in (*entry.get("failed", ()), *entry.get("remarks", ())):
            level = f"{_shown(fault, 'level')} " if "level" in fault else ""
            place = [f"record {_shown(fault, 'record')}"] if "record" in fault else []
            place += [f"at {fault['offset']}"] if "offset" in fault else []
            found = f" (found: {_shown(fault, 'found')})" if "found" in fault else ""
            yield f"    {level}{_shown(fault, 'id')} {', '.join(place)}{': ' if place else ''}{_shown(fault, 'message')}{found}"
            reason = _shown(fault, "reason")
            if reason and reason not in told:
                yield f"      {reason}"
            told.add(reason)
        for change in entry.get("changed", ()) if self._style.verbose else ():
            names = [_shown(change, key) for key in ("rule", "from", "to", "reason")]
            yield f"    weighed otherwise {names[0]}: {names[1]}, here {names[2]}: {names[3]}"

    def _basis(self, report: Report) -> Iterator[str]:
        assert report.identification is not None
        for basis in report.identification.basis:
            place = f" at {basis.offset}+{basis.length}" if basis.length else ""
            yield f"  by {printable(basis.what)}{place}"

    def _properties(self, report: Report) -> Iterator[str]:
        for name, value in report.properties.items():
            yield f"  {name}: {printable(_plain(value), most=2000)}"
        most = len(report.tensors) if self._style.verbose else 0 if self._style.brief else MOST_TENSORS
        for tensor in report.tensors[:most]:
            shape = (
                "x".join(str(size) for size in tensor["shape"]) if tensor["shape"] else "scalar" if tensor["shape"] == [] else "?"
            )
            yield f'  tensor "{printable(tensor["name"])}" {tensor["dtype"]} {shape} {printable(str(tensor.get("record", "")))}'
        if len(report.tensors) > most and most:
            yield f"  ... and {len(report.tensors) - most} more tensors (--verbose lists all)"

    def _statistics(self, report: Report) -> Iterator[str]:
        """Of storages only where no tensor shows all of them."""
        whole = {(row["record"], row["dtype"], row["values"]) for row in report.statistics if "tensor" in row}
        rows = [row for row in report.statistics if "tensor" in row or (row["record"], row["dtype"], row["values"]) not in whole]
        most = len(rows) if self._style.verbose else 0 if self._style.brief else MOST_TENSORS
        for row in rows[:most]:
            owner = f'"{printable(row["tensor"])}"' if "tensor" in row else f"record {printable(str(row['record']))}"
            extent = f"{row['min']} to {row['max']}" if row["min"] is not None else "nothing finite"
            words = ", ".join(f"{row[key]} {word}" for key, word in (("zeros", "zeros"), ("nan", "NaN"), ("inf", "Inf")))
            yield f"  values of {owner}: {extent}, {words} among {row['values']}"
        if len(rows) > most and most:
            yield f"  ... and {len(rows) - most} more statistics (--verbose lists all)"


def _members(count: int) -> str:
    return f"{count} member{'s' if count != 1 else ''}"


def _counts(table: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in sorted(table.items()))


def _shown(entry: Mapping[str, Any], key: str) -> str:
    """A text of an entry on one line, as far as it has one: a stored report may come from anywhere."""
    return printable(" ".join(str(entry.get(key, "")).split()), most=2000)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ("; " if any(isinstance(item, Mapping) for item in value) else ", ").join(_plain(item) for item in value)
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)
