# SPDX-License-Identifier: Apache-2.0
"""Speed of the pickle machine against `pickletools.genops` over the same bytes, in turns and in CPU time.

Usage: python benchmarks/pickle.py [tensors] [rounds]. The pickle is shaped like torch's data.pkl: protocol 2, one
OrderedDict of tensors. A ratio below 1 means that the machine, with its tree, log and checks, is faster than the bare
disassembly.
"""

from __future__ import annotations

import gc
import resource
import struct
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import median

# The folder of this script would hide the standard library's pickle from pickletools.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

import pickletools  # noqa: E402

from fdd.pickles import run  # noqa: E402


class _Writer:
    """Writes what torch's pickler writes, with its memo numbering."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.memo: dict[str, int] = {}
        self.count = 0

    def put(self, name: str = "") -> None:
        index = self.count
        self.count += 1
        if name:
            self.memo[name] = index
        self.parts.append(b"q" + bytes((index,)) if index < 256 else b"r" + struct.pack("<I", index))

    def once(self, name: str, opcodes: bytes) -> None:
        index = self.memo.get(name)
        if index is None:
            self.parts.append(opcodes)
            self.put(name)
        else:
            self.parts.append(b"h" + bytes((index,)) if index < 256 else b"j" + struct.pack("<I", index))

    def text(self, text: str) -> None:
        raw = text.encode()
        self.once("text " + text, b"X" + struct.pack("<I", len(raw)) + raw)

    def name(self, module: str, name: str) -> None:
        self.once(f"name {module} {name}", f"c{module}\n{name}\n".encode())

    def integer(self, value: int) -> None:
        if value < 256:
            self.parts.append(b"K" + bytes((value,)))
        elif value < 65536:
            self.parts.append(b"M" + struct.pack("<H", value))
        else:
            self.parts.append(b"J" + struct.pack("<i", value))

    def integers(self, values: tuple[int, ...]) -> None:
        for value in values:
            self.integer(value)
        self.parts.append((b"\x85", b"\x86", b"\x87")[len(values) - 1])
        self.put()

    def tensor(self, number: int) -> None:
        rows, columns = (1024, 768) if number % 2 else (768, 0)
        self.name("torch._utils", "_rebuild_tensor_v2")
        self.parts.append(b"((")
        self.text("storage")
        self.name("torch", "FloatStorage")
        self.text(str(number))
        self.text("cpu")
        self.integer(rows * (columns or 1))
        self.parts.append(b"t")
        self.put()
        self.parts.append(b"Q")
        self.integer(0)
        self.integers((rows, columns) if columns else (rows,))
        self.integers((columns, 1) if columns else (1,))
        self.parts.append(b"\x89")
        self.name("collections", "OrderedDict")
        self.parts.append(b")R")
        self.put()
        self.parts.append(b"t")
        self.put()
        self.parts.append(b"R")
        self.put()


def data_pickle(tensors: int) -> bytes:
    """A data.pkl of so many tensors."""
    writer = _Writer()
    writer.parts.append(b"\x80\x02")
    writer.name("collections", "OrderedDict")
    writer.parts.append(b")R")
    writer.put()
    for start in range(0, tensors, 1000):
        writer.parts.append(b"(")
        for number in range(start, min(start + 1000, tensors)):
            writer.text(f"layers.{number // 8}.block.{number % 8}.weight")
            writer.tensor(number)
        writer.parts.append(b"u")
    writer.parts.append(b".")
    return b"".join(writer.parts)


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begin = time.process_time()
    result = work()
    seconds = time.process_time() - begin
    del result
    return seconds


def main() -> None:
    """Print the medians and their ratio."""
    tensors = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    data = data_pickle(tensors)
    facts = run(data)
    assert facts.stopped and not facts.faults and facts.limit is None
    opcodes = facts.opcode_count
    del facts
    machine: list[float] = []
    view: list[float] = []
    genops: list[float] = []
    for _ in range(rounds):
        machine.append(_seconds(lambda: run(data)))
        genops.append(_seconds(lambda: deque(pickletools.genops(data), maxlen=0)))
        view.append(_seconds(lambda: run(memoryview(data))))
    megabytes = len(data) / 1e6
    print(f"{tensors} tensors, {megabytes:.1f} MB, {opcodes} opcodes, {rounds} rounds, medians")
    for name, seconds in (("machine", machine), ("machine, memoryview", view), ("genops", genops)):
        print(f"{name:20} {median(seconds):.3f} s  {megabytes / median(seconds):.1f} MB/s")
    print(f"ratio machine/genops {median(machine) / median(genops):.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
