# SPDX-License-Identifier: Apache-2.0
"""Archives with records that are missing, misplaced, misnamed, superfluous, or say something wrong.

Every one has the serialization id that torch would compute for it, so that only the named fault shows.
"""

from __future__ import annotations

from corpus.build.kit import Member, Record, archive, eager, eager_records, recipe, replace_once, take_apart, tensor
from corpus.build.kit import with_serialization_id as with_id

VALUE = tensor([0.5, -1.0, 2.0, 0.25])


def changed(name: str, text: bytes) -> bytes:
    """The archive with another text in one of its small records."""
    return archive(with_id([(key, text if key == name else payload) for key, payload in eager_records(VALUE)]))


def without(*names: str) -> bytes:
    """The archive without some of its records."""
    return archive(with_id([record for record in eager_records(VALUE) if record[0] not in names]))


def with_more(*more: Record) -> bytes:
    """The archive with further records in front of `version`."""
    *records, version = eager_records(VALUE)
    return archive(with_id([*records, *more, version]))


def renamed(old: str, new: str) -> bytes:
    """The archive with another name for one record."""
    return archive(with_id([(new if key == old else key, payload) for key, payload in eager_records(VALUE)]))


@recipe("records/outside-top-folder.pt")
def outside_top_folder() -> bytes:
    """A record in another folder beside that of the archive."""
    parts = take_apart(with_more(("note.txt", b"left over\n")))
    parts.member(b"note.txt").rename(b"other/note.txt")
    return parts.build()


@recipe("records/outside-top-folder-none.pt")
def outside_top_folder_none() -> bytes:
    """No folder at all: somebody zipped the contents of the folder."""
    parts = take_apart(eager(VALUE))
    for member in parts.members:
        _rename(member, b"archive/", b"")
    return parts.build()


@recipe("records/folder-in-folder.pt")
def folder_in_folder() -> bytes:
    """The folder of the archive lies in another folder."""
    parts = take_apart(eager(VALUE))
    for member in parts.members:
        _rename(member, b"archive/", b"models/archive/")
    return parts.build()


def _rename(member: Member, old: bytes, new: bytes) -> None:
    if member.central is not None:
        member.rename(replace_once(member.central.name, old, new))


@recipe("records/data-pkl-missing.pt")
def data_pkl_missing() -> bytes:
    """Storages and small records, but no pickle that tells what they are."""
    return without("data.pkl")


@recipe("records/data-pkl-missing-case.pt")
def data_pkl_missing_case() -> bytes:
    """DATA.PKL: torch finds it, whoever compares names as they are does not."""
    return renamed("data.pkl", "DATA.PKL")


@recipe("records/version-missing.pt")
def version_missing() -> bytes:
    """No version."""
    return without("version")


@recipe("records/version-twice.pt")
def version_twice() -> bytes:
    """version and .data/version, with different numbers."""
    return with_more((".data/version", b"6\n"))


@recipe("records/version-not-a-number.pt")
def version_not_a_number() -> bytes:
    """A sign, which lenient readers pass over."""
    return changed("version", b"+3\n")


@recipe("records/version-not-a-number-letters.pt")
def version_not_a_number_letters() -> bytes:
    """A letter behind the digit."""
    return changed("version", b"3x\n")


@recipe("records/version-not-a-number-empty.pt")
def version_not_a_number_empty() -> bytes:
    """Nothing at all."""
    return changed("version", b"")


@recipe("records/version-newline-missing.pt")
def version_newline_missing() -> bytes:
    """3 without its newline."""
    return changed("version", b"3")


@recipe("records/version-out-of-range.pt")
def version_out_of_range() -> bytes:
    """A version that no torch has written."""
    return changed("version", b"11\n")


@recipe("records/version-out-of-range-zero.pt")
def version_out_of_range_zero() -> bytes:
    """Version 0."""
    return changed("version", b"0\n")


@recipe("records/version-unusual.pt")
def version_unusual() -> bytes:
    """Version 10, which torch reads, and which torch.save has never written."""
    return changed("version", b"10\n")


@recipe("records/byteorder-unknown.pt")
def byteorder_unknown() -> bytes:
    """A word that is no byte order."""
    return changed("byteorder", b"middle")


@recipe("records/byteorder-unknown-case.pt")
def byteorder_unknown_case() -> bytes:
    """Capital letters and a newline."""
    return changed("byteorder", b"LITTLE\n")


@recipe("records/byteorder-missing.pt")
def byteorder_missing() -> bytes:
    """No byteorder, although the other records are those of 2.7."""
    return without("byteorder")


@recipe("records/format-version-unknown.pt")
def format_version_unknown() -> bytes:
    """A format version that does not exist yet."""
    return changed(".format_version", b"9")


@recipe("records/alignment-impossible.pt")
def alignment_impossible() -> bytes:
    """No power of two."""
    return changed(".storage_alignment", b"63")


@recipe("records/alignment-impossible-text.pt")
def alignment_impossible_text() -> bytes:
    """No number."""
    return changed(".storage_alignment", b"xx")


@recipe("records/alignment-without-format-version.pt")
def alignment_without_format_version() -> bytes:
    """.storage_alignment alone."""
    return without(".format_version")


@recipe("records/serialization-id-malformed.pt")
def serialization_id_malformed() -> bytes:
    """One digit too few."""
    *records, (name, text) = with_id(eager_records(VALUE))
    return archive([*records, (name, text[:-1])])


@recipe("records/serialization-id-content-differs.pt")
def serialization_id_content_differs() -> bytes:
    """The storage was exchanged and all checksums were mended; the id remembers the old ones."""
    records = [(name, bytes(len(payload)) if name == "data/0" else payload) for name, payload in eager_records(VALUE)]
    return archive([*records, with_id(eager_records(VALUE))[-1]])


@recipe("records/serialization-id-platform-unknown.pt")
def serialization_id_platform_unknown() -> bytes:
    """The half for the names was made by an unknown platform."""
    *records, (name, text) = with_id(eager_records(VALUE))
    return archive([*records, (name, b"%020d" % 1 + text[20:])])


@recipe("records/storage-name-not-canonical.pt")
def storage_name_not_canonical() -> bytes:
    """data/00 instead of data/0."""
    return renamed("data/0", "data/00")


@recipe("records/storage-missing.pt")
def storage_missing() -> bytes:
    """The pickle refers to data/0, which is not there."""
    return without("data/0")


@recipe("records/storage-orphan.pt")
def storage_orphan() -> bytes:
    """data/9, which the pickle does not know."""
    return with_more(("data/9", bytes(8)))


@recipe("records/record-unknown.pt")
def record_unknown() -> bytes:
    """A readme that somebody put in."""
    return with_more(("README.txt", b"Our model.\n"))


@recipe("records/record-unknown-in-data.pt")
def record_unknown_in_data() -> bytes:
    """A text in the folder of the storages."""
    return with_more(("data/names.txt", b"a b c\n"))


@recipe("records/record-order-unusual.pt")
def record_order_unusual() -> bytes:
    """byteorder behind version, as with _disable_byteorder_record."""
    records = eager_records(VALUE)
    late = [record for record in records if record[0] == "byteorder"]
    return archive(with_id([record for record in records if record[0] != "byteorder"] + late))


@recipe("records/record-order-unusual-storages.pt")
def record_order_unusual_storages() -> bytes:
    """Twelve storages sorted as texts although .format_version promises numeric order."""
    records = eager_records([tensor([float(number)]) for number in range(12)])
    first = next(index for index, record in enumerate(records) if record[0].startswith("data/"))
    records[first:-1] = sorted(records[first:-1])
    return archive(with_id(records))


@recipe("records/folder-not-file-name.pt")
def folder_not_file_name() -> bytes:
    """Saved as model.pt and renamed since."""
    return eager(VALUE, "model")


@recipe("records/version-unusual-pass-1.5.pt")
def version_unusual_pass() -> bytes:
    """1.5 wrote version 2, as the first record."""
    return eager(VALUE, "version-unusual-pass-1.5", era="1.5")
