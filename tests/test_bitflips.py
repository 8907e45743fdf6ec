# SPDX-License-Identifier: Apache-2.0
"""Flipped bits of a real file are found where they are: a sample of what ``tools/bitflip_audit.py`` does with every bit."""

from __future__ import annotations

from functools import cache

import pytest

from fdd.resources import corpus_dir
from tools.bitflip_audit import Audit, Byte, all_flips, audit, fields_of, flipped, main, other_tools

PATH = corpus_dir() / "real" / "torch-2.13.0-tensor.pt"
STEP = 53
"""Prime to 8, so that all bits of a byte have their turn; about 240 flips."""
ALONE = {
    Byte("directory entry", "version_made_by"),
    Byte("directory entry", "internal_attributes"),
    Byte("directory entry", "external_attributes"),
    Byte("ZIP64 end record", "version_made_by"),
    Byte("ZIP64 end record", "version_needed"),
}
"""Fields that no other structure repeats and that no rule asks a value of: only the rebuild sees them change."""


@cache
def sample() -> Audit:
    data = PATH.read_bytes()
    return audit(data, PATH.name, all_flips(data, STEP))


def test_every_flip_outside_payloads_is_found_where_it_is() -> None:
    result = sample()
    assert result.flips > 180
    assert not result.missed


def test_without_the_rebuild_only_fields_that_nothing_repeats_are_missed() -> None:
    result = sample()
    assert set(result.missed_otherwise) <= ALONE
    assert result.found_otherwise > 0.9 * result.flips


def test_every_flip_in_a_payload_raises_the_checksum_rule_of_its_record() -> None:
    result = sample()
    assert result.payload_flips > 25
    assert not result.payload_missed


def test_every_bit_of_the_fields_that_cost_most_is_found() -> None:
    """Offsets and lengths lead a reader astray: each bit of them in one record, and the number of disks."""
    data = PATH.read_bytes()
    owner = fields_of(data)
    names = {"header_offset", "extra_length", "name_length", "comment_length", "disks"}
    wanted: dict[Byte, list[int]] = {}
    for offset, byte in enumerate(owner):
        if byte.name in names:
            wanted.setdefault(byte, []).append(offset)
    flips = [(offset, bit) for offsets in wanted.values() for offset in offsets[:2] for bit in range(8)]
    result = audit(data, PATH.name, flips)
    assert result.flips == len(flips)
    assert not result.missed_otherwise


def test_every_byte_has_an_owner() -> None:
    owner = fields_of(PATH.read_bytes())
    assert not [byte for byte in owner if byte.structure == "no structure"]


def test_an_audit_counts_what_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.bitflip_audit.CHECKSUM_RULE", "PT-ZIP-000")
    monkeypatch.setattr("tools.bitflip_audit.REBUILD_RULES", frozenset({"PT-ZIP-001", "PT-ZIP-035"}))
    data = PATH.read_bytes()
    payload = next(offset for offset, byte in enumerate(fields_of(data)) if byte.structure == "payload")
    result = audit(data, PATH.name, [(0, 0), (payload, 0)])
    assert (result.found, result.found_otherwise, result.payload_missed) == (1, 0, [(payload, 0)])


def test_another_tool_is_shown_the_same_flips() -> None:
    data = PATH.read_bytes()
    words = other_tools(data, [(len(data) - 22, 0), (10, 0)])["zipfile.testzip"]
    assert words == "1 of 2 flips"
    assert flipped(data, 0, 7)[0] == data[0] ^ 0x80


def test_the_tool_prints_shares_and_fails_only_where_something_is_missed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(PATH), "--step", "997"]) == 0
    printed = capsys.readouterr().out
    assert "outside payloads, all rules" in printed and "(100.00 %)" in printed
