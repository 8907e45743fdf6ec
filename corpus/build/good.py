# SPDX-License-Identifier: Apache-2.0
"""Good files of each era and container."""

from __future__ import annotations

from corpus.build.kit import (
    Call,
    OldTensor,
    Parameter,
    Tensor,
    by_key,
    eager,
    legacy_stream,
    recipe,
    state_dict,
    storage,
    tar_file,
    tar_members,
    tensor,
)


def small_state_dict(byteorder: str = "little") -> Call:
    """The state of one linear layer and a counter."""
    return state_dict(
        {
            "fc.weight": tensor([0.5, -1.0, 2.0, 0.25, 3.5, -4.0], (2, 3), byteorder=byteorder),
            "fc.bias": tensor([0.125, -0.125], byteorder=byteorder),
            "steps": Tensor(storage([7], "int64", byteorder), (), ()),
        },
        {"": 1, "fc": 1},
    )


@recipe("good/eager-2.7-state-dict.pth")
def eager_2_7() -> bytes:
    """The current form."""
    return eager(small_state_dict(), "eager-2.7-state-dict")


@recipe("good/eager-2.7-big-endian.pth")
def eager_2_7_big_endian() -> bytes:
    """As a big-endian Linux machine writes it: other storage bytes, and another serialization id."""
    return eager(small_state_dict("big"), "eager-2.7-big-endian", byteorder="big", platform="linux-big-endian")


@recipe("good/eager-2.7-macos.pth")
def eager_2_7_macos() -> bytes:
    """The same state with the serialization id of a macOS writer."""
    return eager(small_state_dict(), "eager-2.7-macos", platform="macos")


@recipe("good/eager-2.7-alignment-512.pth")
def eager_2_7_alignment() -> bytes:
    """Another alignment, stated in its record."""
    return eager(small_state_dict(), "eager-2.7-alignment-512", alignment=512)


@recipe("good/eager-2.7-many-storages.pt")
def eager_2_7_many() -> bytes:
    """Twelve storages: in the order of first use, not sorted as texts."""
    return eager([tensor([float(number)]) for number in range(12)], "eager-2.7-many-storages")


@recipe("good/eager-2.7-shared-storage.pt")
def eager_2_7_shared() -> bytes:
    """Two views of one storage, one of them with offset and a step."""
    shared = storage([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    views = {"all": Tensor(shared, (2, 3), (3, 1)), "column": Tensor(shared, (2,), (3,), offset=1)}
    return eager(views, "eager-2.7-shared-storage")


@recipe("good/eager-2.7-parameter.pt")
def eager_2_7_parameter() -> bytes:
    """A parameter, an empty tensor and plain values."""
    value = {"p": Parameter(tensor([1.0, 2.0])), "empty": tensor([]), "epoch": 3, "rate": 0.5, "names": ["a", "b"], "none": None}
    return eager(value, "eager-2.7-parameter")


@recipe("good/eager-2.1-state-dict.pth")
def eager_2_1() -> bytes:
    """2.1 to 2.6: byteorder and serialization id, no format records."""
    return eager(small_state_dict(), "eager-2.1-state-dict", era="2.1")


@recipe("good/eager-2.1-many-storages.pt")
def eager_2_1_many() -> bytes:
    """Twelve storages, sorted as texts."""
    return eager([tensor([float(number)]) for number in range(12)], "eager-2.1-many-storages", era="2.1")


@recipe("good/eager-1.13-state-dict.pth")
def eager_1_13() -> bytes:
    """1.13 and 2.0: the folder is the file's stem; only version beside pickle and storages."""
    return eager(small_state_dict(), "eager-1.13-state-dict", era="1.9")


@recipe("good/eager-1.9-state-dict.pth")
def eager_1_9() -> bytes:
    """1.9 to 1.12: the folder is always `archive`."""
    return eager(small_state_dict(), era="1.9")


@recipe("good/eager-1.6-state-dict.pth")
def eager_1_6() -> bytes:
    """1.6 to 1.8: storages named by addresses."""
    return eager(small_state_dict(), era="1.6")


@recipe("good/eager-1.5-state-dict.pth")
def eager_1_5() -> bytes:
    """1.5, on request: version 2, written first."""
    return eager(small_state_dict(), "eager-1.5-state-dict", era="1.5")


@recipe("good/eager-1.4-state-dict.pth")
def eager_1_4() -> bytes:
    """1.4, on request: version 1, written first; storages below tensors/."""
    return eager(small_state_dict(), "eager-1.4-state-dict", era="1.4")


@recipe("good/legacy-state-dict.pth")
def legacy_state_dict() -> bytes:
    """The stream of pickles."""
    return legacy_stream(small_state_dict())


@recipe("good/legacy-protocol-4.pt")
def legacy_protocol_4() -> bytes:
    """The same with protocol 4: the magic number stands behind a FRAME."""
    return legacy_stream(small_state_dict(), protocol=4)


@recipe("good/legacy-tar.pth")
def legacy_tar() -> bytes:
    """The tar of torch 0.1."""
    return tar_file(tar_members({"w": by_key(1)}, [OldTensor(1, 7, tensor([1.0, 2.0, 3.0]))]))
