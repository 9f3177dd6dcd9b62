"""The errors of ``wire``: bytes that are no such message, and messages that a version has no words for."""

from __future__ import annotations

from reconciler.errors import MetadataError, UsageError


class MalformedMessageError(MetadataError):
    """Bytes that are not the message they were said to be: cut off, too long, or of impossible values."""


class UnsupportedVersionError(UsageError):
    """A version that there is not, or one that cannot say what the message says (UNSUPPORTED_VERSION, 35)."""
