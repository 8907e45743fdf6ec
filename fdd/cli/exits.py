# SPDX-License-Identifier: Apache-2.0
"""Exit codes (contract, section 3), and how they follow from reports. The highest that applies is used."""

from __future__ import annotations

from enum import IntEnum

from fdd.core.finding import Level, Reason, Safety, Verdict
from fdd.core.report import Report


class Exit(IntEnum):
    """What the process says when it ends."""

    GOOD = 0
    BAD = 1
    USAGE = 2
    UNDECIDED = 3
    INTERNAL = 70
    INTERRUPTED = 130


FAIL_ON = ("dangerous", "unlisted", "warning", "never")
"""What `--fail-on` takes. Each word includes those before it, but for `never`."""


def exit_of(report: Report, *, command: str, fail_on: str = "dangerous", in_folder: bool = False, claims: bool = True) -> Exit:
    """The exit code that one report asks for.

    In a folder a file of a foreign kind counts only where its name ``claims`` to be a PyTorch file.
    """
    if report.error is not None:
        return Exit.INTERNAL if report.internal else Exit.UNDECIDED
    if any(outcome.reason is Reason.CRASH for outcome in report.outcomes):
        return Exit.INTERNAL
    foreign = report.identification is not None and report.identification.format is None
    if foreign and in_folder and not claims:
        return _fixity_exit(report)
    if command != "validate" or report.status is None:
        unknown = report.identification is not None and report.identification.kind == "unknown"
        return Exit.BAD if unknown else Exit.GOOD
    if report.verdict is Verdict.UNDETERMINED:
        return Exit.UNDECIDED
    if report.verdict not in (Verdict.VALID, Verdict.STRUCTURE_VALID) or _fails(report, fail_on):
        return max(Exit.BAD, _profiles_exit(report), _fixity_exit(report))
    return max(_profiles_exit(report), _fixity_exit(report))


def _fixity_exit(report: Report) -> Exit:
    """Of digests that were expected: a file beside that says nothing usable asks for a look too."""
    if not report.fixity:
        return Exit.GOOD
    matches = report.fixity.get("matches")
    return Exit.UNDECIDED if matches is None else Exit.GOOD if matches else Exit.BAD


def _profiles_exit(report: Report) -> Exit:
    """A profile that could not be decided asks for a look as a verdict does that could not."""
    answers = [profile.get("conforms", True) for profile in report.profiles]
    return Exit.UNDECIDED if None in answers else Exit.GOOD if all(answers) else Exit.BAD


def _fails(report: Report, fail_on: str) -> bool:
    if fail_on == "never":
        return False
    if report.safety is Safety.DANGEROUS:
        return True
    if fail_on != "dangerous" and report.safety in (Safety.UNLISTED, Safety.UNDETERMINED):
        return True
    return fail_on == "warning" and any(finding.level is Level.WARNING for finding in report.findings)
