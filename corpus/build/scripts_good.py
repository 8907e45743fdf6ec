# SPDX-License-Identifier: Apache-2.0
"""A good TorchScript archive."""

from __future__ import annotations

from corpus.build.kit import Global, New, archive, dump, eager_records, recipe, tensor, with_serialization_id

CODE = """class Scale(Module):
  __parameters__ = ["factor", ]
  __buffers__ = []
  factor : Tensor
  training : bool
  def forward(self: __torch__.Scale,
    x: Tensor) -> Tensor:
    factor = self.factor
    return torch.mul(x, factor)
"""


@recipe("good/torchscript-module.pt")
def torchscript_module() -> bytes:
    """A module with one parameter and a method that multiplies by it."""
    module = New(Global("__torch__", "Scale"), (), {"factor": tensor([0.5, 2.0]), "training": False})
    held = {name: data for name, data in eager_records(module) if name in ("data.pkl", "data/0")}
    records = [
        *held.items(),
        ("byteorder", b"little"),
        ("code/__torch__.py", CODE.encode()),
        ("constants.pkl", dump(())),
        ("version", b"3\n"),
    ]
    return archive(with_serialization_id(records), "torchscript-module", deflate=("code/__torch__.py",))
