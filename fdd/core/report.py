# SPDX-License-Identifier: Apache-2.0
"""The report on one file: a value that can be stored, read back, and shown in any form (contract, section 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fdd.core.errors import UsageError
from fdd.core.finding import Axis, Finding, Level, Outcome, Reason, Safety, State, Status, Verdict
from fdd.core.model import Basis, Identification, Registry
from fdd.core.text import json_text

REPORT_VERSION = "1.0"


@dataclass(frozen=True, slots=True)
class Report:
    """What fdd found out about one file.

    ``status`` is None where no judgement was asked for (`extract`, `identify`). ``error`` is set where the file could
    not be read, or where fdd itself failed (``internal``); nothing else is then known. ``outcomes`` are those of every
    rule, in the order of the catalogue; of a report read back from JSON only those that were stored.
    """

    tool: Mapping[str, Any]
    options: Mapping[str, Any]
    file: Mapping[str, Any]
    run: Mapping[str, Any] = field(default_factory=dict)
    identification: Identification | None = None
    status: Status | None = None
    findings: tuple[Finding, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[Mapping[str, Any], ...] = ()
    tensors: tuple[Mapping[str, Any], ...] = ()
    statistics: tuple[Mapping[str, Any], ...] = ()
    """Of the numbers of storages, and of tensors, where they were asked for."""
    fixity: Mapping[str, Any] = field(default_factory=dict)
    """Digests that were expected, by whom, and whether the file has them; empty where none were."""
    digests: Mapping[str, str] = field(default_factory=dict)
    profiles: tuple[Mapping[str, Any], ...] = ()
    error: str | None = None
    internal: bool = False

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, None without judgement."""
        return self.status.verdict if self.status is not None else None

    @property
    def valid(self) -> bool | None:
        """Whether the file is well-formed and valid; None where that was not determined."""
        return self.status.valid if self.status is not None else None

    @property
    def safety(self) -> Safety | None:
        """What loading could run; None where there is no pickle and no code."""
        return self.status.safety if self.status is not None else None

    def not_evaluated(self) -> tuple[Outcome, ...]:
        """The rules that could not be decided, with their reasons."""
        return tuple(outcome for outcome in self.outcomes if outcome.state is State.NOT_EVALUATED)

    def without_run(self) -> Report:
        """The part that depends on the bytes, name, options and version only."""
        return replace(self, run={}, file={})

    def to_dict(self, *, verbose: bool = False, brief: bool = False) -> dict[str, Any]:
        """As plain data, in the order of the contract. ``verbose`` names every rule; ``brief`` leaves out long lists."""
        document: dict[str, Any] = {"report_version": REPORT_VERSION, "tool": dict(self.tool)}
        if self.run:
            document["run"] = dict(self.run)
        document["options"] = dict(self.options)
        if self.file:
            document["file"] = dict(self.file)
        if self.error is not None:
            document["error"] = {"message": self.error} | ({"internal": True} if self.internal else {})
            return document
        if self.identification is not None:
            document["identification"] = identification_dict(self.identification)
        if self.status is not None:
            document["status"] = self.status_dict()
            document["findings"] = [finding_dict(finding) for finding in self.findings]
            document["not_evaluated"] = [_open_dict(outcome) for outcome in self.not_evaluated()]
            not_requested = [outcome.rule for outcome in self.outcomes if outcome.state is State.NOT_REQUESTED]
            if not_requested:
                document["not_requested"] = not_requested
            if verbose:
                document["outcomes"] = {outcome.rule: outcome.state.value for outcome in self.outcomes}
        if self.properties:
            document["properties"] = dict(self.properties)
        if not brief:
            if self.records:
                document["records"] = [dict(record) for record in self.records]
            if self.tensors:
                document["tensors"] = [dict(tensor) for tensor in self.tensors]
            if self.statistics:
                document["statistics"] = [dict(row) for row in self.statistics]
        if self.fixity:
            document["fixity"] = dict(self.fixity)
        if self.digests:
            document["digests"] = dict(self.digests)
        return document

    def status_dict(self) -> dict[str, Any]:
        """The status as plain data; there must be one."""
        status = self.status
        assert status is not None
        document: dict[str, Any] = {
            "verdict": status.verdict.value,
            "text": status.text,
            "well_formed": status.well_formed,
            "valid": status.valid,
            "depth": status.depth,
            "complete": status.complete,
            "safety": status.safety.value if status.safety is not None else None,
            "safety_basis": status.safety_basis,
            "counts": dict(status.counts),
            "rules": dict(status.rules),
        }
        document["profiles"] = [dict(profile) for profile in self.profiles]
        return document

    def to_json(self, *, verbose: bool = False, brief: bool = False, indent: int | None = 2) -> str:
        """One JSON document. Lone surrogates, which JSON cannot carry, never get this far: names are encoded before."""
        return json_text(self.to_dict(verbose=verbose, brief=brief), indent=indent)

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> Report:
        """Read a report back. Raises :class:`UsageError` where it is none."""
        try:
            return _from_dict(document)
        except KeyError as error:
            raise UsageError(f"not a report of fdd: it has no {error.args[0]}") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"not a report of fdd: {error}") from error

    @staticmethod
    def from_json(text: str) -> Report:
        """Read a report back from its JSON text. Raises :class:`UsageError` where it is none."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"not a report of fdd: {error}") from error
        if not isinstance(document, dict):
            raise UsageError("not a report of fdd: not an object")
        return Report.from_dict(document)


def identification_dict(identification: Identification) -> dict[str, Any]:
    """The identification as plain data."""
    document: dict[str, Any] = {
        "kind": identification.kind,
        "format": identification.format,
        "name": identification.name,
        "version": identification.version,
        "confidence": identification.confidence,
        "registries": [_without_none(entry._asdict()) for entry in identification.registries],
        "mime": identification.mime,
        "extension_matches": identification.extension_matches,
        "basis": [basis._asdict() for basis in identification.basis],
    }
    if identification.note is not None:
        document["note"] = identification.note
    if identification.details:
        document["details"] = identification.details
    return document


def finding_dict(finding: Finding) -> dict[str, Any]:
    """A finding as plain data; places that are not known are left out."""
    return _without_none(
        {
            "rule": finding.rule,
            "name": finding.name,
            "axis": finding.axis.value,
            "level": finding.level.value,
            "clause": finding.clause,
            "message": finding.message,
            "remedy": finding.remedy,
            "record": finding.record,
            "offset": finding.offset,
            "length": finding.length,
            "tensor": finding.tensor,
            "count": finding.count,
        }
    )


def _open_dict(outcome: Outcome) -> dict[str, Any]:
    return _without_none(
        {
            "rule": outcome.rule,
            "reason": outcome.reason.value if outcome.reason is not None else None,
            "by": outcome.by,
            "detail": outcome.detail,
        }
    )


def _without_none(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if value is not None}


def _from_dict(document: Mapping[str, Any]) -> Report:
    if document["report_version"].partition(".")[0] != REPORT_VERSION.partition(".")[0]:
        raise ValueError(f"report version {document['report_version']}")
    status = document.get("status")
    findings = tuple(_finding(item) for item in _objects(document, "findings"))
    error = _object(document, "error")
    return Report(
        tool=_object(document, "tool"),
        options=_object(document, "options"),
        file=_object(document, "file"),
        run=_object(document, "run"),
        identification=_identification(document["identification"]) if "identification" in document else None,
        status=_status(status) if status is not None else None,
        findings=findings,
        outcomes=tuple(_outcomes(document, findings)),
        properties=_object(document, "properties"),
        records=_objects(document, "records"),
        tensors=_objects(document, "tensors"),
        statistics=_objects(document, "statistics"),
        fixity=_object(document, "fixity"),
        digests=_object(document, "digests"),
        profiles=_objects(status, "profiles") if status is not None else (),
        error=str(error["message"]) if "error" in document else None,
        internal=bool(error.get("internal", False)),
    )


def _object(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise TypeError(f"{key} is no object")
    return value


def _objects(document: Mapping[str, Any], key: str) -> tuple[dict[str, Any], ...]:
    value = document.get(key, ())
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, dict) for item in value):
        raise TypeError(f"{key} is no list of objects")
    return tuple(value)


def _identification(item: Mapping[str, Any]) -> Identification:
    return Identification(
        kind=item["kind"],
        name=item["name"],
        format=item.get("format"),
        version=item.get("version"),
        confidence=item["confidence"],
        registries=[Registry(entry["registry"], entry["id"], entry.get("note")) for entry in _objects(item, "registries")],
        mime=item.get("mime"),
        extension_matches=item.get("extension_matches"),
        basis=[Basis(entry["what"], entry["offset"], entry["length"]) for entry in _objects(item, "basis")],
        note=item.get("note"),
        details=_object(item, "details"),
    )


def _status(item: Mapping[str, Any]) -> Status:
    return Status(
        verdict=Verdict(item["verdict"]),
        well_formed=item["well_formed"],
        valid=item["valid"],
        depth=item["depth"],
        complete=item["complete"],
        safety=Safety(item["safety"]) if item.get("safety") is not None else None,
        safety_basis=item.get("safety_basis"),
        counts=_object(item, "counts"),
        rules=_object(item, "rules"),
    )


def _finding(item: Mapping[str, Any]) -> Finding:
    return Finding(
        rule=item["rule"],
        name=item["name"],
        axis=Axis(item["axis"]),
        level=Level(item["level"]),
        clause=item["clause"],
        message=item["message"],
        remedy=item["remedy"],
        record=item.get("record"),
        offset=item.get("offset"),
        length=item.get("length"),
        tensor=item.get("tensor"),
        count=item.get("count", 1),
    )


def _outcomes(document: Mapping[str, Any], findings: tuple[Finding, ...]) -> list[Outcome]:
    """Rebuild what the stored report says of rules. Axis and level of rules without findings are not stored: the
    catalogue knows them, and nothing that reads reports back needs them."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    outcomes = {
        rule: Outcome(rule, found[0].axis, found[0].level, State.FAILED, findings=tuple(found)) for rule, found in by_rule.items()
    }
    for item in _objects(document, "not_evaluated"):
        outcomes[item["rule"]] = Outcome(
            item["rule"], Axis.ADVICE, Level.INFO, State.NOT_EVALUATED, Reason(item["reason"]), item.get("by"), item.get("detail")
        )
    stored = _object(document, "outcomes")
    for rule in document.get("not_requested", ()):
        outcomes[rule] = Outcome(rule, Axis.ADVICE, Level.INFO, State.NOT_REQUESTED)
    for rule, state in stored.items():
        outcomes.setdefault(rule, Outcome(rule, Axis.ADVICE, Level.INFO, State(state)))
    order = {rule: place for place, rule in enumerate(stored)}
    return sorted(outcomes.values(), key=lambda outcome: order.get(outcome.rule, len(order)))
