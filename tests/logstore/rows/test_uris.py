"""Files at URIs: what is listed, fetched and put there, and the sentence for each way in which a store fails."""

from __future__ import annotations

import io
import signal
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logstore import InventoryStoreError
from logstore.rows import check_uri, is_uri, list_uri, open_uri, path_of_uri, remove_uri, store_sentences, uris
from logstore.rows.uris import fetch, join_uri, put, uri_of_path
from tests.object_store import BUCKET, ObjectStore

FOLDER = f"s3://{BUCKET}/of all/".replace(" ", "%20")


def written(path: Path, data: bytes = b"rows") -> str:
    path.write_bytes(data)
    return str(path)


def test_a_uri_has_a_scheme_and_a_path_has_none() -> None:
    assert all(map(is_uri, ("s3://b/x", "S3A://b", "file:///x", "abfs://c@a.dfs.core.windows.net/x")))
    assert not any(map(is_uri, ("s3:/x.parquet", "/a/b://c", "./s3://b", "", "x=1://")))


def test_file_uris_are_paths_of_this_machine() -> None:
    assert path_of_uri("file:///a%20b/*.parquet") == "/a b/*.parquet"
    assert path_of_uri("file://localhost/a/") == "/a/"
    assert path_of_uri("s3://b/x") is None
    assert path_of_uri(uri_of_path("/ä b/%41")) == "/ä b/%41"
    with pytest.raises(InventoryStoreError, match="names the machine other"):
        path_of_uri("file://other/a")


def test_a_null_byte_is_refused_in_every_uri() -> None:
    for refuse, uri in ((path_of_uri, "file:///a%00b"), (open_uri, f"s3://{BUCKET}/a%00b"), (check_uri, "file:///%00")):
        with pytest.raises(InventoryStoreError, match=f"^{uri} has a null byte in it, written %00"):
            refuse(uri)
    assert path_of_uri("file:///a%2500") == "/a%00"


def test_what_is_put_is_listed_by_name_and_fetched(tmp_path: Path, s3: ObjectStore) -> None:
    names = ("z.parquet", "day=1/b c.parquet", "day=1/a%2F.parquet")
    for name in names:
        put(written(tmp_path / "source", name.encode()), join_uri(FOLDER, name))
    for folder in (FOLDER, FOLDER.rstrip("/"), FOLDER.replace("s3:", "s3a:"), f"{FOLDER}?region=us-east-1"):
        found = list_uri(folder)
        assert [each.name for each in found or ()] == sorted(names)
        for each in found or ():
            fetch(each.uri, str(tmp_path / "copy"))
            assert (tmp_path / "copy").read_bytes() == each.name.encode()
    assert [each[:2] for each in list_uri(join_uri(FOLDER, "z.parquet")) or ()] == [
        (join_uri(FOLDER, "z.parquet"), "z.parquet")
    ]
    assert list_uri(f"s3://{BUCKET}/nothing/") is None


def test_what_arrow_says_of_a_file_is_one_sentence_about_the_uri(s3: ObjectStore) -> None:
    system, path = open_uri(f"{FOLDER}x.parquet")
    uri, said = f"{FOLDER}x.parquet", f"^{FOLDER}x.parquet: No such file or directory$"
    with pytest.raises(InventoryStoreError, match=said), store_sentences(uri):
        system.open_input_file(path)


def test_what_is_removed_is_gone_with_all_that_is_in_it_and_nothing_else(tmp_path: Path, s3: ObjectStore) -> None:
    for folder in (FOLDER, f"file://{tmp_path}/of%20all/"):
        for name in ("a/1.parquet", "a/b/2.parquet", "ab.parquet", "c.parquet"):
            put(written(tmp_path / "source"), join_uri(folder, name))
        for name in ("a", "a", "c.parquet", "nothing"):
            remove_uri(join_uri(folder, name))
        assert [each.name for each in list_uri(folder) or ()] == ["ab.parquet"]
    s3.refusing = lambda method, path: method != "HEAD"
    with pytest.raises(InventoryStoreError, match="access is denied"):
        remove_uri(f"{FOLDER}ab.parquet")


def test_a_store_that_fails_some_times_or_is_slow_is_asked_again(tmp_path: Path, s3: ObjectStore) -> None:
    s3.failing, s3.waiting_s = 2, [4.0]
    put(written(tmp_path / "source"), f"{FOLDER}x.parquet")
    s3.failing, s3.waiting_s = 3, [4.0]
    fetch(f"{FOLDER}x.parquet", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == b"rows"
    assert (s3.failing, s3.waiting_s) == (0, [])


def test_a_store_that_always_fails_is_told_and_leaves_nothing(tmp_path: Path, s3: ObjectStore) -> None:
    s3.failing = 1000
    with pytest.raises(
        InventoryStoreError, match=r"^s3://fleet/x.parquet: the store failed at every try \(.*500.*\): "
    ):
        put(written(tmp_path / "source"), f"s3://{BUCKET}/x.parquet?region=us-east-1")
    s3.failing = 0
    assert list_uri(f"s3://{BUCKET}/") == []


def test_an_upload_that_breaks_in_its_middle_leaves_nothing(tmp_path: Path, s3: ObjectStore) -> None:
    parts = 0

    def refuse(method: str, path: str) -> bool:
        nonlocal parts
        parts += method == "PUT"
        return method == "PUT" and parts > 1

    s3.refusing = refuse
    with pytest.raises(InventoryStoreError, match="access is denied"):
        put(written(tmp_path / "source", bytes(12_000_000)), f"{FOLDER}x.parquet")
    assert parts > 1
    assert list_uri(f"s3://{BUCKET}/") == []


def test_an_interrupt_in_the_middle_of_an_upload_leaves_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[bytes] = []

    class Stream(io.BytesIO):
        def write(self, data: Any) -> int:
            signal.raise_signal(signal.SIGINT)
            return super().write(data)

        def close(self) -> None:
            shown.append(self.getvalue())
            super().close()

    store = SimpleNamespace(open_output_stream=lambda target, compression: Stream())
    monkeypatch.setattr(uris, "_open", lambda uri: (store, "fleet/x.parquet"))
    with pytest.raises(KeyboardInterrupt):
        put(written(tmp_path / "source"), f"{FOLDER}x.parquet")
    assert shown == [b"rows"]


def test_an_interrupt_while_the_thread_of_an_upload_starts_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        started.append(thread)
        raise KeyboardInterrupt

    def open_stream(target: str, compression: None) -> io.BytesIO:
        opened.append(target)
        return io.BytesIO()

    store = SimpleNamespace(open_output_stream=open_stream)
    monkeypatch.setattr(uris, "_open", lambda uri: (store, "fleet/x.parquet"))
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        put(written(tmp_path / "source"), f"{FOLDER}x.parquet")
    for thread in started:
        thread.join()
    assert (len(started), opened) == (1, [])


def test_a_file_that_cannot_take_its_name_on_this_machine_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "folder" / "x.parquet" / "full").mkdir(parents=True)
    with pytest.raises(InventoryStoreError, match=f"^{tmp_path}/folder/x.parquet: "):
        put(written(tmp_path / "source"), uri_of_path(f"{tmp_path}/folder/x.parquet"))
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["x.parquet"]
    put(written(tmp_path / "source"), uri_of_path(f"{tmp_path}/folder/y.parquet"))
    put(written(tmp_path / "source", b"newer"), uri_of_path(f"{tmp_path}/folder/y.parquet"))
    assert (tmp_path / "folder" / "y.parquet").read_bytes() == b"newer"


def test_refusals_are_one_sentence_each(tmp_path: Path, s3: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path / "source")
    for use in (lambda: put(source, "s3://absent/x.parquet"), lambda: list_uri("s3://absent/")):
        with pytest.raises(InventoryStoreError, match="there is no such bucket: check its name, and the endpoint"):
            use()
    with pytest.raises(InventoryStoreError, match=r"x\.parquet: No such file or directory"):
        fetch(f"{FOLDER}x.parquet", str(tmp_path / "copy"))
    s3.refusing = lambda method, path: True
    with pytest.raises(InventoryStoreError, match="access is denied: give credentials"):
        list_uri(FOLDER)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(
        InventoryStoreError, match=r"denied, and the environment names no credentials \(AWS_ACCESS_KEY_ID for example\)"
    ):
        list_uri(FOLDER)


def test_nobody_at_the_address_of_a_google_store_is_told_within_the_time_to_try_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nobody = "gs://anonymous@fleet/?endpoint_override=127.0.0.1:1&scheme=http"
    for uri in (f"{nobody}&retry_limit_seconds=1", nobody):
        with pytest.raises(InventoryStoreError, match=r"^gs://anonymous@fleet/: the store does not answer"):
            list_uri(uri)
        monkeypatch.setattr(uris, "STORE_TRIED_AGAIN_S", 1)


def no_name(*_: object) -> None:
    raise socket.gaierror("Name or service not known")


def test_google_without_credentials_is_told_at_once_and_its_library_does_not_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_ROOT", "GCE_METADATA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    for uri in ("gs://fleet/inventories/", "gcs://fleet/x.parquet?retry_limit_seconds=1"):
        with pytest.raises(InventoryStoreError, match=r"names no credentials \(GOOGLE_APPLICATION_CREDENTIALS for exa"):
            check_uri(uri)
    check_uri("gs://anonymous@fleet/")
    check_uri("gs://fleet/?endpoint_override=127.0.0.1:1")
    kept = tmp_path / ".config" / "gcloud" / "application_default_credentials.json"
    kept.parent.mkdir(parents=True)
    kept.write_text('{"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "t"}')
    check_uri("gs://fleet/")
    kept.unlink()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [])  # as on a machine of that cloud
    check_uri("gs://fleet/")


def test_azure_without_credentials_is_told_which_the_environment_may_name(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TOKEN_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")  # where a command of Azure's own might be logged in
    for path in ("", "/", "/inventories/", "/x.parquet"):
        with pytest.raises(InventoryStoreError, match=r"denied, .* no credentials \(AZURE_CLIENT_ID for example\)"):
            list_uri(f"abfs://fleet@nobody.dfs.core.windows.net{path}")
    assert capfd.readouterr().err == ""  # a shell would say that there is no az


def test_nobody_at_the_address_is_told() -> None:
    with pytest.raises(InventoryStoreError, match=r"the store does not answer .*: check the network and the endpoint"):
        list_uri(f"{FOLDER}?endpoint_override=127.0.0.1:1&scheme=http")


@pytest.mark.parametrize("error", [OSError(255, "[Errno 255] Unknown error"), OSError("HDFS connection failed")])
def test_what_only_hadoop_explains_is_no_unknown_error(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    def opened(uri: str) -> Any:
        raise error

    monkeypatch.setattr(uris, "_open", opened)
    with pytest.raises(
        InventoryStoreError, match=r"^hdfs://a:1/x/: the NameNode does not answer, or refuses: check host"
    ):
        list_uri("hdfs://a:1/x/")


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("ftp://host/x/", "begins with ftp://, which leads nowhere: s3, "),
        ("s3://key:secret@bucket/x/", r"^s3://…@bucket/x/ holds credentials, which reports would show"),
        ("s3://bucket/x/?endpoint=host", "Unexpected query parameter in S3 URI: 'endpoint'"),
        ("s3:///x/", "Missing bucket name in S3 URI"),
    ],
)
def test_a_uri_that_leads_nowhere_is_refused(uri: str, sentence: str) -> None:
    with pytest.raises(InventoryStoreError, match=sentence):
        check_uri(uri)
