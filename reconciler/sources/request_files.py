"""The files that requests lie in, whatever their form: ``FILE``, or ``FILE@N`` where broker N received the request.

What the bytes mean belongs to ``request_json`` and ``request_wire``, and what requests make a cluster want to
``request_state``. Source: KIP516-4.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence

from logstore.parallel import paused_gc
from reconciler.desired import DesiredState
from reconciler.errors import MetadataError, UsageError
from reconciler.protocol import LeaderAndIsrRequest
from reconciler.sources.request_state import Received, merge, receiver

MAX_REQUEST_BYTES = 256 << 20
"""A longer file is refused; 100 000 partitions take about 21 MB of JSON, and a quarter of that as bytes."""

_RECEIVER = re.compile(r"(.+)@([0-9]{1,9})", re.ASCII | re.DOTALL)


def load_requests(
    paths: Sequence[str], location: str, parse: Callable[[bytes, str], LeaderAndIsrRequest], scheme: str
) -> DesiredState:
    """Read requests and merge them into one state.

    Args:
        paths: ``FILE`` or ``FILE@N`` each.
        location: what was asked for, as it was given.
        parse: makes a request of a file's bytes and its name, which it uses in its errors.
        scheme: that of the source, for messages.

    Raises:
        UsageError: no such file; or it cannot be told who received a request, or which of two for one broker is newer.
        MetadataError: a file that cannot be read or parsed, or requests that contradict each other.
    """
    digest = hashlib.sha256()
    received = []
    with paused_gc():
        for path in paths:
            file, node_id = split_receiver(path)
            data = read_file(file)
            digest.update(data)
            request = parse(data, file)
            received.append(Received(request, receiver(request, file, scheme) if node_id is None else node_id, file))
        return merge(received, location, digest.hexdigest())


def split_receiver(path: str) -> tuple[str, int | None]:
    """The file, and the broker after ``@``; a file that has such a name itself is meant as it stands."""
    match = _RECEIVER.fullmatch(path)
    if match is None or os.path.lexists(path):
        return path, None
    return match[1], int(match[2])


def read_file(path: str) -> bytes:
    """All bytes of a file.

    Raises:
        UsageError: there is no such file.
        MetadataError: it cannot be read, or is longer than :data:`MAX_REQUEST_BYTES`.
    """
    if not os.path.lexists(path):
        raise UsageError(f"{path}: no such file")
    if not os.path.isfile(path):
        raise UsageError(f"{path} is not a file")
    try:
        with open(path, "rb") as file:
            # The size is asked for first, so that a file that is far too long costs nothing.
            too_long = os.fstat(file.fileno()).st_size > MAX_REQUEST_BYTES
            data = b"" if too_long else file.read(MAX_REQUEST_BYTES + 1)
    except OSError as error:
        raise MetadataError(f"{path} cannot be read: {error.strerror or error}") from error
    if too_long or len(data) > MAX_REQUEST_BYTES:
        raise MetadataError(f"{path} is longer than {MAX_REQUEST_BYTES} bytes, the most that is read of such a file")
    return data
