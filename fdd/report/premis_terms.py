# SPDX-License-Identifier: Apache-2.0
"""The controlled vocabularies that PREMIS documents use: schemes of id.loc.gov, with the codes we need and their labels."""

from __future__ import annotations

from collections.abc import Mapping

from fdd.core.finding import Verdict

BASE = "http://id.loc.gov/vocabulary/preservation/"

SCHEMES: dict[str, dict[str, str]] = {
    "eventType": {
        "for": "format identification",
        "val": "validation",
        "mes": "message digest calculation",
        "fix": "fixity check",
        "mee": "metadata extraction",
    },
    "eventOutcome": {"suc": "success", "fai": "fail", "war": "warning"},
    "cryptographicHashFunctions": {
        "md5": "MD5",
        "sha1": "SHA-1",
        "sha256": "SHA-256",
        "sha384": "SHA-384",
        "sha512": "SHA-512",
    },
    "formatRegistryRole": {"spe": "specification", "val": "validation profile"},
    "agentType": {"sof": "software"},
    "eventRelatedAgentRole": {"exe": "executing program", "val": "validator"},
    "eventRelatedObjectRole": {"sou": "source", "out": "outcome"},
    "relationshipType": {"str": "structural"},
    "relationshipSubType": {"inc": "includes", "isi": "is Included In", "hsp": "has Part", "isp": "is Part Of"},
    "contentLocationType": {"byt": "byte offset", "uri": "Uniform Resource Identifier"},
    "inhibitorType": {"pas": "Password protection"},
}
"""Scheme -> code -> label. Other words are local terms and carry no authority."""

DIGEST_LABELS = SCHEMES["cryptographicHashFunctions"] | {"blake2b": "BLAKE2b", "blake3": "BLAKE3"}
"""hashlib name -> label in PREMIS; those of the BLAKE family are local terms."""
STRENGTH = ("sha512", "blake2b", "blake3", "sha384", "sha256", "sha1", "md5")
"""Digests from strong to weak."""
DIGEST_DIGITS = {"MD5": 32, "SHA-1": 40, "SHA-256": 64, "SHA-384": 96, "SHA-512": 128, "BLAKE2b": 128, "BLAKE3": 64}
"""Label -> hexadecimal digits."""

ARCHIVEMATICA_OUTCOMES = {
    Verdict.VALID: "pass",
    Verdict.STRUCTURE_VALID: "partial pass",
    Verdict.WELL_FORMED_NOT_VALID: "partial pass",
    Verdict.NOT_WELL_FORMED: "fail",
    Verdict.NOT_THIS_FORMAT: "fail",
}
"""Verdict -> outcome of a validation in the words of Archivematica (contract, section 1). Undetermined has none."""


def strongest_first(digests: Mapping[str, str]) -> list[tuple[str, str]]:
    """Names and values of digests, from strong to weak; unknown ones last, by name."""
    places = {name: place for place, name in enumerate(STRENGTH)}
    return sorted(digests.items(), key=lambda item: (places.get(item[0], len(places)), item[0]))


def code_of(scheme: str, label: str) -> str | None:
    """The code of a label in a scheme; None for local terms."""
    return next((code for code, known in SCHEMES[scheme].items() if known == label), None)


def uri_of(scheme: str, label: str) -> str | None:
    """The URI of a term; None for local terms."""
    code = code_of(scheme, label)
    return f"{BASE}{scheme}/{code}" if code is not None else None
