# SPDX-License-Identifier: Apache-2.0
"""Runs the command line, in this process or in one of its own, and makes folders of files to run it on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from corpus.build.kit import Global, Raw, eager, ordered_dict, tensor
from fdd.cli.main import main

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = [sys.executable, "-m", "fdd"]


class Ran(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def reports(self) -> list[dict[str, Any]]:
        """The reports of JSON lines, without sets."""
        return [document for document in self.lines if "set" not in document]

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Runner = Callable[..., Ran]


def runner(capsys: pytest.CaptureFixture[str]) -> Runner:
    """Runs `fdd` in this process."""

    def run(*arguments: str | Path) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return run


def started(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start `fdd` in a process of its own, output and errors to pipes unless said otherwise."""
    given: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT, **options}
    process: subprocess.Popen[bytes] = subprocess.Popen([*PROGRAM, *map(str, arguments)], **given)
    return process


def ended(process: subprocess.Popen[bytes], data: bytes | None = None) -> Ran:
    """Wait for the end."""
    with process:
        try:
            out, err = process.communicate(data, timeout=100)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return Ran(process.returncode, (out or b"").decode(), (err or b"").decode())


@cache
def good() -> bytes:
    """Valid, and safe to load."""
    return eager(ordered_dict([("a", tensor([1.0, 2.0]))]))


@cache
def broken() -> bytes:
    """Not well-formed: a byte of the pickle is another."""
    data = bytearray(good())
    data[data.index(b"OrderedDict")] ^= 0x20
    return bytes(data)


@cache
def unlisted() -> bytes:
    """Valid; loading it needs a class that is on no list."""
    return eager({"x": Global("somewhere.models", "Net")})


@cache
def dangerous() -> bytes:
    """Valid; loading it would run a command."""
    return eager({"x": Raw(b"cos\nsystem\nX\x04\0\0\0true\x85R")})


@cache
def warned() -> bytes:
    """Valid with a warning: the archive has a comment."""
    data = bytearray(good())
    data[-2:] = (5).to_bytes(2, "little")
    return bytes(data) + b"hello"


FOREIGN = b"\x89HDF\r\n\x1a\n" + bytes(200)


def fill(folder: Path, **files: bytes) -> Path:
    """Write files named after the arguments, with a double underscore for the dot and a single one in folders."""
    for name, data in files.items():
        path = folder / name.replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder
