"""A server that speaks S3: what is read of a recording there, and how little."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleets import write_fleet, write_rank
from tlmem.dashboards.model.glance import glance

import tlmem
from tlmem import cli
from tlmem.errors import MissingFile
from tlmem.export.upload import upload
from tlmem.fleets.members import files_of
from tlmem.recording.format import remote

s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed (tlmem[remote])")
moto_server = pytest.importorskip("moto.server", reason="moto[s3,server] is not installed")


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket on a server of this process."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    about = {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    before = dict(os.environ)
    os.environ.update(about)
    try:
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("runs")
        yield "s3://runs"
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.stop()


def test_a_recording_in_a_bucket_has_the_tables_of_the_file(bucket: str, tmp_path: Path) -> None:
    file = write_rank(tmp_path / "a.tlm", 3)
    (copy,) = upload(file, f"{bucket}/one")

    assert copy == "s3://runs/one/a.tlm"
    assert tlmem.read(copy).events.equals(tlmem.read(file).events)


def test_a_folder_of_a_bucket_is_a_fleet(
    bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in write_fleet(tmp_path / "run", 5, [2]).iterdir():
        upload(file, f"{bucket}/run")

    assert len(files_of(f"{bucket}/run/*.tlm")) == 5
    assert cli.main(["report", f"{bucket}/run/", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.startswith("rank 2 (node a, pid 20002) grows 801 kB per step")


def test_the_first_screen_reads_a_part_of_the_file(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_rank(tmp_path / "long.tlm", 0, steps=30_000)
    (copy,) = upload(file, f"{bucket}/long")
    fetched: list[int] = []
    whole = s3fs.S3FileSystem.cat_file

    def counted(self: object, path: str, start: int, end: int) -> bytes:
        fetched.append(end - start)
        return whole(self, path, start=start, end=end)

    monkeypatch.setattr(s3fs.S3FileSystem, "cat_file", counted)
    monkeypatch.setattr(remote, "CHUNK_BYTES", 16_384)  # the file is small: names are few
    found = glance(Path(copy))

    assert found.info["rank"] == "0"
    assert found.events == glance(file).events
    assert sum(fetched) < file.stat().st_size / 2


def test_what_is_not_in_a_bucket_is_refused(bucket: str) -> None:
    with pytest.raises(MissingFile, match="s3://runs/none.tlm does not exist; check the URL"):
        tlmem.read(f"{bucket}/none.tlm")
    with pytest.raises(MissingFile, match="cannot be listed|has no recordings"):
        files_of("s3://no-such-bucket/run/")
