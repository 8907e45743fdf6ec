# SPDX-License-Identifier: Apache-2.0
"""What the whole project promises about its own source text: safety of imports, licences, sizes, no traces of machines."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fdd.core.finding import Safety, Verdict

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "fdd"

FORBIDDEN = frozenset({"torch", "pickle", "_pickle", "cPickle", "pickletools", "marshal", "shelve", "dill", "cloudpickle"})
"""Modules that unpickle, or run what they read, or bring something in that does."""

STANDARD_LIBRARY_ROOMS = ("core", "container", "pickles", "tensors", "formats")
"""Rooms that import nothing but the standard library and fdd when they are loaded."""

MODULE_LINES = 450
"""The house rule is about 400; this much more needs no argument."""

IMPORT_CALLS = frozenset({"__import__", "import_module", "find_spec", "run_module", "run_path", "resolve_name", "reload"})
"""Calls that import by name; their name must be a text that a reader, and this test, can see."""

EXECUTING_CALLS = frozenset({"eval", "exec", "compile"})
"""Built-ins that run text as code. `re.compile` is an attribute and not meant."""

COMPUTED_IMPORTS = frozenset(
    {
        "fdd/cli/doctor.py",  # the libraries of the installation, from a table
        "fdd/__init__.py",  # the public names, from a table of homes
        "fdd/formats/__init__.py",  # formats, from a list of dotted names and from entry points
        "fdd/formats/pytorch/rules/__init__.py",  # the modules of rules, from a list
        "fdd/report/__init__.py",  # writers, from a table
    }
)
"""Modules that may import by a computed name, and where they have the name from: never from a file under test."""

MACHINE_PATHS = tuple(f"/{folder}/" for folder in ("work", "root", "home", "Users", "opt/wheels"))
INVENTED = re.compile(r"/(?:home|Users)/(?:jane|somebody)\b|\(\?:/home/\|/Users/\|/root/\|")
"""People that do not exist, in recipes of files that show such paths; and the pattern that looks for them."""
REGISTRY_HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "npmjs" + ".org", "deb.debian" + ".org", "crates" + ".io")


def _sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def _tracked() -> tuple[Path, ...]:
    """The files that git keeps; none where this is not a checkout, as in an unpacked sdist."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ()
    paths = (ROOT / name.decode("utf-8", "surrogateescape") for name in listing.split(b"\0") if name)
    return tuple(path for path in paths if path.is_file() and not path.is_symlink())


def _called(node: ast.Call) -> str:
    """The last part of the name that is called: `b` of `a.b()` and of `b()`."""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def _text(node: ast.expr | None) -> str | None:
    """The text that an expression is, None where it has to be computed."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _imported_by_name(argument: ast.expr | None) -> str | None:
    """The module an import call names: a text, or an f-string that begins with `fdd.`; None for any other expression."""
    if isinstance(argument, ast.JoinedStr) and argument.values:
        start = _text(argument.values[0])
        return start if start is not None and start.startswith("fdd.") else None
    return _text(argument)


def _import_faults(tree: ast.Module, *, computed: bool = False) -> Iterator[str]:
    """Yield what in a module imports or runs what it must not; ``computed`` allows imports of computed names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [] if node.level else [node.module or ""]
        elif isinstance(node, ast.Subscript):
            names = _names_in_sys_modules(node)
        elif isinstance(node, ast.Call):
            yield from _call_faults(node, computed)
            continue
        else:
            continue
        yield from (f"line {node.lineno}: imports {name}" for name in names if name.split(".")[0] in FORBIDDEN)


def _names_in_sys_modules(node: ast.Subscript) -> list[str]:
    is_modules = isinstance(node.value, ast.Attribute) and node.value.attr == "modules"
    return [_text(node.slice) or ""] if is_modules else []


def _call_faults(node: ast.Call, computed: bool) -> Iterator[str]:
    called = _called(node)
    if called in EXECUTING_CALLS and isinstance(node.func, ast.Name):
        yield f"line {node.lineno}: calls {called}()"
    if called in IMPORT_CALLS:
        name = _imported_by_name(node.args[0] if node.args else None)
        if name is None and not computed:
            yield f"line {node.lineno}: {called}() of a computed name"
        elif name is not None and name.split(".")[0] in FORBIDDEN:
            yield f"line {node.lineno}: imports {name}"
    for keyword in node.keywords:
        if keyword.arg == "allow_pickle" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
            yield f"line {node.lineno}: allow_pickle"


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import os, torch.serialization",
        "def f():\n    from pickle import loads",
        "import importlib\nimportlib.import_module('marshal')",
        "__import__('pick' + 'le')",
        "from importlib import import_module\nimport_module(name)",
        "import_module(f'{name}')",
        "import sys\nsys.modules['pickle'].loads(b'')",
        "exec(text)",
        "numpy.load(path, allow_pickle=flag)",
    ],
)
def test_import_scan_sees(text: str) -> None:
    assert list(_import_faults(ast.parse(text)))


@pytest.mark.parametrize(
    "text",
    [
        "import fdd.pickles",
        "from fdd.pickles import opcodes",
        "from importlib import import_module\nimport_module('fdd.cli.validate')\nimport_module(f'fdd.cli.{name}')",
        "import re\nre.compile('x')",
        "DENIED = {'pickle': 'loads'}",
        "numpy.load(path, allow_pickle=False)",
    ],
)
def test_import_scan_lets_pass(text: str) -> None:
    assert list(_import_faults(ast.parse(text))) == []


def test_nothing_unpickles_or_executes() -> None:
    faults = [
        f"{_relative(path)}: {fault}"
        for path in _sources(PACKAGE)
        for fault in _import_faults(_tree(path), computed=_relative(path) in COMPUTED_IMPORTS)
    ]
    assert faults == []


def test_parsers_and_rules_load_only_the_standard_library() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for room in STANDARD_LIBRARY_ROOMS
        for path in _sources(PACKAGE / room)
    ]
    assert modules
    program = (
        "import importlib, json, sys\n"
        "before = set(sys.modules)\n"
        "for name in json.loads(sys.argv[1]): importlib.import_module(name)\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))\n"
    )
    command = [sys.executable, "-c", program, json.dumps(modules)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    loaded = {name.split(".")[0] for name in json.loads(result.stdout)}
    assert loaded - sys.stdlib_module_names - {"fdd"} == set()
    assert loaded & FORBIDDEN == set()


def test_every_module_names_its_licence() -> None:
    tops = ("fdd", "tests", "tools", "benchmarks", "corpus")
    sources = [path for top in tops for path in _sources(ROOT / top)]
    missing = [
        _relative(path)
        for path in sources
        if "# SPDX-License-Identifier: Apache-2.0" not in path.read_text(encoding="utf-8").splitlines()[:2]
    ]
    assert sources
    assert missing == []


def _prints(node: ast.Call | ast.Attribute) -> bool:
    """Whether a node talks to the terminal: calls `print` or `input`, or reaches for a standard stream."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in {"print", "input"}
    return ast.unparse(node) in {"sys.stdin", "sys.stdout", "sys.stderr"}


def test_only_the_command_line_prints() -> None:
    places = [
        f"{_relative(path)}:{node.lineno}"
        for path in _sources(PACKAGE)
        if PACKAGE / "cli" not in path.parents
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call | ast.Attribute) and _prints(node)
    ]
    assert places == []


def test_modules_are_of_a_readable_length() -> None:
    lengths = {_relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in _sources(PACKAGE)}
    assert {name: lines for name, lines in lengths.items() if lines > MODULE_LINES} == {}


def test_no_traces_of_machines_or_registries() -> None:
    if not _tracked():
        pytest.skip("not a git checkout")
    traces = []
    for path in _tracked():
        data = path.read_bytes()
        if b"\0" in data or path == Path(__file__):
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            told = INVENTED.sub("", line)
            traces += [f"{_relative(path)}:{number}: {word}" for word in (*MACHINE_PATHS, *REGISTRY_HOSTS) if word in told]
    assert traces == []


def test_links_between_documents_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))]
    local = [(page, link.split("#")[0]) for page, link in links if "://" not in link and not link.startswith("#")]
    assert local
    assert [f"{_relative(page)}: {link}" for page, link in local if not (page.parent / link).exists()] == []


def test_page_of_verdicts_explains_every_word() -> None:
    page = (ROOT / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert [word for word in (*Verdict, *Safety) if f"| `{word}` |" not in page] == []
