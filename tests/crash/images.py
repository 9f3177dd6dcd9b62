"""Trees: what lies below a directory, as plain values that can be read, written, compared, hashed and described.

A :class:`Tree` maps paths to what lies there. An :class:`Image` is the same seen as a file system sees it, by nodes;
steps are applied to it. It holds no notion of a crash; that is for ``crash_states``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.crash.steps import (
    ROOT,
    Create,
    DataStep,
    EntryStep,
    HardLink,
    MakeDirectory,
    RemoveDirectory,
    Rename,
    Truncate,
    Unlink,
)


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str


What: TypeAlias = bytes | Link | None
"""Bytes of a file, a link, or None for a directory."""

Tree: TypeAlias = dict[str, What]
"""Path below the root, without it → what lies there."""


@dataclass(slots=True)
class Image:
    """A file system: directories by node, and what they hold by name; files and links by node."""

    directories: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT: {}})
    files: dict[int, bytes] = field(default_factory=dict)
    links: dict[int, Link] = field(default_factory=dict)

    def copy(self) -> Image:
        return Image({node: dict(held) for node, held in self.directories.items()}, dict(self.files), self.links)

    def add(self, step: EntryStep) -> None:
        """Let the node of a create or mkdir exist, without a name yet: that is given by :meth:`apply`."""
        if isinstance(step, Create):
            self.files[step.node] = b""
        elif isinstance(step, MakeDirectory):
            self.directories[step.node] = {}

    def apply(self, step: EntryStep) -> None:
        """Take one step; where it makes no sense, because an earlier one is missing, nothing happens.

        As rename does, a file replaces a file that has the name; a directory whose name is taken is left out.
        """
        held = self.directories[step.parent]
        if isinstance(step, Create | HardLink | MakeDirectory):
            if self._free_for(step.node, held.get(step.name)):
                held[step.name] = step.node
        elif held.get(step.name) != step.node:
            return
        elif isinstance(step, Unlink):
            del held[step.name]
        elif isinstance(step, RemoveDirectory):
            if not self.directories[step.node]:
                del held[step.name]
        elif isinstance(step, Rename):
            into = self.directories[step.target]
            if into.get(step.new_name) == step.node:
                return  # two names of one file: rename leaves both
            if self._free_for(step.node, into.get(step.new_name)) and not self._is_below(step.target, step.node):
                del held[step.name]
                into[step.new_name] = step.node

    def _free_for(self, node: int, taken_by: int | None) -> bool:
        """Whether a name is free, or gives way: a file to a file, an empty directory to a directory."""
        if taken_by is None:
            return True
        if node in self.directories:
            return taken_by in self.directories and not self.directories[taken_by]
        return taken_by not in self.directories

    def _is_below(self, node: int, above: int) -> bool:
        if above not in self.directories:
            return False
        return node == above or any(self._is_below(node, held) for held in self.directories[above].values())

    def walk(self) -> Iterator[tuple[str, int]]:
        """Every path and the node that it leads to, parents first; what is held by no directory lies nowhere."""
        waiting = [(ROOT, "")]
        for node, prefix in waiting:
            for name, held in self.directories[node].items():
                yield prefix + name, held
                if held in self.directories:
                    waiting.append((held, f"{prefix}{name}/"))

    def paths(self) -> dict[int, str]:
        """Where each node lies, under one of its names."""
        return {ROOT: ".", **{node: path for path, node in self.walk()}}

    def what(self, node: int) -> bytes | Link | None:
        """What a node is, as in a tree."""
        return None if node in self.directories else self.links.get(node) or self.files[node]

    def tree(self) -> Tree:
        """What somebody sees who looks at it."""
        return {path: self.what(node) for path, node in self.walk()}


def with_data(base: bytes, steps: list[DataStep]) -> bytes:
    """The bytes of a file after some writes; what lies between two of them is zeros."""
    data = base
    for step in steps:
        if isinstance(step, Truncate):
            data = data[: step.length].ljust(step.length, b"\0")
        else:
            data = data[: step.offset].ljust(step.offset, b"\0") + step.data + data[step.offset + len(step.data) :]
    return data


def read_image(root: str) -> tuple[Image, dict[tuple[int, int], int]]:
    """What lies below a directory, and the node of each device and inode."""
    image, nodes = Image(), {_key(os.lstat(root)): ROOT}
    waiting = [(root, ROOT)]
    for folder, parent in waiting:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                node = nodes.setdefault(_key(entry.stat(follow_symlinks=False)), len(nodes))
                image.directories[parent][entry.name] = node
                if entry.is_symlink():
                    image.links[node] = Link(os.readlink(entry.path))
                elif entry.is_dir():
                    image.directories[node] = {}
                    waiting.append((entry.path, node))
                else:
                    image.files[node] = _read(entry.path)
    return image, nodes


def read_tree(root: str) -> Tree:
    """What lies below a directory."""
    return read_image(root)[0].tree()


def write_tree(tree: Tree, root: str) -> None:
    """Make a directory that holds the tree."""
    os.mkdir(root)
    for path, what in sorted(tree.items()):
        _write(what, f"{root}/{path}")


def write_image(image: Image, root: str) -> None:
    """Make a directory that holds the same, a file of several names as one file."""
    os.mkdir(root)
    names: dict[int, str] = {}
    for path, node in image.walk():
        full = f"{root}/{path}"
        if names.setdefault(node, full) == full:
            _write(image.what(node), full)
        else:
            os.link(names[node], full)


def _write(what: bytes | Link | None, path: str) -> None:
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
    return hashlib.blake2b(repr(sorted(tree.items())).encode("utf-8", "surrogateescape"), digest_size=16).digest()


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


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
