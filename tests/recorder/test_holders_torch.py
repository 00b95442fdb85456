"""Who holds tensors of PyTorch is found in the program's own objects.

Programs are recorded as they are. Nothing that a program could see is called: getters of tensors
run its torch functions and give warnings.
"""

import json
from pathlib import Path

import pytest
from support.programs import recorded

import tlmem
from tlmem.events import Device

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

HEAD = "import torch, tlmem\nimport torch.nn as nn\ntorch.set_num_threads(1)\n"
BYTES = 8000
HOLDERS = {
    "module variable": ("x = torch.ones(2000)", "module __main__: x -> tensor"),
    "list": ("rows = [torch.ones(2000)]", "module __main__: rows -> list of 1[0] -> tensor"),
    "parameter": (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.ones(2000))\n"
        "net = Net()",
        "module __main__: net -> Net._parameters -> dict of 1['weight'] -> tensor",
    ),
    "gradient": (
        "x = torch.ones(2000, requires_grad=True)\n(x * 2).sum().backward()",
        "module __main__: x -> Tensor.grad -> tensor",
    ),
    "hook of a tensor": (
        "def add(to, mask):\n"
        "    to.register_hook(lambda grad: grad * mask)\n"
        "w = torch.ones(1, requires_grad=True)\n"
        "add(w, torch.ones(2000))",
        "module __main__: w -> Tensor._backward_hooks -> OrderedDict of 1[0] -> "
        "closure of <lambda>(): mask -> tensor",
    ),
    "hook of a parameter after its gradient": (
        "def add(to, mask):\n"
        "    to.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(mask))\n"
        "w = nn.Parameter(torch.ones(1))\n"
        "add(w, torch.ones(2000))",
        "module __main__: w -> Parameter._post_accumulate_grad_hooks -> OrderedDict of 1[0] -> "
        "closure of <lambda>(): mask -> tensor",
    ),
    "graph": (
        "x = torch.ones(1, requires_grad=True)\ny = x * torch.ones(2000)",
        "module __main__: y -> tensor of MulBackward0",
    ),
    "view": ("x = torch.ones(2000)[7:8]", "module __main__: x -> tensor"),
    "array over a tensor": (
        "x = torch.ones(2000).numpy()",
        "module __main__: x -> view.base -> tensor",
    ),
    "subclass": (
        "class T(torch.Tensor): pass\nx = torch.ones(2000).as_subclass(T)",
        "module __main__: x -> tensor",
    ),
    "quantized tensor": (
        "x = [torch.quantize_per_tensor(torch.ones(8000), 0.1, 0, torch.qint8)]",
        "module __main__: x -> list of 1[0] -> tensor",
    ),
    "sparse tensor": (
        "x = [torch.sparse_coo_tensor(torch.arange(2000)[None], torch.ones(2000), (2000,))]",
        "module __main__: x -> list of 1[0] -> SparseTensor -> tensor",
    ),
    "sparse tensor in rows": (
        "x = torch.sparse_csr_tensor(torch.arange(2001), torch.arange(2000), torch.ones(2000))",
        "module __main__: x -> SparseCsrTensor -> tensor",
    ),
    "sparse gradient": (
        "e = nn.Embedding(8, 1000, sparse=True)\ne(torch.arange(2)).sum().backward()",
        "module __main__: e -> Embedding._parameters -> dict of 1['weight'] -> Parameter.grad -> "
        "SparseTensor -> tensor",
    ),
    "sparse with a graph": (
        "w = torch.ones(2000, requires_grad=True)\n"
        "x = torch.sparse_coo_tensor(torch.arange(2000)[None], w, (2000,)) * 2",
        "module __main__: x -> SparseTensor -> tensor of MulBackward0",
    ),
    "parameter in an optimizer's step": (
        "class Sgd(torch.optim.Optimizer):\n"
        "    def __init__(self, parameters):\n"
        "        super().__init__(parameters, {})\n"
        "    def step(self):\n"
        "        mine = [p for g in self.param_groups for p in g['params']]\n"
        "        tlmem.snapshot()\n"
        "def main():\n"
        "    net = nn.Linear(2000, 1, bias=False)\n"
        "    optimizer = Sgd(net.parameters())\n"
        "    optimizer.step()\n"
        "main()",
        "main() at program.py:13: net -> Linear._parameters -> dict of 2['weight'] -> tensor",
    ),
    "closure": (
        "def make():\n    x = torch.ones(2000)\n    return lambda: x\nf = make()",
        "module __main__: f -> closure of <lambda>(): x -> tensor",
    ),
}

SPARSE_BYTES = {
    "sparse tensor": 3 * BYTES,
    "sparse tensor in rows": 5 * BYTES + 8,
    "sparse gradient": BYTES + 16,
    "sparse with a graph": 3 * BYTES,
}
"""Indices of 8 bytes and values; in rows also where each begins."""


def recording_of(body: str, folder: Path) -> "tlmem.Recording":
    """The recording of a program that takes a snapshot at its end."""
    script = folder / "program.py"
    script.write_text(HEAD + body + "\ntlmem.snapshot()\n")
    done = recorded([str(script)], folder, options=("-q", "-o", "x.tlm"))
    assert done.returncode == 0, done.stderr
    return tlmem.read(folder / "x.tlm")


@pytest.mark.parametrize("case", HOLDERS)
def test_a_tensor_has_the_chain_that_holds_it(case: str, tmp_path: Path) -> None:
    body, chain = HOLDERS[case]
    held = recording_of(body, tmp_path).holdings

    assert chain in set(held["chain"]), sorted(set(held["chain"]))
    row = held[held["chain"] == chain].iloc[0]
    assert row["held_bytes"] == SPARSE_BYTES.get(case, BYTES)


@pytest.mark.parametrize("strategy", ["file_system", "file_descriptor"])
def test_a_shared_tensor_is_the_mapping_that_it_lies_in(strategy: str, tmp_path: Path) -> None:
    body = f"import torch.multiprocessing as mp\nmp.set_sharing_strategy('{strategy}')\n"
    recording = recording_of(body + "kept = [torch.ones(2000).share_memory_()]", tmp_path)
    found = recording.holding_objects
    # The recorder may take one of its own while the tensor is copied, which starts a process.
    named = found.loc[found["snapshot"] == found["snapshot"].max(), "object"]
    held = recording.objects.loc[named[named >= 0]]

    assert set(held["device"]) == {Device.TORCH_MAPPED}
    assert (held["size_bytes"] >= BYTES).all()


def test_a_view_uses_less_than_it_keeps(tmp_path: Path) -> None:
    held = recording_of("x = torch.ones(2000)[7:9]", tmp_path).holdings
    row = held[held["chain"] == "module __main__: x -> tensor"].iloc[-1]

    assert (row["held_bytes"], row["used_bytes"]) == (BYTES, 8)


def test_a_tensor_over_an_array_is_the_array(tmp_path: Path) -> None:
    """Only NumPy allocated it, and the object that the snapshot names is that one."""
    found = recording_of(
        "import numpy as np\nx = torch.from_numpy(np.ones(2000, np.float32))", tmp_path
    )
    held = found.holdings
    group = held[held["chain"] == "module __main__: x -> tensor"].iloc[-1]
    named = found.holding_objects
    mine = named[(named["snapshot"] == group["snapshot"]) & (named["group"] == group["group"])]
    objects = found.objects.loc[mine["object"]]

    assert list(objects["size_bytes"]) == [BYTES]
    assert list(objects["device"]) == [1]


def test_nothing_that_a_program_sees_is_called(tmp_path: Path) -> None:
    """Neither its torch functions nor warnings; and no gradient of an inner tensor is asked for."""
    script = tmp_path / "program.py"
    script.write_text(
        HEAD
        + """
import warnings, sys, json
warnings.simplefilter("error")
class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        calls.append(function)
        return super().__torch_function__(function, types, args, kwargs or {})
calls = []
from torch.overrides import TorchFunctionMode
class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        calls.append(function)
        return function(*args, **(kwargs or {}))
x = torch.ones(2000).as_subclass(Loud)
leaf = torch.ones(2000, requires_grad=True)
inner = leaf * 2
others = [torch.ones(3).to_sparse(), torch.ones(2, device="meta")]
with Mode():
    before = len(calls), sys.getrefcount(x), sys.getrefcount(inner)
    tlmem.snapshot()
    after = len(calls), sys.getrefcount(x), sys.getrefcount(inner)
print(json.dumps([before, after]))
"""
    )
    done = recorded([str(script)], tmp_path, options=("-q", "-o", "x.tlm"))
    before, after = json.loads(done.stdout.splitlines()[-1])

    assert done.returncode == 0, done.stderr
    assert before == after
