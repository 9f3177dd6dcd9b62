"""What is wrong with each broker, in which order, and what to paste first: a screen of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.cli.examination import ExaminedBroker
from reconciler.cli.frame import Page, open_page
from reconciler.next_steps import Step
from reconciler.text import NOTHING, count, wrapped
from reconciler.verdicts import ADVICE, BENIGN, FLEET_ADVICE, Severity, Verdict, severity

WIDTH = 78
"""Characters in a line."""

_FIRST, _REST = 3, 12
"""Brokers shown in full, and lines of findings shown for each."""


def show_examination(brokers: Sequence[ExaminedBroker], output: str | None) -> None:
    """Write what was found of each broker, the ones with the most to do first."""
    ordered = sorted(brokers, key=lambda each: (each.is_clean, -len(each.steps)))
    with open_page(output) as page:
        for each in ordered[:_FIRST]:
            _broker(page, each)
        for each in ordered[_FIRST:]:
            steps = count(len(each.steps), "step")
            _text(page, f"{_name(each)}: {'nobody has to act' if each.is_clean else steps}; give its log dirs alone")


def _broker(page: Page, examined: ExaminedBroker) -> None:
    situation = examined.situation
    state = "a process has it open" if situation.in_use else "stopped"
    _text(page, f"{_name(examined)}, {count(len(situation.call.log_dirs), 'log dir')}, {state}", style="bold")
    if situation.trust_why:
        _text(page, f"metadata: {situation.trust_why}", "  ")
    _text(page, f"start: {examined.start.sentence}", "  ")
    for path in situation.full:
        _text(page, f"disk: {path} is full", "  ")
    _findings(page, examined)
    page.line()
    if examined.steps:
        _steps(page, examined.steps)
    elif examined.is_clean:
        page.line("Nothing has to be done.")
    else:
        _text(page, "No step follows from it; what is said above is for somebody to look at.")
    page.line()


def _name(examined: ExaminedBroker) -> str:
    if examined.node_id is None:
        return "log dirs that name no broker"
    return f"broker {examined.node_id} of cluster {examined.cluster_id or NOTHING}"


def _findings(page: Page, examined: ExaminedBroker) -> None:
    benign = {verdict.value for verdict in BENIGN}
    found = [name for name in examined.totals if name not in benign]
    for name in found[:_REST]:
        verdict = Verdict(name)
        ignored = verdict is Verdict.FOREIGN and not examined.situation.found[verdict].directories
        urgency = Severity.CALM if ignored else severity(verdict)
        head = f"{urgency}: {count(examined.totals[name])} {name}. {ADVICE[verdict].meaning}"
        _text(page, f"{head} First: {examined.evidence[name]}", "  ")
    for kind, subject, detail in examined.fleet[: max(0, _REST - len(found))]:
        _text(page, f"fleet: {kind}. {FLEET_ADVICE[kind].meaning} {subject}: {detail}", "  ")
    calm = [f"{examined.totals[name]} {name}" for name in examined.totals if name in benign]
    if calm:
        _text(page, f"nobody has to act on: {', '.join(calm)}", "  ")


def _steps(page: Page, steps: Sequence[Step]) -> None:
    page.line("What to do, in this order:", "bold")
    for number, step in enumerate(steps, 1):
        _text(page, f"{number}. {step.why}", "  ", "     ")
        if step.command is not None:
            for line in broken(step.command.text):
                page.line(f"     {line}", whole=True)
            if step.command.blanks:
                _text(page, f"(fill in {', '.join(step.command.blanks)})", "     ")


def broken(command: str) -> list[str]:
    r"""Break a command into lines that a shell joins again: each but the last ends with ``\``."""
    if len(command) <= WIDTH - 5 or "'" in command or '"' in command:
        return [command]  # a quoted word may hold spaces, at which nothing may be broken
    *lines, last = wrapped(command, WIDTH - 9)
    return [*(f"{'  ' if number else ''}{line} \\" for number, line in enumerate(lines)), f"  {last}"]


def _text(page: Page, text: str, first: str = "", rest: str = "", *, style: str = "") -> None:
    for line in wrapped(text, WIDTH, first, rest or f"{first}  "):
        page.line(line, style)
