"""Exports of real recordings, each read by the other tool or against its published schema."""

import json
import pickle
import pickletools
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import programs

import tlmem
from tlmem.export import table_files
from tlmem.recording.tables.schema import SCHEMA

pytestmark = pytest.mark.xdist_group("export")

SCRIPT = """\
import numpy as np
import tlmem

kept = []

def leak(step):
    kept.append(np.ones(500 + step % 7))

def compute(pool):
    with tlmem.Scope("step"):
        value = tlmem.zeros((64,))
        with tlmem.Scope("inner"):
            tlmem.ones((32,))
    return value

def main():
    pool = tlmem.TensorPool()
    for step in range(400):
        if step % 50 == 0:
            tlmem.mark("epoch", step // 50)
        leak(step)
        np.empty(1000)
        compute(pool)

main()
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with arrays, tensors, scopes and marks."""
    place = tmp_path_factory.mktemp("export")
    (place / "program.py").write_text(SCRIPT)
    done = programs.recorded(["program.py"], place, options=("-q", "-o", "run.tlm"))
    assert done.returncode == 0, done.stderr
    return place / "run.tlm"


@pytest.fixture(scope="module")
def recording(file: Path) -> tlmem.Recording:
    return tlmem.read(file)


def tool(place: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    return programs.command(words, place)


def export(file: Path, to: str, out: Path, *more: str) -> None:
    done = tool(file.parent, "export", file.name, "--to", to, "-o", str(out), *more)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"" and str(out) in done.stderr.decode()


# ---- tables ----


@pytest.fixture(params=[table_files.CHUNK_ROWS, 7])
def rows_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are written whole, or in many parts."""
    monkeypatch.setattr(table_files, "CHUNK_ROWS", request.param)


@pytest.mark.usefixtures("rows_at_once")
def test_parquet_gives_every_table_back(file: Path, recording, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    export(file, "parquet", tmp_path / "out")

    for name, table in SCHEMA.items():
        read = pd.read_parquet(tmp_path / "out" / f"{name}.parquet")
        read = read.set_index(table.index) if table.index else read
        expected = getattr(recording, name)
        assert list(read.columns) == list(expected.columns)
        for column in expected.columns:
            assert str(read[column].dtype) == str(expected[column].dtype) or not len(expected)
            same = read[column].astype(object).equals(expected[column].astype(object))
            assert same or not len(expected), (name, column)
    field = parquet.read_schema(tmp_path / "out" / "objects.parquet").field("size_bytes")
    assert field.metadata == {b"unit": b"bytes", b"meaning": field.metadata[b"meaning"]}


@pytest.mark.usefixtures("rows_at_once")
def test_csv_gives_every_number_back(file: Path, recording, tmp_path: Path) -> None:
    export(file, "csv", tmp_path / "out")

    for name, table in SCHEMA.items():
        read = pd.read_csv(tmp_path / "out" / f"{name}.csv", keep_default_na=False)
        expected = getattr(recording, name)
        expected = expected.reset_index() if table.index else expected
        assert list(read.columns) == [column.name for column in table.columns]
        assert len(read) == len(expected)
        for column in table.columns:
            if column.dtype.startswith(("int", "uint")):
                assert read[column.name].tolist() == expected[column.name].tolist()
    about = json.loads((tmp_path / "out" / "recording.json").read_text())
    assert about["tables"]["objects"]["rows"] == len(recording.objects)
    assert about["names"]["kind"]["1"] == "alloc"


# ---- perfetto ----


@pytest.fixture(scope="module")
def trace(file: Path, tmp_path_factory: pytest.TempPathFactory):
    schema = pytest.importorskip(
        "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs the package perfetto"
    )
    out = tmp_path_factory.mktemp("perfetto") / "out.perfetto-trace"
    export(file, "perfetto", out)
    made = schema.Trace()
    made.ParseFromString(out.read_bytes())
    return made


def tracks_of(trace) -> dict[int, str]:
    return {
        p.track_descriptor.uuid: p.track_descriptor.name
        for p in trace.packet
        if p.HasField("track_descriptor")
    }


def test_the_trace_has_only_fields_of_the_schema(trace) -> None:
    unknown = pytest.importorskip("google.protobuf.unknown_fields")

    def walk(message) -> None:
        assert len(unknown.UnknownFieldSet(message)) == 0
        for field, value in message.ListFields():
            if field.message_type is not None:
                for part in [value] if hasattr(value, "ListFields") else value:
                    walk(part)

    assert len(trace.packet) > 1000
    walk(trace)


def test_every_slice_begins_and_ends_in_order_on_its_track(trace) -> None:
    depth: Counter[int] = Counter()
    last: dict[int, int] = {}
    for packet in trace.packet:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert packet.timestamp >= last.get(event.track_uuid, 0)
        last[event.track_uuid] = packet.timestamp
        depth[event.track_uuid] += {1: 1, 2: -1}.get(event.type, 0)
        assert depth[event.track_uuid] >= 0
    assert set(depth.values()) == {0}
    assert set(last) <= set(tracks_of(trace))


def test_scopes_and_marks_of_the_program_are_in_the_trace(trace) -> None:
    tracks = tracks_of(trace)
    names = Counter(
        (tracks[p.track_event.track_uuid].split()[0], p.track_event.name)
        for p in trace.packet
        if p.HasField("track_event") and p.track_event.type in (1, 3)
    )

    assert names["scopes", "step"] == names["scopes", "inner"] == 400
    assert [names["marks", f"epoch {n}"] for n in range(8)] == [1] * 8


def test_counters_have_the_bytes_of_the_recording(trace, recording) -> None:
    tracks = tracks_of(trace)
    values: dict[str, list[int]] = {}
    for packet in trace.packet:
        if packet.HasField("track_event") and packet.track_event.type == 4:
            name = tracks[packet.track_event.track_uuid]
            values.setdefault(name, []).append(packet.track_event.counter_value)

    assert values["tracked memory"][-1] == recording.totals.current_bytes
    assert max(values["resident, anonymous"]) == recording.samples["anon"].max()
    assert any(name.startswith("held, allocated at program.py:7") for name in values)


# ---- speedscope ----


def test_speedscope_has_the_shape_of_its_schema(file: Path, recording, tmp_path: Path) -> None:
    export(file, "speedscope", tmp_path / "out.json")
    made = json.loads((tmp_path / "out.json").read_text())

    assert made["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(made) == {
        "$schema", "name", "exporter", "activeProfileIndex", "shared", "profiles",
    }  # fmt: skip
    frames = made["shared"]["frames"]
    assert all(set(frame) <= {"name", "file", "line"} and frame["name"] for frame in frames)
    for profile in made["profiles"]:
        assert set(profile) == {
            "type", "name", "unit", "startValue", "endValue", "samples", "weights",
        }  # fmt: skip
        assert (profile["type"], profile["startValue"]) == ("sampled", 0)
        assert profile["unit"] in ("bytes", "none")
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)
    assert made["profiles"][2]["endValue"] == recording.totals.total_bytes


# ---- memory_viz ----


@pytest.fixture(scope="module")
def snapshot_file(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("viz") / "out.pickle"
    export(file, "memory-viz", out)
    return out


class Plain(pickle.Unpickler):
    """Reads nothing but plain values, as the viewer does."""

    def find_class(self, module: str, name: str):
        raise AssertionError(f"{module}.{name} is no plain value")


def test_the_snapshot_is_plain_and_of_protocol_4(snapshot_file: Path) -> None:
    data = snapshot_file.read_bytes()
    with open(snapshot_file, "rb") as file:
        made = Plain(file).load()

    assert max(opcode.proto for opcode, *_ in pickletools.genops(data)) <= 4
    assert set(made) == {
        "segments", "device_traces", "allocator_settings", "external_annotations",
    }  # fmt: skip


def test_blocks_tile_their_segments_and_hold_what_is_alive(snapshot_file: Path, recording) -> None:
    made = pickle.loads(snapshot_file.read_bytes())
    held = 0
    for segment in made["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at and block["size"] > 0
            at += block["size"]
            held += block["size"] if block["state"] == "active_allocated" else 0
        assert at == segment["address"] + segment["total_size"]

    assert held == recording.totals.current_bytes


def test_every_free_follows_its_allocation_inside_a_segment(snapshot_file: Path, recording) -> None:
    made = pickle.loads(snapshot_file.read_bytes())
    counts: Counter[str] = Counter()
    for device, entries in enumerate(made["device_traces"]):
        live: dict[int, int] = {}
        spans = [
            (s["address"], s["address"] + s["total_size"])
            for s in made["segments"]
            if s["device"] == device
        ]
        for entry in entries:
            counts[entry["action"]] += 1
            assert any(a <= entry["addr"] < b for a, b in spans)
            if entry["action"] == "alloc":
                assert entry["addr"] not in live
                live[entry["addr"]] = entry["size"]
            elif entry["action"] == "free_completed":
                assert live.pop(entry["addr"]) == entry["size"]
    sized = recording.objects[recording.objects["size_bytes"] > 0]
    assert counts["alloc"] == len(sized)
    assert counts["free_requested"] == counts["free_completed"] == (sized["died_ns"] >= 0).sum()


def test_torch_reads_the_snapshot(snapshot_file: Path) -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz", reason="needs PyTorch")
    made = pickle.loads(snapshot_file.read_bytes())

    assert "segments: " in viz.segsum(made)
    assert "Device 1" in viz.trace(made)
    assert "program.py:7:leak" in viz.memory(made, format_flamegraph=lambda text: text)
    assert len(viz.trace_plot(made)) > 10_000
    assert len(viz.segment_plot(made)) > 10_000


def test_older_objects_that_were_freed_are_left_out_first(recording) -> None:
    from tlmem.export.memory_viz import snapshot

    made, left_out = snapshot(recording, most=500)
    sized = recording.objects[recording.objects["size_bytes"] > 0]
    allocs = sum(e["action"] == "alloc" for entries in made["device_traces"] for e in entries)

    assert left_out > 0
    assert allocs == len(sized) - left_out
    alive = sum(b["state"] == "active_allocated" for s in made["segments"] for b in s["blocks"])
    assert alive == (sized["died_ns"] < 0).sum()


# ---- whole or not at all ----


@pytest.mark.parametrize("to", ["parquet", "csv", "perfetto", "speedscope", "memory-viz"])
def test_an_output_that_exists_is_kept(file: Path, to: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    done = tool(tmp_path, "export", str(file), "--to", to, "-o", "out")

    assert done.returncode == 2
    assert b"exists" in done.stderr and done.stderr.count(b"\n") == 1
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("to", ["parquet", "csv", "perfetto", "speedscope", "memory-viz"])
def test_a_disk_that_is_full_leaves_nothing_half(file: Path, to: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-B", "-m", "tlmem", "export", str(file), "--to", to, "-o", "out"],
        cwd=tmp_path,
        capture_output=True,
        env=programs.environment_of(None),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000)),
        timeout=programs.LONGEST_S,
    )

    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(b"tlmem: out ") and done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_part_of_the_time_is_exported(file: Path, recording, tmp_path: Path) -> None:
    middle = recording.marks["time_ns"].iloc[4] / 1e9
    export(file, "csv", tmp_path / "out", "--since", f"{middle:.9f}")
    marks = pd.read_csv(tmp_path / "out" / "marks.csv")

    assert marks["index"].tolist() == [4, 5, 6, 7]


def test_a_time_in_which_nothing_happened_is_refused(file: Path, tmp_path: Path) -> None:
    done = tool(tmp_path, "export", str(file), "--to", "csv", "--since", "1000", "-o", "out")

    assert done.returncode == 2
    assert b"--since" in done.stderr and done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_sentence_says_what_to_install(file: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; from tlmem import cli; "
        f"sys.exit(cli.main(['export', {str(file)!r}, '--to', 'parquet', '-o', 'out']))"
    )
    done = programs.run([sys.executable, "-c", code], tmp_path)

    assert done.returncode == 2
    assert b"pip install 'tlmem[parquet]'" in done.stderr and done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_every_kind_of_picture_is_drawn_of_it(file: Path, tmp_path: Path) -> None:
    done = tool(file.parent, "plot", file.name, "--kind", "all", "-o", str(tmp_path / "all.png"))

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    assert done.stderr.startswith(b"tlmem: wrote ") and done.stderr.count(b"\n") == 1


def test_pools_are_drawn_from_their_events(recording) -> None:
    from tlmem.report.plots import PlotView
    from tlmem.report.plots.pools import pools_over_time

    pools = {pool.name: pool for pool in pools_over_time(PlotView.of(recording))}
    table = recording.pools.set_index("name")

    assert set(pools) <= set(table.index)
    for name, pool in pools.items():
        assert pool.hits[-1] == table.loc[name, "hits"]
        assert pool.misses[-1] == table.loc[name, "misses"]
        assert pool.kept_bytes[-1] == table.loc[name, "kept_bytes"]
        assert np.all(pool.kept_bytes >= 0)
