# SPDX-License-Identifier: Apache-2.0
"""Identification of files that no installed format knows: what else carries their names."""

from __future__ import annotations

from fdd.core.model import Basis, Identification, Registry
from fdd.formats.foreign import identify_foreign
from fdd.formats.probe import Probe


def identify_neighbour(probe: Probe) -> Identification:
    """Always an answer; the last resorts are text, zeros, empty and unknown."""
    facts = identify_foreign(probe.source, name=probe.name, limits=probe.limits)
    details = dict(facts.details)
    if facts.inner:
        details["inside"] = [
            {
                key: value
                for key, value in (("name", member.name), ("size", member.size), ("kind", member.kind))
                if value is not None
            }
            for member in facts.inner
        ]
    return Identification(
        facts.kind,
        facts.name,
        version=facts.version,
        registries=[Registry("PRONOM", facts.pronom)] if facts.pronom is not None else [],
        mime=facts.mime,
        basis=[Basis(*basis) for basis in facts.basis],
        note=facts.note,
        details=details,
    )
