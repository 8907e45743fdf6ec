# SPDX-License-Identifier: Apache-2.0
"""How the findings on damage say counts, names and losses."""

from __future__ import annotations

from collections.abc import Sequence

from fdd.formats.pytorch.damage_facts import CutOff, StorageTally

_MOST_NAMES = 4
_LONGEST = 56


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 record`, `2 records`."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def listed(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """`a, b and 3 more`; long names are cut in the middle."""
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}...{name[-_LONGEST // 2 :]}" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def quoted(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """The names of tensors, in quotation marks; the object itself has no name."""
    return listed([f'"{name}"' if name else "the tensor that is the object itself" for name in names], most)


def tensors_hit(names: Sequence[str]) -> str:
    """`; it holds values of "a" and "b"`, empty where no tensor is known."""
    return f"; tensors concerned: {quoted(names)}" if names else ""


def storages_left(tally: StorageTally | None) -> str:
    """What became of the storages and which tensors lost values; empty where the pickles could not be read."""
    if tally is None:
        return ""
    if tally.whole == tally.named:
        return f"; the values of {'the one storage' if tally.named == 1 else f'all {tally.named} storages'} are there"
    lost = [counted(tally.cut, "is cut", "are cut") if tally.cut else "", f"{tally.missing} missing" if tally.missing else ""]
    names = f", so values are lost of {quoted(tally.tensors)}" if tally.tensors else ""
    whole = counted(tally.whole, "is whole", "are whole")
    return f"; of {counted(tally.named, 'storage')} {whole}, {' and '.join(part for part in lost if part)}{names}"


def complete_records(cut: CutOff) -> str:
    """How many records are complete, and whether their checksums fit."""
    if not cut.complete:
        return "nothing is complete"
    text = f"{counted(len(cut.complete), 'record is', 'records are')} complete"
    if cut.checked is None:
        return f"{text} ({listed(cut.complete)})"
    known = len(cut.complete) - cut.unchecked
    if cut.checked == len(cut.complete):
        return f"{text} and {'has its' if known == 1 else 'have their'} checksum ({listed(cut.complete)})"
    return f"{text}, {cut.checked} of {known} compared have their checksum ({listed(cut.complete)})"


def size_words(cut: CutOff) -> str:
    """`3730 of 6217 bytes`, or the bytes alone."""
    return f"{cut.content} of {cut.whole_size} bytes" if cut.whole_size is not None else counted(cut.content, "byte")


def unit_words(cut: CutOff) -> str:
    """What a round size tells."""
    if cut.unit is None or cut.whole_size == cut.content:
        return ""
    return f"; a whole number of blocks of {cut.unit} bytes, typical of a full disk, a quota, or a copy that was broken off"


def verdict_words(verdict: str | None, change: str) -> str:
    """What a trial in memory gave."""
    if verdict is None:
        return ""
    if verdict in ("valid", "structure-valid"):
        return f"; undoing this ({change}) gives a file that is {verdict}"
    return f"; undoing this ({change}) does not give a valid file ({verdict}): there is other damage"
