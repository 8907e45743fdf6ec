# SPDX-License-Identifier: Apache-2.0
"""torch.package and TorchServe archives: what they expect, bring and name, and what travels in them."""

from __future__ import annotations

import json

import pytest

import fdd
from corpus.build.kit import Call, Global, New, Persistent, dump, eager, state_dict, tensor
from corpus.build.package_files import HANDLER, WEIGHTS, manifest, model_archive, module, package, reduced, scripts, served
from fdd.core.finding import Reason, State
from fdd.core.report import Report
from fdd.core.source import BytesSource
from fdd.formats import by_name
from fdd.formats.probe import make_probe
from fdd.formats.pytorch.document import TorchDocument
from fdd.limits import Limits

UNLISTED = New(Global("argparse", "Namespace"), (), {"a": 1})


def _document(data: bytes) -> TorchDocument:
    fmt = by_name("fdd000644")
    probe = make_probe(BytesSource(data), name=None, path=None, limits=Limits(), depth="full")
    identification = fmt.identify(probe)
    assert identification is not None
    document = fmt.open(probe, identification)
    assert isinstance(document, TorchDocument)
    return document


def _report(data: bytes) -> Report:
    report = fdd.validate(data)
    assert not [outcome for outcome in report.outcomes if outcome.reason is Reason.CRASH]
    return report


def _failed(data: bytes) -> set[str]:
    return {outcome.rule for outcome in _report(data).outcomes if outcome.state is State.FAILED}


def _safety(data: bytes) -> str | None:
    safety = _report(data).safety
    return safety.value if safety is not None else None


# Packages


@pytest.mark.parametrize("old", [False, True])
def test_storages_of_a_package_are_found_by_number_and_by_address(old: bool) -> None:
    document = _document(package(module(), old=old))
    (storage,) = document.storages
    assert storage.span is not None and storage.record == f"archive/.data/{storage.key}.storage"
    assert len(storage.key) == (14 if old else 1)
    assert not _failed(package(module(), old=old)) & {"PT-REC-016", "PT-REC-024", "PT-PKG-005"}


def test_a_package_of_tensors_is_listed_and_has_no_sources() -> None:
    data = package(state_dict({"w": tensor([1.0])}), sources=())
    assert _safety(data) == "listed" and "PT-PKG-003" not in _failed(data)
    assert _safety(package(module())) == "unlisted"


@pytest.mark.parametrize(
    ("name", "extern", "sources", "provided"),
    [
        ("net", b"torch\ncollections", (("net.py", b""),), True),
        ("net", b"torch\ncollections", (("net/__init__.py", b""),), True),
        ("net.deep", b"torch\ncollections", (("net/deep.py", b""),), True),
        ("net.deep", b"torch\ncollections\nnet", (), True),
        ("net", b"torch\ncollections\nnet.deep", (), False),
        ("network", b"torch\ncollections\nnet", (), False),
        ("numpy.core._multiarray_umath", b"torch\ncollections", (), True),
        ("builtins", b"torch\ncollections", (), True),
    ],
)
def test_modules_come_from_the_package_or_its_list(
    name: str, extern: bytes, sources: tuple[tuple[str, bytes], ...], provided: bool
) -> None:
    value = {"a": New(Global(name, "Net"), (), {"training": True}), "w": tensor([1.0])}
    assert ("PT-PKG-005" not in _failed(package(value, extern=extern, sources=sources))) == provided


def test_without_a_readable_list_nothing_is_said_to_be_missing() -> None:
    assert "PT-PKG-005" not in _failed(package(module(), extern=None, sources=()))
    assert "PT-PKG-005" not in _failed(package(module(), extern=b"bad line", sources=()))


def test_scripts_in_a_package_are_read_as_scripts() -> None:
    data = package({"script": reduced(), "w": tensor([1.0])}, sources=(), more=scripts())
    document = _document(data)
    records = {tensor.name: tensor.storage and tensor.storage.record for tensor in document.tensors}
    assert records == {
        ".data/ts_code/0/data.pkl/weight": "archive/.data/1.storage", ".data/ts_code/0/data.pkl/bias": "archive/.data/2.storage",
        "model/model.pkl/w": "archive/.data/0.storage",
    }  # fmt: skip
    listed = {use.path: use.grade for use in document.globals}
    assert listed["__torch__.net.Net"] == "listed"
    assert _report(data).verdict is not None and not _failed(data) & {"PT-REC-016", "PT-REC-017", "PT-REC-024", "PT-PKG-006"}


def test_scripts_in_a_package_need_their_code() -> None:
    rows = [row for row in scripts() if not row[0].endswith("net.py")]
    report = _report(package({"script": reduced(), "w": tensor([1.0])}, sources=(), more=rows))
    (found,) = [finding for finding in report.findings if finding.rule == "PT-TS-002"]
    assert ".data/ts_code/code/__torch__/net.py" in found.message


def test_script_classes_are_unlisted_in_the_other_pickles_of_a_package() -> None:
    assert _safety(package({"a": New(Global("__torch__.net", "Net"), (), {"x": 1})}, extern=b"__torch__")) == "unlisted"


@pytest.mark.parametrize(
    ("identifier", "good"),
    [
        (("reduce_package", 1, Global("torch", "Size"), ((1, 2),)), True),
        (("reduce_package", Global("torch", "Size"), ((1, 2),)), True),
        (("reduce_package", 1, Global("torch", "Size"), [1]), False),
        (("reduce_package", 1, "torch.Size", ()), False),
        (("reduce_package",), False),
        (("reduce_package", 1, Global("torch", "Size"), (), 4), False),
        (("reduce_package", 1, Global("torch.jit._script", "unpackage_script_module"), ("0",)), False),
        (("reduce_package", 1, Global("torch.jit._script", "unpackage_script_module"), ()), False),
    ],
)
def test_ids_of_reduced_objects(identifier: tuple[object, ...], good: bool) -> None:
    data = package({"a": Persistent(identifier), "w": tensor([1.0])}, sources=())
    assert ("PT-PKG-006" not in _failed(data)) == good


@pytest.mark.parametrize(
    ("name", "content", "safety"),
    [
        ("data/a.bin", b"\x00\x01\x02", "listed"),
        ("data/a.bin", dump(UNLISTED), "unlisted"),
        ("data/a.bin", dump(Call(Global("posix", "getcwd"))), "dangerous"),
        ("data/a.bin", eager({"x": UNLISTED}), "unlisted"),
        ("data/a.bin", eager({"x": Call(Global("posix", "getcwd"))}), "dangerous"),
        ("lib/a.so", b"\x7fELF" + bytes(60), "dangerous"),
        (".data/unknown", dump(UNLISTED), "dangerous"),
    ],
)
def test_what_travels_in_a_package(name: str, content: bytes, safety: str) -> None:
    data = package(state_dict({"w": tensor([1.0])}), sources=(), more=((name, content),))
    report = _report(data)
    assert _safety(data) == safety and report.verdict is not None and report.verdict.value == "valid"
    assert ("PT-REC-018" in _failed(data)) == name.startswith(".data/")


def test_every_pickle_of_a_package_is_judged() -> None:
    assert "PT-PKL-005" in _failed(package(module(), more=(("other/broken.pkl", b"\x80\x03}"),)))


# Model archives


@pytest.mark.parametrize(
    ("stated", "rules"),
    [
        (manifest(handler="image_classifier"), set()),
        (manifest(handler="handler.py"), {"PT-MAR-003"}),
        (manifest(handler="handler.py:run"), {"PT-MAR-003"}),
        (manifest(handler="other.py:run"), {"PT-MAR-002"}),
        (manifest(handler="image_classifier", requirementsFile="requirements.txt"), {"PT-MAR-002"}),
        (manifest(handler="image_classifier", configFile=""), set()),
        (manifest(handler="image_classifier", serializedFile=None), set()),
        (manifest(handler="image_classifier", serializedFile=7), set()),
        (json.dumps({"model": []}).encode(), {"PT-MAR-001"}),
        (json.dumps([1]).encode(), {"PT-MAR-001"}),
        (b"\xff\xfe{}", {"PT-MAR-001"}),
        (b"[" * 50_000, {"PT-MAR-001"}),
    ],
)
def test_the_manifest(stated: bytes, rules: set[str]) -> None:
    handler = "PT-MAR-003" in rules
    assert _failed(served(stated=stated, handler=handler)) == rules


def test_tensors_of_the_model_inside_are_shown() -> None:
    document = _document(served())
    assert [(tensor.name, tensor.shape) for tensor in document.nested_tensors] == [("net.pt/w", (2,))]
    assert document.kind == "mar" and document.content == "package"


def test_python_in_a_model_archive_makes_it_unlisted() -> None:
    assert _safety(served()) == "unlisted"
    assert _safety(served(stated=manifest(handler="image_classifier"), handler=False)) == "listed"


def test_a_pickle_beside_the_model_is_no_hidden_code() -> None:
    rows = [("net.pt", WEIGHTS), ("a.pkl", dump(UNLISTED)), ("MAR-INF/MANIFEST.json", manifest(handler="x"))]
    assert _failed(model_archive(rows)) == {"PT-SEC-001"}


def test_a_whole_module_in_the_old_form_is_judged_as_a_model() -> None:
    rows = [("net.pt", eager({"x": UNLISTED})), ("handler.py", HANDLER), ("MAR-INF/MANIFEST.json", manifest())]
    assert _failed(model_archive(rows)) == {"PT-SEC-031", "PT-MAR-003"}
