"""The endpoint that Prometheus asks: ``/metrics`` of one process, on loopback unless another host is named."""

from __future__ import annotations

import logging
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from reconciler.errors import UsageError
from reconciler.metrics import Readings, registry_of

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry

LOOPBACK = "127.0.0.1"
PATH = "/metrics"

_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.%\w]+\]|[^:\[\]\s]+):)?(?P<port>\d{1,5})")
_PATIENCE_S = 10.0
"""A client that takes longer to ask is left alone."""

logger = logging.getLogger("logstore.endpoint")


@contextmanager
def metrics_endpoint(address: str, current: Callable[[], Readings]) -> Iterator[str]:
    """Serve metrics while the block runs, in threads of their own; yield the URL.

    Args:
        address: ``[HOST:]PORT``; port 0 is any that is free.
        current: returns the readings of the moment, in whichever thread.

    Raises:
        UsageError: it is no address, or nothing can listen there.
    """
    host, port = parse_address(address)
    registry = registry_of(current)
    try:
        server = _Server(host, port, registry)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--metrics-listen {address}: nothing can listen there: {why}; name another port") from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="metrics", daemon=True)
    thread.start()
    try:
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def parse_address(text: str) -> tuple[str, int]:
    """Read ``[HOST:]PORT``; an address of IPv6 stands in brackets, and no host is loopback.

    Raises:
        UsageError: the text is no such address.
    """
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match["port"]) > 65535:
        raise UsageError(f"--metrics-listen: {text!r:.60} is no address: 9477, HOST:9477 or [::1]:9477 is expected")
    return (match["host"] or LOOPBACK).strip("[]"), int(match["port"])


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.registry = registry
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Listen without asking a name server what this machine is called, as the parent class would."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what is wrong here; that a client went away is nothing to say."""
        error = sys.exception()
        if not isinstance(error, OSError):
            logger.warning("metrics could not be given: %s: %s", type(error).__name__, error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _PATIENCE_S
    server_version, sys_version = "logstore", ""

    def do_GET(self) -> None:
        """Answer with the metrics in the form that was asked for."""
        from prometheus_client.exposition import choose_encoder

        if self.path.partition("?")[0] != PATH:
            self.send_error(404, explain=f"There is nothing but {PATH} here.")
            return
        encode, content_type = choose_encoder(self.headers.get("Accept", ""))
        body = encode(self.server.registry)
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_HEAD(self) -> None:
        """Answer as to GET, without the metrics."""
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Say nothing of a request: Prometheus asks every few seconds."""
