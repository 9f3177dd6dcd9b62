"""Copies a disk, so that what had the old one open goes on seeing that, and never the one that comes back."""

from __future__ import annotations

import os

from logstore.fs.crash_disk.image import ROOT
from logstore.fs.crash_disk.volume import PLAIN, Volume, parent_of, read


def copy_volume(volume: Volume, source: str, target: str) -> None:
    """Copy all that lies on a disk now, synced or not; from then on the copy is the disk.

    Files that wait aside are not copied: nobody has them open by a name.

    Args:
        volume: its path and its inodes are set to the copy's.
        source: where it lies.
        target: a folder that is made for it.
    """
    with parent_of(os.path.dirname(target), os.path.basename(target)) as (parent, name):
        PLAIN.mkdir(parent, name)
    inodes = {ROOT: os.stat(target).st_ino}
    present, places = volume.unsynced.present, dict[int, str]()
    for _, _, node, path in present.walk():
        with parent_of(target, path) as (parent, name):
            if node in present.directories:
                PLAIN.mkdir(parent, name)
            elif node in places:
                with parent_of(target, places[node]) as (first, other):
                    PLAIN.link(first, other, parent, name)
            else:
                _copy_file(f"{source}/{path}", parent, name)
            places.setdefault(node, path)
            inodes[node] = os.stat(name, dir_fd=parent).st_ino
    kept = {node: inode for node, inode in volume.inodes.items() if node in volume.kept}
    volume.path, volume.inodes = target, kept | inodes


def inodes_below(path: str) -> set[int]:
    """The inodes of a folder and of all below it."""
    found = {os.stat(path).st_ino}
    for folder, directories, files in os.walk(path):
        found |= {os.lstat(f"{folder}/{name}").st_ino for name in [*directories, *files]}
    return found


def _copy_file(source: str, parent: int, name: str) -> None:
    descriptor = PLAIN.create(parent, name)
    try:
        PLAIN.write(descriptor, read(source))
    finally:
        os.close(descriptor)
