# SPDX-License-Identifier: Apache-2.0
"""The only lists of globals: what torch's restricted loader takes by default, and what can run anything.

The allow-list is that of torch 2.13 (format.md 2.6), read out of the running module. The deny-list names modules and
callables with which a pickle can run code, reach files, processes or the network, or smuggle in another pickle. It never
can be complete, and need not: what is on neither list is `unlisted`, which torch refuses by default, too.

What is denied, and how far:

- a module with all that lies in it and below it, where hardly anything in it is harmless (`os`, `subprocess`);
- single callables of modules that otherwise hold what honest files name (`builtins`, `numpy`, `torch`);
- packages that loaders of pickles are copied into others under (`x.y.cloudpickle`), wherever they stand in the name;
- attributes reached by a dotted name (`Path.unlink`), and modules reached as attributes of others (`torch.hub.os`).

Classes with which many honest files are written stay unlisted although a determined author could misuse some of them:
enumerations, `functools.partial`, paths, loggers, `inspect.Signature`, results of `platform`, NumPy's constructors.
Names that users like to give their own modules (`test`, `code`, `trace`) are denied by callable where that suffices.
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
_QSCHEMES = "per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric"
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
    "torch.distributed._mesh_layout": _named("_FlatLayout _MeshLayout"),
    "torch.distributed.tensor": _named("DTensor"),
    "torch.distributed.tensor._dtensor_spec": _named("DTensorSpec TensorMeta ShardOrderEntry"),
    "torch.distributed.tensor.placement_types": _named("Partial Replicate Shard _StridedShard"),
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

RESTRICTED_OPCODES = _named(
    "PROTO STOP GLOBAL NEWOBJ REDUCE BUILD APPEND APPENDS SETITEM SETITEMS MARK TUPLE TUPLE1 TUPLE2 TUPLE3 NONE NEWFALSE NEWTRUE"
    " EMPTY_TUPLE EMPTY_LIST EMPTY_DICT EMPTY_SET BININT BININT1 BININT2 LONG1 BINFLOAT BINUNICODE SHORT_BINSTRING BINPERSID"
    " BINGET LONG_BINGET BINPUT LONG_BINPUT"
)
"""Opcodes that weights_only loading knows (format.md 2.1)."""

_SYSTEM = """
    os posix nt ntpath posixpath genericpath macpath nturl2path sys subprocess _posixsubprocess _winapi popen2 runpy pty tty
    termios fcntl mmap shutil tempfile webbrowser antigravity pipes mailcap pwd spwd grp getpass syslog readline
    multiprocessing multiprocess concurrent asyncio _thread atexit gc faulthandler dbm winreg _winreg msvcrt msilib
    sqlite3 _sqlite3 idlelib turtledemo _pyrepl cgitb _aix_support _osx_support
"""
"""Processes, files, terminals, other threads."""
_CODE = """
    pdb bdb codeop imp importlib _imp _frozen_importlib _frozen_importlib_external pkgutil zipimport modulefinder compileall
    py_compile zipapp timeit cProfile _lsprof doctest unittest test.support test.libregrtest test.script_helper distutils
    setuptools pkg_resources pip ensurepip venv virtualenv wheel site sitecustomize usercustomize lib2to3 pydoc linecache
    rlcompleter logging.config ctypes _ctypes cffi _cffi_backend _testcapi _testinternalcapi _xxsubinterpreters
    coverage nose pytest _pytest mypy Cython cython pyximport hydra._internal hydra.utils
    _xxinterpchannels _interpreters IPython jupyter_client clr win32api win32com comtypes six.moves
"""
"""Whatever compiles, imports, runs or inspects code."""
_NETWORK = """
    socket _socket ssl _ssl socketserver nntplib ftplib smtplib smtpd imaplib poplib telnetlib http.client http.server
    urllib.request urllib.robotparser urllib2 urllib3 xmlrpc asyncore asynchat requests httplib2 httpx aiohttp pycurl websocket
    websockets tornado twisted paramiko fabric pexpect ptyprocess plumbum sh wget gdown boto3 botocore huggingface_hub
    logging.handlers wsgiref docker invoke git psutil
"""
"""Other machines."""
_PICKLES = """
    pickle _pickle pickletools _compat_pickle dill cloudpickle marshal shelve jsonpickle klepto pathos zodbpickle
    joblib.externals joblib.memory joblib.parallel joblib.numpy_pickle_compat pandas.io pandas.compat.pickle_compat
    pyspark.serializers sklearn.externals.joblib srsly hickle ruamel.yaml
"""
"""What reads another pickle or code object."""
_PACKAGES = """
    torch.hub torch.utils.cpp_extension torch.utils.bottleneck torch.utils.collect_env torch.utils.model_zoo torch.utils.benchmark
    torch.utils.show_pickle torch.utils.model_dump torch.utils._config_module torch.utils.data.datapipes.utils.decoder
    torch.distributed.run torch.distributed.launch torch.distributed.launcher torch.distributed.elastic torch.distributed.rpc
    torch.distributed.nn.jit torch.multiprocessing torch._inductor torch._dynamo.guards torch._dynamo.debug_utils
    torch._dynamo.repro torch.jit.unsupported_tensor_ops torch.fx.experimental torch.testing._internal.common_utils
    torch.testing._internal.distributed numpy.testing numpy.f2py numpy.distutils numpy.ctypeslib numpy.lib._datasource
    numpy.compat scipy.io sklearn.datasets numexpr
"""
"""Parts of packages that checkpoints name for other reasons."""
_DENIED_MODULES = frozenset(" ".join((_SYSTEM, _CODE, _NETWORK, _PICKLES, _PACKAGES)).split())
"""Modules of which no name, and no module below, can be loaded without giving the pickle a way to run or reach things."""

_COPIED_PACKAGES = frozenset({"cloudpickle", "dill", "pickle5", "subprocess32"})
"""Denied wherever they stand in the name of a module: other packages bring their own copy."""
_REACHED_MODULES = frozenset(
    "os posix nt sys subprocess importlib pickle _pickle shutil ctypes socket runpy marshal builtins pty"
    " _os _sys _io io bltns tempfile".split()
)
"""Modules that others have as attributes: a global with such a name hands out the module itself."""
_DENIED_ATTRIBUTES = _named(
    "eval exec execfile compile system popen spawn fork kill run_code runcode runsource from_file fromfile tofile"
    " loads _load_from_bytes open unlink rmdir mkdir touch rename symlink_to hardlink_to link_to chmod lchmod write_text"
    " write_bytes read_text read_bytes from_pretrained load_from_checkpoint _new_shared_filename_cpu _new_using_filename_cpu"
    " _new_shared_fd_cpu getattr setattr load_library _evaluate clone_from"
)
"""Attributes that a dotted name must not end with."""

_DENIED_ANYWHERE = _named(
    "FunctionType LambdaType CodeType attrgetter methodcaller import_module __import__ exec eval execfile popen Popen system"
    " execv execve execvp spawnv check_output check_call getoutput getstatusoutput run_path run_module unsafe_load"
    " PackageImporter PackageExporter Unpickler _Unpickler _unpickler _builtin_open bltn_open _load_from_bytes"
    " _load_for_lite_interpreter load_pt2 fromfile memmap"
)
"""Names that modules import from one another, or define as ways round: denied in whatever module they are looked up."""

MOST_STEPS = 16
"""Attributes in a dotted name; classes inside classes have one or two, and more than this only hide where they lead."""
MOST_PARTS = 32
"""Parts of the name of a module, in the same way: packages lie ten deep at most."""

_DENIED_NAMES: dict[str, frozenset[str]] = {
    # Python
    "builtins": _named(
        "eval exec execfile compile open file input __import__ getattr setattr delattr globals locals vars breakpoint apply"
        " print reload exit quit help __build_class__ __loader__ __spec__ copyright credits license"
    ),
    "_sitebuiltins": _named("Quitter _Printer _Helper"),
    "io": _named("open FileIO open_code OpenWrapper"),
    "_io": _named("open FileIO open_code"),
    "_pyio": _named("open FileIO open_code OpenWrapper"),
    "codecs": _named("open EncodedFile"),
    "tokenize": _named("open"),
    "types": _named("FunctionType LambdaType CodeType ModuleType MethodType"),
    "new": _named("function code instancemethod module"),
    "code": _named("InteractiveInterpreter InteractiveConsole interact compile_command"),
    "operator": _named("attrgetter itemgetter methodcaller call"),
    "_operator": _named("attrgetter itemgetter methodcaller call"),
    "functools": _named("reduce partialmethod"),
    "_functools": _named("reduce"),
    "copyreg": _named("add_extension remove_extension pickle"),
    "signal": _named("signal sigaction alarm setitimer raise_signal pthread_kill set_wakeup_fd"),
    "resource": _named("setrlimit prlimit"),
    "trace": _named("Trace main"),
    "profile": _named("Profile run runctx main"),
    "sched": _named("scheduler"),
    "typing": _named("_eval_type get_type_hints"),
    "dataclasses": _named("_create_fn"),
    "inspect": _named("getsource getsourcelines getsourcefile getfile getmembers getattr_static currentframe stack trace"),
    "platform": _named("popen _popen _syscmd_uname _syscmd_ver _syscmd_file _sys_version architecture libc_ver"),
    "uuid": _named(
        "_get_command_stdout _popen _find_mac _find_mac_netstat _find_mac_near_keyword _find_mac_under_heading _ifconfig_getter"
        " _ip_getter _arp_getter _lanscan_getter _netstat_getter getnode"
    ),
    "sysconfig": _named("_generate_posix_vars _parse_makefile _init_posix get_config_vars parse_config_h _main"),
    "threading": _named("Thread Timer"),
    "logging": _named("FileHandler basicConfig"),
    "pathlib": _named("os io"),
    "pathlib.Path": _named("open replace"),
    "pstats": _named("Stats"),
    "tracemalloc.Snapshot": _named("load dump"),
    "wave": _named("open"),
    "aifc": _named("open"),
    "sunau": _named("open"),
    "fsspec": _named("open"),
    "smart_open": _named("open"),
    "numpy.matlib": _named("load save savez loadtxt genfromtxt savetxt"),
    "numpy.ndarray": _named("dump"),
    "numpy.ma.mrecords": _named("fromtextfile openfile"),
    "torch.utils._zip": _named("ZipFile PyZipFile"),
    "fileinput": _named("input FileInput hook_compressed hook_encoded"),
    "zipfile": _named("ZipFile PyZipFile"),
    "tarfile": _named("open TarFile"),
    "bz2": _named("open BZ2File"),
    "gzip": _named("open GzipFile"),
    "lzma": _named("open LZMAFile"),
    "glob": _named("glob iglob glob0 glob1"),
    "mailbox": _named("Mailbox Maildir mbox MH Babyl MMDF"),
    "netrc": _named("netrc"),
    "urllib": _named("urlopen urlretrieve URLopener FancyURLopener"),
    "smtplib": _named("SMTP"),
    "xml.etree.ElementTree": _named("parse iterparse"),
    "xml.dom.minidom": _named("parse"),
    # Packages that checkpoints name often
    "yaml": _named("load load_all unsafe_load unsafe_load_all full_load full_load_all"),
    "yaml.constructor": _named("UnsafeConstructor Constructor FullConstructor"),
    "six": _named("exec_ moves"),
    "joblib": _named("load dump Memory Parallel"),
    "joblib.numpy_pickle": _named("load load_temporary_memmap dump _unpickle NumpyUnpickler read_zfile"),
    "PIL.Image": _named("open preinit"),
    "numpy": _named("load save savez fromfile memmap loadtxt genfromtxt savetxt DataSource"),
    "numpy.lib.format": _named("read_array open_memmap"),
    "numpy.lib._format_impl": _named("read_array open_memmap"),
    "numpy.lib.npyio": _named("load save savez fromfile memmap loadtxt genfromtxt savetxt NpzFile DataSource"),
    "numpy.lib._npyio_impl": _named("load save savez loadtxt genfromtxt savetxt NpzFile"),
    "pandas": _named(
        "read_pickle read_csv read_json read_html read_sql read_hdf read_parquet read_feather read_excel read_table read_fwf"
        " read_clipboard to_pickle eval"
    ),
    "pandas.core.computation.eval": _named("eval"),
    "sympy": _named("sympify S lambdify parse_expr"),
    "sympy.core.sympify": _named("sympify"),
    "sympy.parsing.sympy_parser": _named("parse_expr eval_expr"),
    "keras.models": _named("load_model"),
    "keras.saving": _named("load_model"),
    "tensorflow.keras.models": _named("load_model"),
    "tf_keras.models": _named("load_model"),
    "mlflow": _named("run"),
    "mlflow.pyfunc": _named("load_model"),
    "transformers": _named("pipeline"),
    "transformers.dynamic_module_utils": _named("get_class_from_dynamic_module get_class_in_module"),
    "django.utils.module_loading": _named("import_string"),
    "werkzeug.utils": _named("import_string"),
    "celery.utils.imports": _named("symbol_by_name"),
    "jinja2": _named("Template"),
    "mako.template": _named("Template"),
    "cupy": _named("RawKernel RawModule"),
    "triton.runtime.build": _named("_build"),
    "distributed": _named("Client"),
    "h5py": _named("File"),
    "tensorflow": _named("py_function numpy_function"),
    # torch
    "torch": _named("load save from_file compile"),
    "torch.serialization": _named("load save _load _legacy_load _legacy_save load_model save_model mmap"),
    "torch.storage": _named("_load_from_bytes"),
    "torch.jit": _named("load save"),
    "torch.jit._serialization": _named("load save jit_module_from_flatbuffer save_jit_module_to_flatbuffer"),
    "torch.jit._script": _named("CompilationUnit"),
    "torch.export": _named("load save"),
    "torch.package": _named("PackageImporter PackageExporter"),
    "torch.package.package_importer": _named("PackageImporter"),
    "torch.package.package_exporter": _named("PackageExporter"),
    "torch.fx.graph_module": _named(
        "reduce_graph_module reduce_package_graph_module reduce_deploy_graph_module _exec_with_source _forward_from_src"
        " _method_from_src _deserialize_graph_module _EvalCacheLoader"
    ),
    "torch.fx._lazy_graph_module": _named("_deserialize_lazy_graph_module"),
    "torch.distributed.distributed_c10d": _named("_tensor_to_object _object_to_tensor"),
    "torch.distributed": _named("TCPStore FileStore"),
    "torch._C": _named(
        "PyTorchFileReader PyTorchFileWriter CompilationUnit import_ir_module import_ir_module_from_buffer"
        " _import_ir_module_from_package _load_for_lite_interpreter _jit_script_compile _TensorPipeAgent _cuda_customAllocator"
    ),
    "torch.cuda": _named("CUDAPluggableAllocator"),
    "torch.cuda.memory": _named("CUDAPluggableAllocator"),
    "torch.distributed.checkpoint.format_utils": _named("torch_save_to_dcp dcp_to_torch_save"),
    "torch.utils.data._utils.worker": _named("_worker_loop"),
    "torch._dynamo.utils": _named("import_submodule"),
    "torch._utils": _named("_import_dotted_name"),
    "torch._ops": _named("_Ops"),
    "torch.ops": _named("load_library"),
    "torch.classes": _named("load_library"),
    "torch.utils.tensorboard": _named("SummaryWriter FileWriter"),
    "torch.utils.file_baton": _named("FileBaton"),
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
    denied = (
        module.count(".") >= MOST_PARTS
        or _denied_module(module)
        or head in _DENIED_NAMES.get(module, ())
        or not _DENIED_ANYWHERE.isdisjoint((head, *steps))
        or head in _REACHED_MODULES
        or _denied_steps(module, head, steps)
    )
    return "dangerous" if denied else "unlisted"


def _denied_module(module: str) -> bool:
    parts = module.split(".")
    if not _COPIED_PACKAGES.isdisjoint(parts):
        return True
    return any(".".join(parts[:count]) in _DENIED_MODULES for count in range(1, len(parts) + 1))


def _denied_steps(module: str, head: str, steps: list[str]) -> bool:
    """Whether a walk from a module over ``head`` and further attributes leads to something denied.

    A module may be reached as an attribute of another, such as `torch.serialization.os`: every part of the walk is read
    as a name of its own, too.
    """
    if not steps or len(steps) > MOST_STEPS:
        return bool(steps)
    walk = [*module.split("."), head, *steps]
    first = len(walk) - len(steps) - 1
    for start in (0, *range(first, len(walk))):
        for end in range(max(first, start) + 1, len(walk)):
            reached = ".".join(walk[start:end])
            if _denied_module(reached) or walk[end] in _DENIED_NAMES.get(reached, ()):
                return True
    return any(step in _DENIED_ATTRIBUTES or step.startswith("__") or step in _REACHED_MODULES for step in steps)
