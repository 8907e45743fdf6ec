# SPDX-License-Identifier: Apache-2.0
"""Each fault with its word, its exact offset, and whether the run ends there."""

from __future__ import annotations

import pytest

from fdd.limits import Limits
from fdd.pickles import faults, looks_like_pickle, run

_FATAL = [
    (b"\x80\x02\xff", "unknown-opcode", 2),
    (b"", "no-stop", 0),
    (b"\x80\x02N", "no-stop", 3),
    (b"NK", "argument-past-end", 1),
    (b"NM\x01", "argument-past-end", 1),
    (b"NJ\x01\x02\x03", "argument-past-end", 1),
    (b"NG1234567", "argument-past-end", 1),
    (b"NX\x01\x00\x00", "argument-past-end", 1),
    (b"NX\x02\x00\x00\x00a", "argument-past-end", 1),
    (b"N\x8c\x05abcd", "argument-past-end", 1),
    (b"N\x8d" + (1 << 40).to_bytes(8, "little") + b"a.", "argument-past-end", 1),
    (b"N\x8d" + b"\xff" * 8 + b"a.", "argument-past-end", 1),
    (b"NB\xff\xff\xff\xffa.", "argument-past-end", 1),
    (b"NC\xffa.", "argument-past-end", 1),
    (b"N\x8e" + (1 << 40).to_bytes(8, "little") + b"a.", "argument-past-end", 1),
    (b"N\x96" + (1 << 40).to_bytes(8, "little") + b"a.", "argument-past-end", 1),
    (b"N\x8a\x09a.", "argument-past-end", 1),
    (b"N\x8b\xff\xff\xff\x7fa.", "argument-past-end", 1),
    (b"Nr\x00\x00\x00", "argument-past-end", 1),
    (b"Nh", "argument-past-end", 1),
    (b"\x80", "argument-past-end", 0),
    (b"N\x95\x01\x00", "argument-past-end", 1),
    (b"NU\x05a", "argument-past-end", 1),
    (b"NI1.", "no-newline", 1),
    (b"NV1.", "no-newline", 1),
    (b"Ncos\nsystem", "no-newline", 1),
    (b"N(ios\nsystem", "no-newline", 2),
    (b"NPid", "no-newline", 1),
    (b"NT\xff\xff\xff\xffa.", "negative-length", 1),
    (b"N\x8b\xff\xff\xff\xffa.", "negative-length", 1),
    (b"NI\n.", "bad-decimal", 1),
    (b"NI1.5\n.", "bad-decimal", 1),
    (b"NLabc\n.", "bad-decimal", 1),
    (b"NLL\n.", "bad-decimal", 1),
    (b"NI" + b"1" * 2000 + b"x\n.", "bad-decimal", 1),
    (b"NI" + b"0" * 2000 + b"\n.", "bad-decimal", 1),
    (b"Np-1\n.", "bad-decimal", 1),
    (b"Np" + b"9" * 20 + b"\n.", "bad-decimal", 1),
    (b"NFone\n.", "bad-float", 1),
    (b"NF" + b"1" * 2000 + b"x\n.", "bad-float", 1),
    (b"NSabc\n.", "bad-string", 1),
    (b"NS'abc\"\n.", "bad-string", 1),
    (b"NS'\n.", "bad-string", 1),
    (b"NS'\\x4'\n.", "bad-string", 1),
    (b"NS'a\\'\n.", "bad-string", 1),
    (b"NV\\u12\n.", "bad-unicode-escape", 1),
    (b"NV\\U00110000\n.", "bad-unicode-escape", 1),
    (b"N\x82\x00.", "extension-code", 1),
    (b"N\x83\x00\x00.", "extension-code", 1),
    (b"N\x84\xff\xff\xff\xff.", "extension-code", 1),
    (b"\x80\x02.", "stack-underflow", 2),
    (b"0N.", "stack-underflow", 0),
    (b"2N.", "stack-underflow", 0),
    (b"N\x86.", "stack-underflow", 1),
    (b"NR.", "stack-underflow", 1),
    (b"Na.", "stack-underflow", 1),
    (b"}Ns.", "stack-underflow", 2),
    (b"Nb.", "stack-underflow", 1),
    (b"N\x93.", "stack-underflow", 1),
    (b"NN\x92.", "stack-underflow", 2),
    (b"Q.", "stack-underflow", 0),
    (b"\x98N.", "stack-underflow", 0),
    (b"(Ne.", "stack-underflow", 2),
    (b"(NNu.", "stack-underflow", 3),
    (b"(N\x90.", "stack-underflow", 2),
    (b"Nt.", "no-mark", 1),
    (b"Nl.", "no-mark", 1),
    (b"Nd.", "no-mark", 1),
    (b"N\x91.", "no-mark", 1),
    (b"]Ne.", "no-mark", 2),
    (b"}NNu.", "no-mark", 3),
    (b"\x8fN\x90.", "no-mark", 2),
    (b"N1.", "no-mark", 1),
    (b"Nios\nx\n.", "no-mark", 1),
    (b"No.", "no-mark", 1),
    (b"N(\x85.", "pop-across-mark", 2),
    (b"NN(N\x86.", "pop-across-mark", 4),
    (b"N(R.", "pop-across-mark", 2),
    (b"](a.", "pop-across-mark", 2),
    (b"](N(.", "pop-across-mark", 4),
    (b"](2.", "pop-across-mark", 2),
    (b"N(Q.", "pop-across-mark", 2),
    (b"(o.", "pop-across-mark", 1),
    (b"N((e.", "pop-across-mark", 3),
    (b"Nh\x00.", "memo-unwritten", 1),
    (b"Nj\x05\x00\x00\x00.", "memo-unwritten", 1),
    (b"Ng7\n.", "memo-unwritten", 1),
    (b"Ng-1\n.", "memo-unwritten", 1),
    (b"Nr\x09\x00\x00\x00h\x08.", "memo-unwritten", 6),
    (b"\x80\x02q\x00N.", "memo-nothing-to-put", 2),
    (b"N(r\x00\x00\x00\x00.", "memo-nothing-to-put", 2),
    (b"N(p0\n.", "memo-nothing-to-put", 2),
    (b"\x94N.", "memo-nothing-to-put", 0),
    (b"cm\nf\nNR.", "arguments-not-tuple", 6),
    (b"cm\nf\nK\x01\x81.", "arguments-not-tuple", 7),
    (b"cm\nf\nN}\x92.", "arguments-not-tuple", 7),
    (b"cm\nf\n))\x92.", "keywords-not-dict", 7),
    (b"N\x8c\x01n\x93.", "global-not-text", 4),
    (b"\x8c\x01m]\x93.", "global-not-text", 4),
    (b"(NNNd.", "odd-items", 4),
    (b"}(NNNu.", "odd-items", 5),
]


@pytest.mark.parametrize("as_view", [False, True])
@pytest.mark.parametrize(("data", "code", "offset"), _FATAL)
def test_fatal_faults(data: bytes, code: str, offset: int, as_view: bool) -> None:
    facts = run(memoryview(data) if as_view else data)
    assert [(fault.code, fault.offset, fault.fatal) for fault in facts.faults] == [(code, offset, True)]
    assert not facts.stopped and facts.end == offset and facts.limit is None
    assert facts.faults[0].offset + facts.faults[0].length <= len(data) and facts.faults[0].detail


@pytest.mark.parametrize(
    ("data", "code", "offset"),
    [
        (b"\x80\x06N.", "unknown-protocol", 0),
        (b"I0x10\n.", "bad-decimal", 0),
        (b"I 1\n.", "bad-decimal", 0),
        (b"I007\n.", "bad-decimal", 0),
        (b"I000\n.", "bad-decimal", 0),
        (b"I+1\n.", "bad-decimal", 0),
        (b"L01L\n.", "bad-decimal", 0),
        (b"L1_0L\n.", "bad-decimal", 0),
        (b"Np 1_0\n.", "bad-decimal", 1),
        (b"Np00\n0g0\n.", "bad-decimal", 1),
        (b"Np0\n0g00\n.", "bad-decimal", 5),
        (b"F 1\n.", "bad-float", 0),
        (b"F1_0.5\n.", "bad-float", 0),
        (b"X\x01\x00\x00\x00\xff.", "bad-utf8", 0),
        (b"\x8c\x01\xff.", "bad-utf8", 0),
        (b"\x8d\x01\x00\x00\x00\x00\x00\x00\x00\xff.", "bad-utf8", 0),
        (b"c\xff\nx\n.", "bad-utf8", 0),
        (b"(ix\n\xff\n.", "bad-utf8", 1),
        (b"P\xff\n.", "bad-utf8", 0),
        (b"NN.", "items-left", 2),
        (b"(N.", "mark-left", 2),
        (b"N(0N.", "items-left", 4),
        (b"cm\nf\n}R.", "arguments-not-tuple", 6),
        (b"cm\nf\n]\x81.", "arguments-not-tuple", 6),
        (b"cm\nf\ncm\nf\n)RR.", "arguments-not-tuple", 12),
        (b"cm\nf\n)cm\nf\n)R\x92.", "keywords-not-dict", 13),
        (b"cm\nf\n)R\x8c\x01n\x93.", "global-not-text", 10),
        (b"\x80\x04\x95\x09\x00\x00\x00\x00\x00\x00\x00N.", "frame-past-end", 2),
        (b"\x80\x04\x95\x03\x00\x00\x00\x00\x00\x00\x00N.junk", "frame-past-end", 2),
        (b"\x80\x04\x95\x02\x00\x00\x00\x00\x00\x00\x00NM\x01\x00\x86.", "frame-inside-opcode", 12),
        (b"\x95\x0b\x00\x00\x00\x00\x00\x00\x00N\x95\x01\x00\x00\x00\x00\x00\x00\x00.", "frame-nested", 10),
    ],
)
def test_faults_that_the_run_survives(data: bytes, code: str, offset: int) -> None:
    facts = run(data)
    assert [(fault.code, fault.offset, fault.fatal) for fault in facts.faults] == [(code, offset, False)]
    assert facts.stopped


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"NK\x01K\x02s.", 5),
        (b")K\x01K\x02s.", 5),
        (b"]K\x01K\x02s.", 5),
        (b"N(K\x01K\x02u.", 6),
        (b"}K\x01a.", 3),
        (b"\x8c\x01tK\x01a.", 5),
        (b")(K\x01e.", 4),
        (b"](K\x01\x90.", 4),
        (b"(\x91(K\x01\x90.", 5),
        (b")Nb.", 2),
        (b"\x8c\x01tNb.", 4),
        (b"]Nb.", 2),
        (b"}Nb.", 2),
        (b"Pid\nNb.", 5),
    ],
)
def test_values_that_cannot_take_what_an_opcode_gives(data: bytes, offset: int) -> None:
    facts = run(data)
    assert [(fault.code, fault.offset, fault.fatal) for fault in facts.faults] == [(faults.CANNOT_TAKE, offset, False)]
    assert facts.stopped and facts.stack_left == 0


@pytest.mark.parametrize("data", [b"cm\nf\nNb.", b"\x82\x01Nb.", b"cm\nf\n)RNb.", b"cm\nf\n)R(K\x01\x90.", b"cm\nf\n)RK\x01a."])
def test_values_that_may_take_it(data: bytes) -> None:
    assert run(data).faults == []


def test_frames_that_end_between_opcodes_are_good() -> None:
    frame = b"\x95\x02\x00\x00\x00\x00\x00\x00\x00"
    for data in (frame + b"N.", frame + b"NN" + b"\x86.", frame + b"NN" + frame + b"\x86.", frame + b"NN" + b"C\x01a" + b"\x87."):
        assert run(b"\x80\x04" + data).faults == []


def test_a_fault_says_which_opcode_and_how_far() -> None:
    (fault,) = run(b"\x80\x02NX\x09\x00\x00\x00abc").faults
    assert (fault.opcode, fault.offset, fault.length) == ("BINUNICODE", 3, 8)
    (fault,) = run(b"cos\nsystem\n\xff").faults
    assert (fault.opcode, fault.offset, fault.length) == ("0xFF", 11, 1)


def test_names_before_a_fault_stay() -> None:
    facts = run(b"\x80\x02cposix\nsystem\nX\x01\x00\x00\x00a\x85R\xff")
    assert [event.what for event in facts.events] == ["global", "call"]
    assert run(b"I0x1\n0p 1_0\ncos\nsystem\n.").events == []
    assert [event.what for event in run(b"I0x1\n0cos\nsystem\n.").events] == ["global"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x80\x02N.", True),
        (b"\x80\x05N.", True),
        (b"\x80\x02cos\nsystem\n\xff", True),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93\xff", True),
        (b"\x80\x02(ios\nsystem\n\xff", True),
        (b"cos\nsystem\n", True),
        (b"(ios\nsystem\n", True),
        (b"(S'a'\nios\nsystem\n.", True),
        (b"N0\x8c\x02os\x8c\x06system\x93", True),
        (b"\x80\x00cos\nsystem\n", True),
        (b"", False),
        (b"\x80", False),
        (b"\x80\x02", False),
        (b"\x80\x02N", False),
        (b"\x80\x02\xff", False),
        (b"\x80\x06N.", False),
        (b"\x80\x01N.", False),
        (b"N.", False),
        (b"cos\nsystem", False),
        (b"class Module(torch.nn.Module):\n  x : int\n", False),
        (b"config of the model\nwith two lines\n", False),
        (b"\x00" * 100, False),
        (b"PK\x03\x04" + bytes(100), False),
        (b'{"a": 1}\n', False),
        (b"ios\nsystem\n", False),
    ],
)
def test_looks_like_pickle(data: bytes, expected: bool) -> None:
    assert looks_like_pickle(data) is expected
    assert looks_like_pickle(memoryview(b"??" + data), 2) is expected


def test_looking_past_a_limit() -> None:
    small = Limits(pickle_stack=10)
    assert looks_like_pickle(b"\x80\x02" + b"N" * 100 + b"cos\nsystem\n", limits=small)
    assert not looks_like_pickle(b"N" * 100, limits=small)
    assert not looks_like_pickle(b"N.", start=9)
