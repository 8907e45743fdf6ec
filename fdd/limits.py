# SPDX-License-Identifier: Apache-2.0
"""Every limit in one place. Contract section 1: a limit may end in `undetermined` only above these values."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1 << 10
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may spend on one file. Counts unless a unit is named.

    The first group decides when a verdict becomes `undetermined`; the second only how much is shown.
    """

    pickle_bytes: int = 512 * MIB
    """Largest pickle that is followed, in bytes."""
    pickle_nodes: int = 5_000_000
    """Values a pickle may create before the machine stops."""
    pickle_stack: int = 200_000
    """Items on the pickle stack, marks included."""
    pickle_nesting: int = 50_000
    """Deepest nesting of containers."""
    inflated_bytes: int = 32 * MIB
    """Bytes inflated from one record *into memory*; streaming for checksums has no limit."""
    inflate_ratio: int = 1_000
    """Inflated bytes per deflated byte above which a record counts as a bomb."""
    directory_entries: int = 1_000_000
    """Central directory entries that are read."""
    nested_pickles: int = 2
    """Levels of pickles inside bytes and strings of a pickle that are followed."""
    nested_files: int = 3
    """Levels of torch files inside torch files that are opened."""
    stdin_bytes: int = 4 << 30
    """Bytes taken from standard input before it is refused."""
    policy_seconds: float = 20.0
    """What a Schematron policy may take to compile, and then for each report, in seconds."""
    policy_memory_bytes: int = 4 << 30
    """Memory that the process of a policy may address, where the system can limit it."""
    policy_answer_bytes: int = 64 * MIB
    """Longest answer of a policy."""

    global_name_bytes: int = 1_024
    """Longest module or name of a GLOBAL that is kept whole."""
    decimal_digits: int = 1_000
    """Longest decimal LONG turned into a number; longer ones stay text."""
    findings_per_rule: int = 200
    """Findings of one rule shown one by one; the rest is counted in the last."""
    text_bytes: int = 64 * KIB
    """Longest text or JSON taken from a record into the report."""
