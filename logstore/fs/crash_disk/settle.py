"""Turns the folder of a disk into one state that a crash may leave, drawn from all possible ones.

It works in place, so that it costs as much as was not synced, and not as much as lies on the disk. First every
misplaced entry moves to the folder of orphans, the deepest first. Then directories are put back, the topmost first;
then files. Whatever is left over is removed.
"""

from __future__ import annotations

import os
from random import Random

from logstore.fs.crash_disk.image import ROOT, Image
from logstore.fs.crash_disk.volume import PLAIN, Volume, parent_of, read, rewrite


def settle(volume: Volume, random: Random) -> None:
    """Let a crash take back unsynced changes of a disk; afterwards everything on it is durable.

    The disk may be mounted or not; ``random`` decides what is lost.
    """
    unsynced = volume.unsynced
    if not unsynced.is_all_durable:
        wanted = unsynced.draw(random)
        paths = _restore_names(volume, wanted)
        for node in sorted(unsynced.data.keys() & paths.keys()):
            present = read(f"{volume.path}/{paths[node]}")
            chosen, _ = random.choice(unsynced.data[node].contents(present))
            rewrite(volume.path, paths[node], present, chosen)
        unsynced.become(wanted)
        volume.inodes = {node: inode for node, inode in volume.inodes.items() if node == ROOT or node in paths}
    volume.drop_orphans()


def _restore_names(volume: Volume, wanted: Image) -> dict[int, str]:
    """Make the names of the folder equal to an image; return the path of each node, for a file one of its paths."""
    stays, directories = _remove_misplaced(volume, wanted)
    paths: dict[int, str] = {}
    files: list[tuple[int, str]] = []
    for directory, name, node, path in wanted.walk():
        if node in wanted.directories:
            if (directory, name) not in stays:
                _place_directory(volume, node, path, directories.pop(node, None))
            paths[node] = path
        elif (directory, name) in stays:
            paths[node] = path
        else:
            files.append((node, path))
    for node, path in files:
        with parent_of(volume.path, path) as (parent, name):
            if node in volume.orphan_names:
                PLAIN.link(volume.orphans.descriptor, volume.orphan_names[node][0], parent, name)
            else:
                with parent_of(volume.path, paths[node]) as (source, other):
                    PLAIN.link(source, other, parent, name)
        paths[node] = path
    for name in directories.values():
        PLAIN.rmdir(volume.orphans.descriptor, name)
    return paths


def _remove_misplaced(volume: Volume, wanted: Image) -> tuple[set[tuple[int, str]], dict[int, str]]:
    """Move every misplaced entry to the folder of orphans.

    Returns:
        The (directory, name) pairs that stay; and the names of the moved directories, which are empty there.
    """
    present = volume.unsynced.present
    reached = {ROOT, *(node for _, _, node, _ in wanted.walk())}
    stays: set[tuple[int, str]] = set()
    directories: dict[int, str] = {}
    for directory, name, node, path in reversed(list(present.walk())):
        if directory in reached and wanted.directories[directory].get(name) == node:
            stays.add((directory, name))
            continue
        if node in present.directories:
            directories[node] = moved = f"directory-{node}"
        else:
            moved = volume.new_orphan(node)
        with parent_of(volume.path, path) as (parent, last):
            PLAIN.rename(parent, last, volume.orphans.descriptor, moved)
    return stays, directories


def _place_directory(volume: Volume, node: int, path: str, moved: str | None) -> None:
    """Put a directory at its path; one that was removed is made again, empty."""
    with parent_of(volume.path, path) as (parent, name):
        if moved is None:
            PLAIN.mkdir(parent, name)
            volume.inodes[node] = os.stat(name, dir_fd=parent).st_ino
        else:
            PLAIN.rename(volume.orphans.descriptor, moved, parent, name)
