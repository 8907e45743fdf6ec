# SPDX-License-Identifier: Apache-2.0
"""Running the pickles of a file: what follows STOP, what lies in strings, what only looks like a pickle, and the survey."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

import fdd
from corpus.build import opcodes as op
from corpus.build.pickle_kit import HEAD, around
from corpus.build.pickles import Call, Global, New, dump
from fdd.core.finding import Reason, State
from fdd.core.model import Identification
from fdd.core.source import BytesSource
from fdd.core.span import Span
from fdd.formats.pytorch.document import PickleRecord, TorchDocument
from fdd.formats.pytorch.evidence import GRAMMAR_RULES
from fdd.formats.pytorch.pickled import collect_globals, probe_hidden, run_part, run_pickle
from fdd.formats.pytorch.survey import LEAST_SHARED, survey
from fdd.limits import Limits
from fdd.pickles import run

CALL = op.global_("posix", "getcwd") + op.EMPTY_TUPLE + op.REDUCE
PAYLOAD = HEAD + CALL + op.STOP


def _document(data: bytes, kind: str = "torch-zip") -> TorchDocument:
    return TorchDocument(BytesSource(data), None, Identification(kind, kind))


def _run(data: bytes, role: str = "object", limits: Limits = Limits()) -> TorchDocument:
    document = _document(data)
    run_pickle(document, data, role=role, record="data.pkl", span=Span(0, len(data)), shift=0, limits=limits)
    collect_globals(document)
    return document


def _roles(document: TorchDocument) -> list[str]:
    return [pickle.role for pickle in document.pickles]


# Behind STOP


@pytest.mark.parametrize("between", [b"", b"--", b"\x80\x02\xff", b"\x80" * 9])
def test_a_pickle_behind_stop_is_found_whatever_lies_between(between: bytes) -> None:
    document = _run(dump({}) + between + PAYLOAD)
    assert _roles(document) == ["object", "trailing"]
    assert [(use.path, use.role, use.grade) for use in document.globals] == [("posix.getcwd", "trailing", "dangerous")]


def test_bare_pickles_behind_one_another_are_all_run() -> None:
    document = _run(dump(1) * 3 + PAYLOAD, role="foreign")
    assert _roles(document) == ["foreign"] * 4 and document.globals[0].called


def test_bytes_behind_stop_that_are_no_pickle_are_none() -> None:
    assert _roles(_run(dump({}) + b"\x80\x02\xff" * 1000)) == ["object"]


# In strings


@pytest.mark.parametrize("protocol", [2, 4])
def test_pickles_in_the_bytes_a_call_gets_are_run_two_levels_deep(protocol: int) -> None:
    def packed(pickle: bytes) -> bytes:
        return dump(Call(Global("mine", "restore"), (pickle,)), protocol)

    document = _run(packed(packed(PAYLOAD)))
    assert _roles(document) == ["object", "nested", "nested"] and document.followed
    assert ("posix.getcwd", "nested") in [(use.path, use.role) for use in document.globals]
    deeper = _run(packed(packed(packed(PAYLOAD))))
    assert _roles(deeper) == ["object", "nested", "nested"] and not deeper.followed


@pytest.mark.parametrize(
    "call",
    [
        Call(Global("mine", "f"), ((PAYLOAD, 1),)),
        Call(Global("mine", "f"), ([PAYLOAD],)),
        New(Global("mine", "T"), (), PAYLOAD),
        New(Global("mine", "T"), (), (None, PAYLOAD)),
    ],
)
def test_pickles_in_sequences_and_states_are_run(call: object) -> None:
    assert _roles(_run(dump(call, 4))) == ["object", "nested"]


def test_pickles_behind_one_another_in_a_string_are_all_run() -> None:
    document = _run(dump(Call(Global("mine", "f"), (dump(1, 2) + PAYLOAD,)), 4))
    assert _roles(document) == ["object", "nested", "nested"]


def test_an_archive_in_a_string_cannot_be_followed() -> None:
    document = _run(dump(Call(Global("mine", "f"), (b"PK\x03\x04" + bytes(30),)), 4))
    assert _roles(document) == ["object"] and not document.followed


def test_strings_of_plain_values_are_no_pickles_for_anybody() -> None:
    assert _roles(_run(dump({"blob": PAYLOAD}, 4))) == ["object"]


# Hidden


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"cat\ndog\nbird\n", False),
        (b"cat\ndog\n.", True),
        (b"cposix\nsystem\n", True),
        (b"cat\ndog\n(tR", True),
        (PAYLOAD, True),
        (b"import os\n", False),
        (b"", False),
    ],
)
def test_text_that_begins_like_a_global_is_no_hidden_pickle(data: bytes, found: bool) -> None:
    document = _document(data)
    assert probe_hidden(document, Span(0, len(data)), "x", Limits()) is found
    assert _roles(document) == ["hidden"] * found


# Parts of a stream


def test_a_part_ends_at_its_stop() -> None:
    first, second = dump({"a": "x" * 100_000}), dump(2)
    document = _document(first + second + b"rest")
    parts = [run_part(document, 0, document.size, role="object", record="object", limits=Limits())]
    parts.append(run_part(document, parts[0].span.end, document.size, role="keys", record="keys", limits=Limits()))
    assert [(part.span, part.facts.stopped, part.data_length) for part in parts] == [
        (Span(0, len(first)), True, len(first)),
        (Span(len(first), len(second)), True, len(second)),
    ]
    assert parts[1].place(0, 2) == Span(len(first), 2)


def test_a_cut_part_is_read_to_the_end_and_a_long_one_to_the_limit() -> None:
    data = dump({"a": "x" * 100_000})[:-1]
    cut = run_part(_document(data), 0, len(data), role="object", record="object", limits=Limits())
    assert [fault.code for fault in cut.facts.faults] == ["no-stop"] and cut.span == Span(0, len(data))
    limited = run_part(_document(data), 0, len(data), role="object", record="object", limits=Limits(pickle_bytes=90_000))
    assert limited.facts.limit == "pickle_bytes" and not limited.facts.faults


# Lengths


@pytest.mark.parametrize(
    ("stream", "announced"),
    [
        (b"X" + struct.pack(">I", 6) + b"weight.", (0x06000000, 6)),
        (b"X" + struct.pack("<I", 255) + b"abc", (255, 0xFF000000)),
        (b"T" + struct.pack("<i", -1), (-1, 0xFFFFFFFF)),
        (b"\x8d" + struct.pack("<Q", 1 << 40), (1 << 40, 1 << 16)),
        (b"X\x01\x00", None),
        (b"J\x01", None),
        (b"cposix\n", None),
        (b"}.", None),
    ],
)
def test_the_length_that_leads_past_the_end_is_read_both_ways(stream: bytes, announced: tuple[int, int] | None) -> None:
    assert _run(HEAD + stream).pickles[0].announced == announced


# Globals


def test_mentions_of_a_global_are_counted_and_placed() -> None:
    data = HEAD + op.MARK + op.global_("posix", "getcwd") + op.POP + CALL + op.global_("torch", "Size") + op.TUPLE + op.STOP
    uses = {use.path: use for use in _run(data).globals}
    assert (uses["posix.getcwd"].count, uses["posix.getcwd"].called, uses["posix.getcwd"].span) == (2, True, Span(3, 14))
    assert (uses["torch.Size"].grade, uses["torch.Size"].called) == ("listed", False)


def test_classes_with_code_in_the_archive_are_listed_in_scripts_only() -> None:
    data = HEAD + op.MARK + b"".join(op.global_(*name) for name in (("__torch__.a", "M"), ("mine.b", "T"), ("posix", "getcwd")))
    data += op.TUPLE + op.STOP
    grades = {}
    for kind in ("torchscript", "torch-zip"):
        document = _document(data, kind)
        run_pickle(document, data, role="object", record="data.pkl", span=Span(0, len(data)), shift=0, limits=Limits())
        collect_globals(document, frozenset({"mine.b"}))
        grades[kind] = [use.grade for use in document.globals]
    assert grades == {"torchscript": ["listed", "listed", "dangerous"], "torch-zip": ["unlisted", "unlisted", "dangerous"]}


# The survey


@pytest.mark.parametrize(
    ("key", "what"),
    [
        (op.EMPTY_LIST, "a list"),
        (op.EMPTY_DICT, "a dict"),
        (op.EMPTY_SET, "a set"),
        (op.EMPTY_LIST + op.TUPLE1 + op.TUPLE1, "a list"),
        (op.MARK + op.EMPTY_LIST + op.FROZENSET, "a list"),
        (op.global_("collections", "OrderedDict") + op.EMPTY_TUPLE + op.REDUCE, "a OrderedDict"),
        (op.MARK + op.text("a") + op.TUPLE1 + op.FROZENSET, None),
        (op.global_("torch", "Size") + op.EMPTY_TUPLE + op.REDUCE, None),
        (op.global_("torch", "float32"), None),
        (op.NONE, None),
    ],
)
def test_keys_without_hash(key: bytes, what: str | None) -> None:
    found = survey(run(HEAD + op.EMPTY_DICT + key + op.NONE + op.SETITEM + op.STOP))
    assert {name for _, name in found.unhashable} == ({what} if what else set())


def test_repeated_keys_are_those_a_dict_takes_for_equal() -> None:
    keys = [op.integer(1), op.NEWTRUE, op.text("1"), op.real(1.0), op.text("a"), op.text("a"), op.EMPTY_TUPLE, op.EMPTY_TUPLE]
    body = op.EMPTY_DICT + op.MARK + b"".join(key + op.NONE for key in keys) + op.SETITEMS
    assert [key for _, key in survey(run(HEAD + body + op.STOP)).repeated] == [True, 1.0, "a"]


def _doubled(levels: int) -> bytes:
    return op.NONE + op.TUPLE1 + (op.DUP + op.TUPLE2) * levels


@pytest.mark.parametrize("tail", [op.STOP, op.POP + op.NONE + op.STOP, b"\xff", op.MARK + op.NONE + op.STOP])
def test_sharing_is_seen_in_what_is_thrown_away_and_in_front_of_a_fault(tail: bytes) -> None:
    found = survey(run(HEAD + _doubled(40) + tail))
    assert found.expanded > 2**40 and found.present < 200


def test_little_sharing_is_not_counted() -> None:
    found = survey(run(HEAD + _doubled(LEAST_SHARED - 1) + op.STOP))
    assert (found.present, found.expanded) == (0, 0)


def test_many_references_to_one_large_value_are_no_growth() -> None:
    once = op.EMPTY_LIST + op.put(0) + op.MARK + op.NONE * 500 + op.APPENDS
    found = survey(run(HEAD + once + (op.get(0) + op.POP) * 5000 + op.STOP))
    assert found.expanded < 1_000


def test_paths_of_home_folders() -> None:
    texts = ["/home/jane/x", "C:\\Users\\jane\\x", "/Users/jane", "file:///home/jane", "/usr/lib", "see /home/jane"]
    texts.append("/home" + "/")  # nobody's
    body = op.EMPTY_LIST + op.MARK + b"".join(op.text(text) for text in texts) + op.APPENDS
    assert sorted(path for _, path in survey(run(HEAD + body + op.STOP)).homes) == sorted(texts[:4])


def test_the_survey_does_not_expand_what_it_walks() -> None:
    facts = run(HEAD + op.EMPTY_DICT + _doubled(200) + op.NONE + op.SETITEM + op.STOP)
    tracemalloc.start()
    survey(facts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


# Faults and rules


@pytest.mark.parametrize(
    "body",
    [
        b"\xff", b"cposix\n", b"J\x01", b"X\xff\x00\x00\x00abc", b"T\xff\xff\xff\xff", b"}", b"", op.TUPLE + op.STOP, op.STOP,
        op.put(0), op.MARK + op.put(0), op.get(3), b"Ix\n.", b"Fx\n.", b"Sx\n.", b"V\\u12\n.", b"L\n.", b"p-1\n.", b"}p-1\n.",
        op.ext1(0), b"\x84" + struct.pack("<i", -5), op.global_("a", "b") + op.integer(1) + op.REDUCE,
        op.EMPTY_DICT + op.MARK + op.NONE + op.SETITEMS, op.MARK + op.NONE + b"d", op.MARK + b"o", op.MARK + op.NONE + op.APPEND,
        op.integer(1) + op.integer(2) + op.STACK_GLOBAL, op.global_("a", "b") + op.EMPTY_TUPLE + op.NONE + op.NEWOBJ_EX,
    ],
)  # fmt: skip
def test_whatever_ends_a_run_fails_a_rule_that_stands_for_the_missing_object(body: bytes) -> None:
    report = fdd.validate(around(HEAD + body))
    failed = {outcome.rule for outcome in report.outcomes if outcome.state is State.FAILED}
    assert failed & set(GRAMMAR_RULES), body
    assert report.verdict is not None and report.verdict.value == "not-well-formed"
    assert not [outcome for outcome in report.outcomes if outcome.reason is Reason.CRASH]


def test_a_record_without_a_shift_is_placed_as_a_whole() -> None:
    pickle = PickleRecord("data.pkl", "object", run(dump({})), Span(100, 40), None, 5)
    assert pickle.place(3) == Span(100, 40)
