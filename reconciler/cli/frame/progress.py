"""Progress on a terminal, silence everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from reconciler.text import visible

Item = TypeVar("Item")


def with_progress(items: Iterable[Item], total: int, doing: str) -> Iterator[Item]:
    """Hand on the items, and show on a terminal how many there were; nothing is shown of a single one or of none."""
    if total < 2 or not _on_terminal():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield from progress.track(items, total=total, description=visible(doing))


@contextmanager
def show_busy(doing: str) -> Iterator[None]:
    """Show on a terminal what is being done, as long as it takes."""
    if not _on_terminal():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(visible(doing))):
        yield


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
