"""The module in which each large block of PyTorch is allocated, beside what the program knows.

Programs give their blocks sizes that nothing else in them has; truth comes from ``named_modules``
or from hooks in a run that is not recorded.
"""

import json
from pathlib import Path

import pytest
from recorder.test_stacks import record
from support import programs

import tlmem
from tlmem.events import Kind

pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

LARGE = 16 * 1024
HEAD = r"""
import warnings; warnings.simplefilter("ignore")
import gc, itertools, json, os, sys, threading, time, weakref
import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(1)
sizes = itertools.count(20001)

class Leaf(nn.Module):
    def __init__(self, size=None):
        super().__init__()
        self.size = size or next(sizes)

    def forward(self, x):
        torch.empty(self.size, dtype=torch.uint8)
        return x
"""


def paths_of(recording: tlmem.Recording) -> list[tuple[int, str]]:
    """Size and path of every block that has a path, in the order of their events.

    Each path must stand directly behind the allocation of its block, in the same thread.
    """
    names = recording._names.labels
    found = []
    for _, events in recording.events.groupby("thread", sort=False):
        kinds, objects = events.kind.to_numpy(), events.object.to_numpy()
        addresses = events.address.to_numpy()
        arguments = events.arg.to_numpy()
        for at, kind in enumerate(kinds):
            if int(kind) == Kind.MODULE_PATH:
                assert int(kinds[at - 1]) == Kind.ALLOC and addresses[at - 1] == objects[at]
                found.append((int(arguments[at - 1]), names[int(arguments[at])]))
    return found


def by_size(recording: tlmem.Recording) -> dict[int, list[str]]:
    """The paths of all blocks of each size."""
    found: dict[int, list[str]] = {}
    for size, path in paths_of(recording):
        found.setdefault(size, []).append(path)
    return found


MODEL = r"""
class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True))

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln, self.attn = nn.LayerNorm(width), Attention(width)
        wide = nn.Linear(width, 4 * width)
        self.mlp = nn.Sequential(wide, nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln(x))
        return x + self.mlp(x)

class GPT(nn.Module):
    def __init__(self, width=64, depth=3):
        super().__init__()
        self.wte = nn.Embedding(100, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        x = self.wte(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

model = GPT()
optimizer = torch.optim.AdamW(model.parameters())
truth, names = [], {module: name for name, module in model.named_modules()}

def note(module, given, result):
    if not list(module.children()):
        truth.append([result.nbytes, "GPT/" + names[module]])

if len(sys.argv) > 1:
    nn.modules.module.register_module_forward_hook(note)
for step in range(3):
    x = torch.randint(0, 100, (8, 64))
    loss = F.cross_entropy(model(x).flatten(0, 1), x.flatten())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
if len(sys.argv) > 1:
    everything = ["GPT/" + name if name else "GPT" for name in names.values()]
    json.dump([truth, everything], open(sys.argv[1], "w"))
"""


def test_paths_are_those_that_hooks_see(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(HEAD + MODEL, encoding="utf-8")
    assert programs.plain(["plain.py", "truth.json"], tmp_path).returncode == 0
    truth, everything = json.loads((tmp_path / "truth.json").read_text())
    recording = record(tmp_path, HEAD + MODEL)
    found = paths_of(recording)

    leaves = {tuple(row) for row in truth}
    assert [list(row) for row in found if row in leaves] == truth
    assert len(truth) == 3 * (2 + 3 * 6)
    assert {path for _, path in found} <= set(everything)
    assert min(size for size, _ in found) >= LARGE
    large = recording.objects[recording.objects.size_bytes >= LARGE]
    assert len(large) > len(found)  # gradients and the optimizer's state are in no module
    assert recording.problems == []


KEPT = r"""
class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.listed = [Leaf(20101), nn.Sequential(Leaf(20102))]
        self.named = nn.ModuleDict({"a": Leaf(20103), "b": nn.ModuleList([Leaf(20104)])})
        self.nested = nn.Sequential(nn.Sequential(Leaf(20105)), Leaf(20106))
        self.direct = nn.Sequential(Leaf(20107))
        self.aside = Leaf(20108)

    def forward(self, x):
        torch.empty(20100, dtype=torch.uint8)
        for module in self.listed:
            module(x)
        self.named["a"](x), self.named["b"][0](x), self.nested(x)
        self.direct.forward(x)
        self.aside.forward(x)
        return x

class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        leaf = Leaf(20110)
        self.first, self.second = nn.Sequential(leaf), nn.Sequential(leaf)

    def forward(self, x):
        return self.second(self.first(x))

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = Leaf(20111)

    def forward(self, n):
        return self(n - 1) if n else self.leaf(n)

class Bare(nn.Module):
    def forward(self, x):
        torch.empty(20112, dtype=torch.uint8)

class Ending(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = Leaf(20113)

    def forward(self, x):
        self.leaf(x)

    def __del__(self):
        torch.empty(20114, dtype=torch.uint8)

def once():
    Kept()(1); Shared()(1); nn.DataParallel(nn.Sequential(Leaf(20109)))(1)
    Deep()(3); Deep()(200); Bare()(1); Ending()(1)
    nn.Sequential(Leaf(15000))(1)
    a, b = nn.Sequential(Leaf(20115)), nn.Sequential(nn.Identity(), Leaf(20116))
    a(1), b(1), a(1), b(1)

once(); once()
torch.empty(20117, dtype=torch.uint8)
"""


def test_every_way_of_keeping_a_module(tmp_path: Path) -> None:
    recording = record(tmp_path, HEAD + KEPT, options=("--stack-depth", "1000"))

    assert by_size(recording) == {
        20100: ["Kept", "Kept"],
        20101: ["Kept/Leaf", "Kept/Leaf"],
        20102: ["Kept/Sequential.0", "Kept/Sequential.0"],
        20103: ["Kept/named.a", "Kept/named.a"],
        20104: ["Kept/named.b.0", "Kept/named.b.0"],
        20105: ["Kept/nested.0.0", "Kept/nested.0.0"],
        20106: ["Kept/nested.1", "Kept/nested.1"],
        20107: ["Kept/direct.0", "Kept/direct.0"],
        20108: ["Kept", "Kept"],  # forward() alone is a call of its caller
        20109: ["DataParallel/module.0", "DataParallel/module.0"],
        20110: ["Shared/first.0", "Shared/second.0"] * 2,
        20111: ["Deep/leaf"] * 4,
        20112: ["Bare", "Bare"],
        20113: ["Ending/leaf", "Ending/leaf"],
        # Two models of one name that are alive at the same time.
        20115: ["Sequential/0"] * 4,
        20116: ["Sequential(2)/1"] * 4,
    }
    assert sum(recording.objects.size_bytes.isin((15000, 20114, 20117))) == 5


CHECKPOINTED = r"""
from torch.utils.checkpoint import checkpoint

class Wide(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.reentrant = reentrant
        layers = [nn.Sequential(Leaf(20201 + i), nn.Linear(8, 8)) for i in range(3)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.reentrant)
        return x

for reentrant in (True, False):
    model = Wide(reentrant)
    for step in range(2):
        model(torch.randn(4, 8, requires_grad=True)).sum().backward()
    del model
"""


def test_what_is_computed_again_in_backward_has_its_path_in_the_model(tmp_path: Path) -> None:
    found = by_size(record(tmp_path, HEAD + CHECKPOINTED))

    assert {size: set(paths) for size, paths in found.items()} == {
        20201 + i: {f"Wide/layers.{i}.0"} for i in range(3)
    }
    # Two models, two steps, each forward and again in backward.
    assert {size: len(paths) for size, paths in found.items()} == dict.fromkeys(found, 8)


REBUILT = r"""
import random
random.seed(1)
truth, addresses, again = {}, set(), 0

class Net(nn.Module):
    def __init__(self, parts):
        super().__init__()
        for i, part in enumerate(parts):
            self.add_module(f"part{i}", part)

    def forward(self, x):
        for part in self.children():
            part(x)

for turn in range(300):
    parts = [Leaf(), Leaf(), nn.Sequential(nn.Identity(), Leaf()), nn.Sequential(Leaf())]
    random.shuffle(parts)
    model = Net(parts)
    for name, module in model.named_modules():
        again += id(module) in addresses
        addresses.add(id(module))
        if isinstance(module, Leaf):
            truth[module.size] = ["Net/" + name] * (turn % 3)
    for _ in range(turn % 3):
        model(1)
    if turn % 50 == 49:
        junk = [bytearray(n) for n in range(1000)]  # so that addresses move on now and then
    del model, parts, module
assert again > 500, again
json.dump({size: paths for size, paths in truth.items() if paths}, open("truth.json", "w"))
"""


def test_an_address_that_comes_again_has_no_former_name(tmp_path: Path) -> None:
    recording = record(tmp_path, HEAD + REBUILT)
    truth = json.loads((tmp_path / "truth.json").read_text())

    assert by_size(recording) == {int(size): paths for size, paths in truth.items()}
    assert len(truth) == 800


THREADS = r"""
class First(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.parts = nn.ModuleList(Leaf(20301 + 100 * k + i) for i in range(5))

    def forward(self, x):
        for part in self.parts:
            part(x)

class Second(First): pass
class Third(First): pass
kinds = [First, Second, Third]
kept = []

def work(k):
    model = kinds[k](k)
    for _ in range(200):
        model(1)
    if k == 2:
        kept.append(model)  # its names are found at the end, where nothing else had the GIL

threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_that_run_different_models(tmp_path: Path) -> None:
    found = by_size(record(tmp_path, HEAD + THREADS))

    assert found == {
        20301 + 100 * k + i: [f"{name}/parts.{i}"] * 200
        for k, name in enumerate(("First", "Second", "Third"))
        for i in range(5)
    }


LIVES = r"""
events = []

class Loud(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = Leaf()

    def forward(self, x):
        return self.leaf(x)

    def __del__(self):
        events.append(("del", gc.is_finalized(self)))

class Phoenix(nn.Module):
    def forward(self, x):
        torch.empty(20401, dtype=torch.uint8)

    def __del__(self):
        events.append("again")
        saved.append(self)

class Late(nn.Module):
    def forward(self, x):
        torch.empty(20402, dtype=torch.uint8)

class Other(Late): pass

for kind in (Loud, Late, Leaf):
    model = kind(); model(1); model(1)
    ref = weakref.ref(model, lambda r, kind=kind: events.append(("gone", kind.__name__)))
    events.append((weakref.getweakrefcount(model), sys.getrefcount(model), gc.is_finalized(model)))
    events.append(len(gc.get_referrers(model)))
    del model
    events.append(ref() is None)

saved = []
model = Phoenix(); model(1); del model; saved[0](1); saved.pop(); events.append(len(saved))

cycle = Late(); cycle(1); cycle.me = [cycle]; ref = weakref.ref(cycle); del cycle
events.append(ref() is None); gc.collect(); events.append(ref() is None)

# Classes of instances, and what a class has, change.
model = Late(); model(1); model.__class__ = Other; model(1); model.__class__ = Late; model(1)
Late.__del__ = lambda self: events.append("late del"); model(1); del model; del Late.__del__
model = Late(); model(1); del model
class After(Late): pass
After()(1); model = After(); model(1); del model
events += [hasattr(kind, "__del__") for kind in (Late, Other, After, Leaf, nn.Linear, Loud)]
events.append(sorted(Late.__dict__))

class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.LazyLinear(64)

    def forward(self, x):
        return self.fc(x)

lazy = Lazy(); lazy(torch.ones(128, 32)); lazy(torch.ones(128, 32))
events.append(type(lazy.fc).__name__)
nn.utils.parametrize.register_parametrization(lazy.fc, "weight", nn.Identity())
lazy(torch.ones(128, 32)); events.append(type(lazy.fc).__name__)
events.append(len(gc.get_objects()) > 0)
copy = __import__("copy").deepcopy(lazy); copy(torch.ones(128, 32)); del copy
for line in events: print(line)
"""


def test_lives_of_modules_are_as_without_recording(tmp_path: Path) -> None:
    (tmp_path / "lives.py").write_text(HEAD + LIVES, encoding="utf-8")
    programs.assert_same(["lives.py"], tmp_path)
    output = programs.plain(["lives.py"], tmp_path).stdout.decode().splitlines()

    assert output.count("again") == 1 and output.count("late del") == 1
    assert "ParametrizedLinear" in output


def test_a_second_recording_and_one_after_a_fork(tmp_path: Path) -> None:
    program = r"""
import tlmem
net = nn.Sequential(Leaf(20501), nn.Sequential(Leaf(20502)))
net(1)
for turn in range(2):
    with tlmem.Recorder(f"turn{turn}.tlm"):
        net(1); net(1)
        other = nn.Sequential(nn.Identity(), Leaf(20503))
        other(1)
        del other
"""
    (tmp_path / "twice.py").write_text(HEAD + program, encoding="utf-8")
    result = programs.plain(["twice.py"], tmp_path)
    assert (result.returncode, result.stderr.decode()) == (0, "")
    for turn in range(2):
        assert by_size(tlmem.read(tmp_path / f"turn{turn}.tlm")) == {
            20501: ["Sequential/0"] * 2,
            20502: ["Sequential/1.0"] * 2,
            20503: ["Sequential(2)/1"],
        }


FORKS = r"""
class Net(nn.Sequential): pass

net = Net(Leaf(20601), nn.Sequential(Leaf(20602)))
stop = False

def work():
    while not stop:
        nn.Sequential(nn.Identity(), Leaf(20603))(1)
        time.sleep(0.002)

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for turn in range(25):
    child = os.fork()
    if child == 0:
        net(1); nn.Sequential(nn.Sequential(Leaf(20604)))(1); net(1)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    net(1)
stop = True
for thread in threads: thread.join()
"""


def test_forks_while_other_threads_run_models(tmp_path: Path) -> None:
    recording = record(tmp_path, HEAD + FORKS)
    found = by_size(recording)

    assert found[20601] == ["Net/0"] * 25 and found[20602] == ["Net/1.0"] * 25
    # Models of both threads may be alive when a name is found.
    assert set(found[20603]) <= {"Sequential/1", "Sequential(2)/1"}
    assert recording.problems == []
    children = [path for path in sorted(tmp_path.glob("made*.tlm")) if path.name != "made.tlm"]
    assert len(children) == 25
    for path in children:
        child = tlmem.read(path)
        assert by_size(child) == {
            20601: ["Net/0"] * 2, 20602: ["Net/1.0"] * 2, 20604: ["Sequential/0.0"],
        }  # fmt: skip
        assert child.problems == []


def test_a_program_that_is_killed_has_the_names_of_what_ran_before(tmp_path: Path) -> None:
    program = r"""
import signal
net = nn.Sequential(Leaf(20701), nn.Sequential(Leaf(20702)))
for _ in range(3):
    net(1)
os.kill(os.getpid(), signal.SIGKILL)
"""
    (tmp_path / "killed.py").write_text(HEAD + program, encoding="utf-8")
    programs.recorded(["killed.py"], tmp_path, options=("-q", "-o", "made.tlm"))

    assert by_size(tlmem.read(tmp_path / "made.tlm")) == {
        20701: ["Sequential/0"] * 3,
        20702: ["Sequential/1.0"] * 3,
    }


def test_without_stacks_or_without_torch_no_module_is_looked_for(tmp_path: Path) -> None:
    program = HEAD + "nn.Sequential(Leaf(20801))(1)"
    assert by_size(record(tmp_path, program, options=("--stack-depth", "0"))) == {}
    program = r"""
import numpy as np
text = '''
class Module:
    def _wrapped_call_impl(self):
        return np.empty(100_001, np.uint8)
'''
here = {"np": np}
exec(compile(text, "/anywhere/torch/nn/modules/module.py", "exec"), here)
here["Module"]()._wrapped_call_impl()
"""
    recording = record(tmp_path, program, options=("--force",))

    assert 100_001 in set(recording.objects.size_bytes) and by_size(recording) == {}
