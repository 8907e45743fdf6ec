# SPDX-License-Identifier: Apache-2.0
"""Print manifest entries for corpus files as fdd sees them now: a draft to read line by line, not to paste unread.

usage: python tools/manifest_entry.py PATH...      (paths below corpus/)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import fdd


def entry(path: str) -> str:
    """The entry of one corpus file."""
    report = fdd.validate(str(ROOT / "corpus" / path))
    assert report.identification is not None and report.status is not None
    places = []
    for finding in report.findings:
        place = f" {finding.offset}+{finding.length}" if finding.offset is not None else ""
        count = f" x{finding.count}" if finding.count > 1 else ""
        places.append(f"{finding.rule}{place}{count}")
    lines = [
        "[[file]]",
        f"path = {json.dumps(path, ensure_ascii=False)}",
        'says = ""',
        f'kind = "{report.identification.kind}"',
        f'verdict = "{report.status.verdict.value}"',
        f'safety = "{report.status.safety.value if report.status.safety is not None else "none"}"',
    ]
    if report.properties.get("content") not in (None, "none"):
        lines.append(f'content = "{report.properties["content"]}"')
    lines.append(f"findings = {json.dumps(sorted(places))}")
    return "\n".join(lines)


if __name__ == "__main__":
    print("\n\n".join(entry(path) for path in sys.argv[1:]))
