"""The log of a disk: it says what the system did, in words and for the model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from logstore import UnsafePathError
from tests.crash.by_path import ByPath
from tests.crash.crash_states import CrashState, crash_states
from tests.crash.images import Link, Tree, digest, read_tree, write_tree
from tests.crash.recording_disk import RecordingDisk
from tests.crash.steps import describe


def run(act: Callable[[ByPath], None], tree: Tree, root: Path) -> RecordingDisk:
    write_tree(tree, str(root))
    disk = RecordingDisk(str(root))
    act(ByPath(disk, str(root)))
    return disk


def test_without_a_crash_the_model_shows_what_the_system_shows(scratch: str) -> None:
    """Random steps on a real file system; those that the system refuses leave no trace in the log."""
    tried = 0
    for seed in range(40):
        random = Random(seed)
        root = f"{scratch}/{seed}"
        write_tree({"d": None, "d/e": None, "f": b"abc", "link": Link("f")}, root)
        recorder = RecordingDisk(root)
        disk = ByPath(recorder, root)
        for _ in range(40):
            _one_random_step(random, disk)
        recorder.assert_nothing_else_changed()
        every = list(crash_states(recorder.start, recorder.log, bound=20))
        tried += len(every)
        assert digest(read_tree(root)) in {digest(state.tree) for state in every}, f"seed {seed}"
    assert tried > 500


def _one_random_step(random: Random, disk: ByPath) -> None:
    paths = ["d", "f", "g", "d/e", "d/f", "d/g", "d/e/f", "d/e/g", "g/f", "link"]
    path, other = random.choice(paths), random.choice(paths)
    steps: list[Callable[[], None]] = [
        lambda: disk.create(path, b"x" * random.randrange(4)),
        lambda: disk.overwrite(path, b"yz", keep=random.choice([None, 0, 1, 5])),
        lambda: disk.mkdir(path),
        lambda: disk.rename(path, other),
        lambda: disk.link(path, other),
        lambda: disk.unlink(path),
        lambda: disk.rmdir(path),
        lambda: disk.sync(path),
        disk.barrier,
    ]
    try:
        random.choice(steps)()
    except (OSError, UnsafePathError):
        return


def test_a_tree_is_written_and_read_as_it_is(tmp_path: Path) -> None:
    tree: Tree = {"d": None, "d-": None, "d/f": b"\0\xff", "d/l": Link("../d-"), "d/\udcff": b""}
    write_tree(tree, str(tmp_path / "root"))
    assert read_tree(str(tmp_path / "root")) == tree


def test_steps_are_described_with_the_paths_of_their_time(tmp_path: Path) -> None:
    def act(disk: ByPath) -> None:
        disk.mkdir("a")
        disk.create("a/f", b"xyz")
        disk.rename("a", "d/b")
        disk.link("d/b/f", "g")
        disk.overwrite("d/b/f", b"x", keep=1)
        disk.sync("d")
        disk.unlink("d/b/f")
        disk.rmdir("d/b")
        disk.barrier()

    recorder = run(act, {"d": None}, tmp_path / "root")
    recorder.done("all")
    assert describe(recorder.log, recorder.start.paths()) == [
        "mkdir a",
        "create a/f",
        "write 3 bytes at 0 of a/f",
        "rename a -> d/b",
        "link d/b/f as g",
        "truncate d/b/f to 1 bytes",
        "write 1 bytes at 0 of d/b/f",
        "sync d",
        "unlink d/b/f",
        "rmdir d/b",
        "sync the file system",
        "-- done: all --",
    ]


def test_a_crash_says_what_was_lost_and_how(tmp_path: Path) -> None:
    recorder = run(lambda disk: disk.create("f", b"ab"), {}, tmp_path / "root")
    states: list[CrashState] = list(crash_states(recorder.start, recorder.log))
    assert {(state.steps, *state.lost.items()) for state in states} == {
        (0,),
        (1,),
        (2,),
        (2, (1, "cut short")),
        (2, (1, "zeros")),
    }
