"""The errors of messages: malformed bytes, and versions that cannot express a message."""

from __future__ import annotations

from reconciler.errors import MetadataError, UsageError


class MalformedMessageError(MetadataError):
    """Bytes that are not the expected message: cut off, too long, or with impossible values."""


class UnsupportedVersionError(UsageError):
    """An unknown version, or one that cannot express the content of a message (UNSUPPORTED_VERSION, 35)."""
