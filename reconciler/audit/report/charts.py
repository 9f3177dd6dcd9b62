"""The charts of the page as data: the space that can be reclaimed, and the heat map of brokers and verdicts.

Widths and heat are decided here; the template draws them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.audit.report.tallies import RECLAIMABLE, Broker, Cell
from reconciler.text import NOTHING, count, size, visible
from reconciler.verdicts import URGENCY, Severity, Verdict

WIDTH = 1000
"""Width of a chart, in the units of its view box."""

BARS_SHOWN = 20
BROKERS_SHOWN = 200

_HEAT = 5
"""Steps of the heat map, from the palest to the strongest."""

WORST_FIRST = (Severity.CRITICAL, Severity.ATTENTION, Severity.CALM, Severity.OK)


def worst(cells: Sequence[Cell]) -> Severity:
    """Return the gravest severity among cells; OK without any."""
    return min((cell.severity for cell in cells), key=WORST_FIRST.index, default=Severity.OK)


class BrokerNames:
    """How the page names brokers: by node.id, and by the cluster too where a node.id is there in several."""

    def __init__(self, brokers: Iterable[Broker]) -> None:
        """Take the brokers of the audit."""
        times = Counter(node for _, node in set(brokers))
        self._ambiguous = {node for node, number in times.items() if number > 1}

    def short(self, broker: Broker) -> str:
        """Name a broker where the column says that it is one: ``7``, ``7 of c1``, or the sign for nothing."""
        cluster, node = broker
        name = NOTHING if node is None else str(node)
        return f"{name} of {visible(cluster)}" if node in self._ambiguous and cluster else name

    def long(self, broker: Broker) -> str:
        """Name a broker in a sentence: ``broker 7``, ``no broker``."""
        return "no broker" if broker[1] is None else f"broker {self.short(broker)}"


def in_order(broker: Broker) -> tuple[str, int]:
    """Key by which brokers are sorted: by cluster and node.id, those without one first."""
    return broker[0] or "", -1 if broker[1] is None else broker[1]


def reclaimable(cells: Sequence[Cell], names: BrokerNames) -> Mapping[str, Any]:
    """Build the chart of the space that can be reclaimed: a bar for each broker, a part of it for each verdict.

    Brokers with the most come first; after :data:`BARS_SHOWN` of them, the others share one bar. Without any space to
    reclaim the mapping is empty.
    """
    by_broker: dict[Broker, dict[Verdict, int]] = {}
    for cell in cells:
        if cell.is_reclaimable and cell.disk_bytes:
            weights = by_broker.setdefault(cell.broker, {})
            weights[cell.verdict] = weights.get(cell.verdict, 0) + cell.disk_bytes
    if not by_broker:
        return {}
    found = sorted(by_broker.items(), key=lambda item: (-sum(item[1].values()), in_order(item[0])))
    most = sum(found[0][1].values())
    bars = [_bar(names.long(broker), weights, most) for broker, weights in found[:BARS_SHOWN]]
    rest = _added(weights for _, weights in found[BARS_SHOWN:])
    total = _added(by_broker.values())
    return {
        "bars": bars,
        "rest": {"number": len(found) - BARS_SHOWN, "size": size(sum(rest.values()))} if rest else {},
        "total": size(sum(total.values())),
        "brokers": len(found),
        "key": [
            {"verdict": each.value, "color": number, "size": size(total[each])}
            for number, each in enumerate(RECLAIMABLE, 1)
            if each in total
        ],
    }


def _added(several: Iterable[Mapping[Verdict, int]]) -> dict[Verdict, int]:
    added: dict[Verdict, int] = {}
    for weights in several:
        for verdict, weight in weights.items():
            added[verdict] = added.get(verdict, 0) + weight
    return added


def _bar(name: str, weights: Mapping[Verdict, int], most: int) -> Mapping[str, Any]:
    parts: list[Mapping[str, Any]] = []
    x, total = 0, sum(weights.values())
    so_far = 0
    for number, verdict in enumerate(RECLAIMABLE, 1):
        if verdict in weights:
            so_far += weights[verdict]
            end = round(so_far * WIDTH / most)
            text = f"{verdict.value} {size(weights[verdict])}"
            parts.append({"color": number, "x": x, "width": max(1, end - x), "text": text})
            x = end
    says = f"{name}: {', '.join(part['text'] for part in parts)}"
    return {"name": name, "parts": parts, "size": size(total), "says": says}


def heat_map(cells: Sequence[Cell], names: BrokerNames) -> Mapping[str, Any]:
    """Build the table of brokers and verdicts: the count of findings in each cell, and how strongly it is coloured.

    What a broker ignores takes a calm colour. Beyond :data:`BROKERS_SHOWN` only the brokers with the gravest and most
    findings are shown. Empty: there is no finding.
    """
    grouped: dict[Broker, dict[Verdict, list[Cell]]] = {}
    for cell in cells:
        grouped.setdefault(cell.broker, {}).setdefault(cell.verdict, []).append(cell)
    if not grouped:
        return {}
    columns = [each for each in URGENCY if any(each in row for row in grouped.values())]
    most = max(sum(cell.rows for cell in several) for row in grouped.values() for several in row.values())
    chosen = sorted(grouped, key=lambda broker: _badness(grouped[broker]), reverse=True)[:BROKERS_SHOWN]
    return {
        "verdicts": [
            {"name": each.value, "severity": worst([cell for cell in cells if cell.verdict is each]),
             "rows": count(sum(cell.rows for cell in cells if cell.verdict is each))}
            for each in columns
        ],
        "rows": [
            {
                "name": names.long(broker).removeprefix("broker "),
                "broker": names.short(broker),
                "cells": [_heat(grouped[broker].get(each, ()), most) for each in columns],
            }
            for broker in sorted(chosen, key=in_order)
        ],
        "more": len(grouped) - len(chosen),
    }  # fmt: skip


def _badness(row: Mapping[Verdict, Sequence[Cell]]) -> tuple[int, ...]:
    of_kind = dict.fromkeys(WORST_FIRST, 0)
    for cell in (cell for several in row.values() for cell in several):
        of_kind[cell.severity] += cell.rows
    return tuple(of_kind.values())


def _heat(several: Sequence[Cell], most: int) -> Mapping[str, Any]:
    rows = sum(cell.rows for cell in several)
    if not rows:
        return {}
    level = math.ceil(_HEAT * math.log1p(rows) / math.log1p(most))
    return {"rows": count(rows), "severity": worst(several), "level": level}
