# SPDX-License-Identifier: Apache-2.0
"""Files that are two things at once, unfinished, or named unlike their kind."""

from __future__ import annotations

from corpus.build.good import legacy_tar, small_state_dict
from corpus.build.kit import Global, archive, dump, eager, legacy_stream, recipe, take_apart, tensor, with_serialization_id
from corpus.build.pickles import Call


@recipe("identification/other-reading-pickle.pt")
def other_reading_pickle() -> bytes:
    """An archive, and a pickle behind it that names a harmless global."""
    return eager(tensor([0.5])) + dump(Call(Global("collections", "OrderedDict"), ()))


@recipe("identification/other-reading-archive.pt")
def other_reading_archive() -> bytes:
    """Two whole archives: readers from the front and from the end see different ones."""
    return eager(tensor([0.5])) + eager(tensor([1.5]))


@recipe("identification/other-reading-legacy.pth")
def other_reading_legacy() -> bytes:
    """A legacy stream with an archive behind it: torch reads the one, ZIP tools the other."""
    return legacy_stream(small_state_dict()) + eager(tensor([0.5]))


@recipe("identification/other-reading-tar.pth")
def other_reading_tar() -> bytes:
    """A torch tar with an archive behind it."""
    return legacy_tar() + eager(tensor([0.5]))


@recipe("identification/other-reading-newline.pt")
def other_reading_newline() -> bytes:
    """The first padding holds a newline and a pickle: the ZIP signature is the opcode PERSID, and the file runs as a pickle."""
    parts = take_apart(eager(tensor([0.5])))
    local = parts.members[0].local
    assert local is not None
    inner = b"\n" + b"ccollections\nOrderedDict\n."
    local.extra = b"FB" + len(inner).to_bytes(2, "little") + inner
    return parts.build()


@recipe("identification/extension-unusual.ptl")
def extension_unusual() -> bytes:
    """A torch.save file named as if it were for mobile phones."""
    return eager(tensor([0.5]))


@recipe("identification/save-incomplete.pt")
def save_incomplete() -> bytes:
    """What a torch.save that fails leaves behind."""
    return archive(with_serialization_id([("byteorder", b"little"), ("version", b"3\n")]), "save-incomplete")


@recipe("identification/preview-release.pt")
def preview_release() -> bytes:
    """The head of an archive of a preview release."""
    return b"PYTORCH1" + bytes(64)


@recipe("identification/part-of-distributed-checkpoint.distcp")
def part_of_distributed_checkpoint() -> bytes:
    """Two archives one behind the other, as torch.distributed.checkpoint writes them."""
    return eager(tensor([0.5])) + eager(tensor([1.5, 2.5]))
