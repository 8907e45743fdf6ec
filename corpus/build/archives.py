# SPDX-License-Identifier: Apache-2.0
"""Complete torch archives of every era, byte for byte as torch wrote them (format.md 1, history.md table 1)."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from corpus.build.pickles import dump
from corpus.build.tensors import Lowering, Storage, address_keys
from fdd.formats.pytorch.canonical_layout import write_archive
from fdd.formats.pytorch.serialization_id import ID_RECORD, IdRecord, Platform, serialization_id

Record = tuple[str, bytes]
"""Name below the top folder, and payload."""


@dataclass(frozen=True)
class Era:
    """What the writers of some releases put into an archive besides pickle and storages."""

    version: bytes = b"3\n"
    version_first: bool = False
    folder: str = "data"
    address_keys: bool = False
    byteorder: bool = True
    serialization_id: bool = True
    format_records: bool = True
    """`.format_version` and `.storage_alignment`; and storages in numeric order, not sorted as texts."""


ERAS = {
    "1.4": Era(b"1\n", True, "tensors", True, False, False, False),
    "1.5": Era(b"2\n", True, "data", True, False, False, False),
    "1.6": Era(address_keys=True, byteorder=False, serialization_id=False, format_records=False),
    "1.9": Era(byteorder=False, serialization_id=False, format_records=False),
    "2.1": Era(format_records=False),
    "2.7": Era(),
}
"""By the first release: 1.6 stands for 1.6 to 1.8, 1.9 for 1.9 to 2.0, 2.1 for 2.1 to 2.6, 2.7 for all later ones."""
LATEST = "2.7"


def eager_records(
    value: object, *, era: str = LATEST, byteorder: str = "little", alignment: int = 64, protocol: int = 2
) -> list[Record]:  # fmt: skip
    """Return the records of a torch.save file in the order of writing, all but the serialization id."""
    rules = ERAS[era]
    lowering = Lowering(address_keys if rules.address_keys else str)
    pickle = dump(lowering.lower(value), protocol)
    return records_around(pickle, lowering.keyed, era=era, byteorder=byteorder, alignment=alignment)


def records_around(
    pickle: bytes, storages: Iterable[tuple[str, Storage]], *, era: str = LATEST, byteorder: str = "little", alignment: int = 64
) -> list[Record]:  # fmt: skip
    """Return the records around a given data.pkl: any bytes, with the storages that it refers to."""
    rules = ERAS[era]
    records: list[Record] = [("data.pkl", pickle)]
    if rules.format_records:
        records += [(".format_version", b"1"), (".storage_alignment", b"%d" % alignment)]
    if rules.byteorder:
        records.append(("byteorder", byteorder.encode()))
    rows = [(f"{rules.folder}/{key}", storage.data) for key, storage in storages]
    records += rows if rules.format_records else sorted(rows, key=lambda row: row[0])
    version: Record = ("version", rules.version)
    return [version, *records] if rules.version_first else [*records, version]


def with_serialization_id(
    records: Sequence[Record], *, crc_off: bool = False, crc_off_names: Sequence[str] = (), platform: Platform = "linux"
) -> list[Record]:  # fmt: skip
    """Add the record that torch computes from all the others."""
    rows = [
        IdRecord(name.encode(), 0 if crc_off or name in crc_off_names else zlib.crc32(payload), len(payload), head=payload[:8])
        for name, payload in records
    ]
    return [*records, (ID_RECORD.decode(), serialization_id(rows, platform))]


def archive(
    records: Iterable[Record], root: str = "archive", *, alignment: int = 64, deflate: Sequence[str] = (),
    crc_off: bool = False, crc_off_names: Sequence[str] = (), time: int = 0, date: int = 0,
) -> bytes:  # fmt: skip
    """Write records into one archive below the folder ``root``, as torch's writer does; names in the options are below it."""

    def full(names: Iterable[str]) -> set[bytes]:
        return {f"{root}/{name}".encode() for name in names}

    return write_archive(
        [(f"{root}/{name}".encode(), payload) for name, payload in records],
        alignment=alignment, deflate_names=full(deflate), crc_off=crc_off, crc_off_names=full(crc_off_names),
        time=time, date=date,
    )  # fmt: skip


def eager(
    value: object, root: str = "archive", *, era: str = LATEST, byteorder: str = "little", alignment: int = 64,
    protocol: int = 2, crc_off: bool = False, platform: Platform = "linux",
) -> bytes:  # fmt: skip
    """Make the whole file that torch.save writes for a value.

    ``root`` is the stem of the file's name; the writers of 1.6 to 1.12 always used ``archive``, which is the default.
    """
    records = eager_records(value, era=era, byteorder=byteorder, alignment=alignment, protocol=protocol)
    if ERAS[era].serialization_id:
        records = with_serialization_id(records, crc_off=crc_off, platform=platform)
    return archive(records, root, alignment=alignment, crc_off=crc_off)
