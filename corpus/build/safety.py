# SPDX-License-Identifier: Apache-2.0
"""Files that could run something when they are loaded. All payloads are harmless, and nothing here ever loads one."""

from __future__ import annotations

from corpus.build import opcodes as op
from corpus.build.kit import (
    Call,
    Global,
    New,
    archive,
    dump,
    eager,
    ordered_dict,
    recipe,
    take_apart,
    tensor,
    with_serialization_id,
)
from corpus.build.pickle_kit import HEAD, TWO, around, holding

GETCWD = op.global_("posix", "getcwd")
CALL = GETCWD + op.EMPTY_TUPLE + op.REDUCE
PAYLOAD = HEAD + CALL + op.STOP
"""A pickle that asks for the working directory."""
CLEAN = dump({"epoch": 3, "names": ordered_dict([("a", 1)])})


@recipe("safety/global-unlisted.pt")
def global_unlisted() -> bytes:
    """Training options as argparse keeps them."""
    options = New(Global("argparse", "Namespace"), (), {"lr": 0.1})
    return eager({"weight": tensor(TWO), "args": options})


@recipe("safety/global-dangerous.pt")
def global_dangerous() -> bytes:
    """A call whose result is thrown away."""
    return holding(CALL + op.POP + op.NONE)


@recipe("safety/global-dangerous-not-called.pt")
def global_not_called() -> bytes:
    """A name that nothing calls."""
    return holding(GETCWD)


@recipe("safety/global-dangerous-dotted.pt")
def global_dotted() -> bytes:
    """An attribute of an attribute, by STACK_GLOBAL with names from the memo."""
    names = op.short_text("torch.serialization") + op.short_text("os.getcwd")
    return around(op.proto(4) + names + op.STACK_GLOBAL + op.EMPTY_TUPLE + op.REDUCE + op.STOP)


@recipe("safety/global-dangerous-inst.pt")
def global_inst() -> bytes:
    """A call by INST, without REDUCE."""
    return holding(op.MARK + op.inst("posix", "getcwd"))


@recipe("safety/global-dangerous-then-broken.pt")
def global_then_broken() -> bytes:
    """A call, and then no opcode: loaders have run the call when they stop."""
    return around(HEAD + CALL + b"\xff")


@recipe("safety/global-dangerous-bare-pickle.pkl")
def bare_pickle() -> bytes:
    """No torch file at all: a bare pickle."""
    return PAYLOAD


@recipe("safety/callable-unnamed.pt")
def callable_unnamed() -> bytes:
    """A call of what another call returned."""
    return holding(op.global_("collections", "OrderedDict") + op.EMPTY_TUPLE + op.REDUCE + op.EMPTY_TUPLE + op.REDUCE)


@recipe("safety/state-names-internals.pt")
def state_names_internals() -> bytes:
    """A state that gives an OrderedDict another class."""
    return eager({"weight": tensor(TWO), "x": ordered_dict((), {"__class__": 1})})


@recipe("safety/import-changed.pt")
def import_changed() -> bytes:
    """BUILD on the class OrderedDict itself."""
    return holding(op.global_("collections", "OrderedDict") + op.EMPTY_DICT + op.text("a") + op.NONE + op.SETITEM + op.BUILD)


def _given_to_loader(pickle: bytes, loader: Global) -> bytes:
    """Bytes as protocol 2 keeps them, as the argument of a call."""
    return eager({"weight": tensor(TWO), "x": Call(loader, (pickle,))})


@recipe("safety/nested-pickle-dangerous.pt")
def nested_dangerous() -> bytes:
    """A pickle in the bytes that a loader of pickles is given."""
    return _given_to_loader(PAYLOAD, Global("torch.storage", "_load_from_bytes"))


@recipe("safety/nested-pickle-unlisted.pt")
def nested_unlisted() -> bytes:
    """A pickle of training options in bytes that some function is given."""
    return _given_to_loader(dump(New(Global("argparse", "Namespace"))), Global("mytrainer", "restore"))


@recipe("safety/hidden-code.pt")
def hidden_in_record() -> bytes:
    """A record that the format does not know."""
    return around(CLEAN, (("notes.txt", PAYLOAD),))


@recipe("safety/hidden-code-protocol-0.pt")
def hidden_protocol_0() -> bytes:
    """The same as a protocol 0 text, without PROTO."""
    return around(CLEAN, (("extra", b"cposix\ngetcwd\n(tR."),))


@recipe("safety/hidden-code-storage.pt")
def hidden_in_storage() -> bytes:
    """A storage that no tensor refers to."""
    return around(CLEAN, (("data/7", PAYLOAD),))


@recipe("safety/hidden-code-after-stop.pt")
def hidden_after_stop() -> bytes:
    """A second pickle behind STOP, with bytes between."""
    return around(CLEAN + b"--" + PAYLOAD)


@recipe("safety/hidden-code-gap.pt")
def hidden_in_gap() -> bytes:
    """A pickle between two records."""
    found = take_apart(around(CLEAN))
    found.members[1].gap = PAYLOAD
    return found.build()


@recipe("safety/hidden-code-unlisted-record.pt")
def hidden_unlisted_record() -> bytes:
    """A record with a local header that the directory leaves out."""
    found = take_apart(around(CLEAN, (("notes", PAYLOAD),)))
    found.member(b"/notes").central = None
    return found.build()


@recipe("safety/hidden-code-copy.pt")
def hidden_in_copy() -> bytes:
    """A second data.pkl."""
    return around(CLEAN, (("data.pkl", PAYLOAD),))


@recipe("safety/hidden-pickle.pt")
def hidden_clean() -> bytes:
    """A clean pickle in an unknown record."""
    return around(CLEAN, (("more.pkl", CLEAN),))


@recipe("safety/hidden-code-prose-pass.pt")
def prose() -> bytes:
    """Labels that begin like the opcode GLOBAL by chance."""
    return around(CLEAN, (("labels.txt", b"cat\ndog\nbird\n"),))


@recipe("safety/native-code.pt")
def native_code() -> bytes:
    """A record with the head of an ELF library."""
    return around(CLEAN, (("kernels.so", b"\x7fELF\x02\x01\x01" + bytes(57)),))


@recipe("safety/code-operator-dangerous.pt")
def code_operator() -> bytes:
    """A TorchScript module whose method reads a file."""
    code = (
        "class M(Module):\n"
        "  __parameters__ = []\n"
        "  __buffers__ = []\n"
        "  training : bool\n"
        "  def forward(self: __torch__.M) -> Tensor:\n"
        '    return torch.from_file("weights.bin", False, 4)\n'
    )
    module = New(Global("__torch__", "M"), (), {"training": False})
    records = [
        ("data.pkl", dump(module)),
        ("byteorder", b"little"),
        ("code/__torch__.py", code.encode()),
        ("constants.pkl", dump(())),
        ("version", b"3\n"),
    ]
    return archive(with_serialization_id(records), deflate=("code/__torch__.py",))


@recipe("safety/path-of-author.pt")
def path_of_author() -> bytes:
    """A checkpoint that names the folder it was made in."""
    return eager({"weight": tensor(TWO), "output": "/home/jane/runs/17"})
