"""``examine`` looks at all disks of a broker and decides what comes next on it, which ``logstore doctor`` shows."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.cli.examination.examined_broker import ExaminedBroker, examine
    from reconciler.cli.examination.other_disks import with_not_given
else:
    __getattr__ = lazy_exports(
        __name__, {"examined_broker": ("ExaminedBroker", "examine"), "other_disks": ("with_not_given",)}
    )

__all__ = ["ExaminedBroker", "examine", "with_not_given"]
