# SPDX-License-Identifier: Apache-2.0
"""The grades of globals: listed, unlisted, dangerous."""

from __future__ import annotations

import pytest

from fdd.formats.pytorch.globals import ALLOWED, MOST_STEPS, RESTRICTED_OPCODES, grade, modern_name
from fdd.pickles.opcodes import BY_NAME

LISTED = ["collections.OrderedDict", "torch.FloatStorage", "torch._utils._rebuild_tensor_v2", "torch.float8_e4m3fn", "torch.Size"]
UNLISTED = [
    "numpy.core.multiarray.scalar", "numpy._core.multiarray._reconstruct", "numpy.dtype", "numpy.ndarray",
    "numpy.random._pickle.__randomstate_ctor", "argparse.Namespace", "collections.defaultdict", "builtins.dict", "builtins.slice",
    "pathlib.PosixPath", "pathlib._local.PosixPath", "omegaconf.listconfig.ListConfig", "functools.partial", "enum.Enum",
    "pytorch_lightning.callbacks.model_checkpoint.ModelCheckpoint", "torch.nn.modules.linear.Linear", "torch.optim.adam.Adam",
    "torch._C._nn.gelu", "torch.nn.functional.relu", "torch.distributed.checkpoint.metadata.Metadata", "datetime.datetime",
    "inspect.Signature", "platform.uname_result", "logging.getLogger", "signal.Signals", "urllib.parse.ParseResult",
    "test.Net", "code.model.Net", "trace.Probe", "ultralytics.nn.tasks.DetectionModel",
    "transformers.training_args.TrainingArguments",
]  # fmt: skip
DANGEROUS = [
    "os.system", "posix.getcwd", "nt.system", "sys.intern", "subprocess.Popen", "builtins.eval", "builtins.exec",
    "builtins.getattr", "builtins.__import__", "builtins.open", "importlib.import_module", "runpy.run_path", "pip.main",
    "pkgutil.resolve_name", "asyncio.unix_events._UnixSubprocessTransport", "socket.socket", "webbrowser.open", "ctypes.CDLL",
    "pickle.loads", "_pickle.loads", "dill._dill.loads", "cloudpickle.loads", "joblib.load", "torch.load", "torch.hub.load",
    "torch.storage._load_from_bytes", "torch.utils.cpp_extension.load_inline", "torch.jit.unsupported_tensor_ops.execWrapper",
    "torch._dynamo.guards.GuardBuilder", "numpy.f2py.crackfortran.getlincoef", "numpy.testing._private.utils.runstring",
    "uuid._get_command_stdout", "timeit.timeit", "cProfile.run", "trace.Trace", "code.InteractiveInterpreter", "pydoc.pipepager",
    "imaplib.IMAP4_stream", "_pyrepl.pager.pipe_pager", "idlelib.autocomplete.AutoComplete", "distutils.file_util.write_file",
    "logging.config._resolve", "operator.methodcaller", "types.FunctionType", "torch.fx.graph_module.reduce_graph_module",
    "ray.cloudpickle.cloudpickle._make_function", "joblib.externals.cloudpickle.loads", "http.client.HTTPSConnection",
]  # fmt: skip


def _split(path: str) -> tuple[str, str]:
    module, _, name = path.rpartition(".")
    return module, name


@pytest.mark.parametrize(("paths", "expected"), [(LISTED, "listed"), (UNLISTED, "unlisted"), (DANGEROUS, "dangerous")])
def test_grade(paths: list[str], expected: str) -> None:
    assert {path: grade(*_split(path)) for path in paths} == dict.fromkeys(paths, expected)


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("torch.serialization", "os.system", "dangerous"),
        ("torch.serialization", "os", "dangerous"),
        ("mymodel", "utils.subprocess.run", "dangerous"),
        ("mymodel", "torch.hub.load", "dangerous"),
        ("torch", "serialization.load", "dangerous"),
        ("os", "path.join", "dangerous"),
        ("pathlib", "Path.unlink", "dangerous"),
        ("torch.storage", "UntypedStorage.from_file", "dangerous"),
        ("collections", "OrderedDict.__reduce__", "dangerous"),
        ("mymodel", "Outer.Inner", "unlisted"),
        ("collections", "OrderedDict.fromkeys", "unlisted"),
        ("torch", "nn.Linear", "unlisted"),
        ("", "fromkeys", "unlisted"),
        ("random", "_os.execv", "dangerous"),
        ("enum", "bltns.open", "dangerous"),
        ("collections", "_sys.exit", "dangerous"),
        ("tracemalloc", "Snapshot.load", "dangerous"),
        ("pathlib", "Path.open", "dangerous"),
        ("mymodel", ".".join("a" * (MOST_STEPS + 2)), "dangerous"),
    ],
)
def test_dotted_names_are_judged_by_what_they_reach(module: str, name: str, expected: str) -> None:
    assert grade(module, name) == expected


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("tokenize", "_builtin_open"), ("tarfile", "bltn_open"), ("pathlib", "attrgetter"), ("dataclasses", "FunctionType"),
        ("torch.fx._symbolic_trace", "CodeType"), ("torch.distributed._tensor", "import_module"), ("numpy._core", "fromfile"),
        ("torch.jit._script", "PackageImporter"), ("torch.distributed.distributed_c10d", "_unpickler"), ("numpy.rec", "memmap"),
        ("torch.jit.mobile", "_load_for_lite_interpreter"), ("torch.export.pt2_archive", "load_pt2"), ("my.tools", "Popen"),
        ("my", "tools.Popen"), ("numpy", "core.memmap.memmap"), ("a", "b.CodeType"),
    ],
)  # fmt: skip
def test_what_modules_import_from_others_is_the_same_thing(module: str, name: str) -> None:
    assert grade(module, name) == "dangerous"


def test_a_listed_name_is_listed_in_its_module_only() -> None:
    assert grade("collections.abc", "OrderedDict") == grade("torch.cuda", "QInt8Storage") == "unlisted"
    assert grade("evil", "_rebuild_tensor_v2") == "unlisted"


@pytest.mark.parametrize(
    ("module", "name", "expected"),
    [
        ("__builtin__", "eval", ("builtins", "eval")),
        ("__builtin__", "set", ("builtins", "set")),
        ("commands", "getoutput", ("subprocess", "getoutput")),
        ("cPickle", "loads", ("pickle", "loads")),
        ("copy_reg", "_reconstructor", ("copyreg", "_reconstructor")),
        ("__builtin__", "reduce", ("functools", "reduce")),
        ("torch.tensor", "_rebuild_from_type_v2", ("torch._tensor", "_rebuild_from_type_v2")),
        ("torch", "Size", ("torch", "Size")),
    ],
)
def test_names_of_python_2_are_read_as_todays(module: str, name: str, expected: tuple[str, str]) -> None:
    assert modern_name(module, name) == expected
    assert grade(module, name) == grade(*expected)


def test_nothing_listed_is_denied_and_the_list_has_the_names_of_its_release() -> None:
    assert all(grade(module, name) == "listed" for module, names in ALLOWED.items() for name in names)
    assert sum(len(names) for names in ALLOWED.values()) == 144 + 14  # and those that need their package imported


def test_restricted_opcodes_exist() -> None:
    assert BY_NAME.keys() >= RESTRICTED_OPCODES
    assert {"STACK_GLOBAL", "FRAME", "POP", "PERSID", "INST", "EXT1"}.isdisjoint(RESTRICTED_OPCODES)
