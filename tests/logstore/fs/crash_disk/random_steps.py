"""Short random histories of a disk, for two disks to be held against each other; every step may be one that fails."""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

from tests.crash.by_path import ByPath
from tests.crash.images import Tree, read_tree

Step = Callable[[ByPath], None]
NAMES = ("a", "b", "c")


def random_tree(random: Random) -> Tree:
    """Something to begin with, all of it durable."""
    tree: Tree = {}
    for name in random.sample(NAMES, random.randrange(4)):
        if random.random() < 0.5:
            tree[name] = b"0123456789"[: random.randrange(10)]
        else:
            tree[name] = None
            for below in random.sample(NAMES, random.randrange(3)):
                tree[f"{name}/{below}"] = None if random.random() < 0.3 else b"xyz"
    return tree


def build(tree: Tree) -> list[Step]:
    """The steps that make a tree, and make it durable."""
    steps: list[Step] = []
    for path, what in tree.items():
        if what is None:
            steps.append(lambda disk, path=path: disk.mkdir(path))  # type: ignore[misc]
        else:
            steps.append(lambda disk, path=path, what=what: disk.create(path, what))  # type: ignore[misc]
    return [*steps, lambda disk: disk.barrier()]


def random_steps(random: Random, count: int) -> list[Step]:
    """So many steps, drawn without regard to what is there."""
    return [_step(random) for _ in range(count)]


def did(step: Step, disk: ByPath) -> str:
    """Take a step; how it ended."""
    try:
        step(disk)
    except OSError as error:
        return os.strerror(error.errno or 0)
    return "done"


def left(path: str) -> Tree:
    return read_tree(path)


def _path(random: Random) -> str:
    return "/".join(random.choice(NAMES) for _ in range(random.choice((1, 1, 1, 2, 2, 3))))


def _step(random: Random) -> Step:
    path, other, data = _path(random), _path(random), bytes(random.choices(b"ABCDEFGH", k=random.randrange(7)))
    keep = random.choice((None, 0, 2, 20))
    kinds: list[Step] = [
        lambda disk: disk.create(path, data),
        lambda disk: disk.create(path, data),
        lambda disk: disk.overwrite(path, data, keep=keep),
        lambda disk: disk.mkdir(path),
        lambda disk: disk.rename(path, other),
        lambda disk: disk.rename(path, other),
        lambda disk: disk.link(path, other),
        lambda disk: disk.unlink(path),
        lambda disk: disk.unlink(path),
        lambda disk: disk.rmdir(path),
        lambda disk: disk.sync(os.path.dirname(path)),
        lambda disk: disk.sync(path),
    ]
    return random.choice(kinds) if random.random() > 0.02 else lambda disk: disk.barrier()
