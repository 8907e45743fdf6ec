# SPDX-License-Identifier: Apache-2.0
"""The payload pass: whatever the parts, both ways of reading give what hashlib and zlib say of the same bytes."""

from __future__ import annotations

import hashlib
import random
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdd.core import digests, payload, ring, source
from fdd.core.errors import SourceError, UsageError
from fdd.core.payload import Part, read_payload
from fdd.core.source import BytesSource, FileSource, SliceSource
from fdd.core.span import Span

ALGORITHMS = ("md5", "sha256")
SMALL_SLOT = 1 << 12


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.fixture(params=["fast", "slow"])
def crc(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the CRC-32 of the standard library the threads are laid out in another way."""
    if request.param == "slow":
        monkeypatch.setattr(payload, "has_fast_crc32", lambda: False)
        monkeypatch.setattr(payload, "crc32_function", lambda: zlib.crc32)
    return str(request.param)


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that every part is spread over many, and threads for every file."""
    make_small(monkeypatch)


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "THREADS_FROM", 1)
    monkeypatch.setattr(payload, "CHUNK", 100)
    monkeypatch.setattr(ring, "SLOT_BYTES", SMALL_SLOT)
    monkeypatch.setattr(source, "WHOLE_FILE", 0)


def facts(part: Part) -> tuple[object, ...]:
    return (part.crc32, part.size, part.all_zero, part.digests, part.fault)


def both_ways(data: bytes, parts: list[Part], algorithms: tuple[str, ...] = ()) -> dict[str, str]:
    """Read the same parts in sequence and through the ring, and make sure that the results are the same."""
    twins = [Part(p.span, deflated=p.deflated, algorithms=p.algorithms, watch_zeros=p.watch_zeros) for p in parts]
    in_sequence = read_payload(BytesSource(data), parts, algorithms)
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        opened = source.open_source(file)
        assert isinstance(opened, FileSource)
        through_ring = read_payload(opened, twins, algorithms)
        opened.close()
    assert through_ring == in_sequence
    assert [facts(part) for part in twins] == [facts(part) for part in parts]
    return in_sequence


def check_stored(data: bytes, part: Part) -> None:
    there = data[part.span.offset : part.span.end]
    assert (part.size, part.crc32, part.fault) == (len(there), zlib.crc32(there), None)
    assert part.digests == {name: hashlib.new(name, there).hexdigest() for name in part.algorithms}
    assert part.all_zero is (not there.strip(b"\0") if part.watch_zeros else None)


spans = st.builds(Span, st.integers(0, 9000), st.integers(0, 9000))
stored_parts = st.builds(
    lambda span, algorithms, zeros: Part(span, algorithms=algorithms, watch_zeros=zeros),
    spans,
    st.sampled_from([(), ("sha1",), ("sha256", "md5")]),
    st.booleans(),
)


@given(
    st.integers(0, 2**32),
    st.integers(0, 9500),
    st.lists(stored_parts, max_size=7),
    st.sampled_from([(), ("sha256",), ALGORITHMS]),
)
@settings(max_examples=40)
def test_random_parts(seed: int, size: int, parts: list[Part], algorithms: tuple[str, ...]) -> None:
    """Overlapping, empty, behind the end, in any order."""
    data = bytearray(random.Random(seed).randbytes(size))
    data[2000:5000] = bytes(len(data[2000:5000]))
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_small(monkeypatch)
        whole = both_ways(bytes(data), parts, algorithms)
    for part in parts:
        check_stored(bytes(data), part)
    assert whole == {name: hashlib.new(name, data).hexdigest() for name in algorithms}


@pytest.mark.usefixtures("small_pieces", "crc")
def test_overlapping_parts_and_parts_of_no_length() -> None:
    data = random.Random(1).randbytes(20_000)
    parts = [
        Part(Span(*span), algorithms=("sha256",), watch_zeros=True)
        for span in (
            (0, 20_000),
            (5, 10),
            (5, 10),
            (4090, 12),
            (4096, 4096),
            (20_000, 0),
            (7, 0),
            (19_999, 1),
            (0, 0),
            (30_000, 5),
        )
    ]
    both_ways(data, parts, ("sha256",))
    for part in parts:
        check_stored(data, part)


LONG = random.Random(2).randbytes(30_000) + bytes(400_000)


def broken_stream() -> bytes:
    """Good blocks, then one of a type that there is not."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(LONG) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\x07" + bytes(9000)


@pytest.mark.usefixtures("small_pieces", "crc")
@pytest.mark.parametrize(
    ("stream", "fault", "whole"),
    [
        (deflated(LONG), None, True),
        (deflated(b""), None, False),
        (deflated(LONG) + b"x", "bytes are left behind the end of the deflate stream", True),
        (deflated(LONG) + b"x" * 20_000, "bytes are left behind the end of the deflate stream", True),
        (deflated(b"short") + b"x" * 20_000, "bytes are left behind the end of the deflate stream", False),
        (deflated(LONG)[:-1], "the deflate stream ends too early", False),
        (deflated(LONG)[:5000], "the deflate stream ends too early", False),
        (b"", "the deflate stream ends too early", False),
        (broken_stream(), "damaged deflate stream", True),
        (b"\xff" * 9000, "damaged deflate stream", False),
    ],
    ids=["good", "empty", "tail", "long tail", "tail in other pieces", "cut", "cut early", "nothing", "damaged", "no stream"],
)
def test_deflated_parts(stream: bytes, fault: str | None, whole: bool) -> None:
    data = b"head" + stream + b"tail"
    part = Part(Span(4, len(stream)), deflated=True, algorithms=("sha256",), watch_zeros=True)
    raw = Part(Span(4, len(stream)), algorithms=("sha256",))
    both_ways(data, [part, raw], ("sha256",))
    check_stored(data, raw)
    assert (part.fault or "").startswith(fault or "") and (part.fault is None) is (fault is None)
    if whole:
        assert part.size == len(LONG)
        assert part.crc32 == zlib.crc32(LONG)
        assert part.digests == {"sha256": hashlib.sha256(LONG).hexdigest()}
        assert part.all_zero is False


def test_a_tail_behind_a_stream_that_inflates_to_megabytes() -> None:
    """zlib hands the tail back as unconsumed where the output was limited before: that once never ended."""
    stream = deflated(bytes(3 << 20)) + b"tail"
    part = Part(Span(0, len(stream)), deflated=True, watch_zeros=True)
    read_payload(BytesSource(stream), [part])
    assert (part.size, part.all_zero) == (3 << 20, True)
    assert part.fault == "bytes are left behind the end of the deflate stream"


class Recorder:
    """A tap that keeps what it saw."""

    def __init__(self) -> None:
        self.data = b""

    def update(self, data: memoryview) -> None:
        self.data += bytes(data)


class Failure(Exception):
    """What the failing tap raises."""


class Failing:
    """A tap that fails after some bytes."""

    def __init__(self, after: int) -> None:
        self._left = after

    def update(self, data: memoryview) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise Failure


def file_with(path: Path, data: bytes) -> FileSource:
    path.write_bytes(data)
    return FileSource(path)


@pytest.mark.usefixtures("small_pieces", "crc")
@pytest.mark.parametrize("packed", [False, True])
def test_taps_see_the_bytes_in_order(tmp_path: Path, packed: bool) -> None:
    stream = deflated(LONG) if packed else LONG
    with file_with(tmp_path / "file", stream) as file:
        for opened in (file, BytesSource(stream)):
            tap = Recorder()
            read_payload(opened, [Part(Span(0, len(stream)), deflated=packed, taps=(tap,))])
            assert tap.data == LONG


@pytest.mark.usefixtures("small_pieces", "crc")
@pytest.mark.parametrize("after", [0, 10_000, 99_999])
def test_what_a_tap_raises_comes_through(tmp_path: Path, after: int) -> None:
    data = random.Random(3).randbytes(100_000)
    with file_with(tmp_path / "file", data) as file:
        for opened in (file, BytesSource(data)):
            with pytest.raises(Failure):
                read_payload(opened, [Part(Span(0, len(data)), taps=(Failing(after),))], ("sha256",))


def test_without_digests_only_the_parts_are_read(tmp_path: Path) -> None:
    data = random.Random(4).randbytes(3 << 20)
    with file_with(tmp_path / "file", data) as opened:
        part = Part(Span(1 << 20, 1000))
        assert read_payload(opened, [part, Part(Span((1 << 20) + 500, 1000))]) == {}
        assert opened.bytes_read == 1500
        check_stored(data, part)


def test_with_digests_everything_is_read_once(tmp_path: Path) -> None:
    data = random.Random(5).randbytes(10 << 20)
    with file_with(tmp_path / "file", data) as opened:
        parts = [Part(Span(0, 9 << 20), algorithms=("sha256",)), Part(Span(1 << 20, 9 << 20), algorithms=("sha256",))]
        whole = read_payload(opened, parts, ("sha256",))
        assert opened.bytes_read == len(data) >= payload.THREADS_FROM
        assert whole == {"sha256": hashlib.sha256(data).hexdigest()}
        for part in parts:
            check_stored(data, part)


@pytest.mark.parametrize("algorithms", [(), ("sha256",)])
def test_a_file_that_shrinks(tmp_path: Path, algorithms: tuple[str, ...]) -> None:
    path = tmp_path / "file"
    with file_with(path, bytes(payload.THREADS_FROM + 1)) as opened:
        path.write_bytes(bytes(1000))
        with pytest.raises(SourceError, match="became shorter"):
            read_payload(opened, [Part(Span(0, opened.size))], algorithms)


def test_a_slice_of_a_file_is_read_as_a_file(tmp_path: Path) -> None:
    data = random.Random(6).randbytes(50_000)
    with file_with(tmp_path / "file", data) as opened:
        part = Part(Span(10, 100))
        whole = read_payload(SliceSource(opened, Span(1000, 9000)), [part], ("sha256",))
        assert whole == {"sha256": hashlib.sha256(data[1000:10_000]).hexdigest()}
        assert part.crc32 == zlib.crc32(data[1010:1110])


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256", "sha384", "sha512", "blake2b"])
def test_digests_of_the_standard_library(name: str) -> None:
    assert read_payload(BytesSource(b"abc"), [], (name,)) == {name: hashlib.new(name, b"abc").hexdigest()}
    assert digests.check_algorithms([name, name]) == (name,)


def test_blake3() -> None:
    pytest.importorskip("blake3")
    digest = read_payload(BytesSource(b""), [], ("blake3",))["blake3"]
    assert digest == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


def test_unknown_digests_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown digest 'crc7'; known: md5"):
        digests.check_algorithms(["sha256", "crc7"])


@given(st.binary(max_size=200), st.sampled_from([1, digests.FAST_FROM]), st.integers(0, 200))
def test_every_crc32_is_the_same_one(data: bytes, times: int, cut: int) -> None:
    crc = digests.crc32_function()
    data *= times
    assert crc(memoryview(data)[cut:], crc(data[:cut], 0)) == zlib.crc32(data)


def test_the_fast_crc32_frees_the_registers_it_leaves_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """SHA-256 would be a third slower from then on; short data go to zlib, which leaves none in use."""
    if not digests.has_fast_crc32():
        pytest.skip("needs isal")
    freed: list[object] = []
    real = hashlib.sha512

    def counted(*given: Any, **options: Any) -> Any:
        freed.append(given)
        return real(*given, **options)

    monkeypatch.setattr(hashlib, "sha512", counted)
    crc = digests.crc32_function()
    crc(bytes(digests.FAST_FROM - 1), 0)
    assert not freed
    crc(bytes(digests.FAST_FROM), 0)
    assert freed
