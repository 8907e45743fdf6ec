# SPDX-License-Identifier: Apache-2.0
"""What full validation of one large file costs: time against `openssl dgst -sha256` and `unzip -t` with `sha256sum`, and memory.

Usage: python benchmarks/fixity.py [--rounds N] [--file PATH] [--megabytes N] [--folder DIR]

All programs run in turns, so that what else the machine does touches them alike; medians of their wall time and of their CPU
time (user and system) are told, and the median of the ratio to openssl within each round. Beside each stands the foreign load:
cores that others kept busy meanwhile. Above 0.3 of a core the wall times say little, and the CPU ratios are what counts.
`fdd validate` computes SHA-256 of the file and of every record, and CRC-32; `zlib` is the same without isal, `stats` with
statistics of every value. Without ``--file``, files shaped like torch's are made of zeros that take no room on disk.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)

from corpus.build.archives import records_around  # noqa: E402
from corpus.build.pickles import Global, dump, ordered_dict  # noqa: E402
from corpus.build.tensors import Lowering, Storage, Tensor, contiguous  # noqa: E402
from fdd.formats.pytorch.canonical_layout import CanonicalRecord, layout  # noqa: E402

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
"""Modules are compiled once, as an installation does it."""
STORAGES = 16
FOLDER = "model/"
WITHOUT_ISAL = "import sys; sys.modules['isal'] = None; from fdd.cli.main import main; sys.exit(main(sys.argv[1:]))"
LARGEST_CPU_RATIO = 2.1
LARGEST_WALL_RATIO = 1.25
LARGEST_STATS_RATIO = 1.15
LARGEST_MEMORY = 64
"""The limits that `shared/reference/performance.md` and the issue on fixity set: ratios to openssl, and MiB."""
QUIET = 0.3
"""Foreign load in cores up to which wall times count."""


def make_file(path: Path, size: int) -> None:
    """Write a state dict of so many bytes in zeros, as torch lays it out; the zeros are a hole in the file."""
    numel = size // STORAGES // 4
    kind, tensors = Global("torch", "FloatStorage"), []
    for number in range(STORAGES):
        storage = Storage(kind, b"", numel)
        tensors.append((f"layers.{number}.weight", Tensor(storage, (numel,), contiguous((numel,)))))
    lowering = Lowering(str)
    pickle = dump(lowering.lower(ordered_dict(tensors)))
    records = records_around(pickle, lowering.keyed)
    zeros = numel * 4
    checksum = 0
    for _ in range(zeros >> 20):
        checksum = zlib.crc32(bytes(1 << 20), checksum)
    checksum = zlib.crc32(bytes(zeros & ((1 << 20) - 1)), checksum)
    rows = []
    for name, data in records:
        held = (zeros, checksum) if name.startswith("data/") else (len(data), zlib.crc32(data))
        rows.append(CanonicalRecord((FOLDER + name).encode(), held[0], held[0], held[1], 0, 0, 0))
    with path.open("wb") as stream:
        for piece in layout(rows):
            stream.write(piece.data)
            if piece.what == "local-header" and piece.record is not None:
                name, data = records[piece.record]
                if name.startswith("data/"):
                    stream.seek(zeros, os.SEEK_CUR)
                else:
                    stream.write(data)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a program: seconds, MiB at the most, and cores that others kept busy."""

    wall: float
    cpu: float
    memory: float
    foreign: float


def busy_seconds() -> float:
    """CPU seconds that all processes of the machine have used."""
    with open("/proc/stat", encoding="ascii") as stream:
        fields = [int(value) for value in stream.readline().split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def run(commands: Sequence[list[str]]) -> Run:
    """Run commands one after the other, their output thrown away."""
    before, began = busy_seconds(), time.perf_counter()
    cpu = memory = 0.0
    for command in commands:
        with open(os.devnull, "wb") as nothing:
            process = os.posix_spawnp(
                command[0],
                command,
                ENVIRONMENT,
                file_actions=[(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1)],
            )
        _, status, usage = os.wait4(process, 0)
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
        cpu += usage.ru_utime + usage.ru_stime
        memory = max(memory, usage.ru_maxrss / 1024)
    wall = time.perf_counter() - began
    return Run(wall, cpu, memory, max(0.0, (busy_seconds() - before - cpu) / wall))


def programs(path: str) -> dict[str, list[list[str]]]:
    """The programs by what they are called in the table; those that are not installed are left out."""
    validate = ["validate", path, "--format", "json", "--output", os.devnull, "--quiet"]
    wanted = {
        "openssl dgst -sha256": [["openssl", "dgst", "-sha256", path]],
        "fdd validate": [[sys.executable, "-m", "fdd", *validate]],
        "fdd validate, zlib": [[sys.executable, "-c", WITHOUT_ISAL, *validate]],
        "fdd validate --stats": [[sys.executable, "-m", "fdd", *validate, "--stats"]],
        "unzip -t; sha256sum": [["unzip", "-tqq", path], ["sha256sum", path]],
    }
    return {name: commands for name, commands in wanted.items() if all(shutil.which(command[0]) for command in commands)}


def timed(path: Path, rounds: int) -> None:
    """Run all programs in turns, and print the table."""
    found = programs(str(path))
    rows: dict[str, list[Run]] = {name: [] for name in found}
    for commands in found.values():
        run(commands)  # the file comes into the cache, and bytecode is written
    for _ in range(rounds):
        for name, commands in found.items():
            rows[name].append(run(commands))
    size = path.stat().st_size
    print(f"{size} bytes, {rounds} rounds in turns, {os.cpu_count()} cores")
    print("| program | wall s | CPU s | wall / openssl | CPU / openssl | MiB | foreign load |")
    print("|---|---|---|---|---|---|---|")
    peer = rows["openssl dgst -sha256"]
    for name, runs in rows.items():
        wall, cpu = (median(values) for values in ([row.wall for row in runs], [row.cpu for row in runs]))
        ratios = _ratios(runs, peer)
        memory, foreign = max(row.memory for row in runs), median(row.foreign for row in runs)
        print(f"| {name} | {wall:.3f} | {cpu:.3f} | {ratios[0]:.2f} | {ratios[1]:.2f} | {memory:.0f} | {foreign:.2f} |")
    fdd, stats = rows["fdd validate"], rows["fdd validate --stats"]
    quiet = median(row.foreign for runs in rows.values() for row in runs) <= QUIET
    tell("CPU / openssl", _ratios(fdd, peer)[1], LARGEST_CPU_RATIO)
    tell(f"wall / openssl{'' if quiet else ' (loaded: says little)'}", _ratios(fdd, peer)[0], LARGEST_WALL_RATIO)
    tell("CPU of --stats on top", _ratios(stats, fdd)[1], LARGEST_STATS_RATIO)


def _ratios(runs: Sequence[Run], peer: Sequence[Run]) -> tuple[float, float]:
    """Medians of the ratios within each round: of wall and CPU time."""
    pairs = list(zip(runs, peer, strict=True))
    return median(one.wall / other.wall for one, other in pairs), median(one.cpu / other.cpu for one, other in pairs)


def tell(what: str, value: float, limit: float) -> None:
    """A figure and the limit it should keep."""
    print(f"{what}: {value:.2f}, at most {limit:g}: {'kept' if value <= limit else 'NOT KEPT'}")


def memory_of(folder: Path) -> None:
    """Peak memory must not follow the size of the file."""
    for megabytes in (256, 4096):
        with made(folder, megabytes) as path:
            command = [sys.executable, "-m", "fdd", "validate", str(path), "--format", "json", "--output", os.devnull, "--quiet"]
            tell(f"MiB at {megabytes} MB", run([command]).memory, LARGEST_MEMORY)


@contextmanager
def made(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file of that size, gone afterwards."""
    path = folder / f"{megabytes}.pt"
    try:
        make_file(path, megabytes << 20)
        yield path
    finally:
        path.unlink(missing_ok=True)


def main() -> None:
    """Time, then memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file", type=Path, help="a valid PyTorch file; without it one is made")
    parser.add_argument("--megabytes", type=int, default=1024, help="the size of the one that is made (default: 1024)")
    parser.add_argument("--folder", type=Path, help="where files are made (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        if options.file is not None:
            timed(options.file, options.rounds)
        else:
            with made(Path(name), options.megabytes) as path:
                timed(path, options.rounds)
        memory_of(Path(name))


if __name__ == "__main__":
    main()
