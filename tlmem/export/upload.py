"""``tlmem record --upload URL``: copies a recording and those of its children to object storage.

A recording is written on this machine, where it survives a kill at any moment, and copied when the
program has ended. Covers: copying, and what is said when it fails; the files here stay.
"""

from __future__ import annotations

from pathlib import Path

from tlmem.errors import TlmemError
from tlmem.recording import family
from tlmem.recording.format import remote


class CannotUpload(TlmemError):
    """A recording could not be copied to where ``--upload`` says."""


def check_url(url: str) -> None:
    """Refuses what is not a folder that can be copied to, before anything is recorded.

    Raises:
        CannotUpload: it is not a URL.
        MissingFile: fsspec, or what it needs for this scheme, is not installed.
    """
    if not remote.url_of(url):
        raise CannotUpload(f"--upload {url} is not a URL; write for example s3://bucket/run")
    remote.filesystem(url)


def upload(path: Path, url: str) -> list[str]:
    """Copies a recording and those of the processes that it started into a folder.

    Args:
        url: the folder, with or without a ``/`` at its end.
    Returns:
        The URLs of the copies, that of the recording first.
    Raises:
        CannotUpload: there is nothing to copy, or the storage refused it.
    """
    if not path.exists():
        raise CannotUpload(f"{path} was not written, so nothing was copied to {url}")
    system, inside = remote.filesystem(url)
    copies = []
    for file in (path, *family.find(path)):
        copy = f"{url.rstrip('/')}/{file.name}"
        try:
            system.put_file(str(file), f"{inside.rstrip('/')}/{file.name}")
        except Exception as error:
            reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            raise CannotUpload(
                f"{file} could not be copied to {copy}: {reason}; the file is still here"
            ) from None
        copies.append(copy)
    return copies
