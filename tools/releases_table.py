# SPDX-License-Identifier: Apache-2.0
"""Hold the range of releases that fdd infers against the true writer, over a folder of samples with ``expected.json``.

usage: python tools/releases_table.py FOLDER     (prints a row for each kind and range, and the files outside their range)
"""

from __future__ import annotations

import collections
import json
import sys
from pathlib import Path

import fdd


def release(text: str) -> tuple[int, ...]:
    """`2.7.1+cu126` -> (2, 7)."""
    return tuple(int(part) for part in text.split("+", maxsplit=1)[0].split(".")[:2])


def main(folder: Path) -> int:
    """Print the table; the exit code is 1 where a file lies outside its range."""
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    rows: dict[tuple[str, str], set[tuple[int, ...]]] = collections.defaultdict(set)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    outside: list[str] = []
    for name, entry in expected.items():
        if "releases" not in entry:
            continue
        report = fdd.extract(str(folder / name))
        found = report.properties.get("torch_releases") or {"min": None, "max": None}
        true = release(entry["releases"]["in"].replace("a0", ""))
        low, high = found["min"], found["max"]
        kind = report.identification.kind if report.identification is not None else "?"
        key = (kind, f"{low or '-'} .. {high or '-'}")
        rows[key].add(true)
        counts[key] += 1
        if (low and true < release(low)) or (high and true > release(high)):
            outside.append(f"{name}: {low}..{high}, written by {entry['releases']['in']}")
    for key in sorted(rows):
        writers = ", ".join(".".join(map(str, true)) for true in sorted(rows[key]))
        print(f"{key[0]:20} {key[1]:14} {counts[key]:5}  {writers}")
    print(f"{sum(counts.values())} files, {len(outside)} outside their range")
    print("\n".join(outside))
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
