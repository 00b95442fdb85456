"""Which memory of PyTorch the torch source sees: CPU blocks, mapped memory, every thread and fork.

Programs are recorded as they are; sizes are numbers that nothing else in them has.
"""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from recorder.test_stacks import record
from support import programs

import tlmem
from tlmem.events import Device, Kind

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")

HEAD = "import warnings; warnings.simplefilter('ignore')\nimport torch\ntorch.set_num_threads(1)\n"


def sizes_of(recording: tlmem.Recording, device: int = Device.TORCH) -> list[int]:
    """Bytes of every block of a device, in the order of their allocation."""
    objects = recording.objects
    return [int(size) for size in objects.loc[objects["device"] == device, "size_bytes"]]


def test_blocks_of_many_kinds_are_seen_once_and_freed_once(tmp_path: Path) -> None:
    program = """
import threading
a = torch.empty(5001, dtype=torch.uint8)
b = torch.zeros(5002, dtype=torch.uint8)
c = torch.frombuffer(bytearray(5003), dtype=torch.uint8)         # the array module's memory
d = a[:100].view(10, 10).T                                       # no memory of its own
e = torch.quantize_per_tensor(torch.zeros(5004), 0.1, 0, torch.qint8)
f = torch.empty(5005, dtype=torch.uint8).numpy()
def work(): torch.empty(5006, dtype=torch.uint8)
t = threading.Thread(target=work); t.start(); t.join()
del a, b, d, f
"""
    found = record(tmp_path, HEAD + program)
    sizes = sizes_of(found)

    assert {n: sizes.count(n) for n in range(5001, 5007)} == {
        5001: 1, 5002: 1, 5003: 0, 5004: 1, 5005: 1, 5006: 1,
    }  # fmt: skip
    alive = found.objects[(found.objects["died_ns"] < 0) & (found.objects["device"] == 2)]
    assert not {5001, 5002, 5005, 5006} & set(alive["size_bytes"])
    assert found.totals.unknown_frees == 0
    assert found.info["torch.hook"] == "slots"
    assert found.info["torch"].startswith("2.")


def test_shared_and_mapped_memory_is_a_device_of_its_own(tmp_path: Path) -> None:
    program = """
import os
s = torch.zeros(1000_003, dtype=torch.uint8).share_memory_()
torch.save(torch.zeros(1000_007, dtype=torch.uint8), "w.pt")
m = torch.load("w.pt", mmap=True)
k = torch.UntypedStorage._new_shared(1000_009)
del s, k
"""
    found = record(tmp_path, HEAD + program)
    mapped = sizes_of(found, Device.TORCH_MAPPED)

    assert any(1000_003 <= size < 1000_003 + 8192 for size in mapped)
    assert any(1000_009 <= size < 1000_009 + 8192 for size in mapped)
    assert any(size > 1000_007 for size in mapped)
    ends = found.objects.loc[found.objects["device"] == Device.TORCH_MAPPED, "died_ns"]
    assert (ends >= 0).sum() >= 2


def test_code_that_is_first_met_without_the_gil_has_its_name(tmp_path: Path) -> None:
    """PyTorch lets go of the GIL around each operation."""
    program = """
def outer():
    def inner(n):
        return torch.ones(n, dtype=torch.uint8)
    return inner(6007)
kept = outer()
"""
    found = record(tmp_path, HEAD + program)
    objects = found.objects
    site = int(objects.loc[objects["size_bytes"] == 6007, "born_site"].iloc[0])
    names = [frame["function"] for frame in found.stack(site)]

    assert names[:3] == ["outer.<locals>.inner", "outer", "<module>"]


def test_forked_and_spawned_workers_are_seen(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD
        + """
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return torch.full((7001,), i, dtype=torch.uint8)
if __name__ == "__main__":
    for context in ("fork", "spawn"):
        total = 0
        options = dict(batch_size=2, num_workers=2, multiprocessing_context=context)
        for batch in DataLoader(Rows(), **options):
            total += int(batch.sum())
        print(context, total)
"""
    )
    plain = programs.plain([str(script)], tmp_path)
    done = programs.recorded([str(script)], tmp_path, options=("-q", "-o", "x.tlm"))

    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    children = [tlmem.read(path) for path in sorted(tmp_path.glob("x.*.tlm"))]
    with_rows = [child for child in children if sizes_of(child).count(7001)]
    assert sum(sizes_of(child).count(7001) for child in with_rows) == 16
    assert all(child.lost_events == 0 for child in children)
    assert sizes_of(tlmem.read(tmp_path / "x.tlm"), Device.TORCH_MAPPED)


def test_nothing_is_lost_when_it_is_killed_in_a_backward_pass(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD
        + """
import os
class Die(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x.clone()
    @staticmethod
    def backward(ctx, g):
        os.write(1, b"%d\\n" % x.untyped_storage().data_ptr())
        os.kill(os.getpid(), 9)
x = torch.ones(8009, requires_grad=True)
for i in range(200): (x * 2).sum().backward()
Die.apply(x * 3).sum().backward()
"""
    )
    done = programs.recorded([str(script)], tmp_path, options=("-q", "-o", "x.tlm"))
    found = tlmem.read(tmp_path / "x.tlm")
    address = int(done.stdout)

    assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert found.lost_events == found.missing_events == 0
    objects = found.objects
    alive = objects[(objects["died_ns"] < 0) & (objects["address"] == address)]
    assert list(alive["size_bytes"]) == [4 * 8009]
    assert len(objects[objects["device"] == Device.TORCH]) > 800


def test_a_recorder_inside_a_program_leaves_torch_as_it_was(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        HEAD
        + """
import json, tlmem
before = torch.ones(9001, dtype=torch.uint8)
for i in range(3):
    with tlmem.Recorder(f"{i}.tlm"):
        during = torch.ones(9002 + i, dtype=torch.uint8)
        del before
        before = torch.ones(9001, dtype=torch.uint8)
    after = torch.ones(9011, dtype=torch.uint8)
print("fine")
"""
    )
    done = programs.plain([str(script)], tmp_path)

    assert (done.returncode, done.stdout) == (0, b"fine\n"), done.stderr
    for i in range(3):
        found = tlmem.read(tmp_path / f"{i}.tlm")
        sizes = sizes_of(found)
        assert sizes.count(9002 + i) == 1 and sizes.count(9011) == 0
        assert found.totals.unknown_frees == (1 if i == 0 else 2)  # made before it began


def test_without_the_source_nothing_of_torch_is_recorded(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(HEAD + "x = torch.ones(9001)\n")
    programs.recorded([str(script)], tmp_path, options=("-q", "-o", "x.tlm", "--source", "numpy"))
    found = tlmem.read(tmp_path / "x.tlm")

    assert sizes_of(found) == []
    assert "torch.hook" not in found.info


@pytest.mark.parametrize("module", ["torch.profiler", "anomaly"])
def test_torch_s_own_tools_work_beside_it(module: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    body = {
        "torch.profiler": """
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
    x = torch.ones(1000, requires_grad=True); (x * 2).sum().backward()
print(sum(e.count for e in p.key_averages() if e.key == "aten::mul"))
print(max(e.self_cpu_memory_usage for e in p.key_averages()))
""",
        "anomaly": """
with torch.autograd.detect_anomaly(check_nan=True):
    x = torch.ones(1000, requires_grad=True); (x * 2).sum().backward()
print(float(x.grad.sum()))
try:
    with torch.autograd.detect_anomaly():
        y = torch.zeros(3, requires_grad=True); torch.sqrt(y * 0).sum().backward()
except RuntimeError as error: print(str(error)[:60])
""",
    }[module]
    script.write_text(HEAD + body)
    plain = programs.plain([str(script)], tmp_path)
    done = programs.recorded([str(script)], tmp_path, options=("-q",))

    assert plain.returncode == 0, plain.stderr
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)


def test_slots_are_put_back(tmp_path: Path) -> None:
    """After a recording no library calls through tlmem; seen from the recorder's own counters."""
    script = tmp_path / "program.py"
    script.write_text(
        HEAD
        + """
import json, tlmem
from tlmem._native import lib
print(lib.tlm_torch_install() == lib.TLM_OK, lib.tlm_torch_install() == lib.TLM_ALREADY_RUNNING)
print(lib.tlm_torch_uninstall() == lib.TLM_OK, lib.tlm_torch_uninstall() == lib.TLM_NOT_RUNNING)
"""
    )
    done = programs.plain([str(script)], tmp_path)

    assert done.stdout.split() == [b"True"] * 4, done.stderr


def test_a_program_without_torch_has_no_note_of_it(tmp_path: Path) -> None:
    found = record(tmp_path, "import numpy as np\nx = np.ones(9)\n")

    assert not [key for key in found.info if key.startswith("torch")]


def test_an_accelerator_s_reports_are_its_blocks(tmp_path: Path) -> None:
    """A stand-in library reports from four threads under a lock, as CUDA's allocator does.

    It is loaded by ctypes after PyTorch, which the recorder notices by itself.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    source = Path(__file__).parents[1] / "support" / "accelerator.c"
    lib = Path(torch.__file__).parent / "lib"
    library = tmp_path / "libaccelerator.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-pthread", "-o", library, source, f"-L{lib}", "-lc10"],
        check=True,
    )
    rounds = 2000
    program = f"""
import ctypes, time
library = ctypes.CDLL({str(library)!r})
library.run_accelerators.restype = ctypes.c_uint64
time.sleep(1)  # the recorder looks for new libraries every 10 ms; a busy machine may be late
reserved = library.run_accelerators({rounds})
with open("reserved", "w") as file: file.write(str(reserved))
"""
    found = record(tmp_path, HEAD + program)
    objects = found.objects[found.objects["device"] == Device.TORCH_ACCELERATOR]

    assert len(objects) == 4 * rounds
    assert int((objects["died_ns"] < 0).sum()) == 4 * 8
    number = objects["address"].to_numpy("uint64") >> 56
    assert sorted(set(number.tolist())) == [0, 1]
    assert (number == 0).sum() == 2 * rounds
    assert found.totals.unknown_frees == 0
    reserved = int(Path(tmp_path, "reserved").read_text())
    events = found.events
    taken = events[events["kind"] == Kind.DEVICE_ALLOC]["arg"].sum()
    given = events[events["kind"] == Kind.DEVICE_FREE]["arg"].sum()
    assert int(taken) - int(given) == reserved
