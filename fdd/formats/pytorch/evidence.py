# SPDX-License-Identifier: Apache-2.0
"""How far each input of the rules is there, and which rules stand for what took the rest away.

Inputs: `ends`, `directory` (entries as far as they were walked), `inventory` (the complete list of records),
`local-headers`, `canonical`, `texts`, `pickle` (opcodes), `objects` (the finished object), `storages` (objects and
inventory), `payload`, `id`, `safety`.
"""

from __future__ import annotations

from fdd.core.finding import Reason
from fdd.core.model import ABSENT, COMPLETE, NOT_REQUESTED, Evidence
from fdd.formats.pytorch.document import TorchDocument

DIRECTORY_RULES = ("PT-ZIP-002", "PT-ZIP-008", "PT-ZIP-007", "PT-ZIP-006", "PT-ZIP-003", "PT-ZIP-004")
HEADER_RULES = ("PT-ZIP-011", "PT-ZIP-033", "PT-ZIP-015", "PT-ZIP-016", "PT-ZIP-017")
UNREADABLE_RULES = (
    "PT-ZIP-024",
    "PT-ZIP-039",
    "PT-ZIP-014",
    "PT-ZIP-025",
    "PT-ZIP-013",
    "PT-ZIP-011",
    "PT-ZIP-027",
    "PT-ZIP-002",
)
GRAMMAR_RULES = (
    "PT-PKL-004", "PT-PKL-005", "PT-PKL-007", "PT-PKL-008", "PT-PKL-010", "PT-PKL-020", "PT-PKL-022", "PT-PKL-023", "PT-PKL-024",
)  # fmt: skip
"""The rules that fail where a run ends before STOP; one of them for each fatal fault of the machine."""


def blocked(state: str, by: tuple[str, ...]) -> Evidence:
    """An input that a fault took away, in part or whole."""
    return Evidence(state, Reason.BLOCKED, by)


def zip_evidence(document: TorchDocument, depth: str) -> None:
    """State the evidence of a document opened from a ZIP."""
    facts = document.zip
    assert facts is not None
    evidence = document.evidence
    whole = facts.directory is not None and not facts.salvaged and not _directory_torn(document)
    limit = facts.directory is not None and any(fault.code == "entry-limit" for fault in facts.directory.faults)
    torn = Evidence("partial", Reason.LIMIT, detail="directory_entries") if limit else blocked("partial", DIRECTORY_RULES)
    evidence["ends"] = COMPLETE
    evidence["directory"] = COMPLETE if whole and not limit else torn
    evidence["inventory"] = COMPLETE if whole and not limit else Evidence("withheld", torn.reason, torn.by, torn.detail)
    if not facts.local_headers_read and depth == "directory":
        evidence["local-headers"] = evidence["canonical"] = NOT_REQUESTED
    else:
        missing = any(record.local is None for record in facts.records)
        evidence["local-headers"] = blocked("partial", HEADER_RULES + DIRECTORY_RULES) if missing else COMPLETE
        evidence["canonical"] = _canonical(document)
    evidence["payload"] = NOT_REQUESTED
    evidence["id"] = COMPLETE if document.id_facts is not None and whole else ABSENT
    evidence["texts"] = COMPLETE if not facts.salvaged else torn
    pickle_evidence(document)
    objects = evidence["objects"]
    inventory = evidence["inventory"]
    evidence["storages"] = objects if objects.state != "complete" or inventory.state == "complete" else inventory


def _directory_torn(document: TorchDocument) -> bool:
    facts = document.zip
    assert facts is not None
    codes = {fault.code for fault in facts.directory.faults} if facts.directory is not None else set()
    return bool(codes & {"entry-cut", "entry-lengths"}) or (
        facts.directory is not None and facts.directory.stated_entries > len(facts.directory.entries)
    )


def _canonical(document: TorchDocument) -> Evidence:
    if document.canonical is None or document.canonical.canonical is None:
        return ABSENT
    return COMPLETE


def pickle_evidence(document: TorchDocument) -> None:
    """The pickles the format asks for: grammar, and the object they make."""
    judged = list(document.judged_pickles())
    unread = bool(document.facts.get("unread"))
    cut = bool(document.facts.get("cut-by-limit"))
    limit = next((pickle.facts.limit for pickle in judged if pickle.facts.limit), "inflated_bytes" if cut else None)
    state = "partial" if judged else "withheld"
    if limit is not None:
        pickle = objects = Evidence(state, Reason.LIMIT, detail=limit)
    elif unread:
        pickle = objects = blocked(state, UNREADABLE_RULES)
    elif not judged:
        pickle = objects = ABSENT
    else:
        pickle = COMPLETE
        broken = any(not item.facts.stopped for item in judged)
        objects = blocked("partial", GRAMMAR_RULES) if broken else COMPLETE
    document.evidence["pickle"] = pickle
    document.evidence["objects"] = objects
