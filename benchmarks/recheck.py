# SPDX-License-Identifier: Apache-2.0
"""Time to judge stored reports by one profile and by one policy, without the files.

Usage: python benchmarks/recheck.py [reports] [profile] [policy]. The reports are those of the corpus, over and over; reading
them from JSON is timed apart.
"""

from __future__ import annotations

import sys
import time
import tomllib
from itertools import cycle, islice
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

import fdd  # noqa: E402
from fdd import api  # noqa: E402
from fdd.core.report import Report  # noqa: E402
from fdd.resources import corpus_dir, profiles_dir  # noqa: E402


def stored(count: int) -> list[str]:
    """Stored reports, as many as asked for."""
    manifest = tomllib.loads((corpus_dir() / "manifest.toml").read_text(encoding="utf-8"))["file"]
    texts = [fdd.validate(str(corpus_dir() / entry["path"]), name=entry.get("name")).to_json(indent=None) for entry in manifest]
    return list(islice(cycle(texts), count))


def main(count: int, profile: str, policy: str) -> None:
    """Print a line for each step: wall-clock seconds, and milliseconds a report."""
    texts = stored(count)
    print(f"{count} stored reports, {sum(map(len, texts)) / 1e6:.1f} MB of JSON")
    began = time.perf_counter()
    reports = [Report.from_json(text) for text in texts]
    tell("read from JSON", count, time.perf_counter() - began)
    for name in (profile, policy):
        began = time.perf_counter()
        demands = api.load_demands([name])
        print(f"load {name}: {time.perf_counter() - began:.3f} s, once")
        began = time.perf_counter()
        judged = [api.rejudged(report, demands) for report in reports]
        tell(f"judge by {Path(name).name}", count, time.perf_counter() - began)
        print(f"  {sum(report.profiles[0]['conforms'] is True for report in judged)} conform")


def tell(what: str, count: int, seconds: float) -> None:
    """One line of the result."""
    print(f"{what}: {seconds:.3f} s, {seconds / count * 1e3:.3f} ms a report")


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 1_000,
        sys.argv[2] if len(sys.argv) > 2 else "archive-strict",
        sys.argv[3] if len(sys.argv) > 3 else str(profiles_dir() / "policies" / "ready-to-publish.sch"),
    )
