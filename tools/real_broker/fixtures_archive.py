"""One archive of log dirs: the same bytes each time for the same disks, and holes instead of preallocated zeros.

A broker preallocates its indexes, and ZooKeeper its log, so a file may be megabytes long and hold a few bytes. Such a
file is stored in the sparse form that GNU tar and ``tarfile`` both unpack into holes.
"""

from __future__ import annotations

import io
import lzma
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

MODIFIED = 1_767_225_600
"""The time that every entry bears, in seconds: the start of 2026. Times inside of files stay what they were."""

LEAST_HOLE = 4096
_BLOCK = 512


def pack(archive: Path, folders: Mapping[str, Path]) -> None:
    """Write folders into one ``.tar.xz``, in the order of their names.

    Args:
        archive: the file to write.
        folders: by the name that each gets in the archive, with slashes.

    Raises:
        ValueError: for something that is neither a file nor a directory; no broker makes any.
    """
    with (
        lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, folder in sorted(folders.items()):
            _add(tar, name, folder)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack what :func:`pack` wrote into a folder; holes stay holes.

    Raises:
        tarfile.TarError: if it is no such archive, or an entry would leave the folder.
    """
    with tarfile.open(archive, "r:xz") as tar:
        tar.extractall(folder, filter="data")


def _add(tar: tarfile.TarFile, name: str, path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        tar.addfile(_entry(name, tarfile.DIRTYPE, 0o755))
        for child in sorted(os.listdir(path)):
            _add(tar, f"{name}/{child}", path / child)
        return
    if path.is_symlink() or not path.is_file():
        raise ValueError(f"{path} is neither a file nor a directory, and only these are packed; look what made it")
    content = path.read_bytes()
    entry = _entry(name, tarfile.REGTYPE, 0o644)
    held = content.rstrip(b"\0")
    if len(content) - len(held) >= LEAST_HOLE:
        entry.pax_headers = {
            "GNU.sparse.major": "1",
            "GNU.sparse.minor": "0",
            "GNU.sparse.name": name,
            "GNU.sparse.realsize": str(len(content)),
        }
        content = _sparse_map([(0, len(held)), (len(content), 0)]) + held
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _sparse_map(parts: list[tuple[int, int]]) -> bytes:
    """Where the bytes that follow belong: how many parts, then offset and length of each, filled up to a block."""
    numbers = [len(parts), *(number for part in parts for number in part)]
    text = "".join(f"{number}\n" for number in numbers).encode()
    return text.ljust(-(-len(text) // _BLOCK) * _BLOCK, b"\0")


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime = kind, mode, MODIFIED
    return entry
