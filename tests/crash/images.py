"""Trees: what lies below a directory, as plain values that can be read, written, compared, hashed and described.

A :class:`Tree` maps paths to what lies there. A :class:`Snapshot` is the same as a file system sees it, by nodes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import starmap
from typing import TypeAlias

from logstore.fs.crash_disk import ROOT, Image


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


What: TypeAlias = bytes | Link | None
"""Bytes of a file, a link, or None for a directory."""

Tree: TypeAlias = dict[str, What]
"""Path below the root, without it → what lies there."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A file system: the names by node, and the bytes of each file, or the target of each link."""

    names: Image
    contents: dict[int, bytes | Link]

    def walk(self) -> Iterator[tuple[str, int]]:
        """Every path and the node that it leads to, parents first; what is held by no directory lies nowhere."""
        for _, _, node, path in self.names.walk():
            yield path, node

    def paths(self) -> dict[int, str]:
        """Where each node lies, under one of its names."""
        return {ROOT: ".", **{node: path for path, node in self.walk()}}

    def links(self) -> frozenset[frozenset[str]]:
        """The paths of each file that has several names."""
        paths: dict[int, list[str]] = {}
        for path, node in self.walk():
            paths.setdefault(node, []).append(path)
        return frozenset(frozenset(names) for names in paths.values() if len(names) > 1)

    def what(self, node: int) -> What:
        """What a node is, as in a tree."""
        return None if node in self.names.directories else self.contents[node]

    def tree(self) -> Tree:
        """What somebody sees who looks at it."""
        return {path: self.what(node) for path, node in self.walk()}


def read_image(root: str) -> tuple[Snapshot, dict[tuple[int, int], int]]:
    """What lies below a directory, and the node of each device and inode.

    A crash test reads some dozen small files for each state, so this asks the system for as little as it can.
    """
    image, nodes = Snapshot(Image(), {}), {_key(os.lstat(root)): ROOT}
    waiting = [(root, ROOT)]
    for folder, parent in waiting:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                status = entry.stat(follow_symlinks=False)
                node = nodes.setdefault(_key(status), len(nodes))
                image.names.directories[parent][entry.name] = node
                if entry.is_symlink():
                    image.contents[node] = Link(os.readlink(entry.path))
                elif entry.is_dir():
                    image.names.directories[node] = {}
                    waiting.append((entry.path, node))
                else:
                    image.contents[node] = _read(entry.path, status.st_size)
    return image, nodes


def read_tree(root: str) -> Tree:
    """What lies below a directory."""
    return read_image(root)[0].tree()


def write_tree(tree: Tree, root: str) -> None:
    """Make a directory that holds the tree."""
    os.mkdir(root)
    for path, what in sorted(tree.items()):
        _write(what, f"{root}/{path}")


def write_image(image: Snapshot, root: str) -> None:
    """Make a directory that holds the same, a file of several names as one file."""
    os.mkdir(root)
    names: dict[int, str] = {}
    for path, node in image.walk():
        full = f"{root}/{path}"
        if names.setdefault(node, full) == full:
            _write(image.what(node), full)
        else:
            os.link(names[node], full)


def _write(what: What, path: str) -> None:
    if what is None:
        os.mkdir(path)
    elif isinstance(what, Link):
        os.symlink(what.target, path)
    else:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(descriptor, what)
        os.close(descriptor)


def digest(tree: Tree) -> bytes:
    """Two trees have the same digest when they are the same."""
    return hashlib.blake2b(b"".join(sorted(starmap(_digest_of_one, tree.items()))), digest_size=16).digest()


@lru_cache(1 << 16)
def _digest_of_one(path: str, what: What) -> bytes:
    """Most of a tree is as in the last one, so the digest of each thing in it is kept."""
    return hashlib.blake2b(repr((path, what)).encode("utf-8", "surrogateescape"), digest_size=16).digest()


def listing(tree: Tree) -> list[str]:
    """One line for each thing in it."""
    lines = []
    for path, what in sorted(tree.items()):
        if what is None:
            lines.append(f"{path}/")
        elif isinstance(what, Link):
            lines.append(f"{path} -> {what.target}")
        else:
            shown = repr(what[:60])[1:] + ("..." if len(what) > 60 else "")
            lines.append(f"{path}  {len(what)} bytes {shown}")
    return lines


def difference(before: Tree, after: Tree) -> list[str]:
    """What is in one tree and not in the other, one line each."""
    if before == after:
        return []
    gone, came = (set(listing(tree)) for tree in (before, after))
    return [f"- {line}" for line in sorted(gone - came)] + [f"+ {line}" for line in sorted(came - gone)]


def _read(path: str, size: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
