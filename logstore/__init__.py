"""The engine: reads log dirs, and is the only code that changes them; ``LogStore`` is what a program embeds.

Looking takes no lock and changes nothing: :func:`scan` gives what lies in a log dir as rows, :class:`Watch` what
changed since the last look. Changing goes through :class:`LogDir`, one disk under its own lock, and :class:`LogStore`,
a broker's log dirs as one; only ``logstore.fs`` touches a disk. Each folder says in its own first line what it is for,
and imports only from those on its right::

    namespaces, repair, watch → store → purge, journal → staging → scan → log_dir → rows → fs → parallel

``errors`` (one root, and the Kafka error that each stands for), ``arguments`` (checks of what a caller
gives), ``clock`` and ``settings`` stand below them all.
"""

import logging
from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

# What is logged is for the handlers of the program that embeds this; without one, Python would print warnings.
logging.getLogger(__name__).addHandler(logging.NullHandler())

if TYPE_CHECKING:
    from logstore.arguments import check_argument, check_fields, check_path, check_paths
    from logstore.clock import Clock, ManualClock, SystemClock
    from logstore.errors import (
        ChangeFailedError,
        ChangeRefusedError,
        DamagedRecordError,
        InconsistentTopicIdError,
        InvalidArgumentError,
        InvalidNamespaceError,
        InventoryError,
        InventoryStoreError,
        KafkaError,
        LogDirInUseError,
        LogStoreError,
        NamespaceClashError,
        NameTakenError,
        NotALogDirError,
        OfflineLogDirError,
        StoreDownError,
        UnknownReplicaError,
        UnreadableFileError,
        UnsafePathError,
    )
    from logstore.log_dir import LogDir
    from logstore.scan import Observation, scan, scan_all
    from logstore.settings import DEFAULTS, DELETE_DELAY, STALE_DELAY, InvalidSettingError, Settings, parse_duration
    from logstore.store import LogStore, Replica, StoreOptions
    from logstore.watch import Watch
else:
    # The package scan is bound before the function of that name, which is what a user asks for.
    from logstore import scan

    del scan
    __getattr__ = lazy_exports(
        __name__,
        {
            "arguments": ("check_argument", "check_fields", "check_path", "check_paths"),
            "clock": ("Clock", "ManualClock", "SystemClock"),
            "errors": (
                "ChangeFailedError",
                "ChangeRefusedError",
                "DamagedRecordError",
                "InconsistentTopicIdError",
                "InvalidArgumentError",
                "InvalidNamespaceError",
                "InventoryError",
                "InventoryStoreError",
                "KafkaError",
                "LogDirInUseError",
                "LogStoreError",
                "NameTakenError",
                "NamespaceClashError",
                "NotALogDirError",
                "OfflineLogDirError",
                "StoreDownError",
                "UnknownReplicaError",
                "UnreadableFileError",
                "UnsafePathError",
            ),
            "log_dir": ("LogDir",),
            "scan": ("Observation", "scan", "scan_all"),
            "settings": (
                "DEFAULTS",
                "DELETE_DELAY",
                "InvalidSettingError",
                "STALE_DELAY",
                "Settings",
                "parse_duration",
            ),
            "store": ("LogStore", "Replica", "StoreOptions"),
            "watch": ("Watch",),
        },
    )

__all__ = [
    "DEFAULTS",
    "DELETE_DELAY",
    "STALE_DELAY",
    "ChangeFailedError",
    "ChangeRefusedError",
    "Clock",
    "DamagedRecordError",
    "InconsistentTopicIdError",
    "InvalidArgumentError",
    "InvalidNamespaceError",
    "InvalidSettingError",
    "InventoryError",
    "InventoryStoreError",
    "KafkaError",
    "LogDir",
    "LogDirInUseError",
    "LogStore",
    "LogStoreError",
    "ManualClock",
    "NameTakenError",
    "NamespaceClashError",
    "NotALogDirError",
    "Observation",
    "OfflineLogDirError",
    "Replica",
    "Settings",
    "StoreDownError",
    "StoreOptions",
    "SystemClock",
    "UnknownReplicaError",
    "UnreadableFileError",
    "UnsafePathError",
    "Watch",
    "check_argument",
    "check_fields",
    "check_path",
    "check_paths",
    "parse_duration",
    "scan",
    "scan_all",
]
