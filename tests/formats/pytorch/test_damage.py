# SPDX-License-Identifier: Apache-2.0
"""Damage diagnosis: what each kind of accident leaves behind is named, with its numbers, and nothing raises."""

from __future__ import annotations

import random
import zlib

import pytest

import fdd
from corpus.build.kit import eager, legacy_stream, state_dict, tensor
from fdd.core.finding import Finding
from fdd.core.source import BytesSource
from fdd.core.span import Span
from fdd.formats.probe import make_probe
from fdd.formats.pytorch.damage_bits import flipped_bit
from fdd.formats.pytorch.damage_facts import DamageFacts, damage_of
from fdd.formats.pytorch.damage_scan import scan_bytes
from fdd.formats.pytorch.damage_text import describe_bytes
from fdd.formats.pytorch.identify import identify
from fdd.formats.pytorch.opening import open_document
from fdd.formats.pytorch.payloads import read_payloads
from fdd.limits import Limits

NAMES = {"a": 1500, "b": 40, "c": 900, "d": 12}
"""Tensors of the file under test and their elements."""


def _values(count: int, seed: int) -> list[float]:
    source = random.Random(seed)
    return [source.uniform(-1, 1) for _ in range(count)]


def _model() -> object:
    named: dict[str, object] = {name: tensor(_values(count, count)) for name, count in NAMES.items()}
    return state_dict(named, {"": 1})


ARCHIVE = eager(_model(), "m")
STREAM = legacy_stream(_model())


def _damage(data: bytes, *, payload: bool = True) -> DamageFacts | None:
    probe = make_probe(BytesSource(data), name="m.pt", path=None, limits=Limits(), depth="full")
    found = identify(probe)
    if found is None:
        return None
    document = open_document(probe, found)
    if payload:
        read_payloads(document, ())
    return damage_of(document)


def _findings(data: bytes) -> list[Finding]:
    report = fdd.validate(data, name="m.pt")
    assert not [outcome for outcome in report.outcomes if outcome.rule.startswith("PT-DMG") and outcome.detail]
    return [finding for finding in report.findings if finding.rule.startswith("PT-DMG")]


def _message(data: bytes, rule: str) -> str:
    found = [finding.message for finding in _findings(data) if finding.rule == rule]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("data", [ARCHIVE, STREAM], ids=["archive", "stream"])
def test_a_sound_file_has_no_facts_and_no_findings(data: bytes) -> None:
    assert _damage(data) is None
    assert _findings(data) == []


@pytest.mark.parametrize("length", [1, 2, 9, 400, 5000])
def test_a_flipped_bit_is_found_from_checksums_and_length(length: int) -> None:
    source = random.Random(length)
    for _ in range(25):
        data = bytearray(source.randbytes(length))
        before = zlib.crc32(data)
        place, bit = source.randrange(length), source.randrange(8)
        data[place] ^= 1 << bit
        assert flipped_bit(before, zlib.crc32(data), length) == (place, bit)


def test_two_flipped_bits_of_a_short_text_are_not_taken_for_one() -> None:
    data = bytearray(random.Random(1).randbytes(200))
    before = zlib.crc32(data)
    data[10] ^= 1
    data[150] ^= 64
    assert flipped_bit(before, zlib.crc32(data), 200) is None
    assert flipped_bit(before, before, 200) is None
    assert flipped_bit(1, 2, 0) is None


class _Pieces(BytesSource):
    """A source that streams in pieces of a few bytes."""

    def stream(self, span: Span, chunk: int = 0):  # type: ignore[no-untyped-def]
        return super().stream(span, 700)


def test_the_scan_sees_runs_and_line_ends_over_the_edges_of_pieces() -> None:
    parts = [b"a" * 699, b"\r\n", bytes(600), b"x", bytes(511), b"y\r", b"\n" * 3, bytes(1500)]
    data = b"".join(parts)
    for source in (BytesSource(data), _Pieces(data)):
        seen = scan_bytes(source, [Span(0, len(data))])
        assert (seen.line_feeds, seen.returns, seen.pairs, seen.first_pair) == (4, 2, 2, seen.first_pair)
        assert seen.zero_runs == [Span(701, 600), Span(len(data) - 1500, 1500)]


def test_a_cut_in_the_records_tells_the_size_of_the_whole_and_what_is_lost() -> None:
    for size in range(900, len(ARCHIVE) - 800, 371):
        damage = _damage(ARCHIVE[:size])
        assert damage is not None and damage.cut is not None and not damage.cut.zeros
        cut = damage.cut
        assert cut.content == size and cut.tally is not None and cut.tally.named == len(NAMES)
        assert cut.whole_size in (len(ARCHIVE), None)
        assert cut.checked == len(cut.complete) and cut.unchecked == 0
        assert cut.tally.whole + cut.tally.cut + cut.tally.missing == len(NAMES)
        assert cut.tally.tensors == list(NAMES)[cut.tally.whole :]


def test_a_cut_behind_the_records_says_that_all_are_there() -> None:
    message = _message(ARCHIVE[:-130], "PT-DMG-002")
    assert f"{len(ARCHIVE) - 130} of {len(ARCHIVE)} bytes" in message
    assert "all 10 records are complete and have their checksum" in message
    assert "the values of all 4 storages are there" in message


def test_a_round_size_hints_at_a_full_disk() -> None:
    assert "blocks of 4096 bytes" in _message(ARCHIVE[:4096], "PT-DMG-001")
    assert "blocks of 512 bytes" in _message(ARCHIVE[: 512 * 5], "PT-DMG-001")
    assert "blocks" not in _message(ARCHIVE[:4097], "PT-DMG-001")


def test_zeros_at_the_end_are_told_from_a_cut() -> None:
    start = ARCHIVE.index(b"m/data/2") + 1000
    message = _message(ARCHIVE[:start] + bytes(len(ARCHIVE) - start), "PT-DMG-004")
    assert f"the last {len(ARCHIVE) - start} of {len(ARCHIVE)} bytes are zeros" in message
    assert 'values are lost of "c" and "d"' in message


def test_a_cut_inside_values_that_are_zero_is_a_cut() -> None:
    data = eager({"w": tensor([0.0] * 1000)}, "m")
    findings = _findings(data[:2500])
    assert [finding.rule for finding in findings] == ["PT-DMG-001"]


def test_a_stream_that_is_cut_names_its_storages() -> None:
    message = _message(STREAM[:5000], "PT-DMG-003")
    assert f"5000 of {len(STREAM)} bytes" in message and "inside storage" in message and '"a"' in message
    assert "describes the object" in _message(STREAM[:260], "PT-DMG-003")


@pytest.mark.parametrize("count", [-512, -64, -1, 1, 24, 512])
def test_bytes_lost_or_inserted_are_counted_and_placed(count: int) -> None:
    start = ARCHIVE.index(b"m/data/0") + 2000
    strange = random.Random(count).randbytes(max(count, 0))
    data = ARCHIVE[:start] + strange + ARCHIVE[start - min(count, 0) :]
    damage = _damage(data)
    assert damage is not None and len(damage.displacements) == 1
    place = damage.displacements[0]
    assert (place.count, place.before, place.behind, place.inside) == (count, "m/data/0", "m/data/1", True)
    assert place.span.holds(start) and place.tensors == ["a"] and not place.restores


def test_a_repeated_block_is_found_and_its_removal_tried() -> None:
    start = ARCHIVE.index(b"m/data/0") + 1000
    damage = _damage(ARCHIVE[: start + 256] + ARCHIVE[start : start + 256] + ARCHIVE[start + 256 :])
    assert damage is not None and len(damage.displacements) == 1
    assert damage.displacements[0].restores and damage.displacements[0].repeated is not None


def test_a_wrong_offset_in_the_directory_is_no_displacement() -> None:
    end = ARCHIVE.rindex(b"PK\x06\x06")
    entry = ARCHIVE.rindex(b"PK\x01\x02", 0, ARCHIVE.rindex(b"m/data/2"))
    data = bytearray(ARCHIVE)
    data[entry + 42] ^= 0x40
    damage = _damage(bytes(data))
    assert damage is None or not damage.displacements
    data = bytearray(ARCHIVE)
    data[end + 48] ^= 0x40
    damage = _damage(bytes(data))
    assert damage is None or not damage.displacements


@pytest.mark.parametrize("count", [-16, -3, 5, 64])
def test_bytes_lost_or_inserted_in_a_stream(count: int) -> None:
    start = len(STREAM) - 4 * NAMES["c"] - 4 * NAMES["d"] - 16 - 100  # inside the second storage
    data = STREAM[:start] + bytes(range(1, 1 + max(count, 0))) + STREAM[start - min(count, 0) :]
    damage = _damage(data)
    assert damage is not None and [place.count for place in damage.displacements] == [count]
    assert damage.displacements[0].tensors == ["b"] and damage.cut is None and not damage.extra


def test_a_missing_head_is_measured() -> None:
    message = _message(ARCHIVE[700:], "PT-DMG-005")
    assert "the first 700 bytes" in message and "m/data.pkl" in message


def test_a_lost_header_leaves_its_values() -> None:
    start = ARCHIVE.index(b"m/data/2") - 30
    data = ARCHIVE[:start] + b"\x07" * 40 + ARCHIVE[start + 40 :]
    message = _message(data, "PT-DMG-009")
    assert f"its {4 * NAMES['c']} bytes" in message and "have the recorded checksum" in message


def test_a_hole_of_zeros_is_found_in_a_payload() -> None:
    hole = (ARCHIVE.index(b"m/data/0") // 512 + 4) * 512
    findings = _findings(ARCHIVE[:hole] + bytes(1024) + ARCHIVE[hole + 1024 :])
    assert [finding.rule for finding in findings] == ["PT-DMG-006"]
    assert (findings[0].offset, findings[0].length) == (hole, 1024)


def test_zeros_that_are_values_are_no_hole() -> None:
    data = bytearray(eager({"w": tensor([0.0] * 1000 + _values(200, 5))}, "m"))
    place = data.index(b"m/data/0") + 4400
    data[place : place + 6] = b"abcdef"
    assert [finding.rule for finding in _findings(bytes(data))] == ["PT-DMG-013"]


def test_a_flipped_bit_names_byte_element_and_tensor() -> None:
    data = bytearray(ARCHIVE)
    start = -(-(data.index(b"m/data/2") + 12) // 64) * 64
    data[start + 4 * 77 + 3] ^= 0x20
    message = _message(bytes(data), "PT-DMG-012")
    assert f"bit 5 of the byte at {start + 4 * 77 + 3}" in message and "element 77" in message and '"c"' in message


def test_line_ends_converted_and_back() -> None:
    for data in (ARCHIVE, STREAM):
        damage = _damage(data.replace(b"\n", b"\r\n"))
        assert damage is not None and damage.conversion is not None
        conversion = damage.conversion
        assert conversion.code == "crlf-added" and conversion.restored == "valid"
        assert conversion.pairs == conversion.line_feeds == data.count(b"\n")
    assert data.count(b"\n") >= 40


def test_line_ends_that_cannot_be_restored() -> None:
    codes = {}
    for name, data in {
        "cr-removed": ARCHIVE.replace(b"\r", b""),
        "cr-to-lf": ARCHIVE.replace(b"\r", b"\n"),
        "lf-to-cr": ARCHIVE.replace(b"\n", b"\r"),
    }.items():
        damage = _damage(data)
        assert damage is not None and damage.conversion is not None
        codes[name] = damage.conversion.code
    assert codes == {name: name for name in codes}


def test_lost_pairs_of_a_large_file() -> None:
    data = eager({"w": tensor(_values(450_000, 3))}, "m")
    assert data.count(b"\r\n") > 4
    damage = _damage(data.replace(b"\r\n", b"\n"), payload=False)
    assert damage is not None and damage.conversion is not None and damage.conversion.code == "crlf-shortened"


def test_mangling_as_text_is_undone_where_it_can_be() -> None:
    damage = _damage(ARCHIVE.decode("latin-1").encode())
    assert damage is not None and [(sign.code, sign.restored) for sign in damage.mangled] == [("utf8-encoded", "valid")]
    damage = _damage(ARCHIVE.decode("utf-8", "replace").encode())
    assert damage is not None and [sign.code for sign in damage.mangled] == ["utf8-replacement"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\n", "a newline (LF)"),
        (b"\r\n", "a line end (CR LF)"),
        (bytes(100), "zero bytes"),
        (b"\xff" * 40, "bytes of the one value FF"),
        (b"   \n", "text, beginning with"),
        (b"\r\n------WebKitFormBoundaryAb1--\r\n", "a form boundary"),
        (b"<!DOCTYPE html><html>", "an HTML page"),
        (b"checked by hand\nsecond line", 'text, beginning with "checked by hand"'),
        (b"PK\x07\x08", "split over disks"),
        (b"\x80\x02}q\x00.", "a pickle"),
        (bytes(range(1, 32)), "binary data beginning with 01 02 03"),
        (b"", "nothing"),
    ],
)
def test_extra_bytes_are_described(data: bytes, words: str) -> None:
    assert words in describe_bytes(BytesSource(b"....." + data), Span(5, len(data)))


def test_padding_to_a_block_is_recognised() -> None:
    data = ARCHIVE.ljust(-(-len(ARCHIVE) // 4096) * 4096, b"\0")
    assert "up to a multiple of 4096" in _message(data, "PT-DMG-014")


def test_two_saves_are_judged_one_by_one() -> None:
    message = _message(ARCHIVE + eager({"w": tensor([1.0])}, "m"), "PT-DMG-016")
    assert f"0 to {len(ARCHIVE)} (valid)" in message
    data = bytearray(ARCHIVE)
    data[data.index(b"m/data/0") + 500] ^= 4
    damage = _damage(bytes(data) + ARCHIVE)
    assert damage is not None and damage.saves is not None
    assert [part.verdict for part in damage.saves.parts] == ["not-well-formed", "valid"]
    assert damage.saves.torch_reads == "first"


def test_a_damaged_directory_leaves_all_records() -> None:
    end = ARCHIVE.rindex(b"PK\x06\x06")
    data = ARCHIVE[: end - 400] + b"\xaa" * 150 + ARCHIVE[end - 250 :]
    message = _message(data, "PT-DMG-025")
    assert "10 records are complete" in message and "all 4 storages" in message


def test_any_damage_is_diagnosed_without_an_exception() -> None:
    source = random.Random(7)
    for data in (ARCHIVE, STREAM):
        for _ in range(60):
            broken = bytearray(data)
            for _ in range(source.randrange(1, 4)):
                start = source.randrange(len(broken))
                length = source.choice((1, 3, 64, 512, 2000))
                kind = source.randrange(5)
                if kind == 0:
                    del broken[start : start + length]
                elif kind == 1:
                    broken[start:start] = source.randbytes(length)
                elif kind == 2:
                    broken[start : start + length] = bytes(min(length, len(broken) - start))
                elif kind == 3:
                    broken[start : start + length] = source.randbytes(min(length, len(broken) - start))
                else:
                    del broken[start:]
                if not broken:
                    break
            _damage(bytes(broken))


def test_damaged_files_are_read_few_times() -> None:
    data = ARCHIVE[:7000]
    source = BytesSource(data)
    probe = make_probe(source, name="m.pt", path=None, limits=Limits(), depth="full")
    found = identify(probe)
    assert found is not None
    before = source.bytes_read
    document = open_document(probe, found)
    read_payloads(document, ())
    assert damage_of(document) is not None
    assert source.bytes_read - before < 8 * len(data)
