# SPDX-License-Identifier: Apache-2.0
"""The only lists of globals: what torch's restricted loader takes by default, and what can run anything.

The allow-list is that of torch 2.13 (format.md 2.6), read out of the running module. The deny-list names modules and
callables with which a pickle can run code, reach files, processes or the network, or smuggle in another pickle.
What is on neither list is `unlisted`: it needs code that is not in the file, and nobody vouches for it.
"""

from __future__ import annotations

BASIS = "torch 2.13 weights_only"
"""The list that `listed` refers to."""

_DATA_TENSORS = "BFloat16 Bool Byte Char Double Float Half Int Long Short"
_CPU_STORAGES = (
    "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long QInt32 QInt8 QUInt2x4 QUInt4x2 QUInt8 Short"
)
_CUDA_STORAGES = "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long Short"
_SPARSE_TENSORS = "BFloat16 Byte Char Double Float Half Int Long Short"
_DTYPES = (
    "bfloat16 bits16 bits1x8 bits2x4 bits4x2 bits8 bool complex128 complex32 complex64 float16 float32 float64"
    " float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
    " int1 int2 int3 int4 int5 int6 int7 int8 int16 int32 int64"
    " uint1 uint2 uint3 uint4 uint5 uint6 uint7 uint8 uint16 uint32 uint64 qint32 qint8 quint2x4 quint4x2 quint8"
)
_QSCHEMES = (
    "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric"
)
_REBUILDS = (
    "_rebuild_device_tensor_from_cpu_tensor _rebuild_device_tensor_from_numpy _rebuild_meta_tensor_no_storage"
    " _rebuild_nested_tensor _rebuild_parameter _rebuild_parameter_with_state _rebuild_qtensor _rebuild_sparse_tensor"
    " _rebuild_tensor _rebuild_tensor_v2 _rebuild_tensor_v3 _rebuild_wrapper_subclass"
)


def _named(words: str, suffix: str = "") -> frozenset[str]:
    return frozenset(word + suffix for word in words.split())


ALLOWED: dict[str, frozenset[str]] = {
    "collections": _named("OrderedDict Counter"),
    "builtins": _named("bytearray set complex"),
    "_codecs": _named("encode"),
    "torch": _named("Size Tensor device")
    | _named(_DATA_TENSORS, "Tensor")
    | _named(_CPU_STORAGES, "Storage")
    | _named(_DTYPES)
    | _named(_QSCHEMES),
    "torch.cuda": _named(_DATA_TENSORS, "Tensor") | _named(_CUDA_STORAGES, "Storage"),
    "torch.sparse": _named(_SPARSE_TENSORS, "Tensor"),
    "torch.cuda.sparse": _named(_SPARSE_TENSORS, "Tensor"),
    "torch.storage": _named("TypedStorage UntypedStorage"),
    "torch.nn.parameter": _named("Parameter"),
    "torch.serialization": _named("_get_layout"),
    "torch._tensor": _named("_rebuild_from_type_v2"),
    "torch._utils": _named(_REBUILDS),
    # Taken by the restricted loader once their package is imported.
    "torch.nested._internal.nested_tensor": _named("NestedTensor _rebuild_njt"),
    "torch._dynamo.decorators": _named("_DimRange"),
    "torch.distributed.device_mesh": _named("DeviceMesh"),
    "torch.distributed.tensor": _named("DTensor"),
    "torch.distributed.tensor._dtensor_spec": _named("DTensorSpec TensorMeta"),
    "torch.distributed.tensor.placement_types": _named("Partial Replicate Shard"),
}
"""Module -> names that weights_only loading takes."""

_RENAMED_MODULES = {
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
    "Queue": "queue",
    "SocketServer": "socketserver",
    "ConfigParser": "configparser",
    "repr": "reprlib",
    "tkFileDialog": "tkinter.filedialog",
    "tkSimpleDialog": "tkinter.simpledialog",
    "tkColorChooser": "tkinter.colorchooser",
    "tkCommonDialog": "tkinter.commondialog",
    "Dialog": "tkinter.dialog",
    "Tkdnd": "tkinter.dnd",
    "tkFont": "tkinter.font",
    "tkMessageBox": "tkinter.messagebox",
    "ScrolledText": "tkinter.scrolledtext",
    "Tkconstants": "tkinter.constants",
    "Tix": "tkinter.tix",
    "ttk": "tkinter.ttk",
    "Tkinter": "tkinter",
    "markupbase": "_markupbase",
    "_winreg": "winreg",
    "thread": "_thread",
    "dummy_thread": "_dummy_thread",
    "dbhash": "dbm.bsd",
    "dumbdbm": "dbm.dumb",
    "dbm": "dbm.ndbm",
    "gdbm": "dbm.gnu",
    "xmlrpclib": "xmlrpc.client",
    "SimpleXMLRPCServer": "xmlrpc.server",
    "httplib": "http.client",
    "htmlentitydefs": "html.entities",
    "HTMLParser": "html.parser",
    "Cookie": "http.cookies",
    "cookielib": "http.cookiejar",
    "BaseHTTPServer": "http.server",
    "test.test_support": "test.support",
    "commands": "subprocess",
    "urlparse": "urllib.parse",
    "robotparser": "urllib.robotparser",
    "urllib2": "urllib.request",
    "anydbm": "dbm",
    "_abcoll": "collections.abc",
    "cPickle": "pickle",
    "_elementtree": "xml.etree.ElementTree",
    "FileDialog": "tkinter.filedialog",
    "SimpleDialog": "tkinter.simpledialog",
    "DocXMLRPCServer": "xmlrpc.server",
    "SimpleHTTPServer": "http.server",
    "CGIHTTPServer": "http.server",
    "UserDict": "collections",
    "UserList": "collections",
    "UserString": "collections",
    "whichdb": "dbm",
    "StringIO": "io",
    "cStringIO": "io",
    "__builtins__": "builtins",
    "torch.tensor": "torch._tensor",
}
"""Names of Python 2 modules in Python 3, as an unpickler maps them below protocol 3, and torch's own renamed module."""
_RENAMED_NAMES = {
    ("builtins", "xrange"): ("builtins", "range"),
    ("builtins", "reduce"): ("functools", "reduce"),
    ("builtins", "intern"): ("sys", "intern"),
    ("builtins", "unichr"): ("builtins", "chr"),
    ("builtins", "unicode"): ("builtins", "str"),
    ("builtins", "long"): ("builtins", "int"),
    ("builtins", "raw_input"): ("builtins", "input"),
}

_DENIED_MODULES = frozenset(
    """
    os posix nt ntpath posixpath sys subprocess _posixsubprocess commands runpy socket _socket ssl pty pdb bdb code codeop
    shutil tempfile importlib imp pkgutil zipimport ctypes _ctypes cffi pickle _pickle pickletools dill cloudpickle joblib
    marshal shelve webbrowser antigravity asyncio multiprocessing _thread signal platform mmap fcntl gc inspect timeit trace
    profile cProfile doctest unittest test distutils setuptools pip ensurepip venv site sitecustomize usercustomize atexit
    sched concurrent nntplib ftplib smtplib imaplib poplib telnetlib http urllib urllib3 requests httplib2 httpx aiohttp
    xmlrpc socketserver paramiko _pyrepl idlelib lib2to3 pydoc linecache logging.config sqlite3 dbm winreg msvcrt
    _testcapi _xxsubinterpreters _interpreters
    torch.hub torch.utils.cpp_extension torch.utils.bottleneck torch.utils.collect_env torch.utils.model_zoo
    torch.utils._config_module torch.distributed.run torch.distributed.launch torch.multiprocessing torch._inductor
    torch._dynamo.guards torch.jit.unsupported_tensor_ops torch.fx.experimental numpy.testing numpy.f2py numpy.distutils
    """.split()
)
"""Modules of which no name, and no module below, can be loaded without giving the pickle a way to run or reach things."""

_DENIED_NAMES: dict[str, frozenset[str]] = {
    "builtins": _named(
        "eval exec execfile compile open file input __import__ getattr setattr delattr globals locals vars breakpoint apply"
        " print exit quit help __build_class__"
    ),
    "io": _named("open FileIO open_code OpenWrapper"),
    "_io": _named("open FileIO open_code"),
    "codecs": _named("open"),
    "types": _named("FunctionType LambdaType CodeType ModuleType MethodType"),
    "operator": _named("attrgetter itemgetter methodcaller call"),
    "_operator": _named("attrgetter itemgetter methodcaller call"),
    "functools": _named("reduce partialmethod"),
    "_functools": _named("reduce"),
    "copyreg": _named("add_extension remove_extension pickle"),
    "uuid": _named("_get_command_stdout _popen _find_mac_netstat _find_mac_near_keyword _find_mac_under_heading"),
    "threading": _named("Thread Timer"),
    "logging": _named("FileHandler basicConfig"),
    "pathlib": _named("os io"),
    "fileinput": _named("input FileInput"),
    "zipfile": _named("ZipFile PyZipFile"),
    "tarfile": _named("open TarFile"),
    "bz2": _named("open BZ2File"),
    "gzip": _named("open GzipFile"),
    "lzma": _named("open LZMAFile"),
    "glob": _named("glob iglob"),
    "yaml": _named("load unsafe_load full_load"),
    "numpy": _named("load save fromfile memmap loadtxt genfromtxt savetxt DataSource"),
    "numpy.lib.npyio": _named("load save fromfile memmap loadtxt"),
    "pandas": _named("read_pickle eval"),
    "pandas.io.pickle": _named("read_pickle"),
    "torch": _named("load save from_file compile"),
    "torch.serialization": _named("load save _load _legacy_load"),
    "torch.storage": _named("_load_from_bytes"),
    "torch.jit": _named("load save"),
    "torch.package": _named("PackageImporter"),
    "torch._utils": _named("_import_dotted_name"),
    "torch.ops": _named("load_library"),
    "torch.classes": _named("load_library"),
}
"""Single callables of modules that otherwise hold harmless names."""


def modern_name(module: str, name: str) -> tuple[str, str]:
    """The name a current Python imports for one written by Python 2 or an old torch."""
    module = _RENAMED_MODULES.get(module, module)
    return _RENAMED_NAMES.get((module, name), (module, name))


def grade(module: str, name: str) -> str:
    """`listed`, `dangerous` or `unlisted`, for a global as the pickle writes it.

    A dotted name walks attributes: it is never listed, and judged by what its steps reach.
    """
    module, name = modern_name(module, name)
    if name in ALLOWED.get(module, ()):
        return "listed"
    head, *steps = name.split(".")
    if _denied_module(module) or head in _DENIED_NAMES.get(module, ()):
        return "dangerous"
    reached = module
    for step in (head, *steps[:-1]) if steps else ():
        reached = f"{reached}.{step}"
        # A module reached through an attribute of another, such as `torch.serialization.os`.
        if _denied_module(step) or _denied_module(reached):
            return "dangerous"
    return "dangerous" if any(step in _DENIED_NAMES["builtins"] or step.startswith("__") for step in steps) else "unlisted"


def _denied_module(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:count]) in _DENIED_MODULES for count in range(1, len(parts) + 1))
