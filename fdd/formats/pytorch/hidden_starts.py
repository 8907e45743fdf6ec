# SPDX-License-Identifier: Apache-2.0
"""Finds where a pickle begins among other bytes: behind STOP, in tails and gaps, in records that should hold none.

Every place is tried, decoys too, within a budget for the whole file. Where that runs out the search has not come to its
end, and the document says so: what lies behind could still be a pickle.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fdd.formats.pytorch import globals as lists
from fdd.formats.pytorch.document import TorchDocument
from fdd.limits import Limits
from fdd.pickles import looks_like_pickle, probe, run
from fdd.pickles.nodes import Global

BUDGET = 400_000
"""Opcodes, and blocks of 256 bytes, that all searches of a file may run: a second or two."""
START_COST = 20
"""What making ready for a run takes, in opcodes."""
TRIAL_NODES = 100_000
"""Values that a pickle may make before it is left aside whether it names danger."""
PROTO_HEAD = re.compile(rb"\x80[\x02-\x05]")
_PICKLE_HEAD = re.compile(rb"\x80[\x00-\x05]|[ci][A-Za-z_][\w.]*\n[A-Za-z_][\w.]*\n|\((?=[ci(])")


def next_pickle(document: TorchDocument, data: bytes, position: int, limits: Limits) -> int | None:
    """Where behind ``position`` the next pickle begins: right there, at a PROTO, or elsewhere with a name that is danger."""
    if looks_like_pickle(data, position, limits):
        return position
    return _search(document, data, position + 1, limits, any_with_proto=True)


def next_danger(document: TorchDocument, data: bytes, position: int, limits: Limits) -> int | None:
    """Where from ``position`` on a pickle begins that names danger.

    Parts of a damaged file's own pickles may lie among such bytes; they name what they always do.
    """
    return _search(document, data, position, limits, any_with_proto=False)


def _search(document: TorchDocument, data: bytes, position: int, limits: Limits, *, any_with_proto: bool) -> int | None:
    left = int(document.facts.get("search-budget", BUDGET))
    try:
        for match in _PICKLE_HEAD.finditer(data, position):
            if left <= 0:
                document.followed = False
                return None
            start = match.start()
            found, cost = probe(data, start, limits)
            left -= cost + START_COST
            if not found:
                continue
            with_proto = PROTO_HEAD.match(data, start) is not None
            if with_proto and any_with_proto:
                return start
            dangerous, cost = _names_danger(document, data, start, limits, called=not with_proto)
            left -= cost
            if dangerous:
                return start
    finally:
        document.facts["search-budget"] = left
    return None


def _names_danger(document: TorchDocument, data: bytes, start: int, limits: Limits, *, called: bool) -> tuple[bool, int]:
    """Whether a pickle names danger, and what it took to find out.

    ``called``: something must be called, too. Words one below the other, as in a list of functions, can read as names.
    """
    facts = run(data, start=start, limits=replace(limits, pickle_nodes=min(limits.pickle_nodes, TRIAL_NODES)))
    names = [event.value for event in facts.events if event.what == "global"]
    danger = any(isinstance(name, Global) and lists.grade(name.module, name.name) == "dangerous" for name in names)
    if facts.limit is not None and not danger:
        document.followed = False
    calls = not called or any(event.what == "call" for event in facts.events)
    return danger and calls, facts.opcode_count
