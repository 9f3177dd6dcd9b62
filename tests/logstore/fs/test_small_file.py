from __future__ import annotations

import errno
import os
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import UnreadableFileError
from logstore.fs import READ_FLAGS, kind_of_file, read_small_file, refusal, when_refused
from logstore.tunables import FIRST_READ_BYTES


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_small_file(f"{tmp_path}/none", 10) is None
    (tmp_path / "file").write_bytes(b"")
    assert read_small_file(f"{tmp_path}/file/below", 10) is None


@given(length=st.integers(0, 3000))
def test_files_up_to_the_limit_are_read_whole_and_larger_ones_are_refused(
    length: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "sized"
    data = bytes(n % 251 for n in range(length))
    path.write_bytes(data)
    if length <= 1500:
        assert read_small_file(str(path), 1500) == data
    else:
        with pytest.raises(UnreadableFileError, match="larger than 1500 bytes"):
            read_small_file(str(path), 1500)


def test_a_terabyte_is_refused_after_its_first_bytes(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as huge:
        huge.truncate(1 << 40)
    with pytest.raises(UnreadableFileError, match="larger than 4096 bytes"):
        read_small_file(str(path), 4096)


def test_a_fifo_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UnreadableFileError, match="is a FIFO"):
        read_small_file(f"{tmp_path}/fifo", 10)


def test_a_socket_a_directory_and_a_link_are_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{tmp_path}/socket")
        with pytest.raises(UnreadableFileError, match="a socket"):
            read_small_file(f"{tmp_path}/socket", 10)
    with pytest.raises(UnreadableFileError, match="is a directory"):
        read_small_file(str(tmp_path), 10)
    (tmp_path / "target").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(UnreadableFileError, match="symbolic link, which is not followed"):
        read_small_file(f"{tmp_path}/link", 10)


def test_a_device_is_refused() -> None:
    with pytest.raises(UnreadableFileError, match="a character device"):
        read_small_file("/dev/zero", 10)


def test_an_error_of_the_disk_is_given_in_the_systems_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"x")

    def broken(descriptor: int, length: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", broken)
    with pytest.raises(UnreadableFileError, match="cannot be read: Input/output error"):
        read_small_file(f"{tmp_path}/file", 10)


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(UnreadableFileError):
            read_small_file(f"{tmp_path}/fifo", 10)
    assert len(os.listdir("/proc/self/fd")) == before


def test_every_type_of_file_has_its_words() -> None:
    assert kind_of_file(stat.S_IFBLK | 0o600) == "a block device"
    assert kind_of_file(0) == "of an unknown type"
    assert refusal(OSError("no number")) == "cannot be read: no number"


@pytest.mark.parametrize("length", [FIRST_READ_BYTES - 1, FIRST_READ_BYTES, FIRST_READ_BYTES + 1])
def test_files_around_the_size_of_the_first_read_are_read_whole(tmp_path: Path, length: int) -> None:
    (tmp_path / "file").write_bytes(b"x" * length)
    assert read_small_file(f"{tmp_path}/file", 4096) == b"x" * length


def test_the_flags_for_reading_refuse_a_link_and_wait_for_no_fifo(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="symbolic links"):
        os.open(tmp_path / "link", READ_FLAGS)
    os.close(os.open(tmp_path / "fifo", READ_FLAGS))


@pytest.mark.parametrize(
    ("number", "broker"),
    [
        (errno.EACCES, "a broker that may not either"),
        (errno.EPERM, "a broker that may not either"),
        (errno.EIO, "a broker"),
    ],
)
def test_what_this_user_may_not_read_takes_a_log_dir_offline_only_where_its_broker_may_not_either(
    number: int, broker: str
) -> None:
    clause = refusal(OSError(number, os.strerror(number)))
    assert when_refused(f"orders-0 {clause}") == f"orders-0 {clause}; {broker} takes the log dir offline"
