"""Turns the folder of a disk into what a crash left of it: one state, drawn from all that there may be.

In place, so that it costs as much as was not synced, and not as much as lies on the disk. First whatever lies where it
should not goes aside, the deepest first; then directories are put where they belong, the topmost first; then files.
What is left over is removed.
"""

from __future__ import annotations

import os
from random import Random

from logstore.fs.crash_disk.unsynced import ROOT, Image, contents
from logstore.fs.crash_disk.volume import PLAIN, Volume, parent_of, read, rewrite


def settle(volume: Volume, random: Random) -> None:
    """Let a crash take of a disk what it may; afterwards all that lies on it is durable.

    Args:
        volume: its folder is changed, wherever it is mounted.
        random: decides what is lost.
    """
    unsynced = volume.unsynced
    if not unsynced.is_all_durable:
        wanted = unsynced.draw(random)
        places = _place(volume, wanted)
        for node in sorted(unsynced.bytes):
            if node in places:
                present = read(f"{volume.path}/{places[node]}")
                chosen = random.choice(contents(present, unsynced.bytes[node]))
                rewrite(volume.path, places[node], present, chosen)
        unsynced.become(wanted)
        volume.inodes = {node: inode for node, inode in volume.inodes.items() if node == ROOT or node in places}
    volume.empty_aside()


def _place(volume: Volume, wanted: Image) -> dict[int, str]:
    """Put everything where it is wanted; gives the path of each node, for a file one of them."""
    stays, directories = _clear(volume, wanted)
    places: dict[int, str] = {}
    files: list[tuple[int, str]] = []
    for directory, name, node, path in wanted.walk():
        if node in wanted.directories:
            if (directory, name) not in stays:
                _place_directory(volume, node, path, directories.pop(node, None))
            places[node] = path
        elif (directory, name) in stays:
            places[node] = path
        else:
            files.append((node, path))
    for node, path in files:
        with parent_of(volume.path, path) as (parent, name):
            if node in volume.kept:
                PLAIN.link(volume.aside.descriptor, volume.kept[node][0], parent, name)
            else:
                with parent_of(volume.path, places[node]) as (source, other):
                    PLAIN.link(source, other, parent, name)
        places[node] = path
    for name in directories.values():
        PLAIN.rmdir(volume.aside.descriptor, name)
    return places


def _clear(volume: Volume, wanted: Image) -> tuple[set[tuple[int, str]], dict[int, str]]:
    """Move aside whatever lies where it should not.

    Returns:
        The directory and name of what stays; and the names aside of directories, which are empty there.
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
            directories[node] = aside = f"directory-{node}"
        else:
            aside = volume.name_aside(node)
        with parent_of(volume.path, path) as (parent, last):
            PLAIN.rename(parent, last, volume.aside.descriptor, aside)
    return stays, directories


def _place_directory(volume: Volume, node: int, path: str, aside: str | None) -> None:
    """Put a directory where it belongs; one that was removed is made again, empty."""
    with parent_of(volume.path, path) as (parent, name):
        if aside is None:
            PLAIN.mkdir(parent, name)
            volume.inodes[node] = os.stat(name, dir_fd=parent).st_ino
        else:
            PLAIN.rename(volume.aside.descriptor, aside, parent, name)
