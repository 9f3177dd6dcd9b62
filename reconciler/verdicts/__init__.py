"""The case table, and the one comparison of a disk with metadata in Python."""

from typing import TYPE_CHECKING

from logstore.parallel import lazy_exports

if TYPE_CHECKING:
    from reconciler.verdicts.advice import (
        ADVICE,
        DOUBT_CLAUSE,
        FLEET_ADVICE,
        IGNORED_FILE,
        Advice,
        Severity,
        advice_of,
        full_evidence,
        location_of,
        severity,
        severity_of,
        with_doubt,
    )
    from reconciler.verdicts.doubt import CLOCK_SKEW_MS, CLOCK_TOLERANCE_MS, DOUBTS, LATEST, Doubt, Times, doubt_of
    from reconciler.verdicts.join import Judged, KnownTopics, Row, broker_of, compare, fill_evidence
    from reconciler.verdicts.present import NOTHING_SHOWS, Neighbours, epoch_above, shown_present
    from reconciler.verdicts.ranking import Copy, Ranking, rank_copies
    from reconciler.verdicts.returning import reasons_for_distrust, wanted_again
    from reconciler.verdicts.table import (
        BENIGN,
        CASES,
        UNWANTED,
        URGENCY,
        JoinedRow,
        Verdict,
        case_number,
        plainly_in_order,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "advice": (
                "ADVICE",
                "advice_of",
                "Advice",
                "DOUBT_CLAUSE",
                "FLEET_ADVICE",
                "IGNORED_FILE",
                "Severity",
                "full_evidence",
                "location_of",
                "severity",
                "severity_of",
                "with_doubt",
            ),
            "doubt": ("CLOCK_SKEW_MS", "CLOCK_TOLERANCE_MS", "DOUBTS", "Doubt", "LATEST", "Times", "doubt_of"),
            "join": ("Judged", "KnownTopics", "Row", "broker_of", "compare", "fill_evidence"),
            "present": ("NOTHING_SHOWS", "Neighbours", "epoch_above", "shown_present"),
            "ranking": ("Copy", "Ranking", "rank_copies"),
            "returning": ("reasons_for_distrust", "wanted_again"),
            "table": (
                "BENIGN",
                "CASES",
                "JoinedRow",
                "UNWANTED",
                "URGENCY",
                "Verdict",
                "case_number",
                "plainly_in_order",
            ),
        },
    )

__all__ = [
    "ADVICE",
    "BENIGN",
    "CASES",
    "CLOCK_SKEW_MS",
    "CLOCK_TOLERANCE_MS",
    "DOUBTS",
    "DOUBT_CLAUSE",
    "FLEET_ADVICE",
    "IGNORED_FILE",
    "LATEST",
    "NOTHING_SHOWS",
    "UNWANTED",
    "URGENCY",
    "Advice",
    "Copy",
    "Doubt",
    "JoinedRow",
    "Judged",
    "KnownTopics",
    "Neighbours",
    "Ranking",
    "Row",
    "Severity",
    "Times",
    "Verdict",
    "advice_of",
    "broker_of",
    "case_number",
    "compare",
    "doubt_of",
    "epoch_above",
    "fill_evidence",
    "full_evidence",
    "location_of",
    "plainly_in_order",
    "rank_copies",
    "reasons_for_distrust",
    "severity",
    "severity_of",
    "shown_present",
    "wanted_again",
    "with_doubt",
]
