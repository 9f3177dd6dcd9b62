from __future__ import annotations

import ctypes
import errno
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logstore import UnsafePathError
from logstore.fs import DIRECTORY_FLAGS, Directory, mount_of
from logstore.fs import directory as directory_module


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def no_descriptor_is_left_open() -> Iterator[None]:
    """Whatever a test here does, an error included, closes what it opened."""
    before = open_descriptors()
    yield
    assert open_descriptors() == before


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Directory]:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "dangling").symlink_to("nowhere")
    with Directory.open(str(tmp_path)) as opened:
        yield opened


def test_a_path_that_the_user_gave_may_lead_through_links(top: Directory, tmp_path: Path) -> None:
    with Directory.open(f"{tmp_path}/link/") as opened, top.child("a") as direct:
        assert opened.key == direct.key
        assert opened.path == f"{tmp_path}/link"


def test_the_root_of_everything_has_a_path_that_children_can_be_named_by() -> None:
    with Directory.open("/") as root:
        assert (root.path, root.path_of("data")) == ("/", "/data")


@pytest.mark.parametrize(
    ("name", "error"), [("file", NotADirectoryError), ("none", FileNotFoundError), ("dangling", FileNotFoundError)]
)
def test_what_is_no_directory_is_not_opened(top: Directory, tmp_path: Path, name: str, error: type[OSError]) -> None:
    with pytest.raises(error):
        Directory.open(f"{tmp_path}/{name}")


def test_a_child_is_opened_and_a_file_or_nothing_is_the_systems_error(top: Directory) -> None:
    with top.child("a") as child:
        assert child.path == f"{top.path}/a"
        assert child.device == top.device
        assert [name for name, _ in child.entries()] == ["b"]
    with pytest.raises(NotADirectoryError):
        top.child("file")
    with pytest.raises(FileNotFoundError):
        top.child("none")


@pytest.mark.parametrize("name", ["link", "dangling"])
def test_a_child_is_never_opened_along_a_link(top: Directory, name: str) -> None:
    with pytest.raises(UnsafePathError, match=f"/{name} is a symbolic link, which is never followed"):
        top.child(name)


def test_a_fifo_or_a_socket_where_a_directory_should_be_blocks_nobody(top: Directory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(NotADirectoryError):
        top.child("fifo")


def test_below_goes_down_component_by_component_and_the_empty_path_is_the_directory_itself(top: Directory) -> None:
    with top.below("a/b/c") as deep, top.below("") as same:
        assert deep.path == f"{top.path}/a/b/c"
        assert same.key == top.key
        assert same.descriptor != top.descriptor


@pytest.mark.parametrize("path", ["link/b", "a/link", "dangling/x"])
def test_below_goes_along_no_link_at_any_level(top: Directory, tmp_path: Path, path: str) -> None:
    (tmp_path / "a" / "link").symlink_to("b")
    with pytest.raises(UnsafePathError, match="symbolic link"):
        top.below(path)


@pytest.mark.parametrize(("path", "error"), [("a/none/c", FileNotFoundError), ("file/x", NotADirectoryError)])
def test_below_closes_what_it_opened_where_it_fails(top: Directory, path: str, error: type[OSError]) -> None:
    with pytest.raises(error):
        top.below(path)


def test_a_directory_that_is_swapped_for_a_link_meanwhile_leads_nowhere_else(top: Directory, tmp_path: Path) -> None:
    """A descriptor stays with its directory; opening by name gives an error about the link."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").touch()
    with top.child("a") as held:
        os.rename(tmp_path / "a", tmp_path / "moved")
        (tmp_path / "a").symlink_to(elsewhere)
        assert [name for name, _ in held.entries()] == ["b"]
        with held.child("b") as child:
            assert [name for name, _ in child.entries()] == ["c"]
    with pytest.raises(UnsafePathError):
        top.child("a")


def test_a_directory_that_another_was_put_in_place_of_has_another_key(top: Directory, tmp_path: Path) -> None:
    with top.child("a") as first:
        os.rename(tmp_path / "a", tmp_path / "moved")
        (tmp_path / "a").mkdir()
        with top.child("a") as second:
            assert first.key != second.key


def test_the_status_of_a_link_is_its_own_and_of_nothing_is_none(top: Directory) -> None:
    status = top.status("link")
    assert status is not None
    assert stat.S_ISLNK(status.st_mode)
    assert top.status("none") is None
    assert [name for name in ("a", "file", "link", "dangling", "none") if top.holds(name)] == [
        *("a", "file", "link", "dangling")
    ]


def test_an_entry_is_a_directory_only_if_it_is_one_itself(top: Directory) -> None:
    assert sorted(top.entries()) == [("a", True), ("dangling", False), ("file", False), ("link", False)]
    assert top.plain_files() == ["file"]
    assert top.names() == {"a", "dangling", "file", "link"}


def test_directories_come_in_the_order_of_their_inodes_and_nothing_else_comes(tmp_path: Path) -> None:
    names = [f"orders-{number * 7919 % 50}" for number in range(50)]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "orders-0")
    with Directory.open(str(tmp_path)) as directory:
        assert directory.directories() == sorted(names, key=lambda name: (tmp_path / name).stat().st_ino)


def test_entries_may_be_removed_while_they_are_listed(top: Directory, tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / "a" / "b" / f"{number}").touch()
    with top.below("a/b") as directory:
        listed = 0
        for name, is_directory in directory.entries():
            if not is_directory:
                os.unlink(name, dir_fd=directory.descriptor)
                listed += 1
        assert listed == 3000
        assert list(directory.entries()) == [("c", True)]


def test_entries_of_one_open_directory_can_be_listed_twice(top: Directory) -> None:
    assert sorted(top.entries()) == sorted(top.entries()) != []


def test_a_name_that_is_no_utf_8_is_listed_and_opened(top: Directory, tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/\xff\xfe")
    (name,) = [name for name, _ in top.entries() if not name.isascii()]
    with top.child(name) as child:
        assert list(child.entries()) == []


def test_closing_twice_closes_once(top: Directory) -> None:
    child = top.child("a")
    number = child.descriptor
    child.close()
    with top.child("a") as other:
        assert other.descriptor == number
        child.close()
        assert list(other.entries()) == [("b", True)]


def test_no_descriptor_is_handed_to_a_program_that_is_started(top: Directory) -> None:
    with top.child("a") as child:
        assert not os.get_inheritable(top.descriptor)
        assert not os.get_inheritable(child.descriptor)


@pytest.fixture(params=["by the kernel", "by the device"])
def mounts_found(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a mount is found: by a call that only newer kernels have, or by the device alone."""
    if request.param == "by the device":
        monkeypatch.setattr(directory_module, "_SYSCALL", None)
    elif directory_module._SYSCALL is None:
        pytest.skip("this system has no such call")
    return str(request.param)


@pytest.mark.usefixtures("mounts_found")
def test_with_and_without_the_kernels_call_the_answers_are_the_same(top: Directory, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with top.child("a") as child, child.child("b") as below:
        assert not os.get_inheritable(below.descriptor)
    answers = {"link": UnsafePathError, "dangling": UnsafePathError, "none": FileNotFoundError}
    for name, error in {**answers, "file": NotADirectoryError, "fifo": NotADirectoryError, "nul\0": ValueError}.items():
        with pytest.raises(error):
            top.child(name)
    with pytest.raises(OSError, match="name too long"):
        top.child("x" * 256)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_a_call_that_the_kernel_lacks_or_a_sandbox_forbids_is_done_without(
    top: Directory, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(directory_module, "_SYSCALL", lambda *arguments: ctypes.set_errno(number) * 0 - 1)
    with top.below("a/b") as found:
        assert [name for name, _ in found.entries()] == ["c"]


@contextmanager
def mounted(tmp_path: Path, name: str, *how: str) -> Iterator[Path]:
    """Something mounted on a directory of that name."""
    point = tmp_path / name
    point.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *how, str(point)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)


@pytest.mark.root
@pytest.mark.usefixtures("mounts_found")
def test_another_file_system_is_never_entered(top: Directory, tmp_path: Path) -> None:
    with mounted(tmp_path, "a/b", "-t", "tmpfs", "none") as point:
        for path in ("a/b", "a/b/c"):
            with pytest.raises(UnsafePathError, match=r"mounted at .*/a/b; it is never entered"):
                top.below(path)
        with Directory.open(str(point)) as given:
            assert given.device != top.device


@pytest.mark.root
def test_a_bind_mount_of_the_same_file_system_is_never_entered_where_the_kernel_finds_it(
    top: Directory, tmp_path: Path, mounts_found: str
) -> None:
    with mounted(tmp_path, "bound", "--bind", str(tmp_path / "a")) as point:
        with Directory.open(str(point)) as bound, top.child("a") as original:
            assert bound.key == original.key
            assert mount_of(bound.descriptor) != mount_of(original.descriptor)
        if mounts_found == "by the kernel":
            with pytest.raises(UnsafePathError, match=r"mounted at .*/bound; it is never entered"):
                top.child("bound")
        else:
            top.child("bound").close()


def test_two_directories_of_one_mount_are_of_one_mount(top: Directory) -> None:
    with top.child("a") as child:
        assert mount_of(child.descriptor) == mount_of(top.descriptor) is not None
    assert mount_of(-1) is None


@pytest.mark.parametrize("name", ["link", "file"])
def test_the_flags_for_directories_refuse_a_link_and_a_file(top: Directory, name: str) -> None:
    os.close(os.open("a", DIRECTORY_FLAGS, dir_fd=top.descriptor))
    with pytest.raises(NotADirectoryError):
        os.open(name, DIRECTORY_FLAGS, dir_fd=top.descriptor)
