"""A pytest plugin that turns every skip into a failure of the run: ``-p tools.no_skips``.

A skip on a machine that should have everything hides a suite that no longer runs. Expected failures are no skips, and
tests marked ``root`` may skip: no set-up can give what they need, not even to root, where a container takes it away.
"""

from __future__ import annotations

from typing import Any

import pytest


class NoSkips:
    """Gathers what was skipped; under xdist the reports of all workers arrive at the controller."""

    def __init__(self) -> None:
        """Start with nothing skipped."""
        self.skipped: list[str] = []

    def _note(self, report: Any) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            self.skipped.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that was skipped."""
        if "root" not in report.keywords:
            self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that was skipped while it was collected."""
        self._note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run when anything was skipped."""
        if self.skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what was skipped, since the run fails for it."""
        if self.skipped:
            terminalreporter.section("skipped, which counts as a failure here")
            terminalreporter.write_line("\n".join(sorted(set(self.skipped))))


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin's state with this run."""
    config.pluginmanager.register(NoSkips(), "no-skips")
