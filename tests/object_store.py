"""An object store for tests: moto's S3 over loopback, which can be made to fail, to wait or to refuse."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

Answer = Callable[..., Any]

BUCKET = "fleet"


class ObjectStore:
    """A bucket in a server of this process; what is set here holds for the requests that come after."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self.url = ""
        self.failing = 0
        """So many requests are answered with 500."""
        self.waiting_s: list[float] = []
        """The next requests wait so long each."""
        self.refusing: Callable[[str, str], bool] = lambda method, path: False
        """Whether a request, by its method and path, gets 403."""

    def __call__(self, request: dict[str, Any], start: Answer) -> Iterable[bytes]:
        if self.waiting_s:
            time.sleep(self.waiting_s.pop(0))
        if self.failing:
            self.failing -= 1
            return _error(start, "500 Internal Server Error", "InternalError")
        if self.refusing(request["REQUEST_METHOD"], request["PATH_INFO"]):
            return _error(start, "403 Forbidden", "AccessDenied")
        answer: Iterable[bytes] = self._application(request, start)
        return answer

    def empty(self) -> None:
        """Begin anew, with one empty bucket and no trouble."""
        self.failing, self.waiting_s, self.refusing = 0, [], lambda method, path: False
        urlopen(Request(f"{self.url}/moto-api/reset", method="POST")).close()
        urlopen(Request(f"{self.url}/{BUCKET}", method="PUT")).close()

    def environment(self) -> dict[str, str]:
        """What a user sets to reach it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "of the tests",
            "AWS_SECRET_ACCESS_KEY": "of the tests",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run the server."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    store = ObjectStore(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, store, threaded=True)
    store.url = f"http://127.0.0.1:{server.port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _error(start: Answer, status: str, code: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "application/xml")])
    return [f"<Error><Code>{code}</Code><Message>{status}</Message></Error>".encode()]
