"""Files at URIs, in an object store or another file system that Arrow reaches: listed, fetched, and put there whole.

Endpoint, region and credentials come from the environment, as Arrow and the store's own library have them, for S3
``AWS_ENDPOINT_URL``, ``AWS_REGION`` and ``AWS_PROFILE`` for example, or from the query of the URI, as in
``s3://bucket/folder/?endpoint_override=HOST:PORT&scheme=http``. Arrow itself tries again what a store fails at, for a
time that is bounded.

Arrow's file systems are loaded only where a URI is given, and so is what else only a store needs: every scan asks this
module whether a path is a URI.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from logstore.errors import InventoryStoreError, StoreDownError
from logstore.fs import TEMPORARY, Disk
from logstore.tunables import STORE_BYTES_AT_ONCE, STORE_TRIED_AGAIN_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyarrow.fs import FileSystem

SCHEMES = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")

_URI = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE | re.ASCII)
_WHOLE_AT_CLOSE = ("s3", "s3a", "gs", "gcs", "abfs", "abfss")
"""Stores where a file is seen only when it was closed, and where a rename would be a copy."""
_SAFE = "/=:@!$&'()*+,;~"
_RETRY_LIMIT = "retry_limit_seconds"

_DENIED = (
    *("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "EXPIRED_TOKEN", "HTTP status 403"),
    *("[AuthorizationFailure]", "[AuthenticationFailed]", "[AuthorizationPermissionMismatch]"),
    *("AuthenticationException", "OAuth2 access token", "Status(PERMISSION_DENIED", "Status(UNAUTHENTICATED"),
)
_UNREACHED = ("NETWORK_CONNECTION", "curlCode", "Could not connect", "Connection refused", "Status(UNAVAILABLE")
_FAILING = ("INTERNAL_FAILURE", "SERVICE_UNAVAILABLE", "SLOW_DOWN", "HTTP status 5")
_NO_HDFS, _OF_HADOOP = "HDFS connection failed", 255
"""What Arrow says, and the number that libhdfs gives, for an error of which only Hadoop's own words tell more."""
_NO_BUCKET = "there is no such bucket: check its name, and the endpoint"
_AWS = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
_GOOGLE = ("GOOGLE_APPLICATION_CREDENTIALS",)
_GOOGLE_ELSEWHERE = ("GOOGLE_GCLOUD_ADC_PATH_OVERRIDE", "GCE_METADATA_ROOT", "GCE_METADATA_HOST")
"""Further variables that say where Google's library finds credentials."""
_GOOGLE_FILE = "~/.config/gcloud/application_default_credentials.json"
_GOOGLE_HOST = "metadata.google.internal"
"""Where it finds them else: in a file of the user, and on a machine of that cloud, where this host is known."""
_AZURE_FROM = "AZURE_TOKEN_CREDENTIALS"
_AZURE = ("AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE")
_CREDENTIALS = {"s3": _AWS, "s3a": _AWS, "gs": _GOOGLE, "gcs": _GOOGLE, "abfs": _AZURE, "abfss": _AZURE}
"""Variables of which one is set where the environment names credentials; a machine in a cloud may have others."""


class FileAtUri(NamedTuple):
    """A file in a listing."""

    uri: str
    name: str
    """Its path below the folder that was listed; of a file that was named itself, its last component."""
    modified_ms: int | None = None
    """When the store got it, ms since 1970; None: it does not say."""


def is_uri(text: str) -> bool:
    """Whether a text is a URI, and no path."""
    return _URI.match(text) is not None


def path_of_uri(uri: str) -> str | None:
    """Return the path that a ``file`` URI names on this machine; None: it is another URI.

    Raises:
        InventoryStoreError: it names another machine, or no path that can be.
    """
    if not uri.lower().startswith("file://"):
        return None
    _refuse_null(uri)
    host, slash, path = uri[len("file://") :].partition("/")
    if host not in ("", "localhost"):
        raise InventoryStoreError(
            f"{uri} names the machine {host}, and file:// leads to files of this one: three slashes"
        )
    return unquote(slash + path)


def list_uri(uri: str) -> list[FileAtUri] | None:
    """List the files at and below a URI, in the order of their names; None: nothing is there.

    Raises:
        InventoryStoreError: the store cannot be reached, or refuses.
    """
    from pyarrow.fs import FileSelector, FileType

    with store_sentences(uri):
        system, path = _open(uri)
        # A bucket is not asked whether it is a file: without credentials Arrow's Azure ends the process at that.
        may_be_file = "/" in path.rstrip("/") and not _names_folder(uri)
        if may_be_file and system.get_file_info(path).type == FileType.File:
            return [FileAtUri(uri, os.path.basename(path))]
        # Only a listing says that a bucket is not there.
        try:
            below = system.get_file_info(FileSelector(path, recursive=True))
        except FileNotFoundError:
            return None
    files = ((each.path[len(path) :].lstrip("/"), each.mtime_ns) for each in below if each.type == FileType.File)
    return [
        FileAtUri(_below(uri, name), name, None if time_ns is None else time_ns // 1_000_000)
        for name, time_ns in sorted(files, key=lambda file: file[0])
    ]


def fetch(uri: str, path: str) -> None:
    """Copy the file at a URI to a new file on this machine.

    Raises:
        InventoryStoreError: the file is not there, or the store refuses.
        StoreDownError: the store cannot be reached, or the new file cannot be written.
    """
    try:
        with open(path, "wb") as out:
            for data in _pieces(uri):
                out.write(data)
    except OSError as error:
        folder = os.path.dirname(path)
        raise StoreDownError(
            f"{uri.partition('?')[0]} cannot be copied to {folder} ({error.strerror}): set TMPDIR to another place"
        ) from error


def _pieces(uri: str) -> Iterator[bytes]:
    with store_sentences(uri):
        system, source = _open(uri)
        with system.open_input_stream(source, compression=None) as file:
            while data := file.read(STORE_BYTES_AT_ONCE):
                yield data


def put(path: str, uri: str) -> None:
    """Copy a file of this machine to a URI, where it is seen whole or not at all; a file that is there is replaced.

    An object store shows a file when it is closed; that of Azure shows an empty one until then, which is no inventory.
    Elsewhere it is written under another name, and renamed.

    Raises:
        InventoryStoreError: it cannot be written there.
    """
    import pyarrow as pa

    with store_sentences(uri), pa.memory_map(path) as source:
        system, target = _open(uri)
        if _scheme(uri) in _WHOLE_AT_CLOSE:
            from concurrent.futures import ThreadPoolExecutor

            # In a thread, which no signal interrupts: a stream that is given up would be closed, and half a file seen.
            try:
                with ThreadPoolExecutor(1) as thread:
                    # Started before it writes: nobody waits for a thread at whose start an interrupt came.
                    thread.submit(bool).result()
                    thread.submit(_write_at_once, system, target, source.read_buffer()).result()
            except FileNotFoundError as error:
                raise InventoryStoreError(f"{uri.partition('?')[0]}: {_NO_BUCKET}") from error
            return
        system.create_dir(os.path.dirname(target), recursive=True)
        draft = f"{target}.{Disk().unique()}{TEMPORARY}"
        try:
            with system.open_output_stream(draft, compression=None) as out:
                while data := source.read(STORE_BYTES_AT_ONCE):
                    out.write(data)
            _sync(system, draft)
            system.move(draft, target)
        except BaseException:
            if system.get_file_info(draft).is_file:
                system.delete_file(draft)
            raise
        _sync(system, os.path.dirname(target))


def remove_uri(uri: str) -> None:
    """Remove the folder at a URI with all that is in it, or one file; what is not there is no error.

    Raises:
        InventoryStoreError: it cannot be removed.
    """
    from pyarrow.fs import FileType

    with store_sentences(uri):
        system, path = _open(uri)
        kind = system.get_file_info(path).type
        if kind == FileType.File:
            system.delete_file(path)
        elif kind == FileType.Directory:
            system.delete_dir(path)


def _write_at_once(system: FileSystem, target: str, data: pa.Buffer) -> None:
    with system.open_output_stream(target, compression=None) as out:
        out.write(data)


def join_uri(folder: str, *names: str) -> str:
    """Name a file below a folder, which is a URI that may have a query, or a path."""
    return _below(folder, "/".join(names)) if is_uri(folder) else os.path.join(folder, *names)


def uri_of_path(path: str) -> str:
    """Name a path of this machine as a URI."""
    return f"file://{quote(os.path.abspath(path), safe=_SAFE)}"


def check_uri(uri: str) -> None:
    """Check that a URI is well formed, and that this build of Arrow knows it; the store is not asked for files.

    Raises:
        InventoryStoreError: it is not, or the store of its region cannot be reached.
    """
    open_uri(uri)


def open_uri(uri: str) -> tuple[FileSystem, str]:
    """Return the file system that a URI leads to, and its path there; what that raises later is Arrow's own.

    Raises:
        InventoryStoreError: the URI is not well formed, or the store of its region cannot be reached.
    """
    with store_sentences(uri):
        return _open(uri)


def _open(uri: str) -> tuple[FileSystem, str]:
    import shutil

    from pyarrow.fs import FileSystem

    scheme = _scheme(uri)
    _refuse_null(uri)
    if scheme not in SCHEMES:
        raise InventoryStoreError(f"{uri} begins with {scheme}://, which leads nowhere: {', '.join(SCHEMES)} are known")
    if ":" in (urlsplit(uri).netloc.rpartition("@")[0]):
        shown = f"{scheme}://…@{urlsplit(uri).netloc.rpartition('@')[2]}{urlsplit(uri).path}"
        raise InventoryStoreError(f"{shown} holds credentials, which reports would show: put them into the environment")
    if scheme == "s3a":
        uri = f"s3{uri[3:]}"
    elif scheme in ("gs", "gcs"):
        if not _may_have_google_credentials(uri):
            raise InventoryStoreError(
                f"{uri.partition('?')[0]}: the environment names no credentials ({_GOOGLE[0]} for example), and no "
                "machine of Google's cloud gives any: give credentials that may list, read and write there"
            )
        if _RETRY_LIMIT not in uri:
            # Google's library tries for a quarter of an hour otherwise, and no interrupt reaches it.
            uri += f"{'&' if '?' in uri else '?'}{_RETRY_LIMIT}={STORE_TRIED_AGAIN_S}"
    elif scheme in ("abfs", "abfss") and shutil.which("az") is None:
        # Azure's library would ask the program az for a token, and a shell would say that there is none.
        os.environ.setdefault(_AZURE_FROM, "prod")
    found: tuple[FileSystem, str] = FileSystem.from_uri(uri)
    return found


def _may_have_google_credentials(uri: str) -> bool:
    """Whether Google's library can find credentials; where it cannot, it tries as long as at a store that is down."""
    given = any(map(os.environ.get, (*_GOOGLE, *_GOOGLE_ELSEWHERE))) or os.path.exists(os.path.expanduser(_GOOGLE_FILE))
    if given or "@" in urlsplit(uri).netloc or "endpoint_override" in uri:
        return True
    import socket

    try:
        socket.getaddrinfo(_GOOGLE_HOST, 80)
    except OSError:
        return False
    return True


def _refuse_null(uri: str) -> None:
    if "%00" in uri:
        raise InventoryStoreError(f"{uri} has a null byte in it, written %00, which no path and no store takes")


def _scheme(uri: str) -> str:
    return uri.partition(":")[0].lower()


def _names_folder(uri: str) -> bool:
    return uri.partition("?")[0].endswith("/")


def _below(folder: str, name: str) -> str:
    head, mark, query = folder.partition("?")
    return f"{head.rstrip('/')}/{quote(name, safe=_SAFE)}{mark}{query}"


def _sync(system: FileSystem, path: str) -> None:
    """Make a file's bytes or a folder's entries durable, where that is for this machine to do."""
    if system.type_name != "local":
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        Disk().sync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def store_sentences(uri: str) -> Iterator[None]:
    """Turn what Arrow raises into one sentence about the URI.

    Raises:
        InventoryStoreError, StoreDownError: it raised something.
    """
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        shown = path_of_uri(uri) or uri.partition("?")[0]
        raise _error(shown, _scheme(uri), error) from error


def _error(shown: str, scheme: str, error: Exception) -> InventoryStoreError:
    """Say why a store could not be used, and what to do; every level of Arrow puts its own place before the reason."""
    text = str(error)
    detail = (text.splitlines() or ["no reason was given"])[0].rpartition("Details: ")[2].rpartition(" operation: ")[2]
    denied = any(sign in text for sign in _DENIED)
    if not denied and any(sign in text for sign in _UNREACHED):
        return StoreDownError(
            f"{shown}: the store does not answer ({detail:.200}): check the network and the endpoint, then try again"
        )
    if not denied and any(sign in text for sign in _FAILING):
        return StoreDownError(f"{shown}: the store failed at every try ({detail:.200}): try again later")
    return InventoryStoreError(f"{shown}: {_refusal(scheme, error)}")


def _refusal(scheme: str, error: Exception) -> str:
    text = str(error)
    if _NO_HDFS in text or (isinstance(error, OSError) and error.errno == _OF_HADOOP):
        return "the NameNode does not answer, or refuses: check host and port (Hadoop's own words stand above)"
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    if "NO_SUCH_BUCKET" in text or re.search(r"[Bb]ucket '.*' not found", text):
        return f"{_NO_BUCKET} (AWS_ENDPOINT_URL)"
    if any(sign in text for sign in _DENIED):
        names = _CREDENTIALS.get(scheme, ())
        none = names and not any(map(os.environ.get, names))
        known = f", and the environment names no credentials ({names[0]} for example)" if none else ""
        return f"access is denied{known}: give credentials that may list, read and write there"
    if "libjvm" in text or "libhdfs" in text:
        return "hdfs:// needs a Java and Hadoop's libhdfs: set JAVA_HOME, HADOOP_HOME and CLASSPATH"
    return f"{text.splitlines()[0]:.300}" if text else "Arrow gives no reason"
