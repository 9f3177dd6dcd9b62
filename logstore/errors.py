"""The errors of ``logstore``: one root; damage and misuse are kept apart."""

from __future__ import annotations


class LogStoreError(Exception):
    """Root of everything that ``logstore`` raises."""


class NotALogDirError(LogStoreError):
    """A path that was given as a log dir cannot be looked at as one: absent, a file, or not readable."""


class InventoryError(LogStoreError):
    """A file of rows that another run wrote is not one, is damaged, or has a schema version that is not known."""


class UnreadableFileError(LogStoreError):
    """A file of a log dir is no plain file, is larger than such a file can be, or the system refuses to read it."""
