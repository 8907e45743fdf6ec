# SPDX-License-Identifier: Apache-2.0
"""What became of a file whose change no cut, no insertion and no loss in one place explains: its recorded parts are
looked for by their digests, in what the container leads to and in the bytes themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fdd.core.source import ByteSource
from fdd.fixity.assign import assign
from fdd.fixity.located import FoundPart, PartsNow
from fdd.fixity.looks import Look, named
from fdd.fixity.manifest import Manifest
from fdd.fixity.order import Order
from fdd.fixity.result import Fixity

Explanation = tuple[Fixity, str, list[Look], Mapping[Look, FoundPart]]
"""Verdict, detail, the segments to name, and where the bytes of some of them lie now under which name."""

LEAST_TELLING = 16
"""Bytes of a record that tells one file from another: the small ones (version, byte order) are alike in all."""
UNPACKS = "; what was packed unpacks to the bytes it held"
MOST_NAMED = 4
"""Names given in a sentence."""


def explain_content(manifest: Manifest, source: ByteSource, now: PartsNow, here: list[Look]) -> Explanation:
    """``here`` are all segments, held against the places where they were recorded; at least one does not match."""
    return _Content(manifest, source, _with_old_folder(manifest, now), here).explanation()


def _with_old_folder(manifest: Manifest, now: PartsNow) -> PartsNow:
    """The same with names below the recorded top folder: that of a ZIP follows the name of the file and means nothing."""
    if not _is_zip(manifest):
        return now
    old = _top_folder(segment.record for segment in manifest.segments if segment.kind == "data")
    new = _top_folder(part.record for part in now.records)
    if old is None or new is None or old == new:
        return now

    def renamed(part: FoundPart) -> FoundPart:
        return part._replace(record=old + part.record[len(new) :] if part.record is not None else None)

    by_digest = {key: [renamed(part) for part in parts] for key, parts in now.by_digest.items()}
    return replace(now, records=[renamed(part) for part in now.records], by_digest=by_digest)


def _is_zip(manifest: Manifest) -> bool:
    return any(segment.kind == "directory" for segment in manifest.segments)


def _top_folder(names: Iterable[str | None]) -> str | None:
    """The first folder of all names, with its slash; None where they have none in common."""
    folders = {name.partition("/")[0] + "/" if name is not None and "/" in name else None for name in names}
    return folders.pop() if len(folders) == 1 else None


@dataclass(slots=True)
class _Content:
    manifest: Manifest
    source: ByteSource
    now: PartsNow
    here: list[Look]
    bad: list[Look] = field(default_factory=list)
    """Segments that are not in their place. Small ones may be alike by chance: in a ZIP that can be read a payload is in its
    place only where a record still begins."""
    places: dict[Look, FoundPart] = field(default_factory=dict)
    swapped: list[Look] = field(default_factory=list)
    """Payloads that stand where those of others belong, whatever the container says."""
    names_now: frozenset[str | None] = field(init=False)
    offsets_now: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        self.names_now = frozenset(part.record for part in self.now.records)
        self.offsets_now = frozenset(part.offset for part in self.now.records)

    def explanation(self) -> Explanation:
        wrong = [look for look in self.here if not look.matches]
        if len(wrong) == 1 and self.source.size == self.manifest.size:
            self.bad = wrong  # everything else is in its place: nothing moved, whatever the container says now
            held = assign([look for look in wrong if look.is_data], set(wrong), self.now)
            same = any(place.offset == look.segment.span.offset for look, place in held.items())
            return Fixity.DAMAGED, self._damage() + (UNPACKS if same else ""), self.bad, self.places
        several = len(wrong) > 1 and self.now.orderly and _is_zip(self.manifest)
        self.bad = [look for look in self.here if not look.matches or (several and self._is_gone(look))]
        data = [look for look in self.here if look.is_data]
        self.places = assign(data, set(self.bad), self.now)
        if self.source.size == self.manifest.size and len(self.bad) > 1:
            self._lay_out()
        if self.now.is_other_container(self.manifest):
            return Fixity.REPLACED, self._conversion(data), self.bad, self.places
        if not self._lost():
            return self._all_there(data)
        if self._is_another(data):
            detail = f"no record of weight holds the bytes it held: this is another file (it looks like {self.now.kind})"
            return Fixity.REPLACED, detail, self.bad, self.places
        return Fixity.DAMAGED, self._damage(), self.bad, self.places

    def _is_gone(self, look: Look) -> bool:
        """Whether the container leads to no record at the place of a payload; to none of its name, where it is empty."""
        if look.segment.kind != "data":
            return False
        if not look.segment.span.length:
            return look.segment.record not in self.names_now
        return look.segment.span.offset not in self.offsets_now

    def _lost(self) -> list[Look]:
        return [look for look in self.bad if look.segment.kind == "data" and look not in self.places]

    def _lay_out(self) -> None:
        bad = set(self.bad)
        away = [index for index, look in enumerate(self.here) if look in bad and look.segment.span.length]
        order = Order(self.manifest, self.source, away)
        for index, offset in order.offsets.items():
            look = self.here[index]
            self.places.setdefault(look, FoundPart(None, offset))
            if index in order.alone and look.is_data:
                self.swapped.append(look)

    def _all_there(self, data: list[Look]) -> Explanation:
        """Every record that was recorded is still somewhere: the container is what changed, or where things lie in it."""
        renamed = self._renamed(data)
        recorded = {look.segment.record for look in self.here if look.segment.kind == "data"}
        names = Counter(part.record for part in self.now.records)
        twice = any(names[name] > 1 for name in recorded)
        elsewhere = [look for look, place in self.places.items() if place.offset != look.segment.span.offset]
        moved = any(look.is_data for look in elsewhere)
        if not renamed and not twice and self.now.orderly and (moved or self._is_rewritten()):
            extra = sorted({name for name in names if name is not None and name not in recorded and name[-1:] != "/"})
            detail = "all records hold the bytes they held, in a container that was written anew"
            detail += f"; it also holds {_some(extra)}" if extra else ""
            return Fixity.REPACKAGED, detail, [look for look in self.bad if look.is_data], self.places
        if moved or (elsewhere and all(look in self.places for look in self.bad)):
            return Fixity.SHIFTED, self._moves(renamed), self.bad, self.places
        detail = self._damage()
        if renamed:
            detail += f"; {_other_names(renamed)}"
        if self.places:
            detail += UNPACKS
        return Fixity.DAMAGED, detail, self.bad, self.places

    def _is_rewritten(self) -> bool:
        """Whether more of the container changed than one damage explains: its size, or all headers and the directory."""
        frame = [look for look in self.here if look.segment.kind in ("header", "directory")]
        return self.source.size != self.manifest.size or (len(frame) > 2 and not any(look.matches for look in frame))

    def _renamed(self, data: list[Look]) -> list[tuple[Look, str | None]]:
        """Records whose bytes go by another name now, and which."""
        at: dict[int, list[str | None]] = {}
        for part in self.now.records:
            at.setdefault(part.offset, []).append(part.record)
        found = []
        for look in data:
            place = self.places.get(look)
            if place is not None and place.record != look.segment.record:
                found.append((look, place.record))
            elif place is None and at.get(look.segment.span.offset):
                names = at[look.segment.span.offset]
                if look.segment.record not in names:
                    found.append((look, names[0]))
        return found

    def _moves(self, renamed: list[tuple[Look, str | None]]) -> str:
        if self.swapped:
            return f"the parts stand in another order: {_some(_names(self.swapped))} lie where others belong"
        known = [(look, name) for look, name in renamed if name is not None]
        if known:
            return _other_names(known)
        moved = sum(look.is_data for look in self.places)
        what = f"{moved} records" if moved else f"{len(self.places)} parts"
        return f"{what} lie at other places than recorded, with the bytes they had"

    def _is_another(self, data: list[Look]) -> bool:
        """Whether so little is left, and what is there so whole, that it is another file rather than a damaged one."""
        if self.now.kind == "zeros":
            return False
        if not self.places and len(self.bad) == sum(look.segment.span.length > 0 for look in self.here):
            return True
        lost = set(self._lost())
        telling = [look for look in data if look.segment.span.length >= LEAST_TELLING]
        gone = lost.intersection(telling)
        held = {tensor.record for tensor in self.manifest.tensors}
        storages = [look for look in data if look.segment.record in held]
        others = [look for look in telling if look.segment.record not in held]
        kept = [look for look in storages if look not in lost]
        if not gone or 2 * len(kept) > len(storages) or any(look in telling for look in kept):
            return False
        if storages and self.now.orderly and self.now.sound:
            return True  # the checksums inside say that the new bytes were written, not damaged
        most_gone = 2 * _weight(look for look in others if look in gone) >= _weight(others)
        whole = self.now.is_other_kind(self.manifest) or (self.now.orderly and self.now.sound is not False)
        return len(gone) > 1 and most_gone and whole

    def _conversion(self, data: list[Look]) -> str:
        """Another file that may hold the same storages, as after a conversion."""
        held = {tensor.record for tensor in self.manifest.tensors}
        storages = [look for look in data if look.segment.record in held and look.segment.span.length]
        kept = len(storages) - len(set(self._lost()).intersection(storages))
        detail = f"this is another file: {self.now.kind} in place of {self.manifest.format.get('kind')}"
        return detail + (f"; {kept} of {len(storages)} storages are in it with the bytes they had" if kept else "")

    def _damage(self) -> str:
        bad = self.bad
        if self.now.kind == "zeros":
            return "the file holds nothing but zeros"
        detail = f"{len(bad)} parts are not as recorded" if len(bad) != 1 else "one part is not as recorded"
        detail += f", first {named(bad[0].segment)}"
        delta = self.source.size - self.manifest.size
        if delta:
            detail += f"; the size changed by {delta} bytes"
        records = {look.segment.record for look in bad if look.segment.record is not None}
        if len(records) > 1:
            detail += f"; {len(records)} records are concerned"
        if self._lost() and self.now.orderly and self.now.sound:
            detail += "; the checksums inside the file fit the new bytes: they were written, not damaged"
        return detail


def _weight(looks: Iterable[Look]) -> int:
    return sum(look.segment.span.length for look in looks)


def _names(looks: Iterable[Look]) -> list[str]:
    return [str(look.segment.record) for look in looks]


def _some(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _other_names(renamed: Sequence[tuple[Look, str | None]]) -> str:
    """Records whose bytes go by the names of others, in a sentence."""
    pairs = [f"those of {look.segment.record} as {name}" for look, name in renamed if name is not None]
    return f"the bytes of {len(pairs)} records go by other names: {_some(pairs)}"
