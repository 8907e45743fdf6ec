# SPDX-License-Identifier: Apache-2.0
"""``python -m corpus.build`` writes all files of the corpus that have a recipe; ``--check`` only tells what differs."""

from __future__ import annotations

import argparse
import sys

from corpus.build.recipes import build, load_recipes


def main(arguments: list[str] | None = None) -> int:
    """Build or check; the exit code is 1 where a check finds the corpus out of date, or where a stray file lies in it."""
    parser = argparse.ArgumentParser(prog="python -m corpus.build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs from its recipe")
    options = parser.parse_args(arguments)
    outcome = build(load_recipes(), check=options.check)
    for path in outcome.written:
        print(f"out of date: {path}" if options.check else f"written: {path}")
    for path in outcome.strays:
        print(f"no recipe makes it: {path}")
    print(f"{len(outcome.unchanged)} unchanged, {len(outcome.written)} changed, {len(outcome.strays)} stray", file=sys.stderr)
    return 1 if outcome.strays or (options.check and outcome.written) else 0


if __name__ == "__main__":
    sys.exit(main())
