"""A real file system, ext4 in an image that is mounted: a copy of the image while it is in use is a power cut.

What ext4 has not written yet is not in the copy; mounting the copy replays its journal, as after a power cut.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logstore.fs import Disk
from tests.crash import test_convert_crash, test_move_crash, test_namespace_crash, test_purge_crash, test_staging_crash
from tests.crash.engine_histories import OURS, SIBLING
from tests.crash.histories import History

IMAGE_BYTES = 24 << 20
MOST = 20
"""Power cuts in one history, spread over its steps."""

HISTORIES = [
    test_staging_crash.many(OURS),
    test_staging_crash.and_back(SIBLING),
    test_move_crash.move(OURS),
    test_purge_crash.purging(SIBLING, test_purge_crash.MANY),
    test_namespace_crash.delete(),
    test_namespace_crash.move_whole(target="com:shop"),
    test_convert_crash.HISTORIES[0],
]


class Watching(Disk):
    """Calls a function before every step."""

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before

    def __getattribute__(self, name: str) -> object:
        if name in vars(Disk) and not name.startswith("_"):
            object.__getattribute__(self, "_before")()
        return object.__getattribute__(self, name)


def run(*command: str | Path) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{command[0]}: {done.stderr.strip()}")


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    """Mount an image; ext4 writes its journal when it is asked to, not every five seconds by itself as well.

    Otherwise a slow machine would keep what nobody synced, or a part of it.
    """
    at.mkdir(exist_ok=True)
    run("mount", "-o", "loop,commit=3600", image, at)
    try:
        yield at
    finally:
        run("umount", at)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An empty ext4 in a file; the test is skipped where it cannot be mounted."""
    if os.geteuid() != 0:
        pytest.skip("only root mounts an image")
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    try:
        run("mkfs.ext4", "-q", path)
        with mounted(path, tmp_path / "try"):
            pass
    except OSError as error:
        pytest.skip(f"an image cannot be mounted here: {error}")
    return path


def cut_power(scenario: History, image: Path, folder: Path) -> list[tuple[Path, tuple[str, ...]]]:
    """Run a history on the image, and copy the image at some of its steps, with what was done by then."""
    steps, cuts, done = 0, list[tuple[Path, tuple[str, ...]]](), list[str]()

    def count() -> None:
        nonlocal steps
        steps += 1

    with mounted(image, folder / "mounted") as top:
        for name, disk in (("dry-run", Watching(count)), ("root", None)):
            os.mkdir(top / name)
            scenario.build(str(top / name))
            if disk is not None:
                scenario.act(str(top / name), disk, lambda text: None)
        os.sync()
        every, number = max(1, steps // MOST), 0

        def copy() -> None:
            nonlocal number
            number += 1
            if number % every == 0:
                path = folder / f"cut-{number}"
                shutil.copyfile(image, path)
                cuts.append((path, tuple(done)))

        scenario.act(str(top / "root"), Watching(copy), done.append)
        shutil.copyfile(image, folder / "cut-last")
    return [*cuts, (folder / "cut-last", tuple(done))]


@pytest.mark.root
@pytest.mark.parametrize("scenario", HISTORIES, ids=lambda scenario: scenario.name)
def test_after_a_power_cut_on_ext4_everything_is_as_it_should_be(
    scenario: History, image: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    cuts = cut_power(scenario, image, tmp_path)
    assert len(cuts) > MOST // 2
    record_property("power cuts on ext4", len(cuts))
    for path, done in cuts:
        restart(scenario, path, done, tmp_path)


def restart(scenario: History, path: Path, done: tuple[str, ...], folder: Path) -> None:
    """Mount what a power cut left, start, and look."""
    with mounted(path, folder / "after") as top:
        root = str(top / "root")
        scenario.recover(root, Disk())
        scenario.check(root, done)
    path.unlink()


@pytest.mark.root
def test_a_disk_that_syncs_nothing_is_found_out(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = HISTORIES[0]
    monkeypatch.setattr(Disk, "sync", lambda self, descriptor: None)
    monkeypatch.setattr(Disk, "sync_file_system", lambda self, descriptor: True)
    *_, (path, done) = cut_power(scenario, image, tmp_path)
    with pytest.raises(AssertionError, match="is not staged, as was said"):
        restart(scenario, path, done, tmp_path)
