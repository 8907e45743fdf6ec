# SPDX-License-Identifier: Apache-2.0
"""TorchScript archives: code as text, bytecode, model.json, which record belongs to which pickle, paths of machines."""

from __future__ import annotations

import pytest

import fdd
from corpus.build.kit import Call, Global, New, dump, patch, tensor
from corpus.build.script_kit import (
    CODE,
    PATH,
    Script,
    bytecode,
    json_archive,
    json_records,
    model_json,
    net,
    one_number,
    pack,
)
from fdd.core.finding import Reason, State
from fdd.core.report import Report
from fdd.core.source import BytesSource
from fdd.formats import by_name
from fdd.formats.probe import make_probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.formats.pytorch.machine_paths import ABSOLUTE
from fdd.formats.pytorch.script_code import classes_in, is_dangerous_name, is_dangerous_operator, names_in, parameters_in
from fdd.formats.pytorch.torchscript import ScriptFacts, module_of
from fdd.limits import Limits
from fdd.resources import corpus_dir

GOOD = Script()
MOBILE = Script(bytecode=bytecode())


def _document(data: bytes) -> TorchDocument:
    fmt = by_name("fdd000644")
    probe = make_probe(BytesSource(data), name=None, path=None, limits=Limits(), depth="full")
    identification = fmt.identify(probe)
    assert identification is not None
    document = fmt.open(probe, identification)
    assert isinstance(document, TorchDocument)
    return document


def _facts(data: bytes) -> ScriptFacts:
    facts = _document(data).facts["script"]
    assert isinstance(facts, ScriptFacts)
    return facts


def _report(data: bytes) -> Report:
    report = fdd.validate(data)
    assert not [outcome for outcome in report.outcomes if outcome.reason is Reason.CRASH]
    return report


def _failed(data: bytes) -> set[str]:
    return {outcome.rule for outcome in _report(data).outcomes if outcome.state is State.FAILED}


# Code


@pytest.mark.parametrize(
    ("code", "dangerous"),
    [
        ("torch.from_file(a, False, 3)", ["torch.from_file"]),
        ("torch.save(x, f)", ["torch.save"]),
        ("torch . save (x)", ["torch.save"]),
        ("y = torch.save", ["torch.save"]),
        ("t = torch", ["torch"]),
        ("t = getattr(torch, n)", ["torch"]),
        ("o = ops.aten", ["ops.aten"]),
        ("ops.aten.from_file(a)", ["ops.aten.from_file"]),
        ("torch.ops.aten.save(a)", ["torch.ops.aten.save"]),
        ("ops.prim.rpc_sync()", ["ops.prim.rpc_sync"]),
        ("rpc_async(w, f)", ["rpc_async"]),
        ("ops.image.read_file(p)", ["ops.image.read_file"]),
        ("ops.image.write_file(p, d)", ["ops.image.write_file"]),
        ("ops.torchaudio.sox_io_load_audio_file(p)", ["ops.torchaudio.sox_io_load_audio_file"]),
        ("ops._c10d_functional.all_reduce(x)", ["ops._c10d_functional.all_reduce"]),
        ("ops.mine.download(u)", ["ops.mine.download"]),
        ("s = __torch__.torch.classes.dist_c10d.TCPStore", ["__torch__.torch.classes.dist_c10d.TCPStore"]),
        ("torch.add(x, y)", []),
        ("torch.loads", []),
        ("ops.prim.NumToTensor(x)", []),
        ("ops.quantized.linear_prepack(x)", []),
        ("ops.mine.reopening(x)", []),
        ("self.torch.save(x)", []),
        ("x.save(y)", []),
        ('print("torch.save(x)")', []),
        ("# torch.save(x)", []),
        (r"a = 'it\'s torch.save'", []),
        ("__torch__.torch.nn.modules.linear.Linear", []),
        ("__torch__.torch.classes.quantized.LinearPackedParamsBase", []),
    ],
)
def test_what_code_may_reach_is_told_by_its_names(code: str, dangerous: list[str]) -> None:
    assert [name for name, _, _ in names_in(code) if is_dangerous_name(name)] == dangerous


def test_names_have_their_places() -> None:
    code = 'a = "x.y"\nb = torch . add(c)\n'
    assert [(name, code[start : start + length]) for name, start, length in names_in(code)] == [
        ("a", "a"), ("b", "b"), ("torch.add", "torch . add"), ("c", "c"),
    ]  # fmt: skip


def test_operators_are_judged_alike_in_code_and_bytecode() -> None:
    assert is_dangerous_operator("aten", "from_file") and is_dangerous_operator("prim", "rpc_remote")
    assert not is_dangerous_operator("aten", "add") and not is_dangerous_operator("mine", "opening")
    operators = (("aten::linear", "", 3), ("aten::save", "", 2))
    by_bytecode = MOBILE.but(bytecode=bytecode(operators=operators))
    by_code = GOOD.but(code=(("code/__torch__/net.py", CODE.replace("torch.mul", "torch.save")),))
    for script in (by_bytecode, by_code):
        report = _report(script.build())
        assert report.safety is not None and report.safety.value == "dangerous"


@pytest.mark.parametrize("folder", ["code/", "libs/"])
def test_code_of_every_era_is_looked_at(folder: str) -> None:
    records = [(name.replace("code/", folder), data) for name, data in json_records(code="torch.save(x)\n")]
    model = model_json()
    model["mainModule"]["torchscriptArena"]["key"] = f"{folder}net.py"  # type: ignore[index]
    rows = [(name, data) for name, data in records if name != "model.json"] + [json_records(model=model)[-1]]
    report = _report(json_archive(rows))
    assert report.safety is not None and report.safety.value == "dangerous"


def test_modules_and_classes_are_those_of_the_code_files() -> None:
    facts = _facts(GOOD.build())
    assert facts.modules == {"__torch__.net"} and facts.classes == {"__torch__.net.Net"}
    assert classes_in("class A(Module):\n  x : int\nclass B(NamedTuple):\n  y : int\n  class_ : int\n") == ["A", "B"]
    assert module_of("code/__torch__/a/b.py") == "__torch__.a.b" and module_of("code/__torch__/a.py.debug_pkl") is None
    assert module_of(".data/ts_code/code/__torch__/a.py") == "__torch__.a" and module_of("data/0") is None


def _missing(script: Script) -> list[tuple[str, str]]:
    return [(name, expected) for name, expected, _, _ in _facts(script.build()).missing_code]


def test_what_has_no_code_is_named_with_the_file_it_should_be_in() -> None:
    inner = New(Global("__torch__.a.b", "C"), (), {"training": True})
    assert _missing(GOOD) == []
    assert _missing(GOOD.but(value=net(inner=inner))) == [("__torch__.a.b.C", "code/__torch__/a/b.py")]
    code = CODE.replace("torch.linear(", "__torch__.f.scale(")
    assert _missing(GOOD.but(code=(("code/__torch__/net.py", code),))) == [("__torch__.f.scale", "code/__torch__/f.py")]
    both = (("code/__torch__/net.py", code), ("code/__torch__/f.py", "def scale(x):\n  return x\n"))
    assert _missing(GOOD.but(code=both)) == []
    imports = (("code/__torch__/net.py", "import __torch__.f\n" + CODE), both[1])
    assert _missing(GOOD.but(code=imports)) == []


def test_classes_of_extensions_need_no_code() -> None:
    packed = New(Global("__torch__.torch.classes.quantized", "LinearPackedParamsBase"), (), {"a": 1})
    code = CODE.replace("bool\n", "bool\n  packed : __torch__.torch.classes.quantized.LinearPackedParamsBase\n")
    script = GOOD.but(value=net(packed=packed), code=(("code/__torch__/net.py", code),))
    assert _missing(script) == []
    report = _report(script.build())
    assert report.verdict is not None and report.verdict.value == "valid"
    assert report.safety is not None and report.safety.value == "listed"


def test_damaged_code_is_not_taken_for_missing_classes() -> None:
    script = GOOD.but(code=(("code/__torch__/net.py", CODE.encode().replace(b"class Net", b"class \xffet")),))
    facts = _facts(script.build())
    assert facts.undecodable and not facts.missing_code
    assert "PT-TS-004" in _failed(script.build())


def test_code_that_cannot_be_inflated_leaves_safety_open() -> None:
    data = GOOD.build()
    record = next(record for record in _document(data).records if record.role == "code")
    assert record.span is not None
    report = _report(patch(data, record.span.offset, b"\xff" * 8))
    assert report.safety is not None and report.safety.value == "undetermined"
    assert report.verdict is not None and report.verdict.value == "not-well-formed"


# Pickles


@pytest.mark.parametrize("role", ["value", "constants", "bytecode", "traced_inputs"])
def test_every_pickle_of_a_script_is_judged(role: str) -> None:
    call = Call(Global("posix", "getcwd"))
    parts: dict[str, object] = {
        "value": net(extra=call),
        "constants": (2, call),
        "bytecode": bytecode(constants=(2, call)),
        "traced_inputs": ({"f": call},),
    }
    report = _report(MOBILE.but(**{role: parts[role]}).build())
    assert report.safety is not None and report.safety.value == "dangerous"
    assert "PT-TS-007" in {finding.rule for finding in report.findings}


@pytest.mark.parametrize("name", ["data.pkl", "constants.pkl", "bytecode.pkl", "code/__torch__/net.py.debug_pkl"])
def test_a_pickle_that_breaks_off_is_not_well_formed(name: str) -> None:
    rows = [(row, data[:-6] if row == name else data) for row, data in MOBILE.records()]
    report = _report(pack(rows))
    assert report.verdict is not None and report.verdict.value == "not-well-formed"


def test_helpers_of_scripts_are_listed_in_scripts_only() -> None:
    helper = Call(Global("torch.jit._pickle", "build_intlist"), ([1, 2],))
    report = _report(GOOD.but(constants=(2, helper)).build())
    assert report.safety is not None and report.safety.value == "listed"


def test_storages_lie_in_the_folder_of_their_pickle() -> None:
    script = GOOD.but(constants=(one_number(),), traced_inputs=({"forward": (tensor([1.0, 2.0]),)},))
    document = _document(script.build())
    places = {tensor.name: tensor.storage.record for tensor in document.tensors if tensor.storage}
    assert places == {
        "weight": "archive/data/0", "bias": "archive/data/1", "constants.pkl/0": "archive/constants/0",
        "traced_inputs.pkl/0/forward/0": "archive/traced_inputs/0",
    }  # fmt: skip
    assert not _failed(script.build())


@pytest.mark.parametrize("moved", ["data/0", "constants/0"])
def test_a_storage_in_another_folder_is_missing(moved: str) -> None:
    rows = [("traced_inputs/7" if name == moved else name, data) for name, data in GOOD.but(constants=(one_number(),)).records()]
    assert "PT-REC-016" in _failed(pack(rows))


@pytest.mark.parametrize("form", ["{}", "constants/{}", "{}.storage"])
def test_bytecode_names_its_constants_in_three_ways(form: str) -> None:
    ending = ".storage" if form.endswith("storage") else ""
    script = MOBILE.but(
        constants=(one_number(),), bytecode=bytecode(constants=(2, one_number())),
        constants_key=lambda number: number + ending, constants_record=lambda number: number + ending,
        bytecode_key=form.format,
    )  # fmt: skip
    assert not _failed(script.build())


# Bytecode


@pytest.mark.parametrize(
    ("root", "version", "faults"),
    [
        (bytecode(8), 8, 0),
        (bytecode(None), None, 0),
        ((4,), 4, 0),
        ({"a": 1}, None, 1),
        ((8, "forward"), 8, 1),
        ((8, ("f", ())), 8, 1),
        (
            (
                8,
                (
                    "f",
                    (
                        ("instructions", (("RET", 0),)),
                        ("operators", ((),)),
                        ("constants", ()),
                        ("types", ()),
                        ("register_size", 0),
                    ),
                ),
            ),
            8,
            2,
        ),
        (bytecode(8, register_size=1), 8, 2),
        (bytecode(8, instructions=[["RET", 0, 0]]), 8, 0),
    ],
)
def test_bytecode_is_version_and_functions(root: object, version: int | None, faults: int) -> None:
    facts = _facts(MOBILE.but(bytecode=root).build()).bytecode
    assert (facts.read, facts.version, len(facts.faults)) == (True, version, faults)
    assert ("PT-TS-013" in _failed(MOBILE.but(bytecode=root).build())) == bool(faults)


@pytest.mark.parametrize(
    ("version", "rules"),
    [
        (3, {"PT-TS-006"}),
        (4, set()),
        (8, set()),
        (9, {"PT-TS-009"}),
        (10, {"PT-TS-006"}),
        (None, {"PT-TS-010"}),
        (True, {"PT-TS-013"}),
    ],
)
def test_versions_of_the_bytecode(version: int | None, rules: set[str]) -> None:
    assert _failed(MOBILE.but(bytecode=bytecode(version)).build()) - {"PT-TS-010"} == rules - {"PT-TS-010"}


def test_broken_bytecode_is_not_said_to_be_old() -> None:
    rows = [(name, data[:40] if name == "bytecode.pkl" else data) for name, data in MOBILE.records()]
    assert "PT-TS-010" not in _failed(pack(rows))


# model.json


def test_the_first_form_is_read_by_its_json() -> None:
    document = _document(json_archive(json_records(debug=True, attributes=True)))
    seen = [(tensor.name, tensor.shape, tensor.stride, tensor.storage and tensor.storage.record) for tensor in document.tensors]
    assert seen == [("weight", (2, 3), (3, 1), "archive/tensors/0"), ("bias", (2,), (1,), "archive/tensors/1")]
    assert document.tensors[0].dtype is not None and document.tensors[0].dtype.name == "float32"


def test_modules_below_modules_give_names_however_deep() -> None:
    model = model_json()
    module: dict[str, object] = model["mainModule"]  # type: ignore[assignment]
    parameters = module.pop("parameters")
    for depth in range(40):
        inner: dict[str, object] = {"name": f"m{depth}"}
        module["submodules"] = [inner, "no module"]
        module = inner
    module["parameters"] = parameters
    names = [tensor.name for tensor in _document(json_archive(json_records(model=model))).tensors]
    assert names[0].startswith("m0/m1/m2/") and names[0].endswith("/m39/weight")


@pytest.mark.parametrize(
    "model",
    [b"", b"{", b"[]", b'{"mainModule": 3, "tensors": []}', b'{"mainModule": {}, "tensors": 3}', b"[" * 100_000, b"\xff\xfe",
     b'{"mainModule": {}, "tensors": [3]}'],
)  # fmt: skip
def test_json_that_is_no_model(model: bytes) -> None:
    assert "PT-TS-011" in _failed(json_archive(json_records(model=model)))


@pytest.mark.parametrize(
    "change",
    [{"dims": ["x"]}, {"dims": [2.5]}, {"strides": ["1", "9"]}, {"offset": "7"}, {"dataType": "STRING"}, {"dims": ["-1", "3"]},
     {"data": {"key": "tensors/9"}}, {"dims": [True, 3]}],
)  # fmt: skip
def test_tensors_that_do_not_fit(change: dict[str, object]) -> None:
    model = model_json()
    tensors = model["tensors"]
    assert isinstance(tensors, list)
    tensors[0].update(change)
    assert "PT-TS-012" in _failed(json_archive(json_records(model=model)))


# Paths of machines


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/home/jane/net.py", True), ("/usr/lib/python3/torch/nn/functional.py", True), ("C:\\models\\net.py", True),
        ("\\\\server\\share\\net.py", True), ("net.py", False), ("<string>", False), ("/", False), ("/net", False),
        ("  return x / y / z\n", False), ("/a/b\n/c", False),
    ],
)  # fmt: skip
def test_absolute_paths(text: str, path: bool) -> None:
    assert (ABSOLUTE.fullmatch(text) is not None) == path


def test_paths_in_debug_records_are_told_once_with_count_and_first_place() -> None:
    many = (*GOOD.code, ("code/__torch__/more.py", "def f(x):\n  return x\n"))
    report = _report(GOOD.but(debug_path=PATH, code=many).build())
    found = [finding for finding in report.findings if finding.rule == "PT-SEC-009"]
    assert len(found) == 1 and found[0].count == 2 and PATH in found[0].message
    assert found[0].record == "archive/code/__torch__/net.py.debug_pkl"
    data = json_archive(json_records(debug=True, path=PATH))
    (place,) = [(finding.offset, finding.length) for finding in _report(data).findings if finding.rule == "PT-SEC-009"]
    assert place[0] is not None and place[1] is not None and data[place[0] : place[0] + place[1]] == PATH.encode()


def test_texts_that_are_no_paths_are_not_told() -> None:
    assert "PT-SEC-009" not in _failed(GOOD.build())


# What travels along


@pytest.mark.parametrize(
    ("content", "safety"),
    [
        (b"plain text", "listed"),
        (dump({"a": 1}), "listed"),
        (dump(New(Global("argparse", "Namespace"), (), {"a": 1})), "unlisted"),
        (dump(Call(Global("posix", "getcwd"))), "dangerous"),
        (b"MZ\x90\x00" + bytes(60), "dangerous"),
    ],
)
def test_files_of_the_user_count_for_safety_only(content: bytes, safety: str) -> None:
    report = _report(GOOD.but(extra=(("extra/file", content),)).build())
    assert report.verdict is not None and report.verdict.value == "valid"
    assert report.safety is not None and report.safety.value == safety


def test_the_code_tells_which_tensors_are_parameters() -> None:
    report = fdd.extract((corpus_dir() / "good/torchscript-module.pt").read_bytes())
    assert report.properties is not None
    code = 'class A(Module):\n  __parameters__ = ["w", "b", ]\n  w : Tensor\nclass B(Module):\n  __buffers__ = ["x"]\n'
    assert parameters_in(code) == {"A": {"w", "b"}, "B": frozenset()}
    assert report.properties["parameter_count"] == 1
