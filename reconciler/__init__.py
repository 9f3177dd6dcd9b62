"""Desired against observed: what a cluster wants on its brokers' disks, held against what lies there.

A metadata source (``sources``) gives a :class:`DesiredState`, a scan by ``logstore`` gives rows, and the case table
(``verdicts``), the only place that decides, gives each replica its verdict: :func:`compare` walks it in Python,
:func:`audit` over whole fleets in DuckDB or Spark. What follows is done by request (:class:`Broker`) or by a reviewed
:class:`Plan`; ``preflight`` says what a real broker would do at its next start, and ``watch`` which verdicts change.
Each folder says in its own first line what it is for, and imports only from those on its right::

    cli → simulator, topic_ids → broker, watch → audit, preflight, plan → sources → protocol, verdicts → desired → text

``errors`` stands below them all.
"""

import logging
from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

# What is logged is for the handlers of the program that embeds this; without one, Python would print warnings.
logging.getLogger(__name__).addHandler(logging.NullHandler())

if TYPE_CHECKING:
    from reconciler.audit import AuditResult, audit
    from reconciler.broker import Broker
    from reconciler.desired import DesiredState
    from reconciler.errors import ReconcilerError
    from reconciler.plan import Plan
    from reconciler.sources import load
    from reconciler.verdicts import Judged, Verdict, compare
else:
    # The package audit is bound before the function of that name, which is what a user asks for.
    from reconciler import audit

    del audit
    __getattr__ = lazy_exports(
        __name__,
        {
            "audit": ("AuditResult", "audit"),
            "broker": ("Broker",),
            "desired": ("DesiredState",),
            "errors": ("ReconcilerError",),
            "plan": ("Plan",),
            "sources": ("load",),
            "verdicts": ("Judged", "Verdict", "compare"),
        },
    )

__all__ = [
    "AuditResult",
    "Broker",
    "DesiredState",
    "Judged",
    "Plan",
    "ReconcilerError",
    "Verdict",
    "audit",
    "compare",
    "load",
]
