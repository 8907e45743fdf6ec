# SPDX-License-Identifier: Apache-2.0
"""Legacy streams whose head, form or end is wrong or unusual (PT-LEG)."""

from __future__ import annotations

from corpus.build import opcodes as op
from corpus.build.good import small_state_dict
from corpus.build.kit import (
    Call,
    Global,
    New,
    Persistent,
    Raw,
    cut,
    dump,
    eager,
    legacy_parts,
    legacy_stream,
    ordered_dict,
    recipe,
    replace_once,
    sys_info,
    tensor,
)

SOURCE = "class Scale(torch.nn.Module):\n    def forward(self, x):\n        return x * self.factor\n"


def text_string(value: bytes) -> Raw:
    """A byte string as Python 2 wrote its texts (SHORT_BINSTRING)."""
    return Raw(b"U" + bytes([len(value)]) + value)


@recipe("legacy/legacy-magic-wrong.pth")
def magic_wrong() -> bytes:
    """The magic number is one too small."""
    parts = legacy_parts(small_state_dict())
    parts.magic = dump(0x1950A86A20F9469CFC6B)
    return parts.join()


@recipe("legacy/legacy-magic-by-call.pth")
def magic_by_call() -> bytes:
    """A call makes the magic number: it would run before anything is checked."""
    parts = legacy_parts(small_state_dict())
    parts.magic = dump(Call(Global("__builtin__", "int"), ("119547037146038801333356",)))
    return parts.join()


@recipe("legacy/legacy-magic-crlf.pth")
def magic_crlf() -> bytes:
    """A transfer in text mode put a carriage return in front of every line feed."""
    return legacy_stream(small_state_dict()).replace(b"\n", b"\r\n")


@recipe("legacy/legacy-version-wrong.pth")
def version_wrong() -> bytes:
    """A version that no torch wrote."""
    parts = legacy_parts(small_state_dict())
    parts.version = dump(1002)
    return parts.join()


@recipe("legacy/system-information-none.pth")
def system_none() -> bytes:
    """None instead of the system information; torch does not look at it."""
    parts = legacy_parts(small_state_dict())
    parts.sys_info = dump(None)
    return parts.join()


@recipe("legacy/system-information-other-version.pth")
def system_other_version() -> bytes:
    """The system information states another version than the pickle before it."""
    parts = legacy_parts(small_state_dict())
    parts.sys_info = dump(sys_info(1000))
    return parts.join()


@recipe("legacy/type-sizes-odd.pth")
def type_sizes_odd() -> bytes:
    """No machine that torch ran on has an int of 3 bytes."""
    parts = legacy_parts(small_state_dict())
    parts.sys_info = dump({**sys_info(), "type_sizes": {"short": 2, "int": 3, "long": 4}})
    return parts.join()


@recipe("legacy/type-sizes-missing.pth")
def type_sizes_missing() -> bytes:
    """The system information has no type sizes."""
    parts = legacy_parts(small_state_dict())
    parts.sys_info = dump({"protocol_version": 1001, "little_endian": True})
    return parts.join()


@recipe("legacy/type-sizes-long-8-pass.pth")
def type_sizes_long() -> bytes:
    """A long of 8 bytes, as on 64-bit machines."""
    parts = legacy_parts(small_state_dict())
    parts.sys_info = dump({**sys_info(), "type_sizes": {"short": 2, "int": 4, "long": 8}})
    return parts.join()


@recipe("legacy/written-on-big-endian.pth")
def big_endian() -> bytes:
    """As an s390x machine writes it: it says so, and its numbers are little-endian all the same."""
    return legacy_stream(small_state_dict(), little_endian=False)


@recipe("legacy/protocols-mixed.pth")
def protocols_mixed() -> bytes:
    """The key list has protocol 3, the rest protocol 2."""
    parts = legacy_parts(small_state_dict())
    parts.keys = b"\x80\x03" + parts.keys[2:]
    return parts.join()


@recipe("legacy/protocol-1-pass.pth")
def protocol_1() -> bytes:
    """Protocol 1: without PROTO; the magic number and the version are decimal or binary."""
    return legacy_stream(small_state_dict(), protocol=1)


@recipe("legacy/protocol-5-pass.pth")
def protocol_5() -> bytes:
    """Protocol 5: framed pickles."""
    return legacy_stream(small_state_dict(), protocol=5)


@recipe("legacy/protocol-0.pth")
def protocol_0() -> bytes:
    """Protocol 0: the persistent id is the text of a tuple, which torch writes and cannot read."""
    identifier = b"P('storage', <class 'torch.FloatStorage'>, '94000000000000', 'cpu', 2, None)\n"
    body = b"(dp0\nVw\np1\nctorch._utils\n_rebuild_tensor_v2\np2\n(" + identifier
    body += b"I0\n(I2\ntp3\n(I1\ntp4\nI00\nccollections\nOrderedDict\np5\n(tRp6\ntp7\nRp8\ns."
    system = b"(dp0\nVprotocol_version\np1\nI1001\nsVlittle_endian\np2\nI01\nsVtype_sizes\np3\n"
    system += b"(dp4\nVshort\np5\nI2\nsVint\np6\nI4\nsVlong\np7\nI4\nss."
    keys = b"(lp0\nV94000000000000\np1\na."
    storage = (2).to_bytes(8, "little") + bytes.fromhex("0000003f000080bf")
    return b"L119547037146038801333356L\n.I1001\n." + system + body + keys + storage


@recipe("legacy/python-2-pass.pth")
def python_2() -> bytes:
    """As Python 2 writes it: byte strings, and a dict in another order."""
    parts = legacy_parts({"w": tensor([0.5, 0.25])})
    parts.sys_info = dump(
        {
            text_string(b"protocol_version"): 1001,
            text_string(b"type_sizes"): {text_string(b"int"): 4, text_string(b"short"): 2, text_string(b"long"): 4},
            text_string(b"little_endian"): True,
        }
    )
    key = text_string(b"94000000000000")
    identifier = Persistent((text_string(b"storage"), Global("torch", "FloatStorage"), key, text_string(b"cpu"), 2, None))
    arguments = (identifier, 0, (2,), (1,), False, Call(Global("collections", "OrderedDict"), ([],)))
    parts.pickle = dump({text_string(b"w"): Call(Global("torch._utils", "_rebuild_tensor_v2"), arguments)})
    parts.keys = dump([key])
    return parts.join()


@recipe("legacy/memo-index-leaps.pth")
def memo_leaps() -> bytes:
    """One bit of a memo index in the system information is turned round: nothing asks for that index."""
    parts = legacy_parts(small_state_dict())
    parts.sys_info = replace_once(parts.sys_info, b"little_endianq\x02", b"little_endianq\x42")
    return parts.join()


@recipe("legacy/bytes-after-stream.pth")
def bytes_after() -> bytes:
    """Ten bytes of no use behind the last storage."""
    return legacy_stream(small_state_dict()) + bytes(range(1, 11))


@recipe("legacy/bytes-after-stream-pickle.pth")
def pickle_after() -> bytes:
    """A pickle behind the last storage that calls something."""
    return legacy_stream(small_state_dict()) + dump(Call(Global("posix", "getcwd")))


@recipe("legacy/bytes-after-stream-cut-stream.pth")
def cut_stream_after() -> bytes:
    """A second save broke off: its last storage is not whole."""
    return legacy_stream(small_state_dict()) + cut(legacy_stream(tensor([1.0, 2.0])), -3)


@recipe("legacy/further-streams.pth")
def further_streams() -> bytes:
    """Three saves into one open file."""
    return legacy_stream(small_state_dict()) + legacy_stream([1, 2, 3]) + legacy_stream(tensor([1.0, 2.0]))


@recipe("legacy/source-text-kept.pth")
def source_text() -> bytes:
    """A whole module, with the source of its class at the time of saving and the path it came from."""
    cls = Persistent(("module", Global("scaling", "Scale"), "/home/somebody/scaling.py", SOURCE))
    state = {
        "training": True,
        "_parameters": ordered_dict([("factor", tensor([2.0]))]),
        "_buffers": ordered_dict(),
        "_modules": ordered_dict(),
    }
    # An id of a module stands where its class would.
    return legacy_stream(New(cls, (), state))


@recipe("legacy/source-text-missing-pass.pth")
def source_missing() -> bytes:
    """The writer could not read the source: None stands in its place."""
    cls = Persistent(("module", Global("scaling", "Scale"), None, None))
    return legacy_stream(New(cls, (), {"training": True}))


@recipe("legacy/other-reading-zip.pth")
def zip_behind() -> bytes:
    """An archive behind the stream: torch reads the one, ZIP tools the other."""
    return legacy_stream({"w": tensor([1.0])}) + eager({"w": tensor([2.0])})


@recipe("legacy/other-reading-tar.pth")
def tar_magic() -> bytes:
    """The magic of a tar header at its place: torch 0.1 to 2.x try a tar first."""
    data = legacy_stream({"text": "x" * 200})
    place = 257
    return data[:place] + b"ustar" + data[place + 5 :]


@recipe("legacy/stream-cut-magic.pth")
def cut_magic() -> bytes:
    """The file ends inside the magic number."""
    return cut(legacy_stream(small_state_dict()), 9)


@recipe("legacy/stream-cut-before-object.pth")
def cut_before_object() -> bytes:
    """The file ends between two pickles."""
    parts = legacy_parts(small_state_dict())
    return cut(parts.join(), parts.offsets["pickle"])


@recipe("legacy/stream-cut-object.pth")
def cut_object() -> bytes:
    """The file ends inside the object."""
    parts = legacy_parts(small_state_dict())
    return cut(parts.join(), parts.offsets["pickle"] + 100)


@recipe("legacy/sys-info-broken.pth")
def system_broken() -> bytes:
    """An opcode that does not exist in the system information: what follows cannot be found."""
    parts = legacy_parts(small_state_dict())
    parts.sys_info = op.proto(2) + b"\xff" + parts.sys_info[3:]
    return parts.join()
