# SPDX-License-Identifier: Apache-2.0
"""The opcode table against CPython's."""

from __future__ import annotations

import pickletools

import pytest

from fdd.pickles.machine import HANDLERS
from fdd.pickles.opcodes import BY_CODE, BY_NAME, NEEDS_MARK, OPCODES, Form, Opcode

_CPYTHON = {ord(opcode.code): opcode for opcode in pickletools.opcodes}
_EIGHT_BYTES = pickletools.bytes8.n
_COUNTED = {Form.COUNTED1, Form.COUNTED4, Form.SIGNED_COUNTED4, Form.COUNTED8}


def test_codes_names_and_protocols_are_those_of_cpython() -> None:
    ours = {opcode.code: (opcode.name, opcode.protocol) for opcode in OPCODES}
    assert ours == {code: (opcode.name, opcode.proto) for code, opcode in _CPYTHON.items()}


@pytest.mark.parametrize("opcode", OPCODES, ids=lambda opcode: opcode.name)
def test_argument_form_is_that_of_cpython(opcode: Opcode) -> None:
    theirs = _CPYTHON[opcode.code].arg
    if theirs is None:
        assert opcode.form is Form.NONE
    elif theirs.n >= 0:
        assert (opcode.form.fixed, opcode.form.lines, opcode.form.prefix) == (theirs.n, 0, 0)
    elif theirs.n == pickletools.UP_TO_NEWLINE:
        assert opcode.form.lines == (2 if theirs.name == "stringnl_noescape_pair" else 1)
    else:
        prefix = {pickletools.TAKEN_FROM_ARGUMENT1: 1, _EIGHT_BYTES: 8}.get(theirs.n, 4)
        assert opcode.form in _COUNTED and opcode.form.prefix == prefix
        assert (opcode.form is Form.SIGNED_COUNTED4) == (theirs.n == pickletools.TAKEN_FROM_ARGUMENT4)


def test_opcodes_that_need_a_mark_are_those_of_cpython() -> None:
    theirs = {code for code, opcode in _CPYTHON.items() if pickletools.markobject in opcode.stack_before}
    assert theirs == NEEDS_MARK


def test_every_opcode_has_a_handler_and_no_other_byte_has() -> None:
    for code in range(256):
        assert (BY_CODE[code] is None) == (HANDLERS[code] is None) == (code not in _CPYTHON)
    assert len(BY_NAME) == len(OPCODES)
