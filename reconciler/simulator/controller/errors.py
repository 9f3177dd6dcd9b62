"""What can go wrong in a controller: a transition that is none, another controller, a crash that was asked for."""

from __future__ import annotations

from reconciler.errors import ReconcilerError


class ControllerError(ReconcilerError):
    """Root of what a simulated controller raises."""


class IllegalTransitionError(ControllerError):
    """A partition or a replica cannot go from the state it is in to the one that was asked for."""


class ControllerMovedError(ControllerError):
    """Another controller has written since: this one is fenced, and nothing of its write was done."""


class ControllerCrashError(ControllerError):
    """The settings ask for a crash at this step."""
