"""From the disks that are mounted to an open store, as a broker starts (FACTS §1.5).

A log dir without ``meta.properties`` is new, or a disk that was replaced: it is formatted, in the scheme of the others.
One that holds something else stays out. A disk that fails is offline from the start; a broker without any log dir that
can be read does not start.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from layout import meta_properties
from layout.meta_properties import MetaProperties
from layout.scheme import Scheme
from logstore import Clock, LogStoreError, OfflineLogDirError
from logstore.fs import Disk
from logstore.log_dir import LogDir, read_identity
from logstore.store import LogStore, StoreOptions
from reconciler.simulator.machine.broker_settings import BrokerSettings
from reconciler.simulator.machine.host import short_path


def open_store(
    paths: Sequence[str],
    node_id: int,
    *,
    disk: Disk,
    clock: Clock,
    settings: BrokerSettings,
    say: Callable[[str], None],
) -> LogStore:
    """Open a broker's log dirs, and recover what a crash left in them.

    Args:
        paths: of its log dirs, in the order in which it is configured.
        node_id: goes into the ``meta.properties`` of a new one.
        disk: the primitive changes.
        clock: the machine's.
        settings: of the broker.
        say: told what was made, and what was left out.

    Raises:
        LogStoreError: none can be used, or they do not belong together.
    """
    usable, schemes = list(paths), list[str]()
    new = [path for path in paths if not os.path.lexists(f"{path}/{meta_properties.FILE_NAME}")]
    for path in paths:
        identity = None if path in new else read_identity(path).identity
        if identity is not None:
            schemes.append(identity.scheme or Scheme.FLAT)
    scheme = schemes[0] if schemes else settings.scheme
    for path in new:
        try:
            LogDir.format(path, MetaProperties(0, settings.cluster_id, node_id, None, scheme), disk=disk).close()
            say(f"{short_path(path)} is new, and is formatted")
        except OfflineLogDirError as error:
            say(f"{short_path(path)} is not formatted: {error}")
        except LogStoreError as error:
            usable.remove(path)
            say(f"{short_path(path)} is left out: {error}")
    return LogStore.open(usable, StoreOptions(clock=clock, settings=settings.delays, disk=disk, jobs=0))
